"""Shared by all tests: quiet pictures, and Hypothesis settings that suit numerical code."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # test processes share the cores already

import matplotlib as mpl
import pytest
from hypothesis import HealthCheck, settings

mpl.use("Agg")

settings.register_profile(
    "nearer",
    deadline=None,  # the first call of a kernel compiles it
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("nearer")


@pytest.fixture(scope="module")  # its event loop lives in this thread and must end with the file
def browser():
    from browserkit import BROWSER, FLAGS
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield made
        made.close()
