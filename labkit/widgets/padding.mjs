// What bucket edges cost, from prefix sums of the length histogram: the numbers that follow the hand, every frame.
// Pure: no page, no widget. The rules are those of labkit/batching/groups.py; tests hold both against each other.
// All counts are whole numbers below 2^53, which a double holds exactly, so that equality is to the last digit.

/**
 * Prefix sums of a histogram.
 * @param {Float64Array} values (m,) distinct lengths, increasing
 * @param {Float64Array} counts (m,) sequences of each length
 */
export function prefixSums(values, counts) {
  const m = values.length;
  const countSums = new Float64Array(m + 1);
  const eventSums = new Float64Array(m + 1);
  for (let i = 0; i < m; i++) {
    countSums[i + 1] = countSums[i] + counts[i];
    eventSums[i + 1] = eventSums[i] + counts[i] * values[i];
  }
  return { values, countSums, eventSums, sequences: countSums[m], events: eventSums[m], longest: values[m - 1] };
}

/** How many of the distinct lengths are <= length. O(log m). */
export function atMost(values, length) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= length) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Rounded up to a multiple, at least one multiple: a padded width is at least 1. */
export function roundUp(value, multiple) {
  return Math.max(Math.ceil(value / multiple), 1) * multiple;
}

/** Edges under the cap: those above it collapse to one edge = cap. */
export function cappedEdges(edges, cap) {
  if (cap === null || edges[edges.length - 1] <= cap) return edges;
  return [...edges.filter((edge) => edge < cap), cap];
}

/** How the sequences of a bucket are cut into batches; null where not one row fits the budget. */
export function batchesOf(sequences, width, rules) {
  let most = rules.rows;
  if (rules.budget !== null) {
    most = Math.floor(rules.budget / width);
    const rounded = most - (most % rules.rowMultiple);
    if (rounded > 0) most = rounded;
    if (most === 0 && !rules.singleRow) return null;
    most = Math.max(most, 1);
  }
  if (sequences === 0) return { batches: 0, rows: most, ghosts: 0 };
  const batches = Math.ceil(sequences / most);
  if (!rules.isStatic) return { batches, rows: most, ghosts: 0 };
  const least = Math.ceil(sequences / batches);
  const up = Math.ceil(least / rules.rowMultiple) * rules.rowMultiple;
  const rows = up <= most ? up : least;
  return { batches, rows, ghosts: batches * rows - sequences };
}

/**
 * The figures of one epoch in buckets padded to their edge. O(K log m).
 * @param {ReturnType<typeof prefixSums>} sums
 * @param {number[]} edges strictly increasing whole numbers >= 1, upper-inclusive
 * @param {{cap: number|null, lengthMultiple: number, overflow: "error"|"truncate"|"drop", budget: number|null,
 *          rows: number, rowMultiple: number, singleRow: boolean, isStatic: boolean}} rules
 * @returns {{problem: string|null, slots: number, kept: number, padding: number, lost: number, truncated: number,
 *            dropped: number, batches: number, ghosts: number, buckets: object[]}} problem: why the policy would be
 *            refused; the other figures are then those of the buckets that there are
 */
export function figuresOf(sums, edges, rules) {
  const own = cappedEdges(edges, rules.cap);
  const last = own[own.length - 1];
  const takesLonger = rules.overflow !== "drop" || (rules.cap !== null && rules.cap <= last);
  const total = { slots: 0, kept: 0, truncated: 0, batches: 0, ghosts: 0 };
  const buckets = [];
  let problem = overflowProblem(sums, last, rules);
  let from = 0;
  own.forEach((edge, k) => {
    const to = k === own.length - 1 && takesLonger ? sums.values.length : atMost(sums.values, edge);
    const bucket = bucketOf(sums, from, to, edge, rules);
    if (bucket.problem && problem === null) problem = bucket.problem;
    buckets.push(bucket);
    for (const name of Object.keys(total)) total[name] += bucket[name];
    from = to;
  });
  const dropped = sums.sequences - sums.countSums[from];
  const padding = total.slots ? Math.max(0, 1 - total.kept / total.slots) : 0;
  return { problem, ...total, padding, lost: sums.events - total.kept, dropped, buckets };
}

/** One bucket: the distinct lengths from .. to - 1, of which the events up to the edge are kept. */
function bucketOf(sums, from, to, edge, rules) {
  const { countSums, eventSums } = sums;
  const sequences = countSums[to] - countSums[from];
  const cut = Math.min(Math.max(atMost(sums.values, edge), from), to);
  const truncated = countSums[to] - countSums[cut];
  const kept = eventSums[cut] - eventSums[from] + edge * truncated;
  const width = roundUp(edge, rules.lengthMultiple);
  const split = batchesOf(sequences, width, rules);
  const { batches, rows, ghosts } = split ?? { batches: 0, rows: 0, ghosts: 0 };
  const slots = (sequences + ghosts) * width;
  const problem = split ? null : `width ${width} is above the token budget ${rules.budget}`;
  const padding = slots ? 1 - kept / slots : 0;
  return { edge, width, sequences, rows, batches, slots, kept, truncated, ghosts, padding, problem };
}

function overflowProblem(sums, last, rules) {
  const longest = rules.cap === null ? sums.longest : Math.min(rules.cap, sums.longest);
  if (rules.overflow !== "error" || longest <= last) return null;
  const above = sums.sequences - sums.countSums[atMost(sums.values, last)];
  return `longest length ${longest} is above the last edge ${last} (${above} sequences)`;
}

/** Slots of the sequences longer than `low` and up to `high`, padded to `high` (or to the cap). O(log m). */
export function slotsBetween(sums, low, high, rules) {
  const capped = rules.cap === null ? high : Math.min(high, rules.cap);
  const beyond = rules.cap !== null && high >= rules.cap ? sums.values.length : atMost(sums.values, high);
  const sequences = sums.countSums[beyond] - sums.countSums[atMost(sums.values, low)];
  return Math.max(0, sequences) * roundUp(capped, rules.lengthMultiple);
}

/**
 * How far each inner edge may move while its two buckets together cost at most `share` of all slots more than now.
 * The last edge is where the data or the cap ends, so that it has no room of its own.
 * @returns {({low: number, high: number}|null)[]} one an edge. O(m).
 */
export function roomOf(sums, edges, rules, share = 0.01) {
  const all = figuresOf(sums, edges, { ...rules, isStatic: false, overflow: "truncate" }).slots;
  return edges.map((edge, k) => {
    if (k === edges.length - 1 || (rules.cap !== null && edge >= rules.cap)) return null;
    const below = k ? edges[k - 1] : 0;
    const above = edges[k + 1];
    const cost = (at) => slotsBetween(sums, below, at, rules) + slotsBetween(sums, at, above, rules);
    const most = cost(edge) + share * all;
    const room = { low: edge, high: edge };
    for (let i = atMost(sums.values, edge) - 1; i >= 0 && sums.values[i] > below; i--) {
      if (sums.values[i] >= edge) continue;
      if (cost(sums.values[i]) > most) break;
      room.low = sums.values[i];
    }
    for (let i = atMost(sums.values, edge); i < sums.values.length && sums.values[i] < above; i++) {
      if (cost(sums.values[i]) > most) break;
      room.high = sums.values[i];
    }
    return room;
  });
}

/** The length at which one more edge saves the most slots; null where none saves any. O(m). */
export function bestNewEdge(sums, edges, rules) {
  let best = null;
  let saved = 0;
  let below = 0;
  for (const edge of edges) {
    const now = slotsBetween(sums, below, edge, rules);
    for (let i = atMost(sums.values, below); i < sums.values.length && sums.values[i] < edge; i++) {
      const at = sums.values[i];
      if (at < 1) continue;
      const saves = now - slotsBetween(sums, below, at, rules) - slotsBetween(sums, at, edge, rules);
      if (saves > saved) [best, saved] = [at, saves];
    }
    below = edge;
  }
  return best;
}

/** Slots above the optimum for this number of edges, as a share of it; null where the optimum is not known. */
export function aboveOptimum(slots, edges, curve) {
  const best = curve[Math.min(edges, curve.length) - 1];
  return best ? slots / best - 1 : null;
}
