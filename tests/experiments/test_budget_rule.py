from __future__ import annotations

import numpy as np
import pytest

from labkit.errors import PolicyError
from labkit.experiments.budget_rule import compare_budget_rules


def test_one_long_row_takes_the_rule_over_the_budget_and_the_hard_budgets_stay_within():
    # mean (7 * 2 + 26) / 8 = 5, budget 40: 8 rows, one batch of 8 x 26 = 208 slots, 4.2 times over
    rule, buckets, jagged = compare_budget_rules(np.array([2] * 7 + [26]), 40, buckets=2)
    assert (rule.rows, rule.batches, rule.most_slots, rule.over_budget_share) == (8, 1, 208, 1.0)
    assert rule.overshoot == pytest.approx(4.2)
    for hard in (buckets, jagged):
        assert (hard.overshoot, hard.over_budget_share, hard.rows) == (0.0, 0.0, None)
        assert hard.most_slots <= 40
    assert (buckets.padding_ratio, jagged.padding_ratio) == (0.0, 0.0)


def test_equal_lengths_make_the_rule_a_budget():
    rule = compare_budget_rules(np.array([5] * 16), 40)[0]
    assert (rule.rows, rule.overshoot, rule.most_slots) == (8, 0.0, 40)


def test_a_budget_below_the_longest_is_refused():
    with pytest.raises(PolicyError, match="above token_budget 20"):
        compare_budget_rules(np.array([2, 26]), 20)
