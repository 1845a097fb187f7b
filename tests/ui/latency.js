// What the latency benchmark watches in the page. A move begins at event.timeStamp, when the browser got the input; it ends
// when its handlers are done, when the changed number is in the page, when the frame with that number has been produced.
// Numbers: "instant" is the editor's padding, computed in the page; "live" is the same figure in Python's table.
window.labkitWatch = {
  moves: [], // {stamp, wait, handler}: one for each input while a button is held
  tables: [], // {at, agrees}: when a table came, and whether its number is the editor's
  /** `type`: the event that the editor listens to; to listen to pointerrawupdate as well would change when both come. */
  start(type = "pointermove") {
    let begun = 0;
    window.addEventListener(type, (event) => {
      if (!event.buttons) return;
      begun = performance.now();
      this.moves.push({ stamp: event.timeStamp, wait: begun - event.timeStamp, handler: NaN });
    }, true);
    window.addEventListener(type, (event) => {
      if (event.buttons) this.moves.at(-1).handler = performance.now() - begun;
    });
    const panel = document.querySelector(".labkit-panel");
    const editor = panel.querySelector(".labkit-editor");
    const cell = "tr[data-strategy='bucket_rows'] td[data-figure='padding_ratio']";
    this.read = () => ({
      instant: Number(editor.querySelector(".padding")?.dataset.value ?? NaN),
      live: Number(panel.querySelector(cell)?.dataset.value ?? NaN),
      seq: panel.querySelector(".labkit-table-box")?.dataset.seq,
    });
    this.last = this.read();
    new MutationObserver(() => this.look()).observe(panel, {
      subtree: true, childList: true, attributes: true, characterData: true,
    });
  },
  agrees({ live, instant } = this.read()) {
    return Math.abs(live - instant) <= 1e-12;
  },
  look() {
    const now = this.read();
    const agrees = this.agrees(now);
    if (now.seq !== this.last.seq) this.tables.push({ at: performance.now(), agrees });
    this.last = now;
    const { armed } = this;
    if (!armed || armed.seen || now[armed.kind] === armed.before[armed.kind]) return;
    if (Number.isNaN(now[armed.kind]) || (armed.kind === "live" && !agrees)) return; // the answer to an earlier move
    armed.seen = true;
    const at = performance.now();
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel(); // its message comes after this frame's layout and paint
      port1.onmessage = () => armed.resolve({ at, painted: performance.now() });
      port2.postMessage(0);
    });
  },
  arm(kind) {
    this.moves = [];
    const armed = { kind, before: this.read() };
    armed.promise = new Promise((resolve) => {
      armed.resolve = resolve;
      setTimeout(() => resolve(null), 10_000);
    });
    this.armed = armed;
    return true;
  },
  /** {wait, handler, number, painted}: milliseconds of the one move since `arm`; null: not seen. */
  async wait() {
    const end = await this.armed.promise;
    this.armed = null;
    const { stamp, wait, handler } = this.moves[0] ?? {};
    if (!end || this.moves.length !== 1 || Number.isNaN(handler)) return null; // or somebody stopped the event
    return { wait, handler, number: end.at - stamp, painted: end.painted - stamp };
  },
  reset() {
    this.moves = [];
    this.tables = [];
  },
};
