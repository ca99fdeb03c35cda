"""What a study refuses, and what keeps it from writing."""

from __future__ import annotations

from nearer.errors import NearerError

__all__ = ["Refusal", "StoreTrouble"]


class Refusal(NearerError):
    """A request that the study turns down; nothing was changed.

    Attributes
    ----------
    status
        The HTTP status that says so on the web.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class StoreTrouble(NearerError):
    """The study's file cannot be written: disk full, read-only, gone. Nothing was acknowledged."""
