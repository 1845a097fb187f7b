// The picture with its handles: what stands where. It knows the size, the axis and which handle has the focus.
import {
  REACH, drawBands, drawHandle, drawHints, drawHistogram, drawn, placeHandle, rowsOfNumbers,
} from "./edge_drawing.mjs";
import { stepped } from "./edge_moves.mjs";
import { capText, edgeText, labelOf } from "./edge_words.mjs";
import { axisOf, barsOf, spanOfAxis, ticksOf } from "./length_axis.mjs";

const HEIGHT = 280;
const MARGIN = { left: 14, right: 20, top: 66, bottom: 50 };

export const EdgePicture = class {
  width = 0; // pixels; nothing is drawn before it is known
  focused = { kind: "edge", index: 0 };
  handles = [];
  capHandle = null;
  axis = null;
  places = [];

  constructor(svg) {
    this.svg = svg;
    this.layers = Object.fromEntries(
      ["bands", "histogram", "labels", "hints", "handles"].map((name) => [name, drawn("g", { class: name }, svg)]),
    );
  }

  /** Everything anew at the next drawing: other data, another size, another axis. */
  layout() {
    const { svg, width } = this;
    if (!width) return;
    svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    svg.setAttribute("height", HEIGHT);
    this.box = { left: MARGIN.left, right: width - MARGIN.right, top: MARGIN.top, bottom: HEIGHT - MARGIN.bottom };
    this.axis = null;
  }

  draw({ setting, figures, room, optimum, sums, limits, isLog, isHeld }) {
    this.fitAxis(sums, setting.edges, isLog, isHeld);
    const { layers, axis, box } = this;
    const best = optimum.edges?.length === figures.buckets.length ? optimum.edges : [];
    drawBands(layers.bands, layers.labels, figures.buckets, axis, box, setting.cap);
    drawHints(layers.hints, best, room, axis, box);
    const isRefused = figures.problem !== null;
    const last = figures.buckets.length - 1; // the edges above the cap are one bucket
    this.place(setting, limits, (edge, i) => {
      return edgeText(edge, figures.buckets[Math.min(i, last)], room[i], sums.sequences, isRefused);
    });
  }

  /** The axis holds all edges; under the hand it does not shrink. */
  fitAxis(sums, edges, isLog, isHeld) {
    const { axis, box } = this;
    const span = spanOfAxis(sums, edges);
    const holds = axis && axis.shortest <= span.shortest && axis.longest >= span.longest;
    const isTight = holds && axis.shortest === span.shortest && axis.longest === span.longest;
    if (isTight || (holds && isHeld)) return;
    const given = { ...span, isLog, left: box.left, right: box.right };
    this.axis = axisOf(given);
    drawHistogram(this.layers.histogram, barsOf(sums, given), this.axis, ticksOf(given, this.width / 62), box);
  }

  place(setting, limits, textOf) {
    const { axis, box, handles, capHandle } = this;
    const { edges, cap } = setting;
    this.places = edges.map((edge) => axis.edgeAt(edge));
    const rows = rowsOfNumbers(this.places, edges.map(String), box);
    edges.forEach((edge, i) => {
      placeHandle(handles[i], this.places[i], rows[i], String(edge), box);
      describe(handles[i], setting, "edge", i, limits, textOf(edge, i));
    });
    if (!capHandle) return;
    this.places.push(axis.edgeAt(Math.max(axis.shortest, Math.min(cap, axis.longest))));
    placeHandle(capHandle, this.places[edges.length], box.bottom - 12, `cap ${cap}`, box);
    describe(capHandle, setting, "cap", 0, limits, capText(cap));
  }

  hasHandlesOf({ edges, cap }) {
    return this.handles.length === edges.length && (this.capHandle === null) === (cap === null);
  }

  /** Others in their place, to be drawn; says whether one of them had the focus, for `takeFocus` when they are. */
  makeHandles({ edges, cap }, held) {
    const { layers, box } = this;
    if (!box) return false;
    const hadFocus = layers.handles.contains(document.activeElement);
    const { kind, index } = this.focused;
    layers.handles.replaceChildren();
    this.handles = edges.map((_, i) => drawHandle(layers.handles, "edge", i, box));
    this.capHandle = cap === null ? null : drawHandle(layers.handles, "cap", 0, box);
    this.focused = { kind: kind === "cap" && cap === null ? "edge" : kind, index: Math.min(index, edges.length - 1) };
    this.markHeld(held);
    return hadFocus;
  }

  takeFocus() {
    (this.focused.kind === "cap" ? this.capHandle : this.handles[this.focused.index]).focus();
  }

  markHeld(held) {
    for (const handle of this.layers.handles.children) {
      const isHeld = held && handle.dataset.kind === held.kind && Number(handle.dataset.index) === held.index;
      handle.classList.toggle("held", Boolean(isHeld));
    }
  }

  pixelAt(clientX) {
    const bounds = this.svg.getBoundingClientRect();
    return ((clientX - bounds.left) * this.width) / bounds.width;
  }

  lengthAt(clientX) {
    return this.axis.lengthAt(this.pixelAt(clientX));
  }

  isOnHandle(clientX) {
    return this.places.some((place) => Math.abs(place - this.pixelAt(clientX)) <= REACH);
  }
};

/** A handle as a slider: where it is, and how far the keys can move it. */
function describe(handle, setting, kind, index, limits, text) {
  const { edges, cap } = setting;
  const end = (by) => {
    const there = stepped(setting, kind, index, by, limits);
    return kind === "cap" ? there.cap : there.edges[index];
  };
  const described = {
    label: labelOf(kind, index, edges.length), valuenow: kind === "cap" ? cap : edges[index], valuemin: end(-Infinity),
    valuemax: end(Infinity), valuetext: text,
  };
  for (const [name, value] of Object.entries(described)) {
    if (handle.getAttribute(`aria-${name}`) !== String(value)) handle.setAttribute(`aria-${name}`, value);
  }
}
