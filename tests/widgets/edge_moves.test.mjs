// Edges as a person changes them, and the axis they stand on.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  addedEdge, changed, continued, deletedEdge, movedCap, movedEdge, parsedEdges, redone, replaced, stateOf, undone,
} from "../../labkit/widgets/edge_moves.mjs";
import { axisOf, barsOf, ticksOf } from "../../labkit/widgets/length_axis.mjs";
import { prefixSums } from "../../labkit/widgets/padding.mjs";

const setting = (edges, cap = null) => ({ edges, cap });
const edgesOf = (given) => given.edges;

test("an edge stops at its neighbours, the last one at the longest length", () => {
  const given = setting([8, 20, 50]);
  assert.deepEqual(edgesOf(movedEdge(given, 1, 3)), [8, 9, 50]);
  assert.deepEqual(edgesOf(movedEdge(given, 1, 99)), [8, 49, 50]);
  assert.deepEqual(edgesOf(movedEdge(given, 0, -5)), [1, 20, 50]);
  assert.deepEqual(edgesOf(movedEdge(given, 2, 999, { longest: 70 })), [8, 20, 70]);
  assert.deepEqual(given.edges, [8, 20, 50]);
});

test("edges snap to multiples that lie between the neighbours, and stay free where none does", () => {
  assert.deepEqual(edgesOf(movedEdge(setting([8, 20, 50]), 1, 27, { snap: 8 })), [8, 24, 50]);
  assert.deepEqual(edgesOf(movedEdge(setting([8, 20, 50]), 1, 49, { snap: 8 })), [8, 48, 50]);
  assert.deepEqual(edgesOf(movedEdge(setting([9, 11, 15]), 1, 12, { snap: 8 })), [9, 12, 15]);
  assert.equal(movedCap(setting([8], 30), 61, { snap: 16, longest: 70 }).cap, 64);
});

test("edges are added in order, never twice, never too many; the last one cannot be deleted", () => {
  assert.deepEqual(edgesOf(addedEdge(setting([8, 50]), 20)), [8, 20, 50]);
  assert.deepEqual(edgesOf(addedEdge(setting([8, 50]), 50)), [8, 50]);
  assert.deepEqual(edgesOf(addedEdge(setting([8, 50]), 20, { most: 2 })), [8, 50]);
  assert.deepEqual(edgesOf(deletedEdge(setting([8, 50]), 0)), [50]);
  assert.deepEqual(edgesOf(deletedEdge(setting([50]), 0)), [50]);
});

test("a drag is one step of undo, and a new change forgets what was undone", () => {
  let state = stateOf([8, 50]);
  state = changed(state, movedEdge(state.now, 0, 9));
  state = continued(state, movedEdge(state.now, 0, 10));
  state = continued(state, movedEdge(state.now, 0, 11));
  assert.deepEqual(state.now.edges, [11, 50]);
  state = undone(state);
  assert.deepEqual(state.now.edges, [8, 50]);
  assert.equal(undone(state), state);
  state = redone(state);
  assert.deepEqual(state.now.edges, [11, 50]);
  state = replaced(undone(state), [20, 50], 40);
  assert.deepEqual(state.now, { edges: [20, 50], cap: 40 });
  assert.equal(redone(state), state);
  assert.equal(changed(state, { edges: [20, 50], cap: 40 }), state);
});

test("typed edges are sorted, and what is no edge is named", () => {
  assert.deepEqual(parsedEdges(" 50, 8;20 8 ").edges, [8, 20, 50]);
  for (const [text, problem] of [
    ["8, 2x", '"2x" is not a whole number of 1 or more.'],
    ["0", '"0" is not a whole number of 1 or more.'],
    ["-3", '"-3" is not a whole number of 1 or more.'],
    ["9999999999", '"9999999999" is not a whole number of 1 or more.'],
    ["  ", "Type at least one edge, such as 8, 20, 50."],
  ]) assert.deepEqual(parsedEdges(text), { edges: null, problem });
  assert.equal(parsedEdges("1 2 3", 2).problem, "3 edges typed: at most 2.");
});

test("each pixel of an edge leads back to its length, on both axes", () => {
  for (const isLog of [true, false]) {
    const axis = axisOf({ shortest: 1, longest: 700, isLog, left: 14, right: 980 });
    for (const edge of [1, 2, 3, 8, 64, 333, 700]) assert.equal(axis.lengthAt(axis.edgeAt(edge)), edge);
    assert.equal(axis.lengthAt(-100), 1);
    assert.equal(axis.lengthAt(9999), 700);
  }
});

test("bars hold every sequence once, and their area is the share of those that are not empty", () => {
  const sums = prefixSums(Float64Array.of(0, 1, 2, 7, 300), Float64Array.of(5, 10, 3, 2, 1));
  for (const isLog of [true, false]) {
    const bars = barsOf(sums, { shortest: 1, longest: 300, isLog });
    assert.equal(bars.reduce((total, bar) => total + bar.users, 0), 16);
    const width = (bar) => (isLog ? Math.log2((bar.high + 0.5) / (bar.low - 0.5)) : bar.high - bar.low + 1);
    const area = bars.reduce((total, bar) => total + bar.sequences * width(bar), 0);
    assert.ok(Math.abs(area - 16 / 21) < 1e-12);
    bars.slice(1).forEach((bar, i) => assert.equal(bar.low, bars[i].high + 1));
  }
});

test("ticks are few and end at the longest length", () => {
  assert.deepEqual(ticksOf({ shortest: 1, longest: 217, isLog: true }), [1, 2, 4, 8, 16, 32, 64, 128, 217]);
  assert.deepEqual(ticksOf({ shortest: 1, longest: 700, isLog: false }, 7), [0, 100, 200, 300, 400, 500, 600, 700]);
  assert.ok(ticksOf({ shortest: 1, longest: 1e6, isLog: true }).length < 14);
});
