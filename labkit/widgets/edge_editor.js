// EdgeEditor: bucket edges as handles on the histogram of the lengths. The numbers below the picture are computed here,
// every frame; the table of all strategies follows from Python, one request in flight, the newest wins.
import { aboveOptimum, bestNewEdge, doublesOf, figuresOf, prefixSums, roomOf } from "./padding.mjs";
import {
  addedEdge, changed, continued, deletedEdge, isSame, moved, parsedEdges, redone, replaced, stateOf, stepped, undone,
} from "./edge_moves.mjs";
import { staysHere } from "./notebook_keys.mjs";
import { labelOf, numbersText } from "./edge_words.mjs";
import { EdgePicture } from "./edge_picture.mjs";
import { dragging } from "./edge_drag.mjs";
import { build, put } from "./edge_page.mjs";

const KERNEL_LATE_MS = 3000;
const REST_MS = 400; // the hand rests: what a screen reader is told then
const STEPS = {
  ArrowLeft: -1, ArrowDown: -1, PageDown: -1, Home: -Infinity, ArrowRight: 1, ArrowUp: 1, PageUp: 1, End: Infinity,
};

class EdgeView {
  state = null;
  before = null; // the state in which the drag began
  frame = 0;
  isStale = false; // something changed since it was drawn
  isDirty = false; // something changed since it was sent
  isTyping = false; // the text is not what the edges are
  typed = {}; // problem and note of what was typed
  told = { edges: [], cap: null }; // what Python knows of
  timers = { late: 0, rest: 0 };
  sentAt = 0;
  movedLabel = "";

  constructor(model, el) {
    this.model = model;
    this.parts = build(el);
    const { root, svg, twin, snap, log } = this.parts;
    this.picture = new EdgePicture(svg);
    this.drag = dragging(svg, {
      taken: (held, handle) => {
        handle.focus(); // first: a text that was typed is taken when it loses the focus, and may end the drag
        if (!this.drag.held) return this.picture.takeFocus(); // other handles stand there now
        this.before = this.state;
        this.picture.markHeld(held);
      },
      moved: (held, clientX) => this.dragTo(held, this.picture.lengthAt(clientX)),
      released: () => {
        this.picture.markHeld(null);
        this.onEdges(); // what Python said in the meantime
        this.schedule();
        this.rest();
      },
    });
    svg.addEventListener("focusin", ({ target }) => {
      this.picture.focused = { kind: target.dataset.kind, index: Number(target.dataset.index) };
      this.offer();
    });
    root.addEventListener("click", (event) => this.act(event.target.closest("[data-do]")?.dataset.do));
    root.addEventListener("keydown", (event) => {
      if (!staysHere(event)) return;
      if (this.onKey(event)) event.preventDefault();
      event.stopPropagation();
    });
    svg.addEventListener("dblclick", (event) => this.onDoubleClick(event));
    twin.addEventListener("input", () => { this.isTyping = true; });
    twin.addEventListener("change", () => { if (this.isTyping) this.takeTwin(); });
    for (const control of [snap, log]) {
      control.addEventListener("change", () => {
        model.set(control.dataset.trait, control.type === "checkbox" ? control.checked : Number(control.value));
        model.save_changes();
      });
    }
    this.listen();
  }

  listen() {
    const layout = () => this.layout();
    const draw = () => this.schedule();
    this.listeners = {
      "change:lengths": () => this.onData(), "change:counts": () => this.onData(), "change:edges": () => this.onEdges(),
      "change:max_length": () => this.onEdges(), "change:answered": () => this.onAnswer(), "change:optimum": draw,
      "change:rules": draw, "change:log_axis": layout, "change:snap": layout,
    };
    for (const [name, call] of Object.entries(this.listeners)) this.model.on(name, call);
    this.observer = new ResizeObserver(() => {
      const now = Math.round(this.parts.svg.getBoundingClientRect().width);
      if (now <= 40 || now === this.picture.width) return;
      this.picture.width = now;
      this.layout();
    });
    this.onData();
    this.observer.observe(this.parts.svg);
  }

  remove() {
    for (const [name, call] of Object.entries(this.listeners)) this.model.off(name, call);
    this.observer.disconnect();
    for (const timer of Object.values(this.timers)) clearTimeout(timer);
    if (this.frame) cancelAnimationFrame(this.frame);
  }

  get rules() {
    return { ...this.model.get("rules"), cap: this.state.now.cap, isStatic: false };
  }

  get limits() {
    const { model, sums } = this;
    return { snap: model.get("snap"), longest: Math.max(sums.longest ?? 1, 1), most: model.get("most") };
  }

  get isWaiting() {
    return this.model.get("answered") < this.model.get("seq");
  }

  // -- to Python: one request in flight, the newest wins ------------------------------------------------------------

  pump() {
    const { model } = this;
    if (!this.isDirty) return;
    if (this.isWaiting && performance.now() - this.sentAt < KERNEL_LATE_MS) return;
    this.isDirty = false;
    this.sentAt = performance.now();
    const { edges, cap } = this.state.now;
    // what was not moved here is left to Python, which may know newer
    if (!isSame({ edges, cap }, { ...this.told, cap })) model.set("edges", [...edges]);
    if (cap !== this.told.cap) model.set("max_length", cap);
    model.set("seq", model.get("seq") + 1);
    this.told = { edges, cap };
    model.save_changes();
    clearTimeout(this.timers.late);
    this.timers.late = setTimeout(() => {
      this.parts.root.classList.toggle("late", this.isWaiting);
      this.pump();
    }, KERNEL_LATE_MS);
  }

  // -- from Python --------------------------------------------------------------------------------------------------

  /** Other data: everything starts anew, with the edges that came in the same message. */
  onData() {
    this.sums = prefixSums(doublesOf(this.model.get("lengths")), doublesOf(this.model.get("counts")));
    this.isDirty = false;
    this.restart();
    this.drag.end();
    this.layout();
  }

  restart() {
    this.state = stateOf(this.model.get("edges"), this.model.get("max_length"));
    this.told = this.state.now;
    this.forgetTyped();
  }

  /** What Python says; never while the hand is on a handle, or while a newer move is on its way. */
  onEdges() {
    if (this.drag.held?.kind === "cap") this.followCap();
    if (this.drag.held || this.isDirty || this.isWaiting) return;
    const [edges, cap] = [this.model.get("edges"), this.model.get("max_length")];
    this.told = { edges, cap };
    const next = replaced(this.state, edges, cap);
    if (next === this.state) return;
    this.state = next;
    if (document.activeElement !== this.parts.twin) this.forgetTyped();
    this.layout();
  }

  /** Edges that Python finds for the cap under the hand: optimal ones follow it. */
  followCap() {
    const { state } = this;
    const now = { edges: [...this.model.get("edges")], cap: state.now.cap };
    if (isSame(now, state.now) || !isSame(state.now, { ...this.told, cap: now.cap })) return; // some were moved here
    const isUnmoved = state === this.before;
    this.state = isUnmoved ? changed(state, now) : continued(state, now);
    if (isUnmoved) this.before = this.state;
    this.told = { ...this.told, edges: now.edges };
    this.schedule();
  }

  onAnswer() {
    this.parts.root.classList.toggle("late", false);
    this.parts.root.dataset.answered = this.model.get("answered");
    this.onEdges();
    this.schedule();
    this.pump();
  }

  /** The optimum for the cap that is shown; that of another cap says nothing. */
  get optimum() {
    const optimum = this.model.get("optimum");
    return optimum.cap === this.state.now.cap ? optimum : {};
  }

  // -- every change by the user goes through here -------------------------------------------------------------------

  set(next, label = "") {
    if (next === this.state) return;
    const [{ edges, cap }, now] = [this.state.now, next.now];
    const isOther = now.edges.length !== edges.length || (now.cap === null) !== (cap === null);
    this.state = next;
    this.isDirty = true;
    this.movedLabel = label;
    this.forgetTyped();
    if (isOther) {
      this.drag.end();
      this.makeHandles();
    } else this.schedule();
    this.pump();
    this.rest();
  }

  /** A handle put elsewhere. */
  setHandle({ kind, index }, setting) {
    this.set(changed(this.state, setting), labelOf(kind, index, setting.edges.length));
  }

  dragTo({ kind, index }, to) {
    const setting = moved(this.state.now, kind, index, to, this.limits);
    const next = this.state === this.before ? changed(this.state, setting) : continued(this.state, setting);
    this.set(next, labelOf(kind, index, setting.edges.length));
  }

  act(name) {
    if (!name) return;
    this.drag.end();
    const { state } = this;
    if (name === "add") {
      const at = bestNewEdge(this.sums, state.now.edges, this.rules);
      const next = at === null ? state : changed(state, addedEdge(state.now, at, this.limits));
      this.set(next);
      if (at === null) this.sayOf("One more edge saves nothing here.");
      else if (next === state) this.sayOf(`${this.limits.most} edges are the most.`);
    } else if (name === "delete") {
      const { kind, index } = this.picture.focused;
      if (kind === "edge") this.set(changed(state, deletedEdge(state.now, index)));
    } else this.set(name === "undo" ? undone(state) : redone(state));
  }

  takeTwin() {
    const { edges, problem, note } = parsedEdges(this.parts.twin.value, this.model.get("most"));
    if (edges) this.set(replaced(this.state, edges, this.state.now.cap));
    this.isTyping = edges === null;
    this.typed = { problem, note };
    this.schedule();
    this.rest();
  }

  /** A note on what was asked for and changes nothing, until the next change. */
  sayOf(note) {
    this.typed = { note };
    this.schedule();
    this.rest();
  }

  forgetTyped() {
    this.isTyping = false;
    this.typed = {};
  }

  /** Once no more changes come, what a screen reader says of them. */
  rest() {
    clearTimeout(this.timers.rest);
    this.timers.rest = setTimeout(() => {
      if (this.drag.held) return;
      const { values, problem, spoken } = this.parts;
      const label = this.movedLabel && `${this.movedLabel}: `;
      put(spoken, [label + values.textContent, problem.textContent].filter(Boolean).join(". "));
    }, REST_MS);
  }

  // -- keys and pointers --------------------------------------------------------------------------------------------

  /** Whether the key meant something here. */
  onKey(event) {
    const { key, shiftKey, target } = event;
    if (target === this.parts.twin) return this.onTwinKey(key);
    if (event.ctrlKey || event.metaKey) {
      const name = { z: shiftKey ? "redo" : "undo", y: "redo" }[key.toLowerCase()];
      this.act(name);
      return name !== undefined;
    }
    if (key === "+") this.act("add");
    else if (key === "Escape" && this.drag.held) this.cancelDrag();
    else return target.closest(".handle") ? this.onHandleKey(key, shiftKey) : false;
    return true;
  }

  onTwinKey(key) {
    if (key === "Escape") this.forgetTyped();
    else if (key === "Enter") this.takeTwin();
    else return false;
    this.schedule();
    return true;
  }

  onHandleKey(key, shiftKey) {
    const { kind, index } = this.picture.focused;
    const { now } = this.state;
    const { limits } = this;
    if (key === "Delete" || key === "Backspace") {
      this.act("delete");
      return true;
    }
    const direction = STEPS[key];
    if (direction === undefined) return false;
    const at = kind === "cap" ? now.cap : now.edges[index];
    const page = Math.max(limits.snap, Math.round(at / 10));
    const by = key.startsWith("Page") ? page : limits.snap * (shiftKey ? 10 : 1);
    this.setHandle({ kind, index }, stepped(now, kind, index, direction * by, limits));
    return true;
  }

  cancelDrag() {
    const isCap = this.drag.held.kind === "cap"; // whose edges are Python's
    const now = isCap ? { ...this.state.now, cap: this.before.now.cap } : this.before.now;
    this.set(isSame(now, this.before.now) ? this.before : { ...this.before, now });
    this.drag.end();
  }

  /** One more edge, but not where a handle would have been meant. */
  onDoubleClick({ clientX }) {
    if (this.picture.isOnHandle(clientX)) return;
    const at = this.picture.lengthAt(clientX);
    this.set(changed(this.state, addedEdge(this.state.now, at, this.limits)));
  }

  // -- drawing ------------------------------------------------------------------------------------------------------

  layout() {
    const { parts, model } = this;
    parts.snap.value = model.get("snap");
    parts.log.checked = model.get("log_axis");
    this.picture.layout();
    this.makeHandles();
  }

  /** Drawn at once, so that what takes the focus has a name. */
  makeHandles() {
    const hadFocus = this.picture.makeHandles(this.state.now, this.drag.held);
    this.draw();
    if (hadFocus) this.picture.takeFocus();
  }

  /** At once, and then once a frame while more changes come. */
  schedule() {
    this.isStale = true;
    if (this.frame) return;
    this.draw();
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      if (this.isStale) this.schedule();
    });
  }

  draw() {
    this.isStale = false;
    const { picture, sums, rules, optimum, limits, drag } = this;
    if (!picture.width) return;
    const setting = this.state.now;
    if (!picture.hasHandlesOf(setting)) {
      this.makeHandles();
      return;
    }
    const figures = figuresOf(sums, setting.edges, rules);
    const isStatic = figuresOf(sums, setting.edges, { ...rules, isStatic: true });
    const room = roomOf(sums, setting.edges, rules);
    const isLog = this.model.get("log_axis");
    picture.draw({ setting, figures, room, optimum, sums, limits, isLog, isHeld: drag.held !== null });
    this.show(figures, isStatic, aboveOptimum(figures, optimum.curve, optimum.asked));
  }

  show(figures, isStatic, gap) {
    const { parts, state, typed } = this;
    const { root, problem } = parts;
    parts.values.innerHTML = numbersText(figures, isStatic, gap, this.sums);
    root.classList.toggle("refused", figures.problem !== null);
    const before = problem.textContent;
    put(problem, [typed.problem ?? typed.note, figures.problem].filter(Boolean).join(" "));
    problem.classList.toggle("note", !typed.problem && figures.problem === null);
    if (problem.textContent !== before) this.rest();
    const text = state.now.edges.join(", ");
    if (!this.isTyping && parts.twin.value !== text) parts.twin.value = text;
    parts.twin.setAttribute("aria-invalid", String(Boolean(typed.problem)));
    this.offer();
    root.dataset.edges = state.now.edges.join(",");
    root.dataset.axis = this.model.get("log_axis") ? "log" : "linear";
  }

  /** Which buttons do something now; not `disabled`, with which a button loses the focus. */
  offer() {
    const { past, now, future } = this.state;
    const isEdge = this.picture.focused.kind === "edge";
    const can = { undo: past.length > 0, redo: future.length > 0, delete: now.edges.length > 1 && isEdge };
    for (const name of Object.keys(can)) this.parts[name].setAttribute("aria-disabled", String(!can[name]));
  }
}

function render({ model, el }) {
  const view = new EdgeView(model, el);
  return () => view.remove();
}

export default { render };
