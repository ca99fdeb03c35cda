from .belief import Belief as Belief

__all__: list[str]
