"""How a thing looks from outside: under one number as the query, under another as a choice.

In a catch trial one of the choices is the query itself. If it carried the same number or the same
address, a program could tell a catch trial without looking. So everything has two faces, each with
a number and a media address of its own that only this study can connect; they are the same in
every trial, so that a browser fetches each picture at most twice. A program that compares the
pictures or texts themselves still finds out: against that help checks of the researcher's own.
"""

from __future__ import annotations

from typing import Any

from nearer.study.auth import Signer
from nearer.study.media import shown

__all__ = ["Faces"]


class Faces:
    """The two faces of every item of a study.

    Parameters
    ----------
    items
        What is compared, see `nearer.study.log.read_items`.
    signer
        Its key makes the numbers.
    prefix
        The path below which the study is served.
    names
        Whether people may know what the items are called.
    """

    def __init__(
        self,
        items: list[dict[str, Any]],
        signer: Signer,
        *,
        prefix: str = "",
        names: bool = False,
    ) -> None:
        self.items = items
        self.names = names
        self._prefix = prefix
        self._sha: dict[str, str] = {}
        self._signer = signer
        self.queries = [self._face(item, "query") for item in items]
        self.choices = [self._face(item, "choice") for item in items]
        self._item = {face["id"]: k for k, face in enumerate(self.choices)}

    def item(self, number: int) -> int | None:
        """Which item is shown under this number as a choice."""
        return self._item.get(number)

    def sha(self, address: str) -> str:
        """The file behind a media address; researchers' pages have the file's own."""
        return self._sha.get(address, address)

    def _face(self, item: dict[str, Any], role: str) -> dict[str, Any]:
        word = self._signer.tag(role, str(item["id"]))
        number = int.from_bytes(word[:6].encode(), "big")  # fits what JavaScript counts exactly
        src = item["src"]
        if src is not None:
            sha = src.removeprefix("/media/")
            address = self._signer.tag(f"media {role}", sha)
            self._sha[address] = sha
            src = f"{self._prefix}/media/{address}"
        return {**shown(item, names=self.names), "id": number, "src": src}
