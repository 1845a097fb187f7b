// Texts of an element that do not stand out from their ground as WCAG 2 asks (1.4.3): 4.5 to 1, large ones 3 to 1.
// Grounds are background colours; pictures behind a text (gradients, marks of a plot) are not seen here.
(root) => {
  const parsed = (text) => {
    const [r, g, b, a = 1] = (text.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
    return text.startsWith("color(srgb") ? [r * 255, g * 255, b * 255, a] : [r, g, b, a];
  };
  const over = ([r, g, b, a], below) => [r, g, b].map((x, i) => x * a + below[i] * (1 - a));
  const light = (rgb) => {
    const [r, g, b] = rgb.map((x) => x / 255).map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      const color = parsed(getComputedStyle(e).backgroundColor);
      if (color[3] > 0) layers.push(color);
      if (color[3] === 1) break;
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const opacity = (element) => {
    let all = 1;
    for (let e = element; e; e = e.parentElement) all *= Number(getComputedStyle(e).opacity);
    return all;
  };
  const found = [];
  let looked = 0;
  const look = (element, text) => {
    const style = getComputedStyle(element);
    const shown = element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
    if (!shown || element.getBoundingClientRect().width < 2 || element.closest(":disabled, [aria-disabled=true]")) return;
    if (element.closest(".jupyter-widgets")?.querySelector("input:disabled")) return; // the label of one that is off
    looked += 1;
    const isSvg = element instanceof SVGElement;
    const [r, g, b, a] = parsed(isSvg ? style.fill : style.color);
    const below = ground(element);
    const [one, two] = [light(over([r, g, b, a * opacity(element)], below)), light(below)].sort((x, y) => y - x);
    const ratio = (one + 0.05) / (two + 0.05);
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    if (ratio < least) found.push(`${ratio.toFixed(2)} ${JSON.stringify(text.slice(0, 40))} in ${element.tagName.toLowerCase()}.${
      element.getAttribute("class") ?? ""} in .${element.closest(".jupyter-widgets, [class*=labkit]")?.className}`);
  };
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const { data, parentElement: parent } = walker.currentNode;
    if (data.trim() && !["STYLE", "SCRIPT", "OPTION"].includes(parent.tagName)) look(parent, data.trim());
  }
  for (const field of root.querySelectorAll("input:not([type=checkbox]), select, textarea")) look(field, field.value);
  return { looked, found: [...new Set(found)] };
}
