"""What the tests of the study share: small studies, pictures, a clock that is set by hand."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np

from nearer.study import actions
from nearer.study.actions import Identity, set_state
from nearer.study.config import Config
from nearer.study.items import Item
from nearer.study.store import Store, new_study


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def words(n: int) -> list[Item]:
    return [Item(f"word {k}", "text", f"word {k}") for k in range(n)]


def make_study(path: Path, n: int = 8, **settings: object) -> Path:
    settings = {"method": "random", "questions": 12, "practice": 1, **settings}
    new_study(path, words(n), Config.of(settings))
    return path


def only_real() -> dict[str, float]:
    """Settings without catch trials, repeats and hold-outs."""
    return {"catch_share": 0.0, "repeat_share": 0.0, "holdout_share": 0.0}


class Bench:
    """A store on a fresh study, without web and without worker."""

    def __init__(
        self, path: Path, n: int = 8, seed: int = 0, *, sync: bool = False, **settings: object
    ) -> None:
        self.path = path if path.exists() else make_study(path, n, **settings)
        self.clock = Clock()
        self.store = Store(self.path, self.clock, np.random.default_rng(seed))
        if not sync:  # most tests are not about power cuts
            self.store._db.execute("PRAGMA synchronous = OFF")
        self.write(set_state, "running")

    def write(self, change, *args, **options):
        return self.store.write(lambda ledger: change(ledger, *args, **options))

    def join(self, panel: str = "", external: str = "", **options: object) -> int:
        identity = Identity(panel, external) if external else Identity()
        return self.write(actions.join, consent="1", identity=identity, **options)

    def pose(self, rows, **options: object) -> int:
        return self.write(actions.pose, np.asarray(rows), seen=0, seconds=0.0, **options)

    def hand_out(self, person: int):
        return self.write(actions.hand_out, person)

    def answer(
        self, person: int, lease: int, choice: str = "left", ms: float = 700.0, **more: object
    ) -> bool:
        return self.write(actions.answer, person, lease, choice, ms, **more)

    @property
    def board(self):
        return self.store._board

    def close(self) -> None:
        self.store.close()


def picture(
    colour: tuple[int, int, int] = (200, 40, 60), size: int = 24, kind: str = "PNG"
) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.new("RGB", (size, size), colour).save(out, kind)
    return out.getvalue()


def zipped(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


class Web:
    """A study behind a test client, with a researcher logged in on request."""

    def __init__(self, path: Path, n: int = 8, *, start: bool = True, **settings: object) -> None:
        from fastapi.testclient import TestClient

        from nearer.study.app import create_app
        from nearer.study.web import Study

        if not path.exists():
            make_study(path, n, **settings)
        self.path = path
        self.study = Study(path, work=False)
        self.setup = self.study.setup
        self.study.store._db.execute("PRAGMA synchronous = OFF")
        if start:
            self.study.store.write(lambda ledger: set_state(ledger, "running"))
        self.client = TestClient(create_app(self.study), follow_redirects=False)
        self.client.__enter__()

    def close(self) -> None:
        self.client.__exit__(None, None, None)

    def log_in(self) -> dict[str, str]:
        """Make the account and log in; the headers that changes need."""
        import re

        who = {"name": "ada", "password": "correct horse"}
        assert self.client.post(f"/setup/{self.setup}", data=who).status_code == 303
        assert self.client.post("/login", data=who).status_code == 303
        page = self.client.get("/dashboard").text
        return {"x-form-token": re.search('name="form-token" content="([^"]+)"', page)[1]}

    def join(self, **parameters: str) -> dict[str, str]:
        """Take part; the headers of that person."""
        body = {"consent_version": "1", "parameters": parameters}
        reply = self.client.post("/api/join", json=body)
        assert reply.status_code == 200, reply.text
        headers = {"authorization": f"Bearer {reply.json()['token']}"}
        assert self.client.post("/api/ready", headers=headers).status_code == 200
        return headers

    def answer(self, headers: dict[str, str], choice: str = "left"):
        """Answer the question in hand; the reply."""
        trial = self.client.get("/api/me", headers=headers).json()["trials"][0]
        body = {"answers": [{"lease": trial["lease"], "choice": choice, "response_ms": 800}]}
        return self.client.post("/api/answers", json=body, headers=headers)


def knock(web: Web, browser: str = "", **parameters: str):
    """Try to take part; the reply."""
    body = {"consent_version": "1", "parameters": parameters, "browser": browser}
    return web.client.post("/api/join", json=body)


def count(web: Web, table: str = "answers") -> int:
    """How many rows there are."""
    return web.study.store.reader().execute(f"SELECT count(*) FROM {table}").fetchone()[0]
