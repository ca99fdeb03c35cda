"""Shared by all tests: quiet pictures, and Hypothesis settings that suit numerical code."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # test processes share the cores already

import matplotlib as mpl
from hypothesis import HealthCheck, settings

mpl.use("Agg")

settings.register_profile(
    "nearer",
    deadline=None,  # the first call of a kernel compiles it
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("nearer")
