// CUDA C as coloured text: one expression finds comments, strings, directives, words and numbers; the rest stays plain.
const WORDS =
  "alignas|auto|bool|break|case|char|const|constexpr|continue|default|do|double|else|enum|extern|false|float|for|if|inline|int|long|" +
  "namespace|nullptr|operator|private|public|return|short|signed|sizeof|static|static_assert|static_cast|reinterpret_cast|struct|switch|" +
  "template|true|typedef|typename|union|unsigned|using|void|volatile|while";
const CUDA =
  "__global__|__device__|__host__|__shared__|__constant__|__restrict__|__forceinline__|__noinline__|__launch_bounds__|" +
  "threadIdx|blockIdx|blockDim|gridDim|warpSize|__sync\\w+|__shfl\\w+|__ballot\\w+|__any\\w+|__all\\w+|__threadfence\\w*|atomic\\w+";
const TOKEN = new RegExp(
  [
    "(?<comment>/\\*[\\s\\S]*?(?:\\*/|(?![\\s\\S]))|//[^\\n]*)",
    '(?<string>"(?:\\\\.|[^"\\\\\\n])*"?)',
    "(?<directive>^[ \\t]*#[ \\t]*\\w+)",
    `(?<cuda>\\b(?:${CUDA})\\b)`,
    `(?<word>\\b(?:${WORDS})\\b)`,
    "(?<number>\\b(?:0x[\\da-fA-F]+|\\d+\\.?\\d*(?:[eE][+-]?\\d+)?)[fFuUlL]*)",
  ].join("|"),
  "gm",
);
const ESCAPED = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
const escaped = (text) => text.replace(/[&<>]/g, (c) => ESCAPED[c]);

/** The text as HTML, each token in a span of its kind. */
export function coloured(text) {
  let html = "";
  let done = 0;
  for (const match of text.matchAll(TOKEN)) {
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    html += `${escaped(text.slice(done, match.index))}<span class="t-${kind}">${escaped(match[0])}</span>`;
    done = match.index + match[0].length;
  }
  return html + escaped(text.slice(done));
}

/** What Tab does to a selection: spaces to the next stop, or the lines of the selection moved in or out.
 *  Gives the piece [from, to) to be replaced, the text to put there, and the selection afterwards. */
export function tabbed(text, start, end, isBack, step = 2) {
  if (start === end && !isBack) {
    const column = start - (text.lastIndexOf("\n", start - 1) + 1);
    const spaces = " ".repeat(step - (column % step));
    return { from: start, to: end, put: spaces, start: start + spaces.length, end: start + spaces.length };
  }
  const from = text.lastIndexOf("\n", start - 1) + 1;
  const last = end > start && text[end - 1] === "\n" ? end - 1 : end;
  const to = text.indexOf("\n", last) < 0 ? text.length : text.indexOf("\n", last);
  const lines = text.slice(from, to).split("\n");
  const put = lines.map((line) => (isBack ? line.replace(new RegExp(`^ {1,${step}}`), "") : " ".repeat(step) + line)).join("\n");
  const first = put.split("\n")[0].length - lines[0].length;
  return { from, to, put, start: Math.max(from, start + first), end: end + put.length - (to - from) };
}
