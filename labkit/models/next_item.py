"""The loss of sequence models: at each event, the next item of the history against one that was not chosen."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

from labkit.models.base import Loss


def next_item_loss(states: Tensor, chosen: Tensor, refused: Tensor, follows: Tensor) -> Loss:
    """Binary cross-entropy of the next item (label 1) and a sampled one (label 0), at every event that has a next.

        history a b c    targets b (after a) and c (after a b); nothing is known to follow c

    Args:
        states: (..., L, D), what the model knows after each event.
        chosen: (..., L, D), embeddings of the events' items.
        refused: (..., L - 1, D), embeddings of items that were not chosen at each event but the first slot's.
        follows: (..., L - 1) bool, ``labkit.layouts.history_order.follows``.

    Returns:
        Sum over the real targets, each with both terms, and their number.

    Cost: two products and a few passes over (..., L, D); no host synchronization.
    Source: Kang & McAuley, Self-Attentive Sequential Recommendation, ICDM 2018, section 3.5: -log(sigmoid(r_next)) -
        log(1 - sigmoid(r_sampled)), one sampled item a target.
    """
    before = states[..., :-1, :]
    right = (before * chosen[..., 1:, :]).sum(-1)
    wrong = (before * refused).sum(-1)
    each = softplus(-right) + softplus(wrong)
    return Loss(torch.where(follows, each, 0).sum(), follows.sum())
