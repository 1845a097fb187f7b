// One handle held by one pointer. The picture itself captures it, so that handles may be drawn anew in the middle.

// pointermove waits for the next frame, up to 16 ms; where the browser tells at once (https and localhost), that is taken
const moveEvent = () => ("onpointerrawupdate" in window ? "pointerrawupdate" : "pointermove");

/**
 * @param {SVGElement} svg with handles of class "handle" and data-kind, data-index
 * @param {{taken: Function, moved: Function, released: Function}} calls with {kind, index}; `moved` with clientX too
 * @returns {{held: {kind: string, index: number, pointer: number}|null, end: Function}}
 */
export function dragging(svg, { taken, moved, released }) {
  const drag = { held: null, end };

  function end() {
    if (!drag.held) return;
    const { pointer } = drag.held;
    drag.held = null;
    if (svg.hasPointerCapture(pointer)) svg.releasePointerCapture(pointer);
    released();
  }

  svg.addEventListener("pointerdown", (event) => {
    const handle = event.target.closest(".handle");
    if (!handle || event.button) return;
    event.preventDefault();
    event.stopPropagation();
    if (drag.held && svg.hasPointerCapture(drag.held.pointer)) return; // a second finger
    end();
    svg.setPointerCapture(event.pointerId);
    drag.held = { kind: handle.dataset.kind, index: Number(handle.dataset.index), pointer: event.pointerId };
    taken(drag.held, handle);
  });
  svg.addEventListener(moveEvent(), (event) => {
    if (drag.held?.pointer !== event.pointerId) return;
    if (event.buttons & 1) moved(drag.held, event.clientX);
    else end(); // released where nobody told
  });
  for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) {
    svg.addEventListener(name, (event) => {
      // touch captures what it hit, which loses it to the picture: not the end
      if (name === "lostpointercapture" && event.target !== svg) return;
      if (drag.held?.pointer === event.pointerId) end();
    });
  }
  return drag;
}
