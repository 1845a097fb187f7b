"""The NumPy twin of every kernel: obvious loops in float64, for tests only."""
