"""``python -m labkit.gpu.verify.mutate``: every mutant of every kernel, which of them are caught, and which are not."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit.errors import DataFileError
from labkit.files import write_whole
from labkit.gpu.verify.hunt import Hunted, Key, every_mutant, hunt, shard

#: Share of the mutants that are programs of their own which must be caught.
BAR = 0.95


@dataclass(frozen=True, slots=True)
class Known:
    """A survivor that somebody looked at.

    Attributes:
        equivalent: no input tells it from the source; otherwise the trials are not good enough for it.
        reason: why, in a sentence.
    """

    equivalent: bool
    reason: str


def known_survivors(path: Path) -> dict[Key, Known]:
    """The committed list.

    Raises:
        DataFileError: missing, or not such a list.
    """
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return {
            (row["file"], row["code"], row["change"], row["nth"]): Known(row["equivalent"], row["reason"])
            for row in rows
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataFileError(f"{path} is no list of survivors: {error!r}. See tests/kernels/survivors.json.") from None


def summary(outcomes: Iterable[Hunted], known: Mapping[Key, Known]) -> dict[str, Any]:
    """Figures and survivors, as JSON. Shares are None where there are no mutants."""
    outcomes = list(outcomes)
    survivors = [hunted for hunted in outcomes if hunted.caught is None]
    equivalent = [s for s in survivors if s.mutant.key in known and known[s.mutant.key].equivalent]
    caught = len(outcomes) - len(survivors)
    return {
        "mutants": len(outcomes),
        "caught": caught,
        "survived": len(survivors),
        "equivalent": len(equivalent),
        "share_of_all": _share(caught, len(outcomes)),
        "share_without_equivalents": _share(caught, len(outcomes) - len(equivalent)),
        "caught_by": dict(Counter(hunted.caught for hunted in outcomes if hunted.caught).most_common()),
        "operators": _by_operator(outcomes, equivalent),
        "survivors": [_described(survivor, known.get(survivor.mutant.key)) for survivor in survivors],
        "listed_but_caught": [_described(h, None) for h in outcomes if h.caught and h.mutant.key in known],
    }


def _by_operator(outcomes: list[Hunted], equivalent: list[Hunted]) -> dict[str, dict[str, int]]:
    rows: dict[str, dict[str, int]] = {}
    for hunted in outcomes:
        row = rows.setdefault(hunted.mutant.operator, {"mutants": 0, "caught": 0, "equivalent": 0})
        row["mutants"] += 1
        row["caught"] += hunted.caught is not None
        row["equivalent"] += hunted in equivalent
    return dict(sorted(rows.items()))


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _described(hunted: Hunted, known: Known | None) -> dict[str, Any]:
    mutant = hunted.mutant
    row = {name: getattr(mutant, name) for name in ("file", "line", "code", "operator", "change", "nth")}
    return row | {"equivalent": known.equivalent if known else None, "reason": known.reason if known else None}


def summary_text(found: Mapping[str, Any]) -> str:
    """For people: a line an operator, then the survivors that nobody has explained."""
    lines = [f"  {'operator':<10}{'mutants':>9}{'caught':>9}{'equivalent':>12}"]
    for name, row in found["operators"].items():
        lines.append(f"  {name:<10}{row['mutants']:>9}{row['caught']:>9}{row['equivalent']:>12}")
    lines.append(f"  {'all':<10}{found['mutants']:>9}{found['caught']:>9}{found['equivalent']:>12}")
    shares = [found["share_of_all"], found["share_without_equivalents"]]
    if None not in shares:
        lines.append(f"caught: {shares[0]:.1%} of all, {shares[1]:.1%} without those that are equivalent")
    for row in found["survivors"]:
        if not row["equivalent"]:
            lines.append(f"survived: {row['file']}:{row['line']}: {row['change']}, in: {row['code']}")
            lines.append(f"  {row['reason'] or 'nobody has said why'}")
    lines += [
        f"listed as a survivor, but caught: {row['file']}:{row['line']}: {row['change']}, in: {row['code']}"
        for row in found["listed_but_caught"]
    ]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Hunt all mutants, or one shard: 0 when the share caught is above the bar and the list of survivors is true."""
    parser = argparse.ArgumentParser(prog="python -m labkit.gpu.verify.mutate", description=main.__doc__)
    parser.add_argument("--survivors", type=Path, required=True, help="JSON: survivors that are explained")
    parser.add_argument("--json", type=Path, help="write figures and survivors there")
    parser.add_argument("--shard", default="0/1", help="PART/PARTS: only those whose hash falls into it")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    given = parser.parse_args(arguments)
    known = known_survivors(given.survivors)
    part, parts = (int(number) for number in given.shard.split("/"))
    keys = shard(every_mutant(), part, parts)
    done = Counter[bool]()

    def told(hunted: Hunted) -> None:
        done[hunted.caught is not None] += 1
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{done.total()} of {len(keys)}, {done[False]} survived ")

    found = summary(hunt(keys, workers=given.workers, told=told), known)
    sys.stdout.write(f"{summary_text(found)}\n")
    if given.json:
        write_whole(given.json, json.dumps(found, indent=2) + "\n")
    gone = set(known) - set(every_mutant())
    for file, code, change, _ in gone:
        sys.stdout.write(f"listed as a survivor, but there is no such mutant: {file}: {change}, in: {code}\n")
    share = found["share_without_equivalents"]
    right = (share is None or share >= BAR) and not found["listed_but_caught"] and not gone
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
