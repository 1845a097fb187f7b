// EdgeEditor: bucket edges as handles on the histogram of the lengths. The numbers below the picture are computed here,
// every frame; the table of all strategies follows from Python, one request in flight, the newest wins.
import { aboveOptimum, bestNewEdge, figuresOf, prefixSums, roomOf } from "./padding.mjs";
import {
  addedEdge, changed, continued, deletedEdge, movedCap, movedEdge, parsedEdges, redone, replaced, stateOf, undone,
} from "./edge_moves.mjs";
import { axisOf, barsOf, ticksOf } from "./length_axis.mjs";
import { drawBands, drawHandle, drawHints, drawHistogram, drawn, placeHandle, rowsOfNumbers } from "./edge_drawing.mjs";

const HEIGHT = 280;
const MARGIN = { left: 14, right: 20, top: 66, bottom: 50 };
const KERNEL_LATE_MS = 3000;
const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;
const count = (n) => Math.round(n).toLocaleString("en");

function doubles(view) {
  return view && view.byteLength ? new Float64Array(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength)) : new Float64Array(0);
}

/** Parts of the page: a toolbar, the picture, the numbers, the text twin. */
function build(el) {
  const root = document.createElement("div");
  root.className = "labkit-editor";
  root.innerHTML = `
    <div class="tools" role="toolbar" aria-label="edges">
      <button type="button" data-do="add" title="where one more edge saves most (+); or double-click the picture">+ edge</button>
      <button type="button" data-do="delete" title="delete the edge that has the focus (Delete)">− edge</button>
      <button type="button" data-do="undo" title="Ctrl+Z" aria-label="undo">↶</button>
      <button type="button" data-do="redo" title="Ctrl+Y" aria-label="redo">↷</button>
      <label>snap <select data-trait="snap" title="edges at multiples of it">${[1, 2, 4, 8, 16, 32, 64]
        .map((n) => `<option>${n}</option>`).join("")}</select></label>
      <label><input type="checkbox" data-trait="log_axis"> log axis</label>
      <span class="key" aria-hidden="true"><i class="k-bar"></i> sequences <i class="k-events"></i> events
        <i class="k-waste"></i> padding <i class="k-optimum"></i> optimum <i class="k-room"></i> within 1 %</span>
    </div>
    <svg role="group" aria-label="histogram of the lengths, with the bucket edges as sliders"></svg>
    <div class="numbers"><span class="tier" title="computed in the browser, at every move">instant</span><span class="values"></span></div>
    <label class="twin">edges <input type="text" spellcheck="false" aria-label="bucket edges as text"></label>
    <div class="problem" role="alert"></div>
    <div class="spoken" aria-live="polite"></div>`;
  el.append(root);
  const find = (selector) => root.querySelector(selector);
  return {
    root, svg: find("svg"), values: find(".values"), twin: find(".twin input"), problem: find(".problem"),
    spoken: find(".spoken"), snap: find("[data-trait=snap]"), log: find("[data-trait=log_axis]"),
    undo: find("[data-do=undo]"), redo: find("[data-do=redo]"), delete: find("[data-do=delete]"),
  };
}

function render({ model, el }) {
  const parts = build(el);
  const { root, svg } = parts;
  const layers = Object.fromEntries(
    ["bands", "histogram", "hints", "handles"].map((name) => [name, drawn("g", { class: name }, svg)]),
  );
  let sums, axis, box, state, bars;
  let handles = [];
  let capHandle = null;
  let drag = null; // {kind, index, before, pointer}
  let focused = 0;
  let width = 0;
  let room = [];
  let frame = 0;
  let stale = false; // something changed since it was drawn
  let dirty = false; // something changed since it was sent
  let sentAt = 0;
  let lateTimer = 0;

  const rules = (isStatic = false) => ({ ...model.get("rules"), cap: state.now.cap, isStatic });
  const limits = () => ({ snap: model.get("snap"), longest: Math.max(sums.longest, 1), most: model.get("most") });
  const waiting = () => model.get("answered") < model.get("seq");

  // -- to Python: one request in flight, the newest wins ------------------------------------------------------------

  const pump = () => {
    if (!dirty) return;
    if (waiting() && performance.now() - sentAt < KERNEL_LATE_MS) return;
    dirty = false;
    sentAt = performance.now();
    model.set({ edges: [...state.now.edges], max_length: state.now.cap, seq: model.get("seq") + 1 });
    model.save_changes();
    clearTimeout(lateTimer);
    lateTimer = setTimeout(() => {
      root.classList.toggle("late", waiting());
      pump();
    }, KERNEL_LATE_MS);
  };

  // -- every change goes through here -------------------------------------------------------------------------------

  const set = (next) => {
    if (next === state) return;
    const other = next.now.edges.length !== state.now.edges.length || (next.now.cap === null) !== (state.now.cap === null);
    state = next;
    if (other) makeHandles();
    dirty = true;
    schedule();
    pump();
  };

  // at once, and then once a frame while more changes come
  const schedule = () => {
    stale = true;
    if (frame) return;
    draw();
    frame = requestAnimationFrame(() => {
      frame = 0;
      if (stale) schedule();
    });
  };

  const draw = () => {
    stale = false;
    if (!width) return;
    const { edges, cap } = state.now;
    const figures = figuresOf(sums, edges, rules());
    const isStatic = figuresOf(sums, edges, rules(true));
    room = roomOf(sums, edges, rules());
    const optimum = model.get("optimum");
    drawBands(layers.bands, figures.buckets, axis, box, cap);
    drawHints(layers.hints, optimum.edges?.length === figures.buckets.length ? optimum.edges : [], room, axis, box);
    place(figures);
    const gap = figures.problem ? null : aboveOptimum(figures.slots, figures.buckets.length, optimum.curve ?? []);
    show(figures, isStatic, gap);
  };

  const show = (figures, isStatic, gap) => {
    const lost = figures.lost ? ` · <b class="loss">${percent(figures.lost / Math.max(1, sums.events))}</b> events lost` : "";
    const above = gap === null ? "" : gap < 5e-5 ? " · <b>optimal</b>" : ` · <b>${percent(gap)}</b> above the optimum`;
    parts.values.innerHTML =
      `<b class="padding" data-value="${figures.padding}">${percent(figures.padding, 2)}</b> padding` +
      ` · <b>${count(figures.slots)}</b> slots${above} · with static shapes <b>${percent(isStatic.padding, 2)}</b>` +
      ` (${count(isStatic.ghosts)} ghost rows)${lost}`;
    parts.problem.textContent = figures.problem ?? "";
    if (document.activeElement !== parts.twin) parts.twin.value = state.now.edges.join(", ");
    parts.undo.disabled = !state.past.length;
    parts.redo.disabled = !state.future.length;
    parts.delete.disabled = state.now.edges.length < 2;
    root.dataset.edges = state.now.edges.join(",");
    root.dataset.axis = axis.isLog ? "log" : "linear";
  };

  // -- handles ------------------------------------------------------------------------------------------------------

  const place = (figures) => {
    const { edges, cap } = state.now;
    const places = edges.map((edge) => axis.edgeAt(edge));
    const rows = rowsOfNumbers(places, edges.map(String), box);
    edges.forEach((edge, i) => {
      placeHandle(handles[i], places[i], rows[i], String(edge));
      const bucket = figures.buckets[Math.min(i, figures.buckets.length - 1)];
      const free = room[i] && room[i].low < room[i].high ? `; ${room[i].low} to ${room[i].high} cost at most 1 % more` : "";
      const users = percent(bucket.sequences / sums.sequences, 0);
      describe(handles[i], `bucket edge ${i + 1} of ${edges.length}`, edge, i ? edges[i - 1] + 1 : 1,
        edges[i + 1] - 1 || Math.max(sums.longest, edge), `${edge} events; ${users} of the users, ${percent(bucket.padding, 0)} padding${free}`);
    });
    if (capHandle) {
      placeHandle(capHandle, axis.edgeAt(Math.min(cap, sums.longest)), box.bottom - 12, `cap ${cap}`);
      describe(capHandle, "longest length kept", cap, 1, sums.longest, `${cap} most recent events are kept`);
    }
  };

  const describe = (handle, label, now, min, max, text) => {
    handle.setAttribute("aria-label", label);
    handle.setAttribute("aria-valuenow", now);
    handle.setAttribute("aria-valuemin", min);
    handle.setAttribute("aria-valuemax", max);
    handle.setAttribute("aria-valuetext", text);
  };

  const makeHandles = () => {
    const hadFocus = layers.handles.contains(document.activeElement);
    layers.handles.replaceChildren();
    handles = state.now.edges.map((_, i) => wired(drawHandle(layers.handles, "edge", box), "edge", i));
    capHandle = state.now.cap === null ? null : wired(drawHandle(layers.handles, "cap", box), "cap", 0);
    focused = Math.min(focused, handles.length - 1);
    if (hadFocus) handles[focused].focus();
  };

  const moved = (kind, index, to) =>
    kind === "cap" ? movedCap(state.now, to, limits()) : movedEdge(state.now, index, to, limits());

  const wired = (handle, kind, index) => {
    handle.addEventListener("focus", () => { if (kind === "edge") focused = index; });
    handle.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      drag = { kind, index, before: state };
      handle.setPointerCapture?.(event.pointerId);
      handle.focus();
      handle.classList.add("held");
      event.preventDefault();
      event.stopPropagation();
    });
    handle.addEventListener("pointermove", (event) => {
      if (!drag || drag.kind !== kind || drag.index !== index) return;
      const bounds = svg.getBoundingClientRect();
      const to = axis.lengthAt(((event.clientX - bounds.left) * width) / bounds.width);
      const now = moved(kind, index, to);
      set(state === drag.before ? changed(state, now) : continued(state, now));
    });
    const end = () => {
      if (!drag) return;
      handle.classList.remove("held");
      drag = null;
      speak();
    };
    handle.addEventListener("pointerup", end);
    handle.addEventListener("pointercancel", end);
    handle.addEventListener("lostpointercapture", end);
    handle.addEventListener("keydown", (event) => onHandleKey(event, kind, index));
    return handle;
  };

  const onHandleKey = (event, kind, index) => {
    const now = kind === "cap" ? state.now.cap : state.now.edges[index];
    const page = Math.max(1, Math.round(now / 10));
    const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key] ?? { PageDown: -page, PageUp: page }[event.key];
    if (event.key === "Escape" && drag) {
      set(drag.before);
      drag = null;
    } else if (event.key === "Home") set(changed(state, moved(kind, index, 1)));
    else if (event.key === "End") set(changed(state, moved(kind, index, Infinity)));
    else if (event.key === "Delete" || event.key === "Backspace") {
      if (kind === "edge") set(changed(state, deletedEdge(state.now, index)));
    } else if (step !== undefined) {
      const wide = step * (event.key.startsWith("Arrow") ? model.get("snap") * (event.shiftKey ? 10 : 1) : 1);
      set(changed(state, moved(kind, index, now + wide)));
    } else return;
    event.preventDefault();
    speak();
  };

  const speak = () => {
    const handle = handles[focused];
    parts.spoken.textContent = handle ? `${handle.getAttribute("aria-valuetext")}. ${parts.values.textContent}` : "";
  };

  // -- tools, keys, twin --------------------------------------------------------------------------------------------

  const act = {
    add: () => {
      const at = bestNewEdge(sums, state.now.edges, rules());
      if (at !== null) set(changed(state, addedEdge(state.now, at, limits())));
    },
    delete: () => set(changed(state, deletedEdge(state.now, focused))),
    undo: () => set(undone(state)),
    redo: () => set(redone(state)),
  };
  root.addEventListener("click", (event) => act[event.target.closest("[data-do]")?.dataset.do]?.());
  root.addEventListener("keydown", (event) => {
    const inText = event.target === parts.twin;
    const isCommand = (event.ctrlKey || event.metaKey) && !inText;
    if (isCommand && event.key.toLowerCase() === "z") act[event.shiftKey ? "redo" : "undo"]();
    else if (isCommand && event.key.toLowerCase() === "y") act.redo();
    else if (event.key === "+" && !inText) act.add();
    else if (event.key === "Enter" && inText) takeTwin();
    else {
      if (event.key !== "Tab") event.stopPropagation(); // the notebook's own shortcuts: "b" would insert a cell
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  });
  const takeTwin = () => {
    const { edges, problem } = parsedEdges(parts.twin.value, model.get("most"));
    parts.problem.textContent = problem ?? "";
    if (edges) set(replaced(state, edges, state.now.cap));
  };
  parts.twin.addEventListener("change", takeTwin);
  svg.addEventListener("dblclick", (event) => {
    const bounds = svg.getBoundingClientRect();
    const at = axis.lengthAt(((event.clientX - bounds.left) * width) / bounds.width);
    set(changed(state, addedEdge(state.now, at, limits())));
  });
  for (const control of [parts.snap, parts.log]) {
    control.addEventListener("change", () => {
      model.set(control.dataset.trait, control.type === "checkbox" ? control.checked : Number(control.value));
      model.save_changes();
    });
  }

  // -- size and data ------------------------------------------------------------------------------------------------

  const layout = () => {
    if (!width) return;
    svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    svg.setAttribute("height", HEIGHT);
    box = { left: MARGIN.left, right: width - MARGIN.right, top: MARGIN.top, bottom: HEIGHT - MARGIN.bottom };
    const shortest = Math.min(sums.values.find((v) => v > 0) ?? 1, ...state.now.edges);
    const longest = Math.max(sums.longest, 1, ...state.now.edges);
    const given = { shortest, longest, isLog: model.get("log_axis"), left: box.left, right: box.right };
    axis = axisOf(given);
    bars = barsOf(sums, given);
    drawHistogram(layers.histogram, bars, axis, ticksOf(given, width / 62), box);
    parts.snap.value = model.get("snap");
    parts.log.checked = model.get("log_axis");
    makeHandles();
    schedule();
  };

  const onData = () => {
    sums = prefixSums(doubles(model.get("lengths")), doubles(model.get("counts")));
    state = stateOf(model.get("edges"), model.get("max_length"));
    layout();
  };
  // what Python says; never while the hand is on a handle, or while a newer move is on its way
  const onEdges = () => {
    if (drag || dirty || waiting()) return;
    const [edges, cap] = [model.get("edges"), model.get("max_length")];
    const next = replaced(state, edges, cap);
    if (next === state) return;
    state = next;
    layout();
  };
  const onAnswer = () => {
    root.classList.toggle("late", false);
    root.dataset.answered = model.get("answered");
    onEdges();
    schedule();
    pump();
  };
  const listeners = {
    "change:lengths": onData, "change:counts": onData, "change:edges": onEdges, "change:max_length": onEdges,
    "change:answered": onAnswer, "change:optimum": schedule, "change:rules": schedule,
    "change:log_axis": layout, "change:snap": layout,
  };
  for (const [name, call] of Object.entries(listeners)) model.on(name, call);
  const observer = new ResizeObserver(() => {
    const now = Math.round(svg.getBoundingClientRect().width);
    if (now > 40 && now !== width) {
      width = now;
      layout();
    }
  });
  onData();
  observer.observe(svg);
  return () => {
    for (const [name, call] of Object.entries(listeners)) model.off(name, call);
    observer.disconnect();
    clearTimeout(lateTimer);
    if (frame) cancelAnimationFrame(frame);
  };
}

export default { render };
