// LiveText: one line that screen readers say when it changes. Both regions are there before any text is: one that comes
// with its text is not announced.
function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "labkit-live";
  root.innerHTML = `<div class="said" role="status"></div><div class="wrong" role="alert"></div>`;
  el.append(root);
  const [said, wrong] = root.children;
  const put = (region, text) => {
    if (region.textContent !== text) region.textContent = text; // what is put again would be said again
  };
  const show = () => {
    const isError = model.get("is_error");
    put(said, isError ? "" : model.get("text"));
    put(wrong, isError ? model.get("text") : "");
  };
  const listen = (how) => ["change:text", "change:is_error"].forEach((name) => model[how](name, show));
  listen("on");
  show();
  return () => listen("off");
}

export default { render };
