"""Comparison: what a tuned policy costs on the lengths at hand, beside what it cost on those it was tuned on."""

from __future__ import annotations

from dataclasses import dataclass

from labkit.batching.policy import BatchPolicy
from labkit.batching.what_if import WhatIf, what_if
from labkit.errors import PolicyError
from labkit.lengths.histogram import LengthHistogram
from labkit.units import format_count, format_share


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both figures of everything that decides whether a tuned policy still serves.

    A user is cut who loses events: some of them by truncation, or all with a sequence that is left out.

    Attributes:
        same_lengths: the lengths are those it was tuned on.
        sequences_then, sequences_now: sequences of both data sets.
        padding_ratio_then, padding_ratio_now: padded share of all slots.
        truncated_share_then, truncated_share_now: users cut / users.
        lost_share_then, lost_share_now: events lost / events.
        max_truncated_share: above it a consumer should fall back.
        problem: why the policy does not run on these lengths at all; the figures of now are None then.
    """

    same_lengths: bool
    sequences_then: int
    sequences_now: int
    padding_ratio_then: float
    padding_ratio_now: float | None
    truncated_share_then: float
    truncated_share_now: float | None
    lost_share_then: float
    lost_share_now: float | None
    max_truncated_share: float
    problem: str | None = None

    @property
    def fall_back(self) -> bool:
        """More users are cut than the configuration allows, or the policy does not run on these lengths at all."""
        return self.truncated_share_now is None or self.truncated_share_now > self.max_truncated_share

    @property
    def message(self) -> str:
        """One line with both figures, and what to do."""
        if self.same_lengths:
            return "the lengths are those that this configuration was tuned on."
        line = (
            "the lengths are not those that this configuration was tuned on "
            f"({format_count(self.sequences_then)} sequences then, {format_count(self.sequences_now)} now)"
        )
        if self.problem is not None:
            return f"{line}, and its policy does not run on them: {self.problem}"
        line += (
            f": padding {_both(self.padding_ratio_then, self.padding_ratio_now)}; "
            f"users cut {_both(self.truncated_share_then, self.truncated_share_now)}; "
            f"events lost {_both(self.lost_share_then, self.lost_share_now)}."
        )
        if self.fall_back:
            line += (
                f" More users are cut than max_truncated_share {format_share(self.max_truncated_share)} allows: "
                "fall back to a policy that cuts nobody, and tune again."
            )
        return line


def compare(
    tuned_on: LengthHistogram, now: LengthHistogram, policy: BatchPolicy, max_truncated_share: float
) -> Comparison:
    """Score one policy on two histograms. Cost: two calls of ``what_if``."""
    then = what_if(tuned_on, policy)
    problem: str | None = None
    found: WhatIf | None = None
    try:
        found = what_if(now, policy)
    except PolicyError as error:
        problem = str(error)
    return Comparison(
        same_lengths=tuned_on == now,
        sequences_then=tuned_on.sequences,
        sequences_now=now.sequences,
        padding_ratio_then=then.padding_ratio,
        padding_ratio_now=None if found is None else found.padding_ratio,
        truncated_share_then=then.truncated_share,
        truncated_share_now=None if found is None else found.truncated_share,
        lost_share_then=then.lost_share,
        lost_share_now=None if found is None else found.lost_share,
        max_truncated_share=max_truncated_share,
        problem=problem,
    )


def _both(then: float, now: float | None) -> str:
    return f"{format_share(then)} then, {'unknown' if now is None else format_share(now)} now"
