from .oracles import Memory as Memory
from .oracles import CrowdOracle as CrowdOracle
from .oracles import Person as Person
from .oracles import PsychometricOracle as PsychometricOracle
from .protocol import forced_choice as forced_choice
from .protocol import accepts_uncertain as accepts_uncertain
from .protocol import limited as limited
from .protocol import recorded as recorded
from .protocol import remembered as remembered
from .protocol import renumbered as renumbered
from .protocol import together as together
from .protocol import Record as Record
from .sort import farthest_object as farthest_object
from .sort import nearest_objects as nearest_objects
from .run import Session as Session

__all__: list[str]
