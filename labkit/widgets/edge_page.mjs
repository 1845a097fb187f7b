// The parts of the editor's page, as they are at the start.

/** Parts of the page: a toolbar, the picture, the numbers, the text twin. */
export function build(el) {
  const root = document.createElement("div");
  root.className = "labkit-editor";
  root.innerHTML = `
    <div class="tools" role="toolbar" aria-label="edges">
      <button type="button" data-do="add"
        title="where one more edge saves most (+); or double-click the picture">+ edge</button>
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
    <div class="numbers"><span class="tier" title="computed in the browser, at every move">instant</span
      ><span class="values"></span></div>
    <label class="twin">edges <input type="text" spellcheck="false" aria-label="bucket edges as text"></label>
    <div class="problem"></div>
    <div class="spoken" role="status"></div>`;
  el.append(root);
  const find = (selector) => root.querySelector(selector);
  return {
    root, svg: find("svg"), values: find(".values"), twin: find(".twin input"), problem: find(".problem"),
    spoken: find(".spoken"), snap: find("[data-trait=snap]"), log: find("[data-trait=log_axis]"),
    undo: find("[data-do=undo]"), redo: find("[data-do=redo]"), delete: find("[data-do=delete]"),
  };
}

/** A text set only where it is another: what did not change is not announced again. */
export function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
