// Plotly figures measure their cell before they are attached to it, and afterwards listen to the window alone. This
// invisible element watches the width that the panel really has and tells the panel's own figures; the event itself
// would also reach figures of cells that are scrolled out of sight, which fail on it.
const MOST_TRIES = 600; // frames

function render({ el }) {
  el.style.width = "100%";
  let width = 0;
  let frame = 0;
  const fit = (tries = 0) => {
    const figures = [...(el.closest(".labkit-panel")?.querySelectorAll(".js-plotly-plot") ?? [])];
    for (const figure of figures) figure._responsiveChartHandler?.();
    // on a busy machine a figure is in the page long before plotly can fit it
    const isUnfinished = figures.some((figure) => !figure._responsiveChartHandler);
    if (isUnfinished && tries < MOST_TRIES) frame = requestAnimationFrame(() => fit(tries + 1));
  };
  const observer = new ResizeObserver(([entry]) => {
    const now = entry.contentRect.width;
    if (now < 1 || Math.abs(now - width) < 1) return;
    width = now;
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => fit());
  });
  observer.observe(el);
  // figures that are drawn after this element was measured
  const late = new MutationObserver((changes) => {
    if (changes.some((c) => [...c.addedNodes].some((n) => n.classList?.contains("plot-container")))) {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => fit());
    }
  });
  let attached = 0;
  const attach = (tries = 0) => {
    const panel = el.closest(".labkit-panel");
    if (panel) {
      late.observe(panel, { childList: true, subtree: true });
      fit();
    } else if (tries < MOST_TRIES) attached = requestAnimationFrame(() => attach(tries + 1));
  };
  attached = requestAnimationFrame(() => attach());
  return () => {
    cancelAnimationFrame(frame);
    cancelAnimationFrame(attached);
    observer.disconnect();
    late.disconnect();
  };
}
export default { render };
