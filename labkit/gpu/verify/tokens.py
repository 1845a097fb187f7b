"""Tokens of CUDA C as far as mutations need them: no grammar, but brackets, operands and statements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)"
    r"|(?P<directive>^[ \t]*\#[^\n]*)"
    r"|(?P<string>\"(?:\\.|[^\"\\])*\")"
    r"|(?P<number>\.?\d[\w.]*)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign><<=|>>=|->|::|\+\+|--|&&|\|\||[-+*/%&|^!=<>]=|<<|>>|[^\s\w])",
    re.MULTILINE | re.DOTALL,
)
_LINE = re.compile(r'#line (\d+) "([^"]+)"')

_CLOSES = {"(": ")", "[": "]", "{": "}"}
_OPENS = {close: opening for opening, close in _CLOSES.items()}

#: Where an operand of a relation ends: what binds less.
RELATION_ENDS = frozenset(
    {"&&", "||", "?", ":", "=", "+=", "-=", "==", "!=", ",", ";", "{", "}", "return", "&", "|", "^"}
)
#: Where an operand of && or || ends, and the condition of ?:.
LOGIC_ENDS = frozenset({"&&", "||", "?", ":", "=", ",", ";", "{", "}", "return"})
CONDITION_ENDS = LOGIC_ENDS - {"&&", "||"}


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of code.

    Attributes:
        text: as written.
        start: where it begins in the whole text.
        file: it is of.
        line: in that file, from 1.
    """

    text: str
    start: int
    file: str
    line: int

    @property
    def stop(self) -> int:
        """Where it ends in the whole text."""
        return self.start + len(self.text)


class Tokens:
    """The code of a flattened source (``kernel_text``), without comments and directives.

    Args:
        text: with its ``#line`` directives.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.all = list(_tokens(text))
        self.partner = _partners(self.all)

    def spaced(self, i: int) -> bool:
        """Blanks stand on both sides: ``<`` is then less-than, not the bracket of a template."""
        token = self.all[i]
        return self.text[token.start - 1].isspace() and self.text[token.stop].isspace()

    def left(self, i: int, ends: frozenset[str]) -> int:
        """The first token of the operand that ends before token ``i``."""
        j = i
        while j > 0:
            text = self.all[j - 1].text
            if text in ends or text in _CLOSES:
                break
            j = self.partner[j - 1] if text in _OPENS and text != "}" else j - 1
        return j

    def right(self, i: int, ends: frozenset[str]) -> int:
        """The last token of the operand that begins after token ``i``."""
        j = i
        while j + 1 < len(self.all):
            text = self.all[j + 1].text
            if text in ends or text in _OPENS:
                break
            j = self.partner[j + 1] if text in _CLOSES and text != "{" else j + 1
        return j

    def target(self, i: int) -> int:
        """The first token of what an assignment at token ``i`` writes: ``share.x[i]``."""
        j = i - 1
        while True:
            if self.all[j].text == "]":
                j = self.partner[j]
            elif self.all[j - 1].text in (".", "->"):
                j -= 1
            else:
                return j
            j -= 1

    def arguments(self, opening: int) -> list[tuple[int, int]]:
        """First and last token of each argument of the call whose parenthesis is token ``opening``."""
        found, close, first = [], self.partner[opening], opening + 1
        while first < close:
            last = self.right(first - 1, frozenset({","}))
            found.append((first, last))
            first = last + 2
        return found

    def statement(self, i: int) -> int:
        """The first token of the statement that has token ``i``, or of the clause, within ``for (``."""
        while i > 0 and self.all[i - 1].text not in (";", "{", "}"):
            i -= 1
        return i

    def step_of_for(self, i: int) -> bool:
        """Token ``i`` is in the third clause of a ``for``."""
        depth, semicolons = 0, 0
        for j in range(i - 1, 0, -1):
            text = self.all[j].text
            depth += (text in ")]") - (text in "([")
            semicolons += text == ";" and depth == 0
            if depth < 0:
                return text == "(" and self.all[j - 1].text == "for" and semicolons == 2
            if text in "{}" and depth == 0:
                return False
        return False


def _tokens(text: str) -> Iterator[Token]:
    file, line, counted = "", 1, 0
    for match in _TOKEN.finditer(text):
        line += text.count("\n", counted, match.start())
        counted = match.start()
        if match.lastgroup == "directive":
            place = _LINE.match(match[0].strip())
            if place:
                file, line = place[2], int(place[1]) - 1  # of the line that follows
        elif match.lastgroup != "comment":
            yield Token(match[0], match.start(), file, line)


def _partners(tokens: list[Token]) -> dict[int, int]:
    partner, stack = {}, []
    for i, token in enumerate(tokens):
        if token.text in _CLOSES:
            stack.append(i)
        elif token.text in _OPENS and stack:
            j = stack.pop()
            partner[i], partner[j] = j, i
    return partner
