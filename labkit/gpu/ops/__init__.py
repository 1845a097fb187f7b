"""The ops ``labkit::*``: each a ``torch.library.custom_op`` with kernels for CUDA, torch ops for the CPU, a fake and a
backward that is an op itself. So a model runs on any device, under autograd, ``torch.compile`` and graph capture.
"""
