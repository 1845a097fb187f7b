"""What ``labkit what-if`` does: settings, perhaps on top of a tuned policy, make one policy a strategy, all scored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from labkit.batching.costs import parse_cost
from labkit.batching.edges import Edges
from labkit.batching.fields import choice as choice_of
from labkit.batching.policy import BatchPolicy, Overflow
from labkit.batching.strategies import STRATEGIES, Batching, Strategy
from labkit.batching.what_if import WhatIf, what_if
from labkit.cost.devices import Precision, gpu
from labkit.errors import EdgesError, PolicyError
from labkit.experiments.lineup import EdgesBy, Lineup
from labkit.experiments.model_cost import Mode
from labkit.experiments.what_if_model import ModelChoice, Modelled, modelled, refuse_if_none_fits
from labkit.lengths.histogram import LengthHistogram
from labkit.models.registry import Model, model_spec
from labkit.units import shown

_EDGE_SETTINGS = ("buckets", "edges_by", "quantiles", "bucket_edges", "edge_cost")

_ADD_MODEL = f"add --model {'|'.join(Model)}."

# settings of a policy that a lineup does not know, and that hold for every strategy that uses them
_COMMON = ("batch_order", "shuffle", "drop_last")


@dataclass(frozen=True, slots=True)
class Scored:
    """What was asked, and the answer.

    Attributes:
        histogram: the lengths.
        lineup: the settings.
        edges: the bucket edges and how they were found; None where no strategy asked for has buckets.
        what_ifs: a result a strategy.
        choice: the model and GPU; None: none was chosen.
        modelled: what they add to each result; None likewise.
    """

    histogram: LengthHistogram
    lineup: Lineup
    edges: Edges | None
    what_ifs: tuple[WhatIf, ...]
    choice: ModelChoice | None = None
    modelled: tuple[Modelled, ...] | None = None


def run(
    histogram: LengthHistogram,
    settings: Mapping[str, Any],
    strategies: Iterable[Strategy] = tuple(Strategy),
    tuned: BatchPolicy | None = None,
    choice: ModelChoice | None = None,
) -> Scored:
    """Score the strategies under the same settings.

    Args:
        histogram: of the data set.
        settings: fields of ``Lineup`` that were given; what is missing is as tuned, or else the default.
        strategies: those to score.
        tuned: a policy whose settings take the place of the defaults, its edges too unless ``settings`` has any way
            to find edges; its own strategy is scored exactly as tuned where ``settings`` are empty.
        choice: a model, perhaps for a GPU, whose figures are added. A strategy that it does not take says so.

    Raises:
        PolicyError, EdgesError: a setting that one of these strategies uses is wrong, or does not fit the lengths; the
            model takes none of the strategies.
    """
    lineup = lineup_of(settings, tuned)
    keys = tuple(strategies)
    if settings.get("overflow") == Overflow.SPLIT and Strategy.PACKED not in keys:
        raise PolicyError(
            "--overflow split is for packed, which is not among the strategies asked for: add --strategy packed, or "
            "choose error, truncate or drop."
        )
    has_buckets = any(STRATEGIES[key].batching is Batching.BUCKETS for key in keys)
    edges = lineup.edges(histogram) if has_buckets else None
    policies = (_as_tuned(lineup.policy(key, edges), tuned) for key in keys)
    what_ifs = tuple(what_if(histogram, policy) for policy in policies)
    if choice is None:
        return Scored(histogram, lineup, edges, what_ifs)
    found = tuple(modelled(w, histogram, choice) for w in what_ifs)
    refuse_if_none_fits(found)
    return Scored(histogram, lineup, edges, what_ifs, choice, found)


def model_choice(
    model: Model | str | None,
    gpu_name: str | None,
    *,
    mode: Mode | str | None = None,
    precision: Precision | str | None = None,
) -> ModelChoice | None:
    """What ``--model``, ``--gpu``, ``--inference`` and ``--precision`` ask for; None: not given.

    Raises:
        PolicyError: a GPU, mode or precision without a model, a precision without a GPU or one that is not modelled, or
            a model that does not exist.
        GpuError: a GPU that is not in the table, or that lacks the precision.
    """
    if model is None:
        for option, value in (("--gpu", gpu_name), ("--precision", precision)):
            if value is not None:
                raise PolicyError(f"{option} {shown(str(value))} needs a model to run there: {_ADD_MODEL}")
        if mode is not None:
            raise PolicyError(f"--{mode} says what a model does, and there is none: {_ADD_MODEL}")
        return None
    if precision is not None and gpu_name is None:
        raise PolicyError(f"--precision {precision} says what a GPU computes in, and there is none: add --gpu NAME.")
    return ModelChoice(
        model_spec(model).model,
        None if gpu_name is None else gpu(gpu_name),
        Mode.TRAIN if mode is None else choice_of("mode", mode, Mode),
        Precision.FLOAT32 if precision is None else choice_of("precision", precision, Precision),
    )


def lineup_of(settings: Mapping[str, Any], tuned: BatchPolicy | None = None) -> Lineup:
    """The lineup of the settings that were given, on top of those of a tuned policy.

    Raises:
        EdgesError: two settings that both decide on the edges.
    """
    given = {name: value for name, value in settings.items() if value is not None}
    _refuse_contradictions(given)
    if "quantiles" in given:
        given.setdefault("edges_by", EdgesBy.QUANTILE)
    if tuned is None:
        return Lineup(**given)
    known = {name: getattr(tuned, name) for name in Lineup.__dataclass_fields__ if name in tuned.spec.fields}
    if any(name in given for name in _EDGE_SETTINGS):
        known = {name: value for name, value in known.items() if name not in ("bucket_edges", "bucket_widths")}
    return Lineup(**{**known, **given})


def _as_tuned(policy: BatchPolicy, tuned: BatchPolicy | None) -> BatchPolicy:
    """The policy with those settings of the tuned one that a lineup does not carry."""
    if tuned is None:
        return policy
    shared = policy.spec.fields & tuned.spec.fields
    extra = {name: getattr(tuned, name) for name in _COMMON if name in shared}
    if policy.strategy is tuned.strategy and "static_shapes" in shared:
        extra["static_shapes"] = tuned.static_shapes
    return replace(policy, **extra)


def _refuse_contradictions(given: Mapping[str, Any]) -> None:
    if "edge_cost" in given:
        parse_cost(given["edge_cost"])
        if given.get("edges_by", EdgesBy.OPTIMAL) != EdgesBy.OPTIMAL:
            raise EdgesError(
                f"--edge-cost is what optimal edges make least of: --edges-by {given['edges_by']} has none."
            )
    if "bucket_edges" in given:
        others = [name for name in ("buckets", "edges_by", "quantiles", "edge_cost") if name in given]
    elif "quantiles" in given:
        is_optimal = given.get("edges_by") == EdgesBy.OPTIMAL
        others = [name for name in ("buckets", "edges_by", "edge_cost") if name in given]
        others = [name for name in others if name != "edges_by" or is_optimal]
    else:
        return
    if others:
        option = "--edges" if "bucket_edges" in given else "--quantiles"
        names = " and ".join(f"--{name.replace('_', '-')}" for name in others)
        raise EdgesError(f"{option} contradicts {names}: both decide on the bucket edges. Leave one out.")
