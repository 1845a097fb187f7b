"""One text that holds every mutant of a source; which of them is alive is chosen when the program starts."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from labkit.gpu.sources import kernel_text
from labkit.gpu.verify.operators import Change, changes
from labkit.gpu.verify.tokens import Tokens

#: Which mutant is alive: a number from 1; 0 or absent: none, the program is that of the source.
CHOSEN = "LABKIT_MUTANT"
#: None either, and the number of each mutant is printed whose place is reached.
ASK_WHO_IS_REACHED = "-1"

# The choice is read outside of what the checked mode watches.
_PRELUDE = f"""#line 1 "mutants"
extern "C" char* getenv(const char*);
extern "C" int atoi(const char*);
static int mutant_read() {{ const char* text = getenv("{CHOSEN}"); return text ? atoi(text) : 0; }}
static const int mutant_chosen = mutant_read();
static bool mutant_seen[4096];
__attribute__((no_sanitize("thread", "address", "undefined"), noinline)) static bool mutant_alive(int number) {{
  if (mutant_chosen == {ASK_WHO_IS_REACHED} && !mutant_seen[number]) {{
    mutant_seen[number] = true;
    printf("%d\\n", number);
  }}
  return number == mutant_chosen;
}}
#define MUTANT(number) mutant_alive(number)
#define MUTANT_INLINE template <class A, class B> HOST_INLINE
MUTANT_INLINE bool mutant_less(int n, A a, B b) {{ return MUTANT(n) ? a <= b : MUTANT(n + 1) ? a < b - 1 : a < b; }}
MUTANT_INLINE bool mutant_most(int n, A a, B b) {{ return MUTANT(n) ? a < b : MUTANT(n + 1) ? a <= b + 1 : a <= b; }}
MUTANT_INLINE bool mutant_more(int n, A a, B b) {{ return MUTANT(n) ? a >= b : MUTANT(n + 1) ? a > b + 1 : a > b; }}
MUTANT_INLINE bool mutant_least(int n, A a, B b) {{ return MUTANT(n) ? a > b : MUTANT(n + 1) ? a >= b - 1 : a >= b; }}
MUTANT_INLINE A& mutant_add(int n, A& a, B b) {{ if (!MUTANT(n)) a += b; return a; }}
MUTANT_INLINE A& mutant_subtract(int n, A& a, B b) {{ if (!MUTANT(n)) a -= b; return a; }}
MUTANT_INLINE A& mutant_multiply(int n, A& a, B b) {{ if (!MUTANT(n)) a *= b; return a; }}
MUTANT_INLINE A& mutant_divide(int n, A& a, B b) {{ if (!MUTANT(n)) a /= b; return a; }}
MUTANT_INLINE auto mutant_max(int n, A a, B b) {{ return MUTANT(n) ? min(a, b) : max(a, b); }}
MUTANT_INLINE auto mutant_min(int n, A a, B b) {{ return MUTANT(n) ? max(a, b) : min(a, b); }}
MUTANT_INLINE auto mutant_fmaxf(int n, A a, B b) {{ return MUTANT(n) ? fminf(a, b) : fmaxf(a, b); }}
MUTANT_INLINE auto mutant_fminf(int n, A a, B b) {{ return MUTANT(n) ? fmaxf(a, b) : fminf(a, b); }}
MUTANT_INLINE A mutant_atomic(int n, A* a, B b) {{
  if (!MUTANT(n)) return atomicAdd(a, b);
  const A old = *a;
  *a = old + b;
  return old;
}}
template <class A> HOST_INLINE A mutant_mask(int n, A mask) {{
  return MUTANT(n) ? mask & ~(1u << (31 - __clz(mask))) : mask;
}}
"""

#: Of two wrappers around the same tokens the deeper one is inside.
_DEPTH = {"relation": 1, "identity": 2}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One changed program.

    Attributes:
        number: in its text, from 1.
        file: that is changed.
        line: of it.
        operator: which mistake.
        change: in words.
        code: the line as it is.
        nth: among the mutants of the same change on lines with the same code in that file.
    """

    number: int
    file: str
    line: int
    operator: str
    change: str
    code: str
    nth: int

    @property
    def key(self) -> tuple[str, str, str, int]:
        """The mutant, wherever its line has moved to, and whichever op includes its file."""
        return self.file, self.code, self.change, self.nth


def mutants_of(path: Path) -> tuple[list[Mutant], str]:
    """Every mutant of a source with its headers, and the text that holds them all."""
    text = kernel_text(path)
    tokens = Tokens(text)
    found = list(changes(tokens))
    mutants: list[Mutant] = []
    seen: dict[tuple[str, str, str], int] = defaultdict(int)
    for number, change in enumerate(found, 1):
        token = tokens.all[change.place]
        code = _line_around(text, token.start)
        same = (token.file, code, change.text)
        mutants.append(Mutant(number, token.file, token.line, change.operator, change.text, code, seen[same]))
        seen[same] += 1
    return mutants, _PRELUDE + _applied(tokens, found)


def _line_around(text: str, at: int) -> str:
    start = text.rfind("\n", 0, at) + 1
    stop = text.find("\n", at)
    return text[start : stop if stop >= 0 else len(text)].strip()


def _applied(tokens: Tokens, found: list[Change]) -> str:
    """All changes at once: wrappers nest as the expressions do."""
    text = tokens.text
    # at one place: what closes before what opens; inner ones close first, outer ones open first
    inserted: list[tuple[int, int, int, int, str]] = []
    replaced: dict[int, tuple[int, str]] = {}
    for number, change in enumerate(found, 1):
        first, last, depth = tokens.all[change.first], tokens.all[change.last], _DEPTH.get(change.operator, 0)
        if change.before:
            inserted.append((first.start, 1, -last.stop, depth, change.before.replace("@", str(number))))
        if change.after:
            inserted.append((last.stop, 0, -first.start, -depth, change.after.replace("@", str(number))))
        for place, new in change.replaced:
            token = tokens.all[place]
            replaced[token.start] = (token.stop, new.replace("@", str(number)))
    edits = [(order, order[0], new) for *order, new in inserted]
    edits += [([start, 2, 0, 0], stop, new) for start, (stop, new) in replaced.items()]
    pieces: list[str] = []
    done = 0
    for (at, *_), stop, new in sorted(edits):
        pieces += [text[done:at], new]
        done = stop
    return "".join([*pieces, text[done:]])
