"""About fifty calls give what they gave when their results were recorded, on any processor.

A refactoring keeps all of them. A change that moves one on purpose records it anew, by
``python tests/golden/record.py NAME``, and says why in its commit.
"""

import json
import sys
import warnings
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "golden"
sys.path.insert(0, str(HERE))

from cases import CASES  # noqa: E402

RECORDED = {
    f"{file.stem}/{name}": values
    for file in HERE.glob("*.json")
    for name, values in json.loads(file.read_text("utf-8")).items()
}
TOLERANT = {"is", "within"}


def differences(was, now, place=""):
    """Each value that differs, with where it is.

    Numbers agree to one part in ten thousand, or to the tolerance that is recorded with them.
    """
    if isinstance(was, dict) and isinstance(now, dict) and set(was) == set(now) == TOLERANT:
        if now["is"] != pytest.approx(was["is"], rel=0, abs=was["within"]):
            yield f"{place}: was {was['is']}, is {now['is']}, may differ by {was['within']}"
    elif isinstance(was, dict) and isinstance(now, dict):
        for key in sorted({*was, *now}):
            here = f"{place}.{key}".lstrip(".")
            yield from differences(was.get(key, "nothing"), now.get(key, "nothing"), here)
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for i, (a, b) in enumerate(zip(was, now, strict=True)):
            yield from differences(a, b, f"{place}[{i}]")
    elif isinstance(was, float) and isinstance(now, float | int):
        if now != pytest.approx(was, rel=1e-4, abs=1e-6):
            yield f"{place}: was {was}, is {now}"
    elif was != now:
        yield f"{place}: was {was}, is {now}"


@pytest.mark.parametrize("full", CASES)
def test_a_call_gives_what_it_gave(full, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        now = json.loads(json.dumps(CASES[full](tmp_path)))
    moved = list(differences(RECORDED[full], now))
    assert not moved, "\n".join([f"{full}: {len(moved)} values moved", *moved[:20]])


def test_nothing_is_recorded_that_is_not_called():
    assert set(RECORDED) == set(CASES)
