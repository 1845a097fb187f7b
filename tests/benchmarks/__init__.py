"""labkit's own speed against its bars: ``python -m tests.benchmarks`` (``make bench``). Never part of a test run."""
