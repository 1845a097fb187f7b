"""Runs a CUDA C kernel on the CPU: the same source through g++, its threads as fibers, its memory accesses checked.

``build`` makes a program of a source, ``Program.launch`` runs it once; ``kernels/host/README.md`` says what is
checked and what is not. Needs NumPy, g++ and binutils, on x86-64 Linux.
"""
