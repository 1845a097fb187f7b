"""Observers: what is watched around a timed loop, without touching it."""
