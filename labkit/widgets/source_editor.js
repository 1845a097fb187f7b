// SourceEditor: kernel sources as text that can be changed, with what is known of each line in the gutter: lanes, sectors
// and bank passes as bars with numbers, and what is wrong as marks. A transparent textarea lies over the coloured text.
import { coloured, tabbed } from "./cuda_words.mjs";
import { keepingFocus } from "./focus_kept.mjs";
import { staysHere } from "./notebook_keys.mjs";

const SEND_AFTER_MS = 250;
const LINE_PX = 18;

const ratio = (x) => (x === null ? "" : `${x.toFixed(2)}×`);
const waste = (x) => (x === null ? 0 : Math.max(0, 1 - 1 / x));

function build(el) {
  const root = document.createElement("div");
  root.className = "labkit-source";
  root.innerHTML = `
    <div class="tabs" role="tablist" aria-label="files"></div>
    <div class="pane" role="tabpanel" tabindex="-1">
      <div class="head" aria-hidden="true"><span class="n">line</span>
        <span class="b" title="lanes of a warp that take part in a request, of 32">lanes</span>
        <span class="b" title="32-byte sectors touched, over the sectors of the same words side by side: 1 is perfect">sectors</span>
        <span class="b" title="passes over the banks of shared memory, over the least that the bytes need: 1 is perfect">banks</span></div>
      <div class="body"><div class="gutter"></div>
        <div class="code"><div class="ink" aria-hidden="true"></div>
          <textarea spellcheck="false" autocapitalize="off" autocomplete="off" wrap="off" aria-label="kernel source"></textarea></div></div>
    </div>
    <div class="foot"><span class="where"></span><span class="keys">Tab indents · Esc leaves · Ctrl+Enter checks</span></div>
    <div class="found" role="list" aria-label="reports"></div>
    <div class="spoken" aria-live="polite"></div>`;
  el.append(root);
  const find = (selector) => root.querySelector(selector);
  return {
    root, tabs: find(".tabs"), pane: find(".pane"), gutter: find(".gutter"), code: find(".code"), ink: find(".ink"),
    area: find("textarea"), where: find(".where"), found: find(".found"), spoken: find(".spoken"),
  };
}

function render({ model, el }) {
  const parts = build(el);
  const { root, area, ink, gutter } = parts;
  let texts = { ...model.get("texts") };
  // what a kernel calls is often in a header, and so are its requests: the first file with bars is opened
  const linesOf = (file) => model.get("figures").filter((f) => f.file === file).length;
  let shown = Object.keys(texts).find(linesOf) ?? Object.keys(texts)[0] ?? "";
  let timer = 0;
  let lines = 0;

  // -- to Python ----------------------------------------------------------------------------------------------------

  const send = () => {
    clearTimeout(timer);
    timer = 0;
    model.set("texts", { ...texts });
    model.save_changes();
  };
  const typed = () => {
    texts = { ...texts, [shown]: area.value };
    clearTimeout(timer);
    timer = setTimeout(send, SEND_AFTER_MS);
    draw();
  };
  const check = () => {
    if (timer) send();
    model.set("asked", model.get("asked") + 1);
    model.save_changes();
  };

  // -- drawing ------------------------------------------------------------------------------------------------------

  const marksOf = (file) => model.get("marks").filter((mark) => mark.file === file);
  // what was found belongs to the text that was looked at; a line that moved since then would be the wrong one
  const isOld = (name, file) => {
    const seen = model.get(name)[file];
    return seen !== undefined && seen !== texts[file];
  };

  const draw = () => {
    const text = texts[shown] ?? "";
    if (area.value !== text) {
      area.value = text;
      area.setSelectionRange(0, 0);
    }
    ink.innerHTML = coloured(text);
    const many = text.split("\n").length;
    const widest = text.split("\n").reduce((most, line) => Math.max(most, line.length), 0);
    parts.code.style.height = `${many * LINE_PX}px`;
    parts.code.style.width = `${widest + 4}ch`;
    if (many !== lines) drawGutter(many);
    root.classList.toggle("old", isOld("checked", shown));
    root.classList.toggle("old-counts", isOld("counted", shown));
    drawTabs();
    drawWhere();
  };

  const drawGutter = (many) => {
    lines = many;
    const figures = new Map(model.get("figures").filter((f) => f.file === shown).map((f) => [f.line, f]));
    const marks = new Map();
    for (const mark of marksOf(shown)) marks.set(mark.line, [...(marks.get(mark.line) ?? []), mark]);
    const made = Array.from({ length: many }, (_, i) => gutterLine(i + 1, figures.get(i + 1), marks.get(i + 1)));
    keepingFocus(gutter, "button", () => gutter.replaceChildren(...made));
  };

  const gutterLine = (number, figures, marks) => {
    const line = document.createElement("div");
    line.className = "line";
    line.dataset.line = number;
    line.append(part("n", String(number)));
    if (marks) {
      line.classList.add("wrong");
      const mark = document.createElement("button");
      mark.type = "button";
      mark.className = "mark";
      mark.textContent = "✗";
      mark.title = marks.map((m) => `${m.title}: ${m.text}`).join("\n");
      mark.setAttribute("aria-label", `line ${number}: ${mark.title}`);
      mark.addEventListener("click", () => goTo(shown, number));
      line.append(mark);
    } else line.append(part("mark", ""));
    if (figures) {
      line.append(
        bar("lanes", figures.lanes.toFixed(1), figures.lanes / 32),
        bar("waste", ratio(figures.sectors), waste(figures.sectors)),
        bar("waste", ratio(figures.passes), waste(figures.passes)),
      );
      line.title = figures.tip;
    } else line.append(part("b", ""), part("b", ""), part("b", ""));
    return line;
  };
  const part = (kind, text) => {
    const span = document.createElement("span");
    span.className = kind;
    span.textContent = text;
    return span;
  };
  const bar = (kind, text, share) => {
    const span = part(`b ${text ? kind : ""}`, text);
    span.style.setProperty("--share", `${(100 * share).toFixed(0)}%`);
    return span;
  };

  const drawTabs = () => {
    const shipped = model.get("shipped");
    const made = Object.keys(texts).map((file) => {
      const tab = document.createElement("button");
      tab.type = "button";
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-selected", String(file === shown));
      const wrong = marksOf(file).length;
      tab.textContent = `${file}${texts[file] === shipped[file] ? "" : " •"}${wrong ? ` (${wrong} ✗)` : ""}${linesOf(file) ? " ▮" : ""}`;
      tab.title = `${texts[file] === shipped[file] ? "as shipped" : "changed"}, ${linesOf(file)} lines with requests`;
      tab.addEventListener("click", () => open(file));
      return tab;
    });
    keepingFocus(parts.tabs, "button", () => parts.tabs.replaceChildren(...made));
    root.dataset.changed = Object.keys(texts).filter((file) => texts[file] !== shipped[file]).join(",");
    root.dataset.shown = shown;
  };

  const drawFound = () => {
    const made = model.get("marks").map((mark) => {
      const item = document.createElement(mark.line ? "button" : "div");
      item.setAttribute("role", "listitem");
      item.className = "report";
      item.dataset.kind = mark.kind;
      if (mark.line) {
        item.type = "button";
        item.dataset.place = `${mark.file}:${mark.line}`;
        item.addEventListener("click", () => goTo(mark.file, mark.line));
      }
      const title = part("title", mark.title);
      const place = part("place", mark.line ? `${mark.file}:${mark.line}` : "whole kernel");
      const times = mark.count > 1 ? ` (${mark.count.toLocaleString("en")} times)` : "";
      item.append(place, title, part("text", mark.text + times));
      return item;
    });
    keepingFocus(parts.found, "button", () => parts.found.replaceChildren(...made));
    root.dataset.reports = String(model.get("marks").length);
  };

  const drawWhere = () => {
    const before = area.value.slice(0, area.selectionStart).split("\n");
    const old = root.classList.contains("old") || root.classList.contains("old-counts");
    parts.where.textContent = `${shown}:${before.length}:${before.at(-1).length + 1}` +
      (old ? " · changed since: the gutter is of the text before" : "");
  };

  // above the first line with bars are only comments: whoever has not scrolled yet sees the bars
  const showBars = () => {
    const first = Math.min(...model.get("figures").filter((f) => f.file === shown).map((f) => f.line));
    if (Number.isFinite(first) && parts.pane.scrollTop === 0) parts.pane.scrollTop = Math.max(0, first - 4) * LINE_PX;
  };

  const open = (file) => {
    if (file === shown) return;
    shown = file;
    lines = 0;
    draw();
    parts.pane.scrollTop = 0;
    showBars();
  };

  const goTo = (file, number) => {
    open(file);
    const start = area.value.split("\n").slice(0, number - 1).reduce((sum, line) => sum + line.length + 1, 0);
    const end = area.value.indexOf("\n", start);
    area.focus({ preventScroll: true });
    area.setSelectionRange(start, end < 0 ? area.value.length : end);
    parts.pane.scrollTo({ top: Math.max(0, number * LINE_PX - parts.pane.clientHeight / 2), left: 0 });
    parts.spoken.textContent = marksOf(file).filter((m) => m.line === number).map((m) => `${m.title}: ${m.text}`).join(". ");
    drawWhere();
  };

  // -- keys ---------------------------------------------------------------------------------------------------------

  root.addEventListener("keydown", (event) => {
    const isEditing = event.target === area;
    if (staysHere(event) || (isEditing && event.key === "Tab")) event.stopPropagation();
    else if (timer) send(); // the notebook may be saved: it then has what was typed last
    if (!isEditing) return;
    const command = event.ctrlKey || event.metaKey;
    if (event.key === "Tab" && !command && !event.altKey) {
      const edit = tabbed(area.value, area.selectionStart, area.selectionEnd, event.shiftKey);
      area.setSelectionRange(edit.from, edit.to);
      // an edit by this command can be undone; an assignment to the value could not
      if (edit.put !== area.value.slice(edit.from, edit.to)) document.execCommand("insertText", false, edit.put);
      area.setSelectionRange(edit.start, edit.end);
    } else if (event.key === "Escape") parts.pane.focus();
    else if (event.key === "Enter" && command) check();
    else return;
    event.preventDefault();
  });
  for (const name of ["keyup", "keypress"]) {
    root.addEventListener(name, (event) => { if (staysHere(event)) event.stopPropagation(); });
  }
  area.addEventListener("input", typed);
  for (const name of ["click", "keyup", "select"]) area.addEventListener(name, drawWhere);
  area.addEventListener("blur", () => { if (timer) send(); });

  // -- from Python --------------------------------------------------------------------------------------------------

  const onTexts = () => {
    if (timer) return; // newer ones are on their way to it
    const given = model.get("texts");
    if (JSON.stringify(given) === JSON.stringify(texts)) return;
    texts = { ...given };
    if (!(shown in texts)) shown = Object.keys(texts)[0] ?? "";
    lines = 0;
    draw();
  };
  const onFigures = () => {
    lines = 0;
    draw();
    showBars();
  };
  const announce = () => {
    const titles = model.get("marks").map((mark) => mark.title);
    parts.spoken.textContent = titles.length ? `reports: ${titles.length}, ${[...new Set(titles)].join(", ")}` : "no reports";
  };
  const onChecked = () => {
    announce();
    draw();
  };
  const onMarks = () => {
    announce();
    lines = 0;
    drawFound();
    draw();
  };
  model.on("change:texts", onTexts);
  model.on("change:shipped", draw);
  model.on("change:figures", onFigures);
  model.on("change:counted", draw);
  model.on("change:marks", onMarks);
  model.on("change:checked", onChecked);
  drawFound();
  draw();
  const laidOut = new ResizeObserver(() => {
    if (!parts.pane.clientHeight) return;
    laidOut.disconnect();
    showBars();
  });
  laidOut.observe(parts.pane);
  return () => {
    laidOut.disconnect();
    if (timer) send();
    model.off("change:texts", onTexts);
    model.off("change:shipped", draw);
    model.off("change:figures", onFigures);
    model.off("change:counted", draw);
    model.off("change:marks", onMarks);
    model.off("change:checked", onChecked);
  };
}

export default { render };
