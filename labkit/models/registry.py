"""The table of models: which layouts each takes, which fields its samples hold, how it is built. Loads no torch."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from labkit.batching.fields import choice
from labkit.batching.strategies import STRATEGIES, Layout, Strategy
from labkit.errors import PolicyError

if TYPE_CHECKING:
    from labkit.models.base import RaggedModel

#: Items of the default embedding tables, and the width of an embedding.
ITEMS = 100_000
WIDTH = 32
#: Positions that SASRec learns by default: it takes no longer history.
POSITIONS = 8192


class Model(StrEnum):
    """The key of a model, as written in JSON and on the command line."""

    DIN = "din"
    SASREC = "sasrec"
    GRU4REC = "gru4rec"
    POOLED = "pooled"
    CTR = "ctr"


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field of a sample.

    Attributes:
        name: key in the sample and in ``batch.values``.
        per: ``event`` (one entry an event, ragged) or ``row`` (a fixed size).
        dtype: of torch, ``int64`` or ``float32``.
        vocabulary: ids are 0 .. vocabulary - 1 (0 is an id like any other); None: not an id.
        shape: of one entry, () for a scalar.
    """

    name: str
    per: Literal["event", "row"]
    dtype: Literal["int64", "float32"]
    vocabulary: int | None = None
    shape: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """What a model is.

    Attributes:
        model: its key.
        title: a few words for people.
        takes: the layouts that it takes; equal to ``takes`` of its class.
        fields: what a sample holds, at the default sizes.
        path: ``module:class``, loaded when it is built.
        max_positions: longest row or pack that it takes at the default sizes; None: any.
    """

    model: Model
    title: str
    takes: tuple[Layout, ...]
    fields: tuple[FieldSpec, ...]
    path: str
    max_positions: int | None = None

    @property
    def sequences(self) -> tuple[str, ...]:
        """Names of the fields with one entry an event: ``collate(policy, sequences=...)``."""
        return tuple(field.name for field in self.fields if field.per == "event")

    def load(self) -> type[RaggedModel]:
        """The class of the model."""
        module, name = self.path.split(":")
        found: type[RaggedModel] = getattr(import_module(f"labkit.models.{module}"), name)
        return found

    def build(self, **sizes: Any) -> RaggedModel:
        """A new model; ``sizes`` are the keyword arguments of its class, all of which have defaults."""
        return self.load()(**sizes)


def _items(*more: FieldSpec) -> tuple[FieldSpec, ...]:
    return (FieldSpec("items", "event", "int64", ITEMS), *more)


_TARGET = FieldSpec("target", "row", "int64", ITEMS)
_LABEL = FieldSpec("label", "row", "float32")
_NEGATIVES = FieldSpec("negatives", "event", "int64", ITEMS)

MODELS: dict[Model, ModelSpec] = {
    spec.model: spec
    for spec in (
        ModelSpec(
            Model.DIN,
            "DIN: attention of a candidate item over the history",
            (Layout.PADDED, Layout.JAGGED, Layout.SEGMENTED, Layout.PACKED_ROWS, Layout.SPARSE),
            _items(_TARGET, _LABEL),
            "din:Din",
        ),
        ModelSpec(
            Model.SASREC,
            "SASRec: causal transformer over the history",
            (Layout.PADDED, Layout.JAGGED, Layout.PACKED_ROWS),
            _items(_NEGATIVES),
            "sasrec:SasRec",
            POSITIONS,
        ),
        ModelSpec(
            Model.GRU4REC,
            "GRU4Rec: recurrent network over the history",
            (Layout.PADDED, Layout.PACKED_SEQUENCE),
            _items(_NEGATIVES),
            "gru4rec:Gru4Rec",
        ),
        ModelSpec(
            Model.POOLED,
            "pooled tower: mean of the history's embeddings",
            (Layout.PADDED, Layout.JAGGED, Layout.SEGMENTED, Layout.PACKED_ROWS, Layout.SPARSE),
            _items(_TARGET, _LABEL),
            "pooled:PooledTower",
        ),
        ModelSpec(
            Model.CTR,
            "CTR: many sparse fields, multi-task head",
            (Layout.PADDED, Layout.JAGGED, Layout.SEGMENTED, Layout.PACKED_ROWS, Layout.SPARSE),
            _items(
                FieldSpec("categories", "event", "int64", 1000),
                FieldSpec("shops", "event", "int64", 20_000),
                FieldSpec("actions", "event", "int64", 5),
                _TARGET,
                FieldSpec("target_category", "row", "int64", 1000),
                FieldSpec("target_shop", "row", "int64", 20_000),
                FieldSpec("segment", "row", "int64", 500),
                FieldSpec("city", "row", "int64", 400),
                FieldSpec("device", "row", "int64", 10),
                FieldSpec("hour", "row", "int64", 24),
                FieldSpec("weekday", "row", "int64", 7),
                FieldSpec("dense", "row", "float32", None, (8,)),
                FieldSpec("labels", "row", "float32", None, (2,)),
            ),
            "ctr:Ctr",
        ),
    )
}


def model_spec(model: Model | str) -> ModelSpec:
    """The row of the table.

    Raises:
        PolicyError: no such model; the message lists those that there are.
    """
    if not isinstance(model, str):  # a repr of many layers would be no help
        raise PolicyError(
            f"model must be one of {', '.join(Model)}, or a model of the table: got a {type(model).__name__}."
        )
    return MODELS[choice("model", model, Model)]


def above_positions(what: str, longest: int, most: int) -> str:
    """Why a model that has learned so many positions takes no longer row."""
    return (
        f"{what} {longest} is above max_positions {most} of the model: build it with max_positions={longest}, "
        f"or cut histories with max_length={most}."
    )


def build(model: Model | str, **sizes: Any) -> RaggedModel:
    """Build a model by its key; ``sizes`` are the keyword arguments of its class."""
    return model_spec(model).build(**sizes)


def takes_strategy(model: Model | str, strategy: Strategy | str) -> bool:
    """Whether a model and a strategy go together. Raises ``PolicyError`` where one of them does not exist."""
    return STRATEGIES[choice("strategy", strategy, Strategy)].layout in model_spec(model).takes


def check_layout(model: Model | str, strategy: Strategy | str) -> Layout:
    """The layout that a model gets under a strategy.

    Raises:
        PolicyError: they do not go together; the message names the strategies that the model takes.
    """
    spec, key = model_spec(model), choice("strategy", strategy, Strategy)
    layout = STRATEGIES[key].layout
    if layout in spec.takes:
        return layout
    names = ", ".join(other for other in Strategy if takes_strategy(spec.model, other))
    raise PolicyError(f"model {spec.model} does not take the {layout} layout of strategy {key}: use one of {names}.")
