"""Ordinal embedding: positions and dimension from answers to "is a nearer to this than b is?".

The whole public surface is on this screen. Each name is loaded when it is first used, so that
``import nearer`` costs milliseconds.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_HOME = {
    # asking: how questions are put and answered
    "run": "nearer.running.run",
    "load_journal": "nearer.running.load",
    "PricedAnswers": "nearer.running.costs",
    "together": "nearer.asking.protocol",
    "recorded": "nearer.asking.protocol",
    "remembered": "nearer.asking.protocol",
    "limited": "nearer.asking.protocol",
    "Memory": "nearer.asking.memory",
    "Record": "nearer.asking.record",
    "Session": "nearer.asking.session",
    "rank_objects": "nearer.asking.sorting",
    "farthest_object": "nearer.asking.selection",
    "nearest_objects": "nearer.asking.selection",
    "PointOracle": "nearer.asking.oracles",
    "DistanceOracle": "nearer.asking.oracles",
    "RecordedOracle": "nearer.asking.oracles",
    "NoisyOracle": "nearer.asking.oracles",
    "PsychometricOracle": "nearer.asking.people",
    "CrowdOracle": "nearer.asking.people",
    "Person": "nearer.asking.people",
    "renumbered": "nearer.asking.protocol",
    "decided": "nearer.asking.protocol",
    "doubtful": "nearer.asking.protocol",
    "UNSURE": "nearer.questions",
    # trials: choices of every kind
    "Task": "nearer.tasks",
    "Trials": "nearer.trials",
    "Pace": "nearer.fitting.pace",
    # algorithms: askings that find positions
    "Basis": "nearer.algorithms.basis",
    "choose_basis": "nearer.algorithms.basis",
    "locate_objects": "nearer.algorithms.coordinates",
    "informative": "nearer.algorithms.informative",
    "basis_soe": "nearer.algorithms.pipelines",
    "extra_soe": "nearer.algorithms.pipelines",
    "rand_soe": "nearer.algorithms.pipelines",
    "paper_protocol": "nearer.algorithms.pipelines",
    "crowd_kernel": "nearer.algorithms.crowd_kernel",
    "Embedding": "nearer.embedding",
    "load": "nearer.embedding",
    "align": "nearer.comparing",
    "compare": "nearer.comparing",
    "adaptive": "nearer.algorithms.adaptive",
    "embed": "nearer._embed",
    "fit": "nearer._fit",
    "choose_questions": "nearer.algorithms.informative",
    "detect_noise": "nearer.algorithms.noise_check",
    "Placed": "nearer.algorithms.placing",
    "place_objects": "nearer.algorithms.placing",
    # estimators: scikit-learn faces
    "OrdinalBasis": "nearer.estimators.ordinal_basis",
    "SOE": "nearer.estimators.embedders",
    "CKL": "nearer.estimators.embedders",
    "GNMDS": "nearer.estimators.embedders",
    "STE": "nearer.estimators.embedders",
    "TSTE": "nearer.estimators.embedders",
    "OrdinalEmbedding": "nearer.estimators.ordinal_embedding",
    "LOE": "nearer.estimators.graphs",
    "KNNGraphEmbedding": "nearer.estimators.graphs",
    # fitting: triplets in, positions out
    "estimate_dimension": "nearer._dimension",
    "Belief": "nearer.fitting.belief",
    # triplets at the edge: whatever file somebody has
    "Triplets": "nearer.triplets",
    "read_triplets": "nearer.triplets",
    "read_trials": "nearer.triplets",
    "write_trials": "nearer.triplets",
    "write_triplets": "nearer.triplets",
}
_MODULES = ("datasets", "errors", "judges", "metrics", "plotting")
# what functions return and nobody makes: documented, and no names of the package
_RETURNED = (
    "comparing.Aligned",
    "comparing.Comparison",
    "_dimension.DimensionEstimate",
    "embedding.HeldOutAccuracy",
    "embedding.Phase",
    "trust.Agreement",
    "trust.Calibration",
    "fitting.posterior.Posterior",
    "fitting.posterior.Noise",
    "fitting.posterior.Curve",
    "fitting.reliability.Reliability",
    "triplets.report.Report",
    "algorithms.noise_check.NoiseCheck",
)

__all__ = [*_HOME, *_MODULES]  # noqa: PLE0604 - every entry is a string

if TYPE_CHECKING:
    from nearer import datasets as datasets
    from nearer import errors as errors
    from nearer import judges as judges
    from nearer import metrics as metrics
    from nearer import plotting as plotting
    from nearer._dimension import estimate_dimension as estimate_dimension
    from nearer._embed import embed as embed
    from nearer._fit import fit as fit
    from nearer.algorithms.adaptive import adaptive as adaptive
    from nearer.algorithms.basis import Basis as Basis
    from nearer.algorithms.basis import choose_basis as choose_basis
    from nearer.algorithms.coordinates import locate_objects as locate_objects
    from nearer.algorithms.crowd_kernel import crowd_kernel as crowd_kernel
    from nearer.algorithms.informative import choose_questions as choose_questions
    from nearer.algorithms.informative import informative as informative
    from nearer.algorithms.noise_check import detect_noise as detect_noise
    from nearer.algorithms.pipelines import basis_soe as basis_soe
    from nearer.algorithms.pipelines import extra_soe as extra_soe
    from nearer.algorithms.pipelines import paper_protocol as paper_protocol
    from nearer.algorithms.pipelines import rand_soe as rand_soe
    from nearer.algorithms.placing import Placed as Placed
    from nearer.algorithms.placing import place_objects as place_objects
    from nearer.asking.memory import Memory as Memory
    from nearer.asking.oracles import DistanceOracle as DistanceOracle
    from nearer.asking.oracles import NoisyOracle as NoisyOracle
    from nearer.asking.oracles import PointOracle as PointOracle
    from nearer.asking.oracles import RecordedOracle as RecordedOracle
    from nearer.asking.people import CrowdOracle as CrowdOracle
    from nearer.asking.people import Person as Person
    from nearer.asking.people import PsychometricOracle as PsychometricOracle
    from nearer.asking.protocol import decided as decided
    from nearer.asking.protocol import doubtful as doubtful
    from nearer.asking.protocol import limited as limited
    from nearer.asking.protocol import recorded as recorded
    from nearer.asking.protocol import remembered as remembered
    from nearer.asking.protocol import renumbered as renumbered
    from nearer.asking.protocol import together as together
    from nearer.asking.record import Record as Record
    from nearer.asking.selection import farthest_object as farthest_object
    from nearer.asking.selection import nearest_objects as nearest_objects
    from nearer.asking.session import Session as Session
    from nearer.asking.sorting import rank_objects as rank_objects
    from nearer.comparing import align as align
    from nearer.comparing import compare as compare
    from nearer.embedding import Embedding as Embedding
    from nearer.embedding import load as load
    from nearer.estimators.embedders import CKL as CKL
    from nearer.estimators.embedders import GNMDS as GNMDS
    from nearer.estimators.embedders import SOE as SOE
    from nearer.estimators.embedders import STE as STE
    from nearer.estimators.embedders import TSTE as TSTE
    from nearer.estimators.graphs import LOE as LOE
    from nearer.estimators.graphs import KNNGraphEmbedding as KNNGraphEmbedding
    from nearer.estimators.ordinal_basis import OrdinalBasis as OrdinalBasis
    from nearer.estimators.ordinal_embedding import OrdinalEmbedding as OrdinalEmbedding
    from nearer.fitting.belief import Belief as Belief
    from nearer.fitting.pace import Pace as Pace
    from nearer.questions import UNSURE as UNSURE
    from nearer.running.costs import PricedAnswers as PricedAnswers
    from nearer.running.load import load_journal as load_journal
    from nearer.running.run import run as run
    from nearer.tasks import Task as Task
    from nearer.trials import Trials as Trials
    from nearer.triplets import Triplets as Triplets
    from nearer.triplets import read_trials as read_trials
    from nearer.triplets import read_triplets as read_triplets
    from nearer.triplets import write_trials as write_trials
    from nearer.triplets import write_triplets as write_triplets


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"nearer.{name}")
    if name in _HOME:
        value = globals()[name] = getattr(import_module(_HOME[name]), name)
        return value
    raise AttributeError(f"module 'nearer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
