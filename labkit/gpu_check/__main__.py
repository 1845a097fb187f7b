"""``python3 -m labkit.gpu_check``."""

from __future__ import annotations

import sys

from labkit.gpu_check.command import main

if __name__ == "__main__":
    sys.exit(main())
