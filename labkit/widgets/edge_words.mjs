// What the editor says: the line below the picture, and what a screen reader says of a handle. Pure.

/** A share as a percentage; one that is not 0, or not all, never reads as if it were. */
export function shareText(share, digits = 1) {
  if (share === 0) return "0 %";
  const text = (100 * share).toFixed(digits);
  if (Number(text) === 0) return `< ${10 ** -digits} %`;
  if (share < 1 && Number(text) >= 100) return `> ${(100 - 10 ** -digits).toFixed(digits)} %`;
  return `${text} %`;
}

/** A count with its noun: "1 sequence", "1,200 ghost rows". */
export function counted(number, noun) {
  return `${Math.round(number).toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

const bold = (share, digits) => `<b>${escaped(shareText(share, digits))}</b>`;
const escaped = (text) => text.replace("<", "&lt;").replace(">", "&gt;");

/**
 * The instant figures as HTML; of a policy that would be refused there are none.
 * @param {object} figures of `figuresOf`
 * @param {object} isStatic the same with static shapes
 * @param {number|null} gap of `aboveOptimum`
 * @param {{events: number, sequences: number}} sums
 */
export function numbersText(figures, isStatic, gap, sums) {
  if (figures.problem !== null) return '<b class="refused">refused</b>: not a plan, so there are no figures';
  const above = gap === null ? "" : gap === 0 ? " · <b>optimal</b>" : ` · ${bold(gap)} above the optimum`;
  return (
    `<b class="padding" data-value="${figures.padding}">${escaped(shareText(figures.padding, 2))}</b> padding` +
    ` · <b>${Math.round(figures.slots).toLocaleString("en")}</b> slots${above}` +
    ` · with static shapes ${bold(isStatic.padding, 2)} (${counted(isStatic.ghosts, "ghost row")})` +
    lossText(figures, sums)
  );
}

/** Events lost, and always beside them the users who lose them. */
function lossText({ lost, truncated, dropped }, { events, sequences }) {
  if (!lost && !truncated && !dropped) return "";
  const users = [[truncated, "cut"], [dropped, "dropped"]]
    .filter(([number]) => number)
    .map(([number, verb]) => `${bold(number / sequences)} of users ${verb}`);
  const parts = [`${bold(lost / Math.max(1, events))} of events lost`, ...users];
  return ` · <span class="loss">${parts.join(", ")}</span>`;
}

/** What an edge is, for `aria-valuetext`. */
export function edgeText(edge, bucket, room, sequences, isRefused) {
  const users = `${shareText(sequences ? bucket.sequences / sequences : 0, 0)} of the users`;
  const padding = isRefused ? "" : `, ${shareText(bucket.padding, 0)} padding`;
  const free = room && room.low < room.high ? `; ${room.low} to ${room.high} cost at most 1 % more` : "";
  return `${counted(edge, "event")}; ${users}${padding}${free}`;
}

export function capText(cap) {
  return `${cap === 1 ? "the most recent event is" : `the ${cap.toLocaleString("en")} most recent events are`} kept`;
}

export function labelOf(kind, index, edges) {
  return kind === "cap" ? "longest length kept" : `bucket edge ${index + 1} of ${edges}`;
}
