"""Without a GPU, Triton's interpreter stands in for one."""

import os

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
    from nearer.scale import gpu

    gpu._BLOCK = 4096  # the interpreter pays by the program
    gpu._DEVICE = "cpu"
    gpu.is_available = lambda: True
    gpu.free_memory = lambda: float(1 << 36)
