// padding.mjs against figures that Python computed, to the last digit, and against brute force.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  aboveOptimum, bestNewEdge, cappedEdges, figuresOf, prefixSums, roomOf,
} from "../../labkit/widgets/padding.mjs";

const cases = JSON.parse(readFileSync(new URL("padding_cases.json", import.meta.url)));
const RULES = {
  cap: null, lengthMultiple: 1, overflow: "error", budget: 100, rows: 4, rowMultiple: 1, singleRow: false,
  isStatic: false,
};
const sumsOf = (given) => prefixSums(Float64Array.from(given.values), Float64Array.from(given.counts));

for (const kind of ["eager", "static"]) {
  test(`${kind}: every figure of every case equals Python's, the same cases are refused, in the same words`, () => {
    const refused = [];
    cases.forEach((given, i) => {
      const found = figuresOf(sumsOf(given), given.edges, { ...given.rules, isStatic: kind === "static" });
      const expected = { problem: null, ...given[kind] };
      for (const [name, value] of Object.entries(expected)) assert.equal(found[name], value, `case ${i}: ${name}`);
      if (expected.problem) refused.push(expected.problem);
    });
    assert.ok(refused.length > 20 && refused.length < cases.length / 2, `${refused.length} refused`);
    for (const words of ["> last bucket edge", "is above token_budget", "buckets are too wide"]) {
      assert.ok(refused.some((problem) => problem.includes(words)), words);
    }
  });
}

test("edges that lose what the optimum holds, or are refused, have no gap; no others beat it", () => {
  const seen = { compared: 0, error: 0, drop: 0, truncate: 0 };
  for (const given of cases.filter((c) => c.edges.length <= 6)) {
    for (const overflow of ["error", "drop", "truncate"]) {
      const rules = { ...given.rules, overflow, singleRow: true };
      const gap = aboveOptimum(figuresOf(sumsOf(given), given.edges, rules), given.curve);
      const reaches = Math.min(rules.cap ?? Infinity, given.values.at(-1)) <= given.edges.at(-1);
      seen[reaches ? "compared" : overflow] += 1;
      if (reaches) assert.ok(gap >= 0);
      else assert.equal(gap, null, `${overflow}: ${gap}`);
    }
    const refused = figuresOf(sumsOf(given), given.edges, given.rules);
    if (given.eager.problem) assert.equal(aboveOptimum(refused, given.curve), null);
  }
  for (const [kind, number] of Object.entries(seen)) assert.ok(number > 10, `${number} ${kind}`);
});

test("the gap is 0 at the optimum only, and of an optimum of other data there is none", () => {
  const figures = figuresOf(tiny, [1, 8], RULES); // 10 + 2 * 8 = 26
  assert.equal(aboveOptimum(figures, [96, 26]), 0);
  assert.equal(aboveOptimum(figures, [96, 26 - 1e-6]) > 0, true);
  assert.equal(aboveOptimum(figures, [96, 27]), null);
  assert.equal(aboveOptimum(figures, []), null);
  // a curve of one edge says nothing of two, unless no more edges were to be had
  assert.equal(aboveOptimum(figures, [26], 1), null);
  assert.equal(aboveOptimum(figures, [26], 5), 0);
  assert.equal(aboveOptimum(figures, undefined), null);
});

// lengths 1 x 10, 2 x 1, 8 x 1: edges [2, 8] -> 11 * 2 + 8 = 30 slots, 20 events
const tiny = prefixSums(Float64Array.of(1, 2, 8), Float64Array.of(10, 1, 1));

test("a tiny case by hand", () => {
  const found = figuresOf(tiny, [2, 8], RULES);
  assert.deepEqual([found.slots, found.kept, found.padding], [30, 20, 1 - 20 / 30]);
  assert.deepEqual(found.buckets.map((bucket) => bucket.sequences), [11, 1]);
});

test("the one more edge saves as much as any other", () => {
  assert.equal(bestNewEdge(tiny, [8], RULES), 1); // 12 * 8 = 96 slots; at 1: 10 + 2 * 8 = 26, at 2: 22 + 8 = 30
  assert.equal(bestNewEdge(tiny, [1, 2, 8], RULES), null);
  for (const given of cases) {
    const sums = sumsOf(given);
    const rules = { ...given.rules, overflow: "truncate" };
    const slots = (edges) => figuresOf(sums, edges, rules).slots;
    const more = (at) => slots([...new Set([...given.edges, at])].sort((a, b) => a - b));
    const last = cappedEdges(given.edges, rules.cap).at(-1);
    const best = Math.min(...given.values.filter((at) => at >= 1 && at < last).map(more), slots(given.edges));
    const found = bestNewEdge(sums, given.edges, rules);
    assert.equal(found === null ? slots(given.edges) : more(found), best);
  }
});

test("the room of an edge ends where the slots grow by more than the share", () => {
  // edge 2 to 1: 10 * 1 + 2 * 8 = 26 < 30: free; the last edge has no room
  assert.deepEqual(roomOf(tiny, [2, 8], RULES, 0.01), [{ low: 1, high: 2 }, null]);
  // edge 1 to 2: 22 + 8 = 30 of 26: 15 % more, not within 1 %, but within 20 %
  assert.deepEqual(roomOf(tiny, [1, 8], RULES, 0.01), [{ low: 1, high: 1 }, null]);
  assert.deepEqual(roomOf(tiny, [1, 8], RULES, 0.2), [{ low: 1, high: 2 }, null]);
  // 3 does not occur: 11 * 3 + 8 = 41 slots, of 30 not more than 40 %
  assert.deepEqual(roomOf(tiny, [2, 8], RULES, 0.4), [{ low: 1, high: 3 }, null]);
});

test("the room of every edge of every case is that of trying each length", () => {
  let between = 0;
  for (const given of cases) {
    const sums = sumsOf(given);
    const rules = { ...given.rules, overflow: "truncate", isStatic: false };
    for (const share of [0.01, 0.1]) {
      const rooms = roomOf(sums, given.edges, rules, share);
      const slots = (k, at) => figuresOf(sums, given.edges.map((edge, i) => (i === k ? at : edge)), rules).slots;
      given.edges.forEach((edge, k) => {
        const now = slots(k, edge);
        const top = Math.min(given.edges[k + 1], rules.cap ?? Infinity);
        if (k === given.edges.length - 1 || edge >= top) return assert.equal(rooms[k], null);
        const isWithin = (at) => at > (given.edges[k - 1] ?? 0) && at < top && slots(k, at) - now <= share * now;
        let [low, high] = [edge, edge];
        while (isWithin(low - 1)) low -= 1;
        while (isWithin(high + 1)) high += 1;
        assert.deepEqual(rooms[k], { low, high });
        if (!given.values.includes(high)) between += 1;
      });
    }
  }
  assert.ok(between > 100, `${between} ends between two lengths that occur`);
});
