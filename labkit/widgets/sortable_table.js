// SortableTable: a table made by Python whose rows are sorted where they are seen; a new table keeps the order asked for.
import { become, keepingFocus } from "./focus_kept.mjs";
import { staysHere } from "./notebook_keys.mjs";

const HEADS = "thead tr:last-child th"; // above them may be what groups of columns are of

function sorted(box, sort) {
  const table = box.querySelector("table");
  if (!table) return;
  const heads = [...table.querySelectorAll(HEADS)];
  heads.forEach((head, column) => {
    const is = sort && sort.column === column;
    head.setAttribute("aria-sort", is ? (sort.down ? "descending" : "ascending") : "none");
    head.tabIndex = 0;
    head.style.cursor = "pointer";
  });
  if (!sort) return;
  const cellAt = (row, column) => {
    let at = 0; // an error takes the place of several cells
    return [...row.cells].find((cell) => (at += cell.colSpan) > column);
  };
  const value = (row) => {
    if (sort.column === 0) return row.dataset.strategy;
    const text = cellAt(row, sort.column)?.dataset.value;
    return text === undefined || Number.isNaN(Number(text)) ? text ?? NaN : Number(text);
  };
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row, index) => ({ row, index, value: value(row) }));
  const missing = (v) => typeof v === "number" && Number.isNaN(v);
  rows.sort((a, b) => {
    if (missing(a.value) || missing(b.value)) return missing(a.value) - missing(b.value) || a.index - b.index;
    const order = a.value < b.value ? -1 : a.value > b.value ? 1 : 0;
    return (sort.down ? -order : order) || a.index - b.index;
  });
  for (const { row } of rows) body.append(row);
}

function render({ model, el }) {
  const box = document.createElement("div");
  el.append(box);
  let sort = null; // {column, down}
  const show = () => {
    const parts = model.get("base").split(/([<";])/); // as sortable_table.py splits it
    for (const [number, text] of Object.entries(model.get("patch"))) parts[number] = text;
    const fresh = document.createElement("div");
    fresh.innerHTML = parts.join("");
    sorted(fresh, sort);
    keepingFocus(box, HEADS, () => (box.firstChild ? become(box.firstChild, fresh) : box.append(fresh)));
  };
  const ask = (event) => {
    const head = event.target.closest(HEADS);
    if (!head || (event.type === "keydown" && !["Enter", " "].includes(event.key))) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const column = head.cellIndex;
    const bestFirst = "most" in head.dataset; // down, where the most is the best
    if (sort?.column !== column) sort = { column, down: bestFirst };
    else sort = sort.down === bestFirst ? { column, down: !bestFirst } : null;
    show();
  };
  box.addEventListener("click", ask);
  box.addEventListener("keydown", (event) => {
    if (staysHere(event)) event.stopPropagation();
    ask(event);
  });
  const listen = (how) => ["change:base", "change:patch"].forEach((name) => model[how](name, show));
  listen("on");
  show();
  return () => listen("off");
}

export default { render };
