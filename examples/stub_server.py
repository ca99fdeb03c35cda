"""A simulated language model: a local server that answers as one would, with faults.

It knows where its objects are and reads the questions that `ChatJudge` writes. It can have the
faults of a real endpoint, each at a rate: it is busy (429), broken (500), hangs, talks
instead of answering, prefers the option shown first, or does not look.
"""

from __future__ import annotations

import json
import math
import random
import re
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

__all__ = ["StubServer"]

_NUMBERED = re.compile(r"^\d+\. ", re.MULTILINE)
_OPTION = re.compile(r"^([AB]): (.*)$", re.MULTILINE)


class StubServer:
    """A local endpoint for trying things out; use it in a ``with`` statement.

    Parameters
    ----------
    objects
        Where each object is: text → coordinates.
    latency
        Seconds before a reply.
    busy, broken, hang, chatter
        Shares of calls answered by 429, by 500, by no reply within 30 seconds, and by words
        instead of a letter.
    bias
        Share of questions for which the option shown first is named without looking.
    lapse
        Share of questions answered by a fair coin.
    key
        The key that the endpoint demands; None: no key.
    random_state
        Seed of the faults.

    Attributes
    ----------
    url
        The address to give to `ChatJudge`.
    n_calls, n_questions, most_at_once
        The calls, the questions, and the most calls answered at the same time.
    log
        Every question, in the order of arrival.

    Examples
    --------
    >>> with StubServer({"cat": [0, 0], "dog": [0, 1]}) as server:
    ...     server.url.startswith("http://127.0.0.1:")
    True
    """

    def __init__(
        self,
        objects: Mapping[str, Sequence[float]],
        *,
        latency: float = 0.0,
        busy: float = 0.0,
        broken: float = 0.0,
        hang: float = 0.0,
        chatter: float = 0.0,
        bias: float = 0.0,
        lapse: float = 0.0,
        key: str | None = None,
        random_state: int = 0,
    ) -> None:
        self._at = {str(name): np.asarray(x, dtype=np.float64) for name, x in objects.items()}
        self._by_length = sorted(self._at, key=len, reverse=True)
        self._latency, self._bias, self._lapse, self._key = latency, bias, lapse, key
        self._faults = {"busy": busy, "broken": broken, "hang": hang, "chatter": chatter}
        self._rng = random.Random(random_state)
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self.n_calls: int = 0
        self.n_questions: int = 0
        self.most_at_once: int = 0
        self._now = 0
        self.log: list[str] = []

    def __enter__(self) -> StubServer:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.stub = self
        self.url: str = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        threading.Thread(target=self._server.serve_forever, name="stub", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()

    def reply(self, body: Any, authorization: str | None) -> tuple[int, dict[str, Any]]:
        """The reply to a call: a status and a body."""
        with self._lock:
            self.n_calls += 1
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
            fault = self._fault()
        try:
            time.sleep(self._latency)
            if self._key is not None and authorization != f"Bearer {self._key}":
                return 401, {"error": {"message": f"wrong key: {authorization}"}}
            if fault == "hang":
                self._ended.wait(30)
            if fault in ("busy", "broken", "hang"):
                return (429 if fault == "busy" else 500), {"error": {"message": fault}}
            return 200, self._answered(body, fault == "chatter")
        finally:
            with self._lock:
                self._now -= 1

    def _fault(self) -> str:
        drawn = self._rng.random()
        for name, share in self._faults.items():
            drawn -= share
            if drawn < 0:
                return name
        return ""

    def _answered(self, body: Any, chatter: bool) -> dict[str, Any]:
        asked = body["messages"][-1]["content"]
        words = asked if isinstance(asked, str) else "".join(p.get("text", "") for p in asked)
        questions = _NUMBERED.split("\n" + words)[1:] or [words]
        with self._lock:
            self.n_questions += len(questions)
            self.log += questions
            chances = [self._chance(question) for question in questions]
            letters = ["A" if self._rng.random() < p else "B" for p in chances]
        text = "\n".join(f"{i}: {letter}" for i, letter in enumerate(letters, 1))
        text = letters[0] if len(letters) == 1 else text
        if chatter:
            text = "Well, that is a matter of taste. " + text
        choice: dict[str, Any] = {"message": {"role": "assistant", "content": text}}
        if body.get("logprobs"):
            top = [
                {"token": letter, "logprob": math.log(max(p, 1e-12))}
                for letter, p in (("A", chances[0]), ("B", 1 - chances[0]))
            ]
            choice["logprobs"] = {"content": [{"token": letters[0], "top_logprobs": top}]}
        usage = {"prompt_tokens": len(words) // 4, "completion_tokens": len(text)}
        return {"choices": [choice], "usage": usage}

    def _chance(self, question: str) -> float:
        """The probability that the first option is named."""
        head_line = question.split("\n")[0 if question.split("\n", maxsplit=1)[0] else 1]
        shown = dict(_OPTION.findall(question))
        head = next(name for name in self._by_length if name in head_line)
        a, b, h = (self._at[name.strip()] for name in (shown["A"], shown["B"], head))
        near = float(np.linalg.norm(h - a) < np.linalg.norm(h - b))
        looked = self._lapse * 0.5 + (1 - self._lapse) * near
        return self._bias + (1 - self._bias) * looked


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    stub: StubServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The client has disconnected, so that no reply is possible."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16  # a reply in one piece
    server: _Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        status, said = self.server.stub.reply(body, self.headers.get("authorization"))
        data = json.dumps(said).encode()
        try:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except ConnectionError:  # the client has disconnected
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""
