// What the latency benchmark watches in the page: when an input came, when the numbers had changed.
window.labkitWatch = {
  inputs: [],
  changes: { instant: [], live: [] },
  start() {
    for (const type of ["pointermove", "keydown"]) {
      document.addEventListener(type, (event) => {
        if (type === "keydown" || event.buttons) this.inputs.push(performance.now());
      }, true);
    }
    const panel = document.querySelector(".labkit-panel");
    const read = {
      instant: () => panel.querySelector(".labkit-editor .padding")?.dataset.value,
      live: () => panel.querySelector(".labkit-table-box")?.dataset.seq,
    };
    const last = { instant: read.instant(), live: read.live() };
    new MutationObserver(() => {
      for (const kind of ["instant", "live"]) {
        const now = read[kind]();
        if (now === undefined || now === last[kind]) continue;
        last[kind] = now;
        const change = { at: performance.now(), value: now };
        this.changes[kind].push(change);
        const { resolve, kind: wanted } = this.armed ?? {};
        if (wanted === kind) resolve(change);
      }
    }).observe(panel, { subtree: true, childList: true, attributes: true, characterData: true });
  },
  arm(kind) {
    this.from = this.inputs.length;
    this.promise = new Promise((resolve) => {
      this.armed = { kind, resolve };
      setTimeout(() => resolve(null), 5000);
    });
    return true;
  },
  async wait() {
    const change = await this.promise;
    this.armed = null;
    const input = this.inputs[this.from];
    return change && input !== undefined ? change.at - input : null;
  },
  reset() {
    this.inputs = [];
    this.changes = { instant: [], live: [] };
  },
};
