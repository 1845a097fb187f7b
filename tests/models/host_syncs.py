"""HostSyncs: which ops of a call would make the host wait for a device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

#: Their results, or the shapes of their results, are known only when the device is done.
_WAITING = {
    "_local_scalar_dense", "item", "nonzero", "masked_select", "unique", "_unique2", "unique_consecutive",
    "unique_dim", "equal", "is_nonzero", "bincount", "_assert_async", "repeat_interleave",
}  # fmt: skip


class HostSyncs(TorchDispatchMode):
    """Collects the names of such ops while it is on; works on any device.

    A ``repeat_interleave`` without ``output_size`` and an index by a bool tensor wait too.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        if name == "repeat_interleave":
            waits = kwargs.get("output_size") is None
        elif name in ("index", "index_put", "index_put_", "_index_put_impl_"):
            waits = any(isinstance(i, torch.Tensor) and i.dtype in (torch.bool, torch.uint8) for i in args[1])
        else:
            waits = name in _WAITING
        if waits:
            self.found.append(name)
        return func(*args, **kwargs)
