// Colours and the Tab key of the source editor.
import assert from "node:assert/strict";
import { test } from "node:test";
import { coloured, tabbed } from "../../labkit/widgets/cuda_words.mjs";

const plain = (html) => html.replace(/<[^>]*>/g, "").replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");
const applied = (text, edit) => text.slice(0, edit.from) + edit.put + text.slice(edit.to);

test("words, comments, strings, directives and numbers are told apart, and nothing is lost", () => {
  const text = '#include "rows.cuh"\nif (a < b && x) { /* for\n1 */ __syncthreads(); float y = 1.5f; } // end <b>';
  const html = coloured(text);
  assert.equal(plain(html), text);
  for (const [kind, word] of [
    ["directive", "#include"], ["string", '"rows.cuh"'], ["word", "if"], ["comment", "/* for\n1 */"],
    ["cuda", "__syncthreads"], ["word", "float"], ["number", "1.5f"],
  ]) assert.ok(html.includes(`<span class="t-${kind}">${word}</span>`), `${kind} ${word} in ${html}`);
  assert.ok(!html.includes("<b>"));
  assert.ok(!html.includes('t-word">for<'));
});

test("an open comment reaches to the end, an identifier that holds a word stays plain", () => {
  assert.equal(coloured("/* int"), '<span class="t-comment">/* int</span>');
  assert.equal(coloured("format v4"), "format v4");
});

test("Tab fills to the next stop", () => {
  const edit = tabbed("a\n   b", 5, 5, false);
  assert.equal(applied("a\n   b", edit), "a\n    b");
  assert.deepEqual([edit.start, edit.end], [6, 6]);
});

test("a selection moves in and out by whole lines, blank ones and the line after it stay", () => {
  const text = "ab\ncd\nef";
  const edit = tabbed(text, 1, 6, false); // ends at the begin of the third line, which is not meant
  assert.equal(applied(text, edit), "  ab\n  cd\nef");
  const back = tabbed("  ab\n cd\nef", 0, 7, true);
  assert.equal(applied("  ab\n cd\nef", back), "ab\ncd\nef");
  assert.equal(back.end, 4);
  assert.equal(applied("ab", tabbed("ab", 1, 1, true)), "ab");
});
