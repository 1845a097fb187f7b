// What is redrawn under a user's hands: the focus and a selection of text stay where they were.

/**
 * Redraw what is in `box`; where that took the element with the focus away, the one at its place gets it.
 * `selector` finds the elements that can have it.
 */
export function keepingFocus(box, selector, redraw) {
  const active = box.getRootNode().activeElement;
  const place = box.contains(active) ? [...box.querySelectorAll(selector)].indexOf(active) : -1;
  redraw();
  if (place < 0 || active.isConnected) return;
  const now = box.querySelectorAll(selector);
  now[Math.min(place, now.length - 1)]?.focus({ preventScroll: true });
}

/** Make `old` read as `fresh`, node by node: what is alike stays, and with it focus, selection and scrolling. */
export function become(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  const parts = [...old.childNodes], freshParts = [...fresh.childNodes];
  if (old.nodeName !== fresh.nodeName || parts.length !== freshParts.length) {
    old.replaceWith(fresh);
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  parts.forEach((part, i) => become(part, freshParts[i]));
}
