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
 *            dropped: number, batches: number, ghosts: number, beyond: number, buckets: object[]}} problem: why the
 *            policy would be refused, in Python's words; the other figures are then those of the buckets that there
 *            are. truncated, dropped: sequences; beyond: those that, capped, are still longer than the last edge
 */
export function figuresOf(sums, edges, rules) {
  const own = cappedEdges(edges, rules.cap);
  const last = own[own.length - 1];
  const isCapped = rules.cap !== null && rules.cap <= last; // nothing is longer than the last edge
  const total = { slots: 0, kept: 0, truncated: 0, batches: 0, ghosts: 0 };
  const buckets = [];
  let from = 0;
  own.forEach((edge, k) => {
    const to = k === own.length - 1 && (isCapped || rules.overflow !== "drop") ? sums.values.length : atMost(sums.values, edge);
    const bucket = bucketOf(sums, from, to, edge, rules);
    buckets.push(bucket);
    for (const name of Object.keys(total)) total[name] += bucket[name];
    from = to;
  });
  const beyond = isCapped ? 0 : sums.sequences - sums.countSums[atMost(sums.values, last)];
  const dropped = sums.sequences - sums.countSums[from];
  const padding = total.slots ? Math.max(0, 1 - total.kept / total.slots) : 0;
  const problem = overflowProblem(sums, last, beyond, rules) ?? widthProblem(buckets, rules);
  return { problem, ...total, padding, lost: sums.events - total.kept, dropped, beyond, buckets };
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
  const padding = slots ? 1 - kept / slots : 0;
  return { edge, width, sequences, rows, batches, slots, kept, truncated, ghosts, padding, fits: split !== null };
}

function overflowProblem(sums, last, beyond, rules) {
  if (rules.overflow !== "error" || !beyond) return null;
  const longest = rules.cap === null ? sums.longest : Math.min(rules.cap, sums.longest);
  return (
    `longest length ${longest} > last bucket edge ${last} (${beyond} of ${sums.sequences} sequences above it): ` +
    "raise the last edge, set max_length, or choose overflow 'truncate' or 'drop'."
  );
}

function widthProblem(buckets, rules) {
  const wide = buckets.filter((bucket) => !bucket.fits).length;
  if (!wide) return null;
  const { width } = buckets[buckets.length - 1];
  const others = wide > 1 ? ` (${wide} of ${buckets.length} buckets are too wide)` : "";
  return (
    `bucket width ${width} is above token_budget ${rules.budget}, so not one row fits${others}: ` +
    `raise token_budget to ${width} or more, set max_length, or choose oversize 'single_row'.`
  );
}

/**
 * How far each inner edge may move while its two buckets together cost at most `share` of all slots more than now,
 * at every step on the way. The last edge is where the data or the cap ends, so that it has no room of its own.
 * @returns {({low: number, high: number}|null)[]} one an edge. O(m).
 */
export function roomOf(sums, edges, rules, share = 0.01) {
  const all = figuresOf(sums, edges, { ...rules, isStatic: false, overflow: "truncate" }).slots;
  return edges.map((edge, k) => {
    if (k === edges.length - 1 || (rules.cap !== null && edge >= rules.cap)) return null;
    return roomBetween(sums, k ? edges[k - 1] : 0, edge, edges[k + 1], rules, share * all);
  });
}

/** Between two lengths that occur, the cost is linear in the width, so that one step takes all of them. */
function roomBetween(sums, below, edge, above, rules, more) {
  const { values, countSums } = sums;
  const { lengthMultiple, cap } = rules;
  const top = cap === null ? above : Math.min(above, cap);
  const start = below ? countSums[atMost(values, below)] : 0; // empty sequences take rows of the first bucket
  const end = cap !== null && above >= cap ? sums.sequences : countSums[atMost(values, above)];
  const wide = roundUp(top, lengthMultiple);
  const cost = (at, upTo) => (upTo - start) * roundUp(at, lengthMultiple) + (end - upTo) * wide;
  let i = atMost(values, edge); // values[i - 1] <= edge < values[i]
  const most = cost(edge, countSums[i]) + more;
  let low = edge;
  for (let j = i; ; j--) {
    low = j ? Math.max(values[j - 1], below + 1) : below + 1; // narrower with the same sequences: never more
    if (low === below + 1 || cost(low - 1, countSums[j - 1]) > most) break;
  }
  let high = edge;
  for (; high < top - 1; i++) {
    const last = Math.min(i < values.length ? values[i] - 1 : Infinity, top - 1);
    high = furthest(last, high, lengthMultiple, (at) => cost(at, countSums[i]) <= most);
    if (high < last || high === top - 1 || cost(values[i], countSums[i + 1]) > most) break;
    high = values[i];
  }
  return { low, high };
}

/** The largest length up to `last` that is within; `from` is. Of equal widths all or none are. O(log). */
function furthest(last, from, multiple, isWithin) {
  if (isWithin(last)) return last;
  let [inside, outside] = [Math.ceil(from / multiple), Math.ceil(last / multiple)];
  while (outside - inside > 1) {
    const middle = Math.floor((inside + outside) / 2);
    if (isWithin(middle * multiple)) inside = middle;
    else outside = middle;
  }
  return Math.max(from, inside * multiple);
}

/** The length at which one more edge saves the most slots; null where none saves any. O(m). */
export function bestNewEdge(sums, edges, rules) {
  const { values, countSums } = sums;
  const widthOf = (edge) => roundUp(edge, rules.lengthMultiple);
  let best = null;
  let saved = 0;
  let below = 0;
  for (const edge of cappedEdges(edges, rules.cap)) {
    const start = below ? atMost(values, below) : 0;
    for (let i = start; i < values.length && values[i] < edge; i++) {
      const saves = (countSums[i + 1] - countSums[start]) * (widthOf(edge) - widthOf(values[i]));
      if (values[i] >= 1 && saves > saved) [best, saved] = [values[i], saves];
    }
    below = edge;
  }
  return best;
}

/**
 * Slots above the optimum for this number of edges, as a share of it, 0 only where they are equal; null where the two
 * are not to be compared: the optimum is not known, the edges are refused, or they leave out what the optimum holds.
 * @param {number[]|undefined} curve the fewest slots for 1, 2, ... edges; flat beyond, where it is shorter than asked for
 * @param {number} asked edges that the curve was asked for
 */
export function aboveOptimum(figures, curve, asked = 0) {
  const used = figures.buckets.length;
  const best = curve?.[Math.min(used, curve.length) - 1];
  if (curve && used > curve.length && curve.length >= asked) return null; // what more edges could do is not known
  if (!best || figures.problem !== null || figures.beyond || figures.slots < best) return null;
  return figures.slots / best - 1;
}

/** Numbers as Python sends them. @param {DataView|undefined} view of float64 */
export function doublesOf(view) {
  if (!view?.byteLength) return new Float64Array(0);
  return new Float64Array(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
}
