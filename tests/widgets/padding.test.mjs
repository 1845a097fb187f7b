// padding.mjs against figures that Python computed, to the last digit.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  aboveOptimum, bestNewEdge, figuresOf, prefixSums, roomOf, slotsBetween,
} from "../../labkit/widgets/padding.mjs";

const cases = JSON.parse(readFileSync(new URL("padding_cases.json", import.meta.url)));
const RULES = {
  cap: null, lengthMultiple: 1, overflow: "error", budget: 100, rows: 4, rowMultiple: 1, singleRow: false, isStatic: false,
};
const sumsOf = (given) => prefixSums(Float64Array.from(given.values), Float64Array.from(given.counts));

for (const kind of ["eager", "static"]) {
  test(`${kind}: every figure of every case equals Python's, and the same cases are refused`, () => {
    const refused = [];
    cases.forEach((given, i) => {
      const found = figuresOf(sumsOf(given), given.edges, { ...given.rules, isStatic: kind === "static" });
      if (given[kind] === null) {
        refused.push(i);
        assert.notEqual(found.problem, null, `case ${i} should be refused`);
        return;
      }
      assert.equal(found.problem, null, `case ${i}`);
      for (const [name, value] of Object.entries(given[kind])) assert.equal(found[name], value, `case ${i}: ${name}`);
    });
    assert.ok(refused.length > 20 && refused.length < cases.length / 2, `${refused.length} refused`);
  });
}

test("no edges beat the curve of the optimum, and none at the optimum is above it", () => {
  for (const given of cases.filter((c) => c.eager && c.rules.overflow === "error" && c.edges.length <= 6)) {
    const edges = figuresOf(sumsOf(given), given.edges, given.rules).buckets;
    const slots = figuresOf(sumsOf(given), given.edges, given.rules).slots;
    assert.ok(aboveOptimum(slots, edges.length, given.curve) >= 0);
  }
});

// lengths 1 x 10, 2 x 1, 8 x 1: edges [2, 8] -> 11 * 2 + 8 = 30 slots, 20 events
const tiny = prefixSums(Float64Array.of(1, 2, 8), Float64Array.of(10, 1, 1));

test("a tiny case by hand", () => {
  const found = figuresOf(tiny, [2, 8], RULES);
  assert.deepEqual([found.slots, found.kept, found.padding], [30, 20, 1 - 20 / 30]);
  assert.deepEqual(found.buckets.map((bucket) => bucket.sequences), [11, 1]);
});

test("one more edge goes where it saves most", () => {
  assert.equal(bestNewEdge(tiny, [8], RULES), 1); // 12 * 8 = 96 slots; at 1: 10 + 2 * 8 = 26, at 2: 22 + 8 = 30
  assert.equal(bestNewEdge(tiny, [1, 2, 8], RULES), null);
});

test("the room of an edge ends where the slots grow by more than the share", () => {
  assert.equal(slotsBetween(tiny, 0, 2, RULES), 22);
  // edge 2 to 1: 10 * 1 + 2 * 8 = 26 < 30: free; the last edge has no room
  assert.deepEqual(roomOf(tiny, [2, 8], RULES, 0.01), [{ low: 1, high: 2 }, null]);
  // edge 1 to 2: 22 + 8 = 30 of 26: 15 % more, not within 1 %, but within 20 %
  assert.deepEqual(roomOf(tiny, [1, 8], RULES, 0.01), [{ low: 1, high: 1 }, null]);
  assert.deepEqual(roomOf(tiny, [1, 8], RULES, 0.2), [{ low: 1, high: 2 }, null]);
});
