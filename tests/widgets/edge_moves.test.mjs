// Edges as a person changes them, and the axis they stand on.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  addedEdge, changed, continued, deletedEdge, moved, parsedEdges, redone, replaced, stateOf, stepped, undone,
} from "../../labkit/widgets/edge_moves.mjs";
import { axisOf, barsOf, spanOfAxis, ticksOf } from "../../labkit/widgets/length_axis.mjs";
import { prefixSums } from "../../labkit/widgets/padding.mjs";

const setting = (edges, cap = null) => ({ edges, cap });
const edgesOf = (given) => given.edges;
const movedEdge = (given, index, to, limits) => moved(given, "edge", index, to, limits);

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
  assert.equal(moved(setting([8], 30), "cap", 0, 61, { snap: 16, longest: 70 }).cap, 64);
});

test("the end of the data is a stop of the last edge and of the cap, whatever the snap", () => {
  const limits = { snap: 64, longest: 737 };
  assert.deepEqual(edgesOf(movedEdge(setting([64, 700]), 1, 9999, limits)), [64, 737]);
  assert.deepEqual(edgesOf(stepped(setting([64, 704]), "edge", 1, 64, limits)), [64, 737]);
  assert.equal(stepped(setting([8], 704), "cap", 0, Infinity, limits).cap, 737);
  assert.deepEqual(edgesOf(movedEdge(setting([64, 700]), 0, 9999, limits)), [640, 700]);
});

test("page keys move by a tenth, and with snap by a multiple at least", () => {
  for (const [from, snap, by, to] of [
    [128, 64, 64, 192], [128, 64, -64, 64], [64, 32, 32, 96], [200, 64, 64, 256], [200, 64, -64, 128], [130, 8, 8, 136],
    [700, 1, 70, 770], [700, 16, 70, 768],
  ]) {
    assert.deepEqual(edgesOf(stepped(setting([from, 2000]), "edge", 0, by, { snap })), [to, 2000], `${from} by ${by}`);
  }
});

test("a step goes the way asked, to a stop, and stays only where there is none that way", () => {
  let kept = 0;
  for (const snap of [1, 3, 8]) {
    for (let below = 0; below < 18; below += 1) {
      for (let above = below + 2; above < 40; above += 3) {
        for (let now = below + 1; now < above; now++) {
          const given = setting([...(below ? [below] : []), now, above]);
          const index = below ? 1 : 0;
          const inside = (at) => at > below && at < above;
          const hasStops = Math.floor((above - 1) / snap) * snap > below;
          for (const by of [-Infinity, -10 * snap, -snap, snap, 10 * snap, Infinity]) {
            const to = stepped(given, "edge", index, by, { snap, longest: 99 }).edges[index];
            const ahead = [];
            for (let at = now + Math.sign(by); inside(at); at += Math.sign(by)) {
              if (at % snap === 0 || !hasStops) ahead.push(at);
            }
            if (ahead.length) assert.ok(ahead.includes(to), `${below} < ${now} < ${above} by ${by}: ${to}`);
            else assert.equal(to, now);
            kept += to === now;
          }
        }
      }
    }
  }
  assert.ok(kept > 100);
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
  assert.deepEqual(parsedEdges(" 50, 8;20 ").edges, [8, 20, 50]);
  for (const [text, problem] of [
    ["8, 2x", '"2x" is not a whole number of 1 or more.'],
    ["0", '"0" is not a whole number of 1 or more.'],
    ["-3", '"-3" is not a whole number of 1 or more.'],
    ["9999999999", '"9999999999" is not a whole number of 1 or more.'],
    ["  ", "Type at least one edge, such as 8, 20, 50."],
  ]) assert.deepEqual(parsedEdges(text), { edges: null, problem, note: null });
  assert.equal(parsedEdges("1 2 3", 2).problem, "3 edges typed: at most 2.");
});

test("an edge typed twice is kept once, and that is said", () => {
  const found = parsedEdges("35, 35, 66, 737");
  assert.deepEqual(found, { edges: [35, 66, 737], problem: null, note: "35 twice: kept once." });
  assert.equal(parsedEdges("8 9 8 9 08").note, "8 3 times, 9 twice: kept once.");
  assert.equal(parsedEdges("8 9").note, null);
  assert.deepEqual(parsedEdges("8 9 9", 2).edges, [8, 9]);
});

test("each pixel of an edge leads back to its length, on both axes", () => {
  for (const isLog of [true, false]) {
    const axis = axisOf({ shortest: 1, longest: 700, isLog, left: 14, right: 980 });
    for (const edge of [1, 2, 3, 8, 64, 333, 700]) assert.equal(axis.lengthAt(axis.edgeAt(edge)), edge);
    assert.equal(axis.lengthAt(-100), 1);
    assert.equal(axis.lengthAt(9999), 700);
  }
  assert.equal(axisOf({ shortest: 20, longest: 700, isLog: true, left: 14, right: 980 }).lengthAt(-100), 20);
});

test("the axis holds the lengths that occur and all edges", () => {
  const sums = prefixSums(Float64Array.of(0, 20, 700), Float64Array.of(5, 1, 2));
  assert.deepEqual(spanOfAxis(sums, [30, 700]), { shortest: 20, longest: 700 });
  assert.deepEqual(spanOfAxis(sums, [3, 900]), { shortest: 3, longest: 900 });
  const empty = prefixSums(Float64Array.of(0), Float64Array.of(5));
  assert.deepEqual(spanOfAxis(empty, [4]), { shortest: 1, longest: 4 });
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
