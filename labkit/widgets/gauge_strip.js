// GaugeStrip: the newest reading as a row of gauges, each with a line of what came before; history is kept here alone.
import { staysHere } from "./notebook_keys.mjs";

const KEPT = 75; // readings, half a minute
const SIZE = { width: 96, height: 22 };

function drawn(gauge, history) {
  const cell = document.createElement("div");
  cell.className = gauge.value === null ? "gauge empty" : "gauge";
  cell.dataset.gauge = gauge.title;
  cell.title = gauge.why;
  cell.setAttribute("role", "meter");
  cell.setAttribute("aria-label", gauge.title);
  cell.setAttribute("aria-valuetext", gauge.value === null ? `no value: ${gauge.why}` : gauge.text);
  const title = document.createElement("span");
  title.className = "title";
  title.textContent = gauge.title;
  const text = document.createElement("span");
  text.className = gauge.value === null ? "why" : "text";
  text.textContent = gauge.value === null ? gauge.why : gauge.text;
  cell.append(title, text);
  if (gauge.value !== null) {
    const top = gauge.top ?? Math.max(1e-9, ...history);
    cell.setAttribute("aria-valuemin", 0);
    cell.setAttribute("aria-valuemax", top);
    cell.setAttribute("aria-valuenow", gauge.value);
    cell.append(line(history, top));
  }
  return cell;
}

function line(history, top) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 ${SIZE.width} ${SIZE.height}`);
  svg.setAttribute("aria-hidden", "true");
  const place = (value, i) => {
    const x = SIZE.width * (1 - (history.length - 1 - i) / (KEPT - 1));
    return `${x.toFixed(1)},${((SIZE.height - 1) * (1 - Math.min(1, value / top)) + 0.5).toFixed(1)}`;
  };
  const points = history.map(place);
  const shape = (name, list) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    node.setAttribute("points", list.join(" "));
    svg.append(node);
  };
  const first = points.length ? points[0].split(",")[0] : SIZE.width;
  shape("polygon", [`${first},${SIZE.height}`, ...points, `${SIZE.width},${SIZE.height}`]);
  shape("polyline", points);
  return svg;
}

function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "labkit-gauges";
  root.innerHTML = `<button type="button" aria-label="gauges of this machine"></button>
    <div class="row" role="group" aria-label="gauges of this machine"></div><span class="cost"></span>
    <span class="problem" role="alert"></span>`;
  el.append(root);
  const [button, row, cost, problem] = ["button", ".row", ".cost", ".problem"].map((s) => root.querySelector(s));
  const histories = new Map();
  const show = () => {
    const { gauges = [], number = 0, cost: costs = "" } = model.get("sample");
    for (const gauge of gauges) {
      const history = histories.get(gauge.title) ?? [];
      if (gauge.value !== null) history.push(gauge.value);
      histories.set(gauge.title, history.slice(-KEPT));
    }
    row.replaceChildren(...gauges.map((gauge) => drawn(gauge, histories.get(gauge.title))));
    cost.textContent = costs;
    root.dataset.number = number;
    if (number && number % 10 === 0 && !document.hidden) {
      model.set("drawn", number);
      model.save_changes();
    }
  };
  const state = () => {
    const wanted = model.get("wanted");
    button.textContent = wanted ? "❚❚" : "▶";
    button.title = wanted ? "stop sampling" : "sample this machine a few times a second";
    button.setAttribute("aria-pressed", wanted);
    root.dataset.running = model.get("running");
    root.classList.toggle("off", !model.get("running"));
    problem.textContent = model.get("problem");
  };
  let inSight = false;
  const see = () => {
    const seen = inSight && !document.hidden;
    if (seen === model.get("visible")) return;
    model.set("visible", seen);
    model.save_changes();
  };
  const seeAgain = () => {
    // another view went out of sight, or Python thought that nobody looks; only a view in sight answers
    if (inSight && !document.hidden) see();
  };
  button.addEventListener("click", () => {
    model.set("wanted", !model.get("wanted"));
    model.save_changes();
  });
  root.addEventListener("keydown", (event) => {
    if (staysHere(event)) event.stopPropagation();
  });
  const observer = new IntersectionObserver(([entry]) => {
    inSight = entry.isIntersecting;
    see();
  });
  observer.observe(root);
  document.addEventListener("visibilitychange", see);
  const listeners = {
    "change:sample": show, "change:wanted": state, "change:running": state, "change:problem": state, "change:visible": seeAgain,
  };
  for (const [name, call] of Object.entries(listeners)) model.on(name, call);
  show();
  state();
  return () => {
    observer.disconnect();
    document.removeEventListener("visibilitychange", see);
    for (const [name, call] of Object.entries(listeners)) model.off(name, call);
  };
}

export default { render };
