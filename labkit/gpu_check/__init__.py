"""Everything that needs a GPU, in one run: are the kernels right there, how fast are they, and what was it run on.

    python3 -m labkit.gpu_check --json FILE --seconds 240

Needs Python, NumPy, torch and CuPy alone, from a checkout. The JSON is whole after every case; ``report`` says what is
in it. Items come in the order of their worth, each with a share of the time; what was not reached is listed.
"""
