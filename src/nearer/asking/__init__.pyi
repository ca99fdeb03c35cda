from .memory import Memory as Memory
from .people import CrowdOracle as CrowdOracle
from .people import Person as Person
from .people import PsychometricOracle as PsychometricOracle
from .protocol import decided as decided
from .protocol import doubtful as doubtful
from .protocol import limited as limited
from .protocol import recorded as recorded
from .protocol import remembered as remembered
from .protocol import renumbered as renumbered
from .protocol import together as together
from .record import Record as Record
from .selection import farthest_object as farthest_object
from .selection import nearest_objects as nearest_objects
from .session import Session as Session

__all__: list[str]
