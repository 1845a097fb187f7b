// The edges as a person changes them: moved, added, deleted, undone. Pure; a state is never changed, but replaced.

const MOST_REMEMBERED = 200;

/**
 * @typedef {{edges: number[], cap: number|null}} Setting edges strictly increasing whole numbers >= 1
 * @typedef {{now: Setting, past: Setting[], future: Setting[]}} State
 */

/** @returns {State} */
export function stateOf(edges, cap = null) {
  return { now: { edges: [...edges], cap }, past: [], future: [] };
}

/** A change that undo goes back from. */
export function changed(state, now) {
  if (same(state.now, now)) return state;
  return { now, past: [...state.past, state.now].slice(-MOST_REMEMBERED), future: [] };
}

/** The same change, gone on with: a drag is one step of undo, however many moves it has. */
export function continued(state, now) {
  return { ...state, now };
}

export function undone(state) {
  if (!state.past.length) return state;
  const past = state.past.slice(0, -1);
  return { now: state.past[state.past.length - 1], past, future: [state.now, ...state.future] };
}

export function redone(state) {
  if (!state.future.length) return state;
  const [now, ...future] = state.future;
  return { now, past: [...state.past, state.now], future };
}

/** What came from elsewhere (the optimum, the twin): one step of undo. */
export function replaced(state, edges, cap) {
  return changed(state, { edges: [...edges], cap });
}

/** Between its neighbours, to a multiple of `snap` where one lies between them; at most `longest`. */
export function movedEdge(setting, index, to, { snap = 1, longest = Infinity } = {}) {
  const edges = [...setting.edges];
  const low = index ? edges[index - 1] + 1 : 1;
  const high = index + 1 < edges.length ? edges[index + 1] - 1 : Math.max(longest, edges[index]);
  edges[index] = snapped(to, low, high, snap);
  return { ...setting, edges };
}

export function movedCap(setting, to, { snap = 1, longest = Infinity } = {}) {
  return { ...setting, cap: snapped(to, 1, longest, snap) };
}

/** One more edge; the same setting where there is one already, or `most` are reached. */
export function addedEdge(setting, at, { snap = 1, longest = Infinity, most = Infinity } = {}) {
  const edge = snapped(at, 1, longest, snap);
  if (setting.edges.includes(edge) || setting.edges.length >= most) return setting;
  return { ...setting, edges: [...setting.edges, edge].sort((a, b) => a - b) };
}

/** One edge less; the last one stays: it holds the longest sequences. */
export function deletedEdge(setting, index) {
  if (setting.edges.length === 1) return setting;
  return { ...setting, edges: setting.edges.filter((_, i) => i !== index) };
}

/**
 * Edges as typed: whole numbers >= 1, in any order, separated by commas or blanks.
 * @returns {{edges: number[]|null, problem: string|null}}
 */
export function parsedEdges(text, most = Infinity) {
  const words = text.split(/[\s,;]+/).filter(Boolean);
  const wrong = words.find((word) => !/^\d{1,10}$/.test(word) || Number(word) < 1 || Number(word) > 2 ** 31 - 1);
  if (wrong !== undefined) return { edges: null, problem: `"${wrong}" is not a whole number of 1 or more.` };
  const edges = [...new Set(words.map(Number))].sort((a, b) => a - b);
  if (!edges.length) return { edges: null, problem: "Type at least one edge, such as 8, 20, 50." };
  if (edges.length > most) return { edges: null, problem: `${edges.length} edges typed: at most ${most}.` };
  return { edges, problem: null };
}

function snapped(value, low, high, snap) {
  const inside = Math.max(low, Math.min(high, Math.round(value)));
  if (snap <= 1) return inside;
  const near = Math.round(inside / snap) * snap;
  return [near, near + snap, near - snap].find((candidate) => candidate >= low && candidate <= high) ?? inside;
}

function same(a, b) {
  return a.cap === b.cap && a.edges.length === b.edges.length && a.edges.every((edge, i) => edge === b.edges[i]);
}
