// The picture behind the handles: bars, bands of buckets, optimum, room, cap. Data in, SVG out; no state.
import { counted } from "./edge_words.mjs";

const SVG = "http://www.w3.org/2000/svg";
/** Pixels left and right of a handle where it can be taken. */
export const REACH = 9;
const ROOM_OF_WORDS = 60;

/** An SVG element with attributes, appended to a parent. */
export function drawn(name, attributes, parent, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}

/** Bars of the sequences, a line of the events, ticks: what changes with the data and the size only. */
export function drawHistogram(layer, bars, axis, ticks, box) {
  layer.replaceChildren();
  const highest = Math.max(...bars.map((bar) => Math.max(bar.sequences, bar.events)), 1e-12);
  const y = (share) => box.bottom - (box.bottom - box.top) * (share / highest);
  for (const bar of bars) {
    const x = axis.edgeAt(bar.low - 1);
    const width = Math.max(0.6, axis.edgeAt(bar.high) - x - 0.6);
    const top = y(bar.sequences);
    const shape = drawn("rect", { class: "bar", x, y: top, width, height: box.bottom - top }, layer);
    const lengths = bar.low === bar.high ? `${bar.low}` : `${bar.low} to ${bar.high}`;
    drawn("title", {}, shape, `length ${lengths}: ${counted(bar.users, "sequence")}`);
  }
  const middle = (bar) => (axis.edgeAt(bar.low - 1) + axis.edgeAt(bar.high)) / 2;
  const points = bars.map((bar) => `${middle(bar).toFixed(1)},${y(bar.events).toFixed(1)}`).join(" ");
  drawn("polyline", { class: "events", points }, layer);
  drawn("line", { class: "base", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }, layer);
  for (const tick of ticks) {
    const x = axis.at(tick);
    drawn("line", { class: "base", x1: x, x2: x, y1: box.bottom, y2: box.bottom + 6 }, layer);
    drawn("text", { class: "tick", x, y: box.bottom + 27 }, layer, tick.toLocaleString("en"));
  }
  const title = "sequence length (events)";
  drawn("text", { class: "tick", x: (box.left + box.right) / 2, y: box.bottom + 42 }, layer, title);
}

/** Bands of the buckets, the more orange the more padding; `labels` say it over the bars. What is cut off is paler. */
export function drawBands(layer, labels, buckets, axis, box, cap) {
  layer.replaceChildren();
  labels.replaceChildren();
  let left = box.left;
  buckets.forEach((bucket, k) => {
    const right = Math.min(box.right, axis.edgeAt(bucket.edge));
    const width = Math.max(0, right - left);
    const rect = { x: left, y: box.top - 6, width, height: box.bottom - box.top + 6 };
    drawn("rect", { class: `band ${k % 2 ? "odd" : "even"}`, ...rect }, layer);
    drawn("rect", { class: "waste", ...rect, "fill-opacity": (0.45 * bucket.padding).toFixed(3) }, layer);
    const words = `${Math.round(100 * bucket.padding)} %`;
    if (width > 7 * words.length) {
      drawn("text", { class: "pad", x: left + width / 2, y: box.top + 5 }, labels, words);
    }
    left = right;
  });
  if (cap !== null && axis.edgeAt(cap) < box.right) {
    const x = Math.max(axis.edgeAt(cap), box.left);
    drawn("rect", { class: "cut", x, y: box.top - 6, width: box.right - x, height: box.bottom - box.top + 6 }, layer);
  }
}

/** Where the optimum for this number of edges lies, and how far each edge may move at little cost. */
export function drawHints(layer, optimum, room, axis, box) {
  layer.replaceChildren();
  for (const edge of optimum) {
    const x = axis.edgeAt(edge);
    const y = box.bottom;
    const mark = drawn("path", { class: "optimum", d: `M${x - 5},${y + 15}h10l-5,-8z` }, layer);
    drawn("title", {}, mark, `optimal edge ${edge}`);
  }
  room.forEach((span) => {
    if (!span || span.low === span.high) return;
    const x = Math.max(box.left, axis.edgeAt(span.low));
    const width = Math.max(2, axis.edgeAt(span.high) - x);
    const bar = drawn("rect", { class: "room", x, y: box.bottom + 1, width, height: 5, rx: 2 }, layer);
    drawn("title", {}, bar, `${span.low} to ${span.high}: at most 1 % more slots`);
  });
}

/** One handle: a line, a grip, a number; `kind` is edge or cap. */
export function drawHandle(layer, kind, index, box) {
  const known = { class: `handle ${kind}`, "data-kind": kind, "data-index": index };
  const handle = drawn("g", { ...known, tabindex: 0, role: "slider" }, layer);
  const [top, bottom] = [box.top - 6, box.bottom];
  drawn("rect", { class: "reach", x: -REACH, y: top - 26, width: 2 * REACH, height: bottom - top + 26 }, handle);
  drawn("line", { y1: top, y2: bottom }, handle);
  const middle = (top + bottom) / 2;
  if (kind === "cap") drawn("rect", { class: "grip", x: -5, y: middle - 9, width: 10, height: 18, rx: 2 }, handle);
  else drawn("circle", { class: "grip", cx: 0, cy: top, r: 6 }, handle);
  drawn("text", { class: "number" }, handle);
  return handle;
}

/** Put a handle at a pixel, with its number at a height: of an edge above the line, of the cap beside it. */
export function placeHandle(handle, x, y, words, box) {
  handle.setAttribute("transform", `translate(${x.toFixed(2)},0)`);
  const number = handle.querySelector(".number");
  if (handle.classList.contains("cap")) {
    const isLeft = x > box.right - ROOM_OF_WORDS;
    number.classList.toggle("left", isLeft);
    number.setAttribute("x", isLeft ? -8 : 8);
  }
  number.setAttribute("y", y);
  if (number.textContent !== words) number.textContent = words;
}

/** Heights of the numbers above the handles: in two or three rows, so that none covers its neighbour. */
export function rowsOfNumbers(places, words, box) {
  const ends = [-Infinity, -Infinity, -Infinity];
  return places.map((x, i) => {
    const half = 3.6 * words[i].length + 2;
    const free = ends.findIndex((end) => x - half > end);
    const row = free < 0 ? ends.indexOf(Math.min(...ends)) : free;
    ends[row] = x + half;
    return box.top - 18 - 12 * row;
  });
}
