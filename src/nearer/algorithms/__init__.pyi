from .basis import Basis as Basis
from .basis import locate_objects as locate_objects
from .pipelines import crowd_kernel as crowd_kernel
from .choose_questions import choose_questions as choose_questions
from .pipelines import basis_soe as basis_soe
from .pipelines import extra_soe as extra_soe
from .pipelines import paper_protocol as paper_protocol
from .pipelines import rand_soe as rand_soe
from .place import Placed as Placed
from .place import place_objects as place_objects

__all__: list[str]
