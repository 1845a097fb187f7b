// Plotly figures measure their cell before they are attached to it, and afterwards listen to the window alone. This
// invisible element watches the width that the panel really has and tells the panel's own figures; the event itself
// would also reach figures of cells that are scrolled out of sight, which fail on it.
function render({ el }) {
  el.style.width = "100%";
  let width = 0;
  let frame = 0;
  const fit = () => {
    const panel = el.closest(".labkit-panel");
    for (const figure of panel?.querySelectorAll(".js-plotly-plot") ?? []) figure._responsiveChartHandler?.();
  };
  const observer = new ResizeObserver(([entry]) => {
    const now = entry.contentRect.width;
    if (now < 1 || Math.abs(now - width) < 1) return;
    width = now;
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(fit);
  });
  observer.observe(el);
  // figures that are drawn after this element was measured
  const late = new MutationObserver((changes) => {
    if (changes.some((c) => [...c.addedNodes].some((n) => n.classList?.contains("plot-container")))) {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(fit);
    }
  });
  const attached = requestAnimationFrame(() => {
    const panel = el.closest(".labkit-panel");
    if (panel) late.observe(panel, { childList: true, subtree: true });
  });
  return () => {
    cancelAnimationFrame(frame);
    cancelAnimationFrame(attached);
    observer.disconnect();
    late.disconnect();
  };
}
export default { render };
