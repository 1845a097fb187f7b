"""One shard of the mutants of the kernels; `make mutants` hunts all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from labkit.gpu.verify.hunt import every_mutant, hunt, shard
from labkit.gpu.verify.mutate import BAR, known_survivors, summary, summary_text

SURVIVORS = Path(__file__).with_name("survivors.json")
KNOWN = known_survivors(SURVIVORS)
PARTS = 24  # of which two are hunted here, so that two workers have one each


@pytest.mark.parametrize("part", [0, 12])
def test_the_mutants_of_a_shard_are_caught_unless_somebody_said_why_not(part: int) -> None:
    keys = [key for key in shard(every_mutant(), part, PARTS) if key not in KNOWN]
    found = summary(hunt(keys, workers=1), KNOWN)
    assert found["mutants"] > 15
    assert found["survived"] == 0, summary_text(found)


def test_the_survivors_are_few_and_each_is_a_mutant_with_a_reason() -> None:
    mutants = every_mutant()
    assert set(KNOWN) <= set(mutants), "a line of a kernel changed: look at its survivors again"
    assert all(known.reason.endswith(".") for known in KNOWN.values())
    equivalent = sum(known.equivalent for known in KNOWN.values())
    assert (len(mutants) - len(KNOWN)) / (len(mutants) - equivalent) >= BAR
    assert (len(mutants) - len(KNOWN)) / len(mutants) >= BAR  # even if all of them count


def test_every_operator_finds_places() -> None:
    operators = {places[0][1].operator for places in every_mutant().values()}
    assert operators == {
        "atomic", "barrier", "bound", "guard", "identity", "index", "mask", "relation", "shuffle", "stride", "swap",
    }  # fmt: skip
