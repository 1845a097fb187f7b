from __future__ import annotations

from tests.kernels.cpu_device import cpu_device, fast_device

__all__ = ["cpu_device", "fast_device"]
