// Plotly figures measure their cell before they are attached to it, and afterwards listen to the window alone. This
// invisible element watches the width that the panel really has and tells them.
function render({ el }) {
  el.style.width = "100%";
  let width = 0;
  let frame = 0;
  const observer = new ResizeObserver(([entry]) => {
    if (Math.abs(entry.contentRect.width - width) < 1) return;
    width = entry.contentRect.width;
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => window.dispatchEvent(new Event("resize")));
  });
  observer.observe(el);
  return () => {
    cancelAnimationFrame(frame);
    observer.disconnect();
  };
}
export default { render };
