"""Layers that several models are made of."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import nn


def mlp(inputs: int, hidden: Sequence[int], outputs: int = 1) -> nn.Sequential:
    """Linear layers with PReLU between them.

    The paper's Dice activation takes statistics over the batch, padding included, so that layouts could not agree;
    PReLU is the paper's other choice.
    """
    layers: list[nn.Module] = []
    for wide, narrow in pairwise((inputs, *hidden)):
        layers += [nn.Linear(wide, narrow), nn.PReLU()]
    return nn.Sequential(*layers, nn.Linear((inputs, *hidden)[-1], outputs))
