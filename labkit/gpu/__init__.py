"""The GPU itself: NVML, CuPy, the one launch function, the ops."""
