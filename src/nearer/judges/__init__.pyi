from .chat import ChatJudge as ChatJudge
from .chat import ChatReport as ChatReport
from .outside import Inbox as Inbox
from .outside import from_similarity as from_similarity
from .panel import Panel as Panel
from .panel import PanelReport as PanelReport

__all__: list[str]
