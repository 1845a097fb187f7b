// The axis of lengths, logarithmic or linear, its ticks, and the bars of the histogram on it. Pure.

const BINS_PER_DOUBLING = 6;
const LINEAR_BINS = 72;

/** What the axis has to hold: the lengths that occur, and the edges, some of which may lie beyond them. */
export function spanOfAxis(sums, edges) {
  const first = sums.values[sums.values[0] > 0 ? 0 : 1] ?? 1;
  return { shortest: Math.min(first, ...edges), longest: Math.max(sums.longest ?? 1, 1, ...edges) };
}

/**
 * @param {{shortest: number, longest: number, isLog: boolean, left: number, right: number}} given pixels left .. right
 * @returns lengths to pixels and back; an edge stands right of its length, because it is upper-inclusive
 */
export function axisOf({ shortest, longest, isLog, left, right }) {
  const forward = isLog ? (x) => Math.log2(x) : (x) => x;
  const back = isLog ? (y) => 2 ** y : (y) => y;
  const from = isLog ? forward(Math.max(shortest, 1) - 0.5) : 0;
  const to = forward(Math.max(longest, shortest + 1) + 0.5);
  const scale = (right - left) / (to - from);
  const at = (length) => left + (forward(Math.max(length, isLog ? 0.5 : 0)) - from) * scale;
  const least = isLog ? Math.max(1, shortest) : 1; // where the axis begins: nothing is left of it
  const lengthAt = (pixel) => Math.min(longest, Math.max(least, Math.round(back(from + (pixel - left) / scale) - 0.5)));
  return { at, edgeAt: (edge) => at(edge + 0.5), lengthAt, isLog, shortest, longest };
}

/** Lengths to write on the axis: powers of two, or round numbers; the longest always. */
export function ticksOf({ shortest, longest, isLog }, most = 11) {
  const ticks = [];
  if (isLog) {
    const doublings = Math.log2(longest / Math.max(1, shortest));
    const step = Math.max(1, Math.round(doublings / most));
    for (let p = 0; 2 ** p < longest / 1.32; p += step) if (2 ** p >= shortest) ticks.push(2 ** p);
  } else {
    const step = roundStep(longest / most);
    for (let tick = 0; tick < longest - 0.5 * step; tick += step) ticks.push(tick);
  }
  return [...ticks, longest];
}

function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return [1, 2, 5, 10].map((m) => m * power).find((step) => step >= least);
}

/**
 * Bars of equal width on the axis; heights are densities, so that the area is the share of the sequences.
 * @returns {{low: number, high: number, sequences: number, events: number, users: number}[]} lengths low .. high,
 *          shares of sequences and events a unit of the axis, sequences as a count
 */
export function barsOf(sums, { shortest, longest, isLog }) {
  const starts = isLog ? logStarts(Math.max(1, shortest), longest) : linearStarts(longest);
  const bars = [];
  let from = firstAtLeast(sums.values, starts[0]);
  for (let i = 0; i + 1 < starts.length; i++) {
    const to = firstAtLeast(sums.values, starts[i + 1]);
    const users = sums.countSums[to] - sums.countSums[from];
    const events = sums.eventSums[to] - sums.eventSums[from];
    const width = isLog ? Math.log2((starts[i + 1] - 0.5) / (starts[i] - 0.5)) : starts[i + 1] - starts[i];
    bars.push({
      low: starts[i],
      high: starts[i + 1] - 1,
      users,
      sequences: users / sums.sequences / width,
      events: events / Math.max(1, sums.events) / width,
    });
    from = to;
  }
  return bars;
}

function logStarts(shortest, longest) {
  const ratio = Math.log2((longest + 1) / shortest);
  const bins = Math.max(1, Math.floor(ratio * BINS_PER_DOUBLING));
  const starts = Array.from({ length: bins + 1 }, (_, i) => Math.round(shortest * 2 ** ((ratio * i) / bins)));
  return [...new Set(starts)];
}

function linearStarts(longest) {
  const step = Math.max(1, Math.ceil(longest / LINEAR_BINS));
  const starts = [];
  for (let start = 1; start <= longest; start += step) starts.push(start);
  return [...starts, longest + 1];
}

function firstAtLeast(values, length) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < length) low = middle + 1;
    else high = middle;
  }
  return low;
}
