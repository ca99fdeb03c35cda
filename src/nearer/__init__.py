"""Ordinal embedding: positions and dimension from answers to "is a nearer to this than b is?".

The whole public surface is on this screen. Each name is loaded when it is first used, so that
``import nearer`` costs milliseconds.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

_HOME = {
    # asking: how questions are put and answered
    "run": "nearer.asking.protocol",
    "together": "nearer.asking.protocol",
    "recorded": "nearer.asking.protocol",
    "remembered": "nearer.asking.protocol",
    "limited": "nearer.asking.protocol",
    "Memory": "nearer.asking.memory",
    "Record": "nearer.asking.record",
    "Session": "nearer.asking.session",
    "PointOracle": "nearer.asking.oracles",
    "DistanceOracle": "nearer.asking.oracles",
    "RecordedOracle": "nearer.asking.oracles",
    "NoisyOracle": "nearer.asking.oracles",
}
_MODULES = ("errors",)

__all__ = [*_HOME, *_MODULES]  # noqa: PLE0604 - every entry is a string

if TYPE_CHECKING:
    from nearer import errors as errors
    from nearer.asking.memory import Memory as Memory
    from nearer.asking.oracles import DistanceOracle as DistanceOracle
    from nearer.asking.oracles import NoisyOracle as NoisyOracle
    from nearer.asking.oracles import PointOracle as PointOracle
    from nearer.asking.oracles import RecordedOracle as RecordedOracle
    from nearer.asking.protocol import limited as limited
    from nearer.asking.protocol import recorded as recorded
    from nearer.asking.protocol import remembered as remembered
    from nearer.asking.protocol import run as run
    from nearer.asking.protocol import together as together
    from nearer.asking.record import Record as Record
    from nearer.asking.session import Session as Session


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"nearer.{name}")
    if name in _HOME:
        value = globals()[name] = getattr(import_module(_HOME[name]), name)
        return value
    raise AttributeError(f"module 'nearer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
