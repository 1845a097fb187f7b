// What the editor says, in words and numbers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { capText, counted, edgeText, numbersText, shareText } from "../../labkit/widgets/edge_words.mjs";
import { aboveOptimum, figuresOf, prefixSums } from "../../labkit/widgets/padding.mjs";

const RULES = {
  cap: null, lengthMultiple: 1, overflow: "error", budget: 1e9, rows: 4, rowMultiple: 1, singleRow: false,
};
// 1000 users of length 1, ten of 2, one of 8: 1028 events
const sums = prefixSums(Float64Array.of(1, 2, 8), Float64Array.of(1000, 10, 1));
const plain = (html) => html.replace(/<[^>]*>/g, "").replaceAll("&lt;", "<").replaceAll("&gt;", ">");

function line(edges, { curve, ...rules } = {}) {
  const own = { ...RULES, ...rules };
  const figures = figuresOf(sums, edges, own);
  const isStatic = figuresOf(sums, edges, { ...own, isStatic: true });
  return plain(numbersText(figures, isStatic, aboveOptimum(figures, curve), sums));
}

test("a share that is not 0 never reads as 0, one that is not all never as all", () => {
  for (const [share, digits, text] of [
    [0, 1, "0 %"], [0.0004, 1, "< 0.1 %"], [0.0005, 1, "0.1 %"], [0.00004, 2, "< 0.01 %"], [0.004, 0, "< 1 %"],
    [0.123, 1, "12.3 %"], [0.9996, 1, "> 99.9 %"], [1, 1, "100.0 %"], [0.996, 0, "> 99 %"], [1.2, 1, "120.0 %"],
  ]) assert.equal(shareText(share, digits), text);
});

test("one of anything has no plural", () => {
  assert.equal(counted(1, "sequence"), "1 sequence");
  assert.equal(counted(0, "sequence"), "0 sequences");
  assert.equal(counted(1200, "ghost row"), "1,200 ghost rows");
  assert.equal(capText(1), "the most recent event is kept");
  assert.equal(capText(1200), "the 1,200 most recent events are kept");
});

test("optimal is said of equal slots only", () => {
  assert.match(line([1, 2, 8], { curve: [8088, 1036, 1028] }), /slots · optimal · with/);
  assert.match(line([1, 2, 8], { curve: [8088, 1036, 1027.9] }), /· < 0.1 % above the optimum/);
  assert.match(line([2, 8], { curve: [8088, 1088] }), /· 86.4 % above the optimum/);
  for (const overflow of ["truncate", "drop"]) {
    assert.doesNotMatch(line([1, 2], { curve: [8088, 1088], overflow }), /optim/);
  }
});

test("events lost never stand alone: the users who lose them are beside", () => {
  assert.doesNotMatch(line([1, 2, 8]), /lost/);
  assert.match(line([1, 2], { overflow: "truncate" }), /· 0.6 % of events lost, 0.1 % of users cut$/);
  assert.match(line([1, 2], { overflow: "drop" }), /· 0.8 % of events lost, 0.1 % of users dropped$/);
  assert.match(line([1, 2, 8], { cap: 1 }), /· 1.7 % of events lost, 1.1 % of users cut$/);
  // above the last edge, below the cap: dropped
  assert.match(line([1], { cap: 2, overflow: "drop" }), /of events lost, 1.1 % of users dropped$/);
});

test("what is refused has no figures", () => {
  const found = line([1, 2]);
  assert.equal(found, "refused: not a plan, so there are no figures");
  assert.doesNotMatch(numbersText({ problem: "why" }, {}, null, sums), /data-value/);
});

test("an edge says its length, its users, its padding and its room, with nothing that is not", () => {
  const bucket = { sequences: 10, padding: 0.125 };
  assert.equal(edgeText(1, bucket, null, 1000, false), "1 event; 1 % of the users, 13 % padding");
  assert.equal(
    edgeText(20, bucket, { low: 18, high: 22 }, 1000, false),
    "20 events; 1 % of the users, 13 % padding; 18 to 22 cost at most 1 % more",
  );
  assert.equal(edgeText(20, bucket, { low: 20, high: 20 }, 1000, true), "20 events; 1 % of the users");
});
