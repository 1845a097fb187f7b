"""Sequence lengths: histograms, loaders, generators, presets."""
