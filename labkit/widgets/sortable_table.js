// SortableTable: a table made by Python whose rows are sorted where they are seen; a new table keeps the order asked for.

function sorted(box, sort) {
  const table = box.querySelector("table");
  if (!table) return;
  const heads = [...table.querySelectorAll("thead tr:last-child th")]; // above them may be what groups of columns are of
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
    box.innerHTML = parts.join("");
    sorted(box, sort);
  };
  const ask = (event) => {
    const head = event.target.closest("thead tr:last-child th");
    if (!head || (event.type === "keydown" && event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    const column = head.cellIndex;
    if (sort?.column !== column) sort = { column, down: false };
    else sort = sort.down ? null : { column, down: true };
    show();
  };
  box.addEventListener("click", ask);
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Tab") event.stopPropagation(); // the notebook's own shortcuts
    ask(event);
  });
  const listen = (how) => ["change:base", "change:patch"].forEach((name) => model[how](name, show));
  listen("on");
  show();
  return () => listen("off");
}

export default { render };
