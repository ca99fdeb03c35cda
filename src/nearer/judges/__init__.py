"""Oracles that live elsewhere: language models, similarities, a person at the terminal."""

from nearer.asking.oracles import from_similarity
from nearer.judges.chat import ChatJudge, ChatReport
from nearer.judges.outside import Inbox
from nearer.judges.panel import Panel, PanelReport

__all__ = [
    "ChatJudge",
    "ChatReport",
    "Inbox",
    "Panel",
    "PanelReport",
    "from_similarity",
]
