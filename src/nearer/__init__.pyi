# Every public name, in the order of the API page. `__init__.py` reads this file, so that a name
# is listed once and is imported when it is first used.

# Two entry points and their result
from ._fit import fit as fit
from ._embed import embed as embed
from .embedding import Embedding as Embedding
from .embedding import load as load
from .comparison import align as align
from .comparison import compare as compare
from .dimension import estimate_dimension as estimate_dimension

# Answers in files
from .triplets import read_triplets as read_triplets
from .triplets import read_trials as read_trials
from .triplets import write_triplets as write_triplets
from .triplets import write_trials as write_trials
from .trials import Triplets as Triplets
from .trials import Trials as Trials
from .trials import Task as Task
from .fitting.people import Pace as Pace

# Strategies, and how they are run
from .algorithms.adaptive import adaptive as adaptive
from .algorithms.basis import choose_basis as choose_basis
from .asking.sort import rank_objects as rank_objects
from .asking.run import run as run
from .asking.journal import load_journal as load_journal

# Oracles
from .asking.oracles import PointOracle as PointOracle
from .asking.oracles import DistanceOracle as DistanceOracle
from .asking.oracles import RecordedOracle as RecordedOracle
from .asking.oracles import NoisyOracle as NoisyOracle
from .asking.protocol import PricedAnswers as PricedAnswers
from .questions import UNSURE as UNSURE

# Estimators with the methods of scikit-learn
from .estimators import OrdinalEmbedding as OrdinalEmbedding
from .estimators import OrdinalBasis as OrdinalBasis
from .estimators import SOE as SOE
from .estimators import CKL as CKL
from .estimators import GNMDS as GNMDS
from .estimators import STE as STE
from .estimators import TSTE as TSTE
from .estimators import LOE as LOE
from .estimators import KNNGraphEmbedding as KNNGraphEmbedding

# Modules
from . import algorithms as algorithms
from . import asking as asking
from . import datasets as datasets
from . import errors as errors
from . import fitting as fitting
from . import judges as judges
from . import metrics as metrics
from . import plotting as plotting

__all__: list[str]
__version__: str
