"""An interactive performance lab for ragged recommender sequences on GPUs.

Importing ``labkit`` loads nothing else: each name below is looked up in its module on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labkit.batching import costs as costs
    from labkit.batching.audit import Audit as Audit
    from labkit.batching.audit import audit_ranks as audit_ranks
    from labkit.batching.dealing import Remainder as Remainder
    from labkit.batching.edge_charges import charge_of_capture as charge_of_capture
    from labkit.batching.edge_charges import charge_of_memory as charge_of_memory
    from labkit.batching.edges import Edges as Edges
    from labkit.batching.edges import optimal_edges as optimal_edges
    from labkit.batching.edges import quantile_edges as quantile_edges
    from labkit.batching.edges import quantile_p95_edges as quantile_p95_edges
    from labkit.batching.finite_edges import optimal_edges_finite as optimal_edges_finite
    from labkit.batching.objective import Objective as Objective
    from labkit.batching.pack_figures import PackingFigures as PackingFigures
    from labkit.batching.pieces import PieceIndex as PieceIndex
    from labkit.batching.plan import EpochPlan as EpochPlan
    from labkit.batching.plan import plan_epoch as plan_epoch
    from labkit.batching.policy import BatchPolicy as BatchPolicy
    from labkit.batching.sampler import BucketBatchSampler as BucketBatchSampler
    from labkit.batching.share import AllRanks as AllRanks
    from labkit.batching.share import Balance as Balance
    from labkit.batching.strategies import Strategy as Strategy
    from labkit.batching.what_if import WhatIf as WhatIf
    from labkit.batching.what_if import what_if as what_if
    from labkit.bench.record import Record as Record
    from labkit.config import TunedConfig as TunedConfig
    from labkit.errors import ConfigError as ConfigError
    from labkit.errors import DataFileError as DataFileError
    from labkit.errors import DeviceError as DeviceError
    from labkit.errors import EdgesError as EdgesError
    from labkit.errors import LabkitError as LabkitError
    from labkit.errors import LengthsError as LengthsError
    from labkit.errors import MissingPackageError as MissingPackageError
    from labkit.errors import NotebookError as NotebookError
    from labkit.errors import NotebookRunError as NotebookRunError
    from labkit.errors import PolicyError as PolicyError
    from labkit.errors import ShapeError as ShapeError
    from labkit.experiments.measure import measure as measure
    from labkit.interchange.files import read_edges as read_edges
    from labkit.interchange.files import write_edges as write_edges
    from labkit.interchange.foreign import EdgeFormat as EdgeFormat
    from labkit.interchange.foreign import ForeignEdges as ForeignEdges
    from labkit.jagged import Jagged as Jagged
    from labkit.layouts import masks as masks
    from labkit.layouts.checks import check_batch as check_batch
    from labkit.layouts.collate import collate as collate
    from labkit.layouts.columns import RaggedColumns as RaggedColumns
    from labkit.layouts.device_padding import pad_on_device as pad_on_device
    from labkit.layouts.packed import PackedBatch as PackedBatch
    from labkit.layouts.packed import PackedDataset as PackedDataset
    from labkit.layouts.packed import block_mask as block_mask
    from labkit.layouts.ragged_dataset import RaggedDataset as RaggedDataset
    from labkit.lengths import generate as generate
    from labkit.lengths import presets as presets
    from labkit.lengths.histogram import LengthHistogram as LengthHistogram
    from labkit.lengths.load import load_lengths as load_lengths
    from labkit.provenance import Figure as Figure
    from labkit.provenance import Origin as Origin

    __version__: str

# name -> module that defines it
_ATTRIBUTES = {
    "AllRanks": "labkit.batching.share",
    "Audit": "labkit.batching.audit",
    "Balance": "labkit.batching.share",
    "BatchPolicy": "labkit.batching.policy",
    "BucketBatchSampler": "labkit.batching.sampler",
    "ConfigError": "labkit.errors",
    "DataFileError": "labkit.errors",
    "DeviceError": "labkit.errors",
    "EdgeFormat": "labkit.interchange.foreign",
    "Edges": "labkit.batching.edges",
    "EdgesError": "labkit.errors",
    "EpochPlan": "labkit.batching.plan",
    "Figure": "labkit.provenance",
    "ForeignEdges": "labkit.interchange.foreign",
    "Jagged": "labkit.jagged",
    "LabkitError": "labkit.errors",
    "LengthHistogram": "labkit.lengths.histogram",
    "LengthsError": "labkit.errors",
    "MissingPackageError": "labkit.errors",
    "NotebookError": "labkit.errors",
    "NotebookRunError": "labkit.errors",
    "Objective": "labkit.batching.objective",
    "Origin": "labkit.provenance",
    "PackedBatch": "labkit.layouts.packed",
    "PackedDataset": "labkit.layouts.packed",
    "PackingFigures": "labkit.batching.pack_figures",
    "PieceIndex": "labkit.batching.pieces",
    "PolicyError": "labkit.errors",
    "RaggedColumns": "labkit.layouts.columns",
    "RaggedDataset": "labkit.layouts.ragged_dataset",
    "Record": "labkit.bench.record",
    "Remainder": "labkit.batching.dealing",
    "ShapeError": "labkit.errors",
    "Strategy": "labkit.batching.strategies",
    "TunedConfig": "labkit.config",
    "WhatIf": "labkit.batching.what_if",
    "audit_ranks": "labkit.batching.audit",
    "block_mask": "labkit.layouts.packed",
    "charge_of_capture": "labkit.batching.edge_charges",
    "charge_of_memory": "labkit.batching.edge_charges",
    "check_batch": "labkit.layouts.checks",
    "collate": "labkit.layouts.collate",
    "load_lengths": "labkit.lengths.load",
    "measure": "labkit.experiments.measure",
    "optimal_edges": "labkit.batching.edges",
    "optimal_edges_finite": "labkit.batching.finite_edges",
    "pad_on_device": "labkit.layouts.device_padding",
    "plan_epoch": "labkit.batching.plan",
    "quantile_edges": "labkit.batching.edges",
    "quantile_p95_edges": "labkit.batching.edges",
    "read_edges": "labkit.interchange.files",
    "what_if": "labkit.batching.what_if",
    "write_edges": "labkit.interchange.files",
}
# name -> module that it stands for
_MODULES = {
    "costs": "labkit.batching.costs",
    "generate": "labkit.lengths.generate",
    "masks": "labkit.layouts.masks",
    "presets": "labkit.lengths.presets",
}


def __getattr__(name: str) -> object:
    """Load the module behind a public name on first use, and keep the result."""
    value: object
    if name in _ATTRIBUTES:
        value = getattr(import_module(_ATTRIBUTES[name]), name)
    elif name in _MODULES:
        value = import_module(_MODULES[name])
    elif name == "__version__":
        from importlib.metadata import version  # not at the top: it costs more than the rest of this file

        value = version("labkit")
    else:
        raise AttributeError(f"module 'labkit' has no attribute {name!r}; its public names are in dir(labkit)")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names without loading them."""
    return sorted([*_ATTRIBUTES, *_MODULES, "__version__"])
