"""The mutation operators: small mistakes, found at every place of a source where they can be made.

Each is written as a change that can be switched on while the program runs (``schemata.py``), so that one build holds
all mutants of a source. Source of the method: Untch, Offutt, Harrold, "Mutation analysis using mutant schemata".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from labkit.gpu.verify.tokens import CONDITION_ENDS, LOGIC_ENDS, RELATION_ENDS, Tokens

#: With which a declaration begins in these sources.
_TYPES = frozenset(
    {"const", "__shared__", "static", "float", "int", "unsigned", "long", "bool"}
    | {"T", "ACC", "UNIT", "INDEX", "Pack", "Sum", "Max", "Softmax", "Share"}
)
#: Of a statement that must stay a constant, or that is the head of a function.
_CONSTANT = frozenset({"constexpr", "alignas", "using", "__launch_bounds__", "enum", "static_assert"})
_SHUFFLES = frozenset({"__shfl_sync", "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync"})
_WARP_CALLS = _SHUFFLES | {"__ballot_sync", "__any_sync", "__all_sync", "__reduce_add_sync"}
_RELATIONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_MOVED = {"<": "- 1", "<=": "+ 1", ">": "+ 1", ">=": "- 1"}
_SWAPPED = {"fmaxf": "fminf", "fminf": "fmaxf", "max": "min", "min": "max"}
_IDENTITIES = {"0.f": "1.f", "1.f": "0.f", "MINUS_INFINITY": "0.f", "NOT_A_NUMBER": "0.f"}


@dataclass(frozen=True, slots=True)
class Change:
    """One mistake at one place.

    Attributes:
        operator: ``"barrier"``, ``"relation"``, …
        place: token at which it is.
        text: in words: ``"< becomes <="``.
        first: first token that is wrapped.
        last: last one.
        before: put before it; ``@`` stands for the number of the mutant.
        after: put after it.
        replaced: tokens whose text is replaced, with the new text.
    """

    operator: str
    place: int
    text: str
    first: int
    last: int
    before: str
    after: str
    replaced: tuple[tuple[int, str], ...] = ()


def changes(tokens: Tokens) -> Iterator[Change]:
    """Every change, in the order of the source."""
    for i, token in enumerate(tokens.all):
        if not _is_constant(tokens, i):
            match token.text:
                case "__syncthreads" | "__syncwarp":
                    yield Change(
                        "barrier", i, f"{token.text} dropped", i, tokens.partner[i + 1], "(MUTANT(@) ? (void)0 : ", ")"
                    )
                case "<" | "<=" | ">" | ">=" if tokens.spaced(i):
                    yield from _relation(tokens, i)
                case "if":
                    yield _guard(tokens, i)
                case "?":
                    first = tokens.left(i, CONDITION_ENDS)
                    yield Change("guard", i, "condition of ? : always true", first, i - 1, "(MUTANT(@) || (", "))")
                case "&&" | "||":
                    yield from _logic(tokens, i)
                case "+=" | "-=" | "*=" | "/=":
                    yield _step(tokens, i)
                case "++" if tokens.step_of_for(i):
                    new = ((i, ""), (i + 1, f"{tokens.all[i + 1].text} += 1 + MUTANT(@)"))
                    yield Change("stride", i, "step of 1 becomes 2", i, i + 1, "", "", new)
                case "[":
                    if not _declares(tokens, i):
                        yield Change("index", i, "index + 1", i + 1, tokens.partner[i] - 1, "MUTANT(@) + (", ")")
                case "=":
                    yield from _initial(tokens, i)
                case _:
                    yield from _named(tokens, i)


def _is_constant(tokens: Tokens, i: int) -> bool:
    """In a constant, the head of a template or function: ``_CONSTANT`` or ``template`` stands before it."""
    start = tokens.statement(i)
    return any(tokens.all[j].text in _CONSTANT for j in range(start, i))


def _relation(tokens: Tokens, i: int) -> Iterator[Change]:
    sign = tokens.all[i].text
    first, last = tokens.left(i, RELATION_ENDS), tokens.right(i, RELATION_ENDS)
    name = {"<": "less", "<=": "most", ">": "more", ">=": "least"}[sign]
    # two mutants share a wrapper, which knows the second by the number that follows
    yield Change(
        "relation", i, f"{sign} becomes {_RELATIONS[sign]}", first, last, f"mutant_{name}(@, ", ")", ((i, ","),)
    )
    yield Change("bound", i, f"bound {_MOVED[sign]}", first, last, "", "")


def _guard(tokens: Tokens, i: int) -> Change:
    opening = i + 1
    close = tokens.partner[opening]
    if tokens.all[close + 1].text == "return":
        return Change("guard", i, "guard removed: never returns", opening + 1, close - 1, "!MUTANT(@) && (", ")")
    return Change("guard", i, "guard removed: condition always true", opening + 1, close - 1, "MUTANT(@) || (", ")")


def _logic(tokens: Tokens, i: int) -> Iterator[Change]:
    sign = tokens.all[i].text
    before = "(MUTANT(@) || (" if sign == "&&" else "(!MUTANT(@) && ("
    first = tokens.left(i, LOGIC_ENDS)
    if tokens.all[first - 1].text != sign:
        yield Change("guard", i, f"what stands before {sign} dropped", first, i - 1, before, "))")
    yield Change("guard", i, f"what stands after {sign} dropped", i + 1, tokens.right(i, LOGIC_ENDS), before, "))")


def _step(tokens: Tokens, i: int) -> Change:
    sign, last = tokens.all[i].text, tokens.right(i, CONDITION_ENDS)
    if tokens.step_of_for(i):
        return Change("stride", i, f"step {sign} one more", i + 1, last, "MUTANT(@) + (", ")")
    first = tokens.target(i)
    name = {"+=": "add", "-=": "subtract", "*=": "multiply", "/=": "divide"}[sign]
    return Change("stride", i, f"{sign} dropped", first, last, f"mutant_{name}(@, ", ")", ((i, ","),))


def _declares(tokens: Tokens, i: int) -> bool:
    """The bracket of a declared array, not of an access."""
    before = tokens.all[i - 1].text
    if before in (")", "]"):
        return before == ")" or _declares(tokens, tokens.partner[i - 1])
    start = tokens.statement(i)
    if tokens.all[start].text not in _TYPES:
        return False
    depth, assigned = 0, False
    for j in range(start, i):
        text = tokens.all[j].text
        depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
        if depth == 0:
            assigned = text == "=" or (assigned and text != ",")
    return depth == 0 and not assigned


def _initial(tokens: Tokens, i: int) -> Iterator[Change]:
    """What a variable starts with: a number, or a pointer."""
    sign = tokens.all[i + 1].text == "-"
    number = i + 1 + sign
    if tokens.all[number].text.isdigit() and tokens.all[number + 1].text in (",", ";"):
        yield Change("identity", i, "starts with one more", i + 1, number, "MUTANT(@) + (", ")")
    if tokens.all[i - 2].text == "*" and tokens.all[tokens.statement(i)].text in _TYPES:
        last = tokens.right(i, frozenset({",", ";"}))
        yield Change("index", i, "pointer + 1", i + 1, last, "(", ") + MUTANT(@)")


def _named(tokens: Tokens, i: int) -> Iterator[Change]:
    """Constants and calls, by their names."""
    name, following = tokens.all[i].text, tokens.all[i + 1].text if i + 1 < len(tokens.all) else ""
    if name in _IDENTITIES:
        new = _IDENTITIES[name]
        yield Change("identity", i, f"{name} becomes {new}", i, i, f"(MUTANT(@) ? {new} : ", ")")
    if following == "(" and name in _SWAPPED:
        new = f"mutant_{name}"
        replaced = ((i, new), (i + 1, "(@, "))
        yield Change("swap", i, f"{name} becomes {_SWAPPED[name]}", i, i, "", "", replaced)
    if following == "(" and name == "atomicAdd":
        replaced = ((i, "mutant_atomic"), (i + 1, "(@, "))
        yield Change("atomic", i, "atomicAdd becomes a plain addition", i, i, "", "", replaced)
    if following == "(" and name in _WARP_CALLS:
        arguments = tokens.arguments(i + 1)
        first, last = arguments[0]
        yield Change("mask", i, "mask without its highest lane", first, last, "mutant_mask(@, ", ")")
        if name in _SHUFFLES:
            first, last = arguments[2]
            yield Change("shuffle", i, "distance + 1", first, last, "(", ") + MUTANT(@)")
    if following == "<" and name in ("load", "store"):
        opening = next(j for j in range(i, len(tokens.all)) if tokens.all[j].text == "(")
        first, last = tokens.arguments(opening)[1 if name == "load" else 0]
        yield Change("index", i, f"{name} one further", first, last, "(", ") + MUTANT(@)")
