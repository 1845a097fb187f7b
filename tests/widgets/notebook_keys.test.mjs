import assert from "node:assert/strict";
import test from "node:test";

import { staysHere } from "../../labkit/widgets/notebook_keys.mjs";

test("plain keys stay, Tab goes on", () => {
  for (const key of ["b", "d", "ArrowLeft", "Enter", "Escape", "+"]) assert.equal(staysHere({ key }), true, key);
  assert.equal(staysHere({ key: "Tab" }), false);
  assert.equal(staysHere({ key: "Tab", shiftKey: true }), false);
});

test("shortcuts of the page go on, but for editing and running the cell", () => {
  for (const key of ["s", "S", "b", "f", "ArrowLeft"]) assert.equal(staysHere({ key, ctrlKey: true }), false, key);
  assert.equal(staysHere({ key: "s", metaKey: true }), false);
  for (const key of ["z", "Z", "y", "c", "v", "x", "a", "Enter"]) {
    assert.equal(staysHere({ key, ctrlKey: true }), true, key);
    assert.equal(staysHere({ key, metaKey: true }), true, key);
  }
});

test("a modifier alone stays", () => {
  assert.equal(staysHere({ key: "Control", ctrlKey: true }), true);
  assert.equal(staysHere({ key: "Shift" }), true);
});
