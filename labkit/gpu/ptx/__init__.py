"""Executes on a CPU the PTX that NVRTC made: results, faults, and exact counts of what the warps did.

The way of a kernel: ``parse`` (text to instructions), ``bind`` (each instruction to a function of all lanes that stand
at it), ``schedule`` (which lanes those are), ``memory`` and ``counts``; ``runner.run`` is the door.
"""
