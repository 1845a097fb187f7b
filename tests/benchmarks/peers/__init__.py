"""labkit beside the tools people use today, on the same lengths: ``make bench-peers``.

The peers live in an environment of their own (``.venv-peers``). Where one cannot be loaded, its figures are missing and
the reason is printed: nothing is estimated for it. Every peer is called through its own code, in the form that costs it
least; what was chosen in its favour is said in the module that calls it.
"""
