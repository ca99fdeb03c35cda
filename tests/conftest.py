"""Shared by all tests: quiet pictures, Ctrl-C, and Hypothesis settings that suit numerical code."""

import os
import signal
from pathlib import Path

_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
# the package itself has no default; an empty name is none
os.environ.setdefault("NEARER_DATA", str(_DATA) if _DATA.is_dir() else "")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # test processes share the cores already
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell, and what
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests interrupt would ignore it too

import matplotlib as mpl  # noqa: E402
import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

mpl.use("Agg")

settings.register_profile(
    "nearer",
    deadline=None,  # the first call of a kernel compiles it
    max_examples=50,
    derandomize=True,  # two runs of one commit agree; `--hypothesis-profile search` looks further
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("search", settings.get_profile("nearer"), derandomize=False)
settings.load_profile("nearer")

# A process that takes up a long file last works on alone; most of these drive a browser.
# The first two: one process compiles all kernels while the other needs none.
LONG = (
    "test_golden", "test_study_fuzz", "test_study_stimuli", "test_study_tasks", "test_docs",
    "test_study_browser", "test_adaptive", "test_people", "test_cli", "test_study_words",
    "test_study_answering", "test_reports", "test_informative",
)  # fmt: skip


def pytest_collection_modifyitems(items):
    """Begin with the long files."""
    place = {name: i for i, name in enumerate(LONG)}
    items.sort(key=lambda item: place.get(item.path.stem, len(LONG)))


@pytest.fixture(scope="module")  # its event loop lives in this thread and must end with the file
def browser():
    from browserkit import BROWSER, FLAGS
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield made
        made.close()
