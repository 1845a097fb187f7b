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
  if (isSame(state.now, now)) return state;
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

/**
 * The lengths that a handle may have: between its neighbours; the last edge and the cap up to `longest`.
 * @param {"edge"|"cap"} kind
 */
export function spanOf(setting, kind, index, { longest = Infinity } = {}) {
  if (kind === "cap") return { low: 1, high: Math.max(longest, setting.cap), end: longest };
  const { edges } = setting;
  const isLast = index + 1 === edges.length;
  const high = isLast ? Math.max(longest, edges[index]) : edges[index + 1] - 1;
  return { low: index ? edges[index - 1] + 1 : 1, high, end: isLast ? longest : Infinity };
}

/** A handle at `to`, or as near as its neighbours and `snap` let it. */
export function moved(setting, kind, index, to, limits = {}) {
  return placed(setting, kind, index, snapped(to, spanOf(setting, kind, index, limits), limits.snap ?? 1));
}

/**
 * A handle some lengths further, to the right or with `by` < 0 to the left: at least one multiple of `snap` in that
 * direction where there is one, never in the other.
 */
export function stepped(setting, kind, index, by, limits = {}) {
  const now = kind === "cap" ? setting.cap : setting.edges[index];
  const { low, high, end } = spanOf(setting, kind, index, limits);
  const ahead = by < 0 ? { low, high: now - 1, end } : { low: now + 1, high, end };
  const hasStops = stopNear(low, { low, high, end }, limits.snap ?? 1) !== null;
  const to = hasStops ? stopNear(now + by, ahead, limits.snap ?? 1) : Math.max(low, Math.min(high, now + by));
  return to === null ? setting : placed(setting, kind, index, to);
}

function placed(setting, kind, index, to) {
  if (kind === "cap") return { ...setting, cap: to };
  return { ...setting, edges: setting.edges.map((edge, i) => (i === index ? to : edge)) };
}

/** One more edge; the same setting where there is one already, or `most` are reached. */
export function addedEdge(setting, at, { snap = 1, longest = Infinity, most = Infinity } = {}) {
  const edge = snapped(at, { low: 1, high: longest, end: longest }, snap);
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
 * @returns {{edges: number[]|null, problem: string|null, note: string|null}} note: what was left out
 */
export function parsedEdges(text, most = Infinity) {
  const refused = (problem) => ({ edges: null, problem, note: null });
  const words = text.split(/[\s,;]+/).filter(Boolean);
  const wrong = words.find((word) => !/^\d{1,10}$/.test(word) || Number(word) < 1 || Number(word) > 2 ** 31 - 1);
  if (wrong !== undefined) return refused(`"${wrong}" is not a whole number of 1 or more.`);
  const times = new Map();
  for (const edge of words.map(Number).sort((a, b) => a - b)) times.set(edge, (times.get(edge) ?? 0) + 1);
  const edges = [...times.keys()];
  if (!edges.length) return refused("Type at least one edge, such as 8, 20, 50.");
  if (edges.length > most) return refused(`${edges.length} edges typed: at most ${most}.`);
  const twice = [...times].filter(([, n]) => n > 1).map(([edge, n]) => `${edge} ${n === 2 ? "twice" : `${n} times`}`);
  return { edges, problem: null, note: twice.length ? `${twice.join(", ")}: kept once.` : null };
}

/** The nearest place within low .. high: a multiple of `snap` or the end of the data, anywhere where there is none. */
function snapped(value, span, snap) {
  return stopNear(value, span, snap) ?? Math.max(span.low, Math.min(span.high, Math.round(value)));
}

/** The stop within low .. high that is nearest: a multiple of `snap`, or the end of the data; null: there is none. */
function stopNear(value, { low, high, end }, snap) {
  const first = Math.ceil(low / snap) * snap;
  const last = high === Infinity ? Infinity : Math.floor(high / snap) * snap;
  const near = Math.max(low, Math.min(high, value));
  const wanted = Math.round(near / snap) * snap;
  const stops = first <= last ? [Math.max(first, Math.min(last, wanted))] : [];
  if (end >= low && end <= high && end < Infinity) stops.push(end);
  if (!stops.length) return null;
  return stops.reduce((best, stop) => (Math.abs(stop - near) < Math.abs(best - near) ? stop : best));
}

export function isSame(a, b) {
  return a.cap === b.cap && a.edges.length === b.edges.length && a.edges.every((edge, i) => edge === b.edges[i]);
}
