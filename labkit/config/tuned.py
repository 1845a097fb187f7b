"""TunedConfig: what was tuned, as one strict JSON file that a training job turns into exactly the batches seen."""

from __future__ import annotations

import json
import os
import warnings
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from numpy.typing import ArrayLike
from pydantic import AwareDatetime, ConfigDict, Field, ValidationError, model_validator

from labkit.batching.costs import DEFAULT_ALPHA
from labkit.batching.dealing import Remainder
from labkit.batching.policy import BatchPolicy
from labkit.batching.sampler import BucketBatchSampler
from labkit.batching.share import Balance
from labkit.batching.strategies import Strategy
from labkit.batching.what_if import what_if
from labkit.config.comparison import Comparison, compare
from labkit.config.contents import check_figures, figures_of, versions
from labkit.config.reading import KIND, SCHEMA_VERSION, check_tuned_target, first_fault, parse_strictly
from labkit.config.stored import Stored, StoredFigure, StoredHistogram, StoredPolicy, plain
from labkit.errors import ConfigError, DataFileError
from labkit.files import expanded, not_found, reason_of, write_whole
from labkit.lengths.histogram import LengthHistogram

_SUMMARY = "A batch policy of labkit, the histogram of the lengths that it was tuned on, and what it cost there."


class TunedConfig(Stored):
    """A batch policy with the lengths that it was tuned on: export, import, and what a training job needs of it.

    Make one with ``from_policy`` or ``load``; the fields are the JSON, one to one. Unknown fields are refused.
    """

    model_config = ConfigDict(title="TunedConfig", json_schema_extra={"description": _SUMMARY})

    kind: Literal["labkit.tuned_config"]
    """What this file is."""
    schema_version: Literal[1]
    """Version of this format; a reader refuses one above its own."""
    created: AwareDatetime
    """When it was tuned, in UTC."""
    versions: dict[str, str]
    """Versions of what made it: labkit, python, numpy, and torch where it was loaded."""
    policy: StoredPolicy
    """How an epoch is cut into batches."""
    max_truncated_share: float = Field(ge=0, le=1)
    """Share of users that may lose events; a consumer whose lengths are cut more often should fall back."""
    figures: dict[str, StoredFigure]
    """What the policy costs on the lengths that it was tuned on, each number with its origin. Checked
    against policy and histogram when it is read."""
    fingerprint: str
    """sha256 of the lines ``length,count`` of the histogram in ascending order."""
    histogram: StoredHistogram
    """The lengths that it was tuned on."""

    @classmethod
    def from_policy(
        cls, histogram: LengthHistogram, policy: BatchPolicy, *, max_truncated_share: float | None = None
    ) -> Self:
        """Tie a policy to the lengths that it was tuned on.

        Args:
            histogram: of those lengths.
            policy: any policy that runs on them.
            max_truncated_share: share of users cut above which a consumer should fall back, 0 .. 1. None: half as much
                again as on these lengths, and one user in a hundred more.

        Raises:
            PolicyError: the policy does not run on these lengths.
            ConfigError: a field that cannot be stored, such as a share above 1.

        Cost: one ``what_if``.
        """
        scored = what_if(histogram, policy)
        share = scored.truncated_share
        allowed = min(1.0, 1.5 * share + 0.01) if max_truncated_share is None else plain(max_truncated_share)
        try:
            return cls(
                kind=KIND,
                schema_version=SCHEMA_VERSION,
                created=datetime.now(UTC).replace(microsecond=0),
                versions=versions(),
                policy=StoredPolicy.of(policy),
                max_truncated_share=allowed,
                figures={name: StoredFigure.of(figure) for name, figure in figures_of(scored).items()},
                fingerprint=histogram.fingerprint,
                histogram=StoredHistogram.of(histogram),
            )
        except ValidationError as error:
            known = {"policy": policy.to_dict(), "max_truncated_share": allowed, **policy.to_dict()}
            raise ConfigError(f"cannot be exported: {first_fault(error, known)}") from None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        counted = self.length_histogram.fingerprint
        if counted != self.fingerprint:
            raise ConfigError(
                f"fingerprint is {self.fingerprint[:12]!r}..., but the sha256 of histogram is {counted[:12]!r}...: "
                "one of the two was changed. Export the file again."
            )
        scored = what_if(self.length_histogram, self.batch_policy)  # a policy that does not run on its own lengths
        check_figures({name: figure.restored() for name, figure in self.figures.items()}, scored)
        return self

    # -- file ---------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the JSON whole (a temporary name, then a rename) and return its path.

        A tuned configuration that is there is replaced; any other file is not.

        Raises:
            DataFileError: the folder does not exist or cannot be written to, or the path is that of a file which is no
                tuned configuration; nothing is left behind.
        """
        return write_whole(check_tuned_target(path), self.to_json())

    def to_json(self) -> str:
        """The strict JSON: one line a field, integers as integers, no NaN."""
        data = self.model_dump(mode="json")
        lines = [f"  {json.dumps(name)}: {json.dumps(value, allow_nan=False)}" for name, value in data.items()]
        return "{\n" + ",\n".join(lines) + "\n}\n"

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read and check a file.

        Raises:
            DataFileError: there is no such file, or it cannot be read.
            ConfigError: not JSON, not ours, of a future version, or a field that is wrong; the field is named.
        """
        name = expanded(path)
        try:
            text = Path(name).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise not_found(name) from None
        except UnicodeDecodeError as error:
            raise ConfigError(f"{name!r}: not JSON: byte {error.start} is not UTF-8.") from None
        except (OSError, ValueError) as error:
            raise DataFileError(f"cannot read {name!r}: {reason_of(error)}.") from error
        try:
            data = parse_strictly(text)
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise ConfigError(f"{name!r}: {first_fault(error, data)}") from None
        except ConfigError as error:
            raise ConfigError(f"{name!r}: {error}") from None

    # -- what a training job needs ------------------------------------------------------------------------------

    @cached_property
    def batch_policy(self) -> BatchPolicy:
        """The policy."""
        return self.policy.restored()

    @cached_property
    def length_histogram(self) -> LengthHistogram:
        """The lengths that it was tuned on."""
        return self.histogram.restored()

    def sampler(
        self,
        lengths: ArrayLike,
        *,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        remainder: Remainder | str = Remainder.REPEAT,
        balance: Balance | str = Balance.NONE,
        alpha: float = DEFAULT_ALPHA,
    ) -> BucketBatchSampler:
        """The batches: ``DataLoader(dataset, batch_sampler=config.sampler(lengths), collate_fn=config.collate())``.

        Warns with both figures where the lengths are not those that were tuned on, and says when to fall back.

        Args:
            lengths: (N,) lengths of the data set's sequences, in the order of its indices.
            seed: of the shuffle.
            rank: of this process, such as ``dist.get_rank()``.
            world_size: processes that train together, such as ``dist.get_world_size()``.
            remainder: what happens to batches that do not fill a last step.
            balance: what decides who takes which batch.
            alpha: weight of the squares in ``balance='quadratic'``.

        Raises:
            LengthsError, PolicyError: as ``BucketBatchSampler``.
        """
        sampler = BucketBatchSampler(
            lengths,
            self.batch_policy,
            seed=seed,
            rank=rank,
            world_size=world_size,
            remainder=remainder,
            balance=balance,
            alpha=alpha,
        )
        found = self.compare(lengths)
        if not found.same_lengths:
            warnings.warn(found.message + self._collate_hint(), UserWarning, stacklevel=2)
        return sampler

    def _collate_hint(self) -> str:
        policy = self.batch_policy
        open_cap = policy.strategy is Strategy.PAD_RECENT and policy.max_length is None
        static = "static_shapes" in policy.spec.fields and policy.has_static_shapes
        open_pack = policy.strategy is Strategy.PACKED and policy.capacity is None
        if policy.strategy is Strategy.PAD_MAX or open_cap or open_pack or static:
            return f" Shapes of {policy.strategy} depend on the lengths: use collate(histogram=lengths)."
        return ""

    def collate(self, layout: Any = None, **options: Any) -> Any:
        """What makes tensors of the batches of ``sampler``; see ``labkit.layouts.collate.collate``.

        Args:
            layout: None is that of the strategy.
            options: passed on. ``histogram`` is by default that of the tuned lengths. Where the sampler has others,
                pass ``histogram=lengths`` for policies whose shapes depend on them; the sampler's warning says so.
        """
        from labkit.layouts.collate import collate  # not at the top: it brings torch

        return collate(self.batch_policy, layout, **{"histogram": self.length_histogram, **options})

    def compare(self, lengths: LengthHistogram | ArrayLike) -> Comparison:
        """What the policy costs on other lengths, beside what it cost on those it was tuned on.

        Raises:
            LengthsError: lengths that are none.

        Cost: counting the lengths, and two ``what_if``.
        """
        now = lengths if isinstance(lengths, LengthHistogram) else LengthHistogram.from_lengths(lengths)
        return compare(self.length_histogram, now, self.batch_policy, self.max_truncated_share)
