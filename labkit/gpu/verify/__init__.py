"""Proves the source of an op with no GPU: compiled, run on the CPU, compared with the float64 reference, checked.

``prove`` makes a ``Proof`` of any source for an op, the shipped one or an edited one; ``mutate`` asks whether the proof
would notice a mistake, by making them.
"""
