"""A language model as the judge: any endpoint that speaks as OpenAI's does.

A key comes from the environment when the first call is made. It is held by the connection alone:
no attribute, message, log or journal has it, and where an endpoint repeats it in an error it is
taken out. Calls that fail for a while (429, 5xx, time-outs, lost connections) are made again, after
the time that the endpoint asks for or a pause that doubles; what will not mend is raised.
"""

from __future__ import annotations

import asyncio
import math
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from nearer import checks
from nearer.asking.answers import PricedAnswers
from nearer.errors import InvalidInput, JudgeError
from nearer.judges.prompts import SHRUG, Options, Order, Prompt

__all__ = ["ChatJudge", "ChatReport"]

_FOR_A_WHILE = {408, 409, 425, 429, 500, 502, 503, 504, 529}
_LONGEST_PAUSE = 60.0
_MEANT = 0.5  # share of the probability on A and B below which the model was saying something else


@dataclass
class ChatReport:
    """What a language model has done so far.

    Attributes
    ----------
    n_questions
        Questions it was put.
    n_unsure
        Those it gave no usable answer to, after a second try.
    n_malformed
        Replies that were not in the form asked for.
    n_failed
        Calls that failed and were made again.
    n_calls, tokens_in, tokens_out, cost
        What it took.
    first
        Sum of the answers for the option shown first; of `n_read` answers.
    """

    n_questions: int = 0
    n_unsure: int = 0
    n_malformed: int = 0
    n_failed: int = 0
    n_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0
    n_read: int = 0
    first: float = 0.0

    @property
    def position_bias(self) -> float:
        """How much more often than half the option shown first was chosen; −.5 to .5."""
        return self.first / self.n_read - 0.5 if self.n_read else 0.0

    @property
    def position_error(self) -> float:
        """Standard error of the bias, were there none."""
        return 0.5 / math.sqrt(self.n_read) if self.n_read else math.inf

    def __str__(self) -> str:
        return (
            f"{self.n_questions:,} questions in {self.n_calls:,} calls, {self.cost:.4g} spent; "
            f"{self.n_unsure:,} without an answer, {self.n_malformed:,} replies malformed, "
            f"{self.n_failed:,} calls failed and made again; the option shown first was chosen "
            f"{50 + 100 * self.position_bias:.1f} ± {100 * self.position_error:.1f} % of the time"
        )


class ChatJudge:
    """A language model that says which of two things is more like a third.

    An async oracle for `nearer.embed` and `nearer.run` with objects that are texts, or paths
    (`pathlib.Path`) of pictures. It needs the extra ``nearer[llm]``.

    Parameters
    ----------
    model
        The model's name, as the endpoint knows it.
    endpoint
        The base address; ``/chat/completions`` is added to it.
    question
        What is asked, with ``{head}`` where the head belongs.
    key
        The environment variable that holds the key; None where the endpoint needs none.
    system
        What the model is told before everything else.
    order
        ``"random"``: which object is shown first is drawn, so that a favourite position is noise.
        ``"fixed"``: a is.
    together
        How many questions go into one prompt.
    grades
        Ask for log-probabilities and give graded answers: p for a, 1 − p for b. One question a
        prompt.
    price
        What a million tokens cost, in and out; usage is then counted in money.
    timeout, attempts, pause
        Seconds a call may take, how often it is made, and the seconds before the second time.
    options
        Further fields of the request, such as ``{"temperature": 0}``.
    random_state
        Seed of the order.

    Examples
    --------
    >>> from nearer.judges import ChatJudge
    >>> judge = ChatJudge("gpt-4o-mini", question="Which animal is more like a {head}?")
    >>> judge.report().n_questions
    0

    ``nearer.embed(judge, ["cat", "dog", "eel", "fly"], budget=60)`` asks it.
    """

    expects_noise = True

    def __init__(
        self,
        model: str,
        *,
        endpoint: str = "https://api.openai.com/v1",
        question: str = "Which is more like {head}?",
        key: str | None = "OPENAI_API_KEY",
        system: str = "You compare things.",
        order: Order = "random",
        together: int = 1,
        grades: bool = False,
        price: tuple[float, float] = (0.0, 0.0),
        timeout: float = 60.0,
        attempts: int = 6,
        pause: float = 1.0,
        options: dict[str, Any] | None = None,
        random_state: int = 0,
    ) -> None:
        if urlsplit(endpoint).scheme not in ("http", "https"):
            raise InvalidInput(f"endpoint={endpoint!r}: must begin with http:// or https://")
        self.model: str = model
        self.prompt: Prompt = Prompt(question, system, order, random_state)
        self.block_size: int = checks.whole("together", together)
        if grades and together > 1:
            raise InvalidInput(
                f"grades=True with together={together}: log-probabilities are read for one "
                "question a prompt; choose one of them"
            )
        if key is not None and not os.environ.get(key):
            raise JudgeError(
                f"the environment variable {key} is not set: put the endpoint's key there, name "
                "another variable with key=, or key=None where the endpoint needs none"
            )
        self._endpoint, self._key, self._grades = endpoint.rstrip("/"), key, grades
        self._price, self._timeout = price, timeout
        self._attempts, self._pause = checks.whole("attempts", attempts), pause
        self._options = options or {}
        self._counts = ChatReport()
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        return f"ChatJudge({self.model!r}, endpoint={self._where!r})"

    @property
    def about(self) -> dict[str, Any]:
        """What makes its answers this judge's; a journal begun with another is refused."""
        prompt = self.prompt
        return {
            "model": self.model,
            "question": prompt.question,
            "system": prompt.system,
            "order of options": prompt.order,
            "together": self.block_size,
            "grades": self._grades,
        }

    @property
    def _where(self) -> str:
        """The endpoint without what may be secret in it."""
        parts = urlsplit(self._endpoint)
        return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}"

    def report(self) -> ChatReport:
        """What was asked and answered so far, what it cost, and how much position mattered."""
        return self._counts

    def request(self, shown: Sequence[Options], *, again: bool = False) -> dict[str, Any]:
        """The body of a request that puts these questions."""
        body = {"model": self.model, "messages": self.prompt.messages(shown, again=again)}
        grades = {"logprobs": True, "top_logprobs": 5} if self._grades else {}
        return {**body, **grades, **self._options}

    async def __call__(self, questions: Sequence[Sequence[Any]]) -> PricedAnswers:
        """Put questions in one call, or two where a reply cannot be read."""
        shown = [self.prompt.show(question) for question in questions]
        counts = self._counts
        said, cost = await self._ask(shown, again=False)
        open_ = [i for i, answer in enumerate(said) if answer is None]
        if open_:
            counts.n_malformed += 1
            second, more = await self._ask([shown[i] for i in open_], again=True)
            cost += more
            counts.n_malformed += any(answer is None for answer in second)
            for i, answer in zip(open_, second, strict=True):
                said[i] = answer
        counts.n_questions += len(questions)
        answers = [self._turned(one, answer) for one, answer in zip(shown, said, strict=True)]
        counts.n_unsure += sum(answer is None for answer in answers)
        return PricedAnswers(answers, cost=cost)

    async def _ask(self, shown: list[Options], *, again: bool) -> tuple[list[float | None], float]:
        """For each question how much speaks for the first option, and what the call cost."""
        reply = await self._post(self.request(shown, again=again))
        return first_options(reply, len(shown)), self._pay(reply)

    def _turned(self, one: Options, first: float | None) -> float | bool | None:
        """The answer about a: booleans where the model was sure, None where it did not say."""
        if first is None or math.isnan(first):
            return None
        self._counts.n_read += 1
        self._counts.first += first
        for_a = 1 - first if one.swapped else first
        return bool(for_a) if for_a in (0.0, 1.0) else for_a

    def _pay(self, reply: Any) -> float:
        usage = reply.get("usage") if isinstance(reply, dict) else None
        used = usage if isinstance(usage, dict) else {}
        tokens = int(used.get("prompt_tokens") or 0), int(used.get("completion_tokens") or 0)
        self._counts.n_calls += 1
        self._counts.tokens_in += tokens[0]
        self._counts.tokens_out += tokens[1]
        cost = (tokens[0] * self._price[0] + tokens[1] * self._price[1]) / 1e6
        self._counts.cost += cost
        return cost

    async def _post(self, body: dict[str, Any]) -> Any:
        httpx = _httpx()
        trouble = ""
        for attempt in range(self._attempts):
            wait = self._pause * 2**attempt * random.uniform(0.5, 1.5)
            try:
                reply = await self._connected(httpx).post(
                    f"{self._endpoint}/chat/completions", json=body
                )
            except httpx.TransportError as error:
                trouble = f"{type(error).__name__}: {self._without_key(str(error))}".rstrip(": ")
            else:
                if reply.status_code == 200:
                    try:
                        return reply.json()
                    except ValueError:
                        trouble = "its reply is no JSON"
                elif reply.status_code not in _FOR_A_WHILE:
                    raise self._refused(reply)
                else:
                    trouble = f"HTTP {reply.status_code}"
                    wait = max(wait, _asked_for(reply.headers.get("retry-after")))
            self._counts.n_failed += 1
            if attempt + 1 < self._attempts:
                await asyncio.sleep(min(wait, _LONGEST_PAUSE))
        raise JudgeError(
            f"{self._where} gave no answer in {self._attempts} attempts (the last: {trouble}); "
            "check the address, lower max_in_flight, or try later. With a journal nothing is lost"
        )

    def _refused(self, reply: Any) -> JudgeError:
        said = self._without_key(" ".join(reply.text.split()))[:200]
        remedy = "check the model's name and the request"
        if reply.status_code in (401, 403):
            remedy = f"check the key in the environment variable {self._key}"
        return JudgeError(f"{self._where} refuses (HTTP {reply.status_code}: {said}); {remedy}")

    def _without_key(self, text: str) -> str:
        secret = os.environ.get(self._key) if self._key else None
        return text.replace(secret, "[key]") if secret else text

    def _connected(self, httpx: Any) -> Any:
        """The connections of this event loop."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            secret = os.environ.get(self._key, "") if self._key else ""
            self._loop, self._client = (
                loop,
                httpx.AsyncClient(
                    headers={"Authorization": f"Bearer {secret}"} if secret else {},
                    timeout=self._timeout,
                    limits=httpx.Limits(max_connections=None),
                ),
            )
        return self._client

    async def aclose(self) -> None:
        """Close the connections; the next call opens new ones."""
        if self._client is not None and self._loop is asyncio.get_running_loop():
            await self._client.aclose()
        self._client = None


def first_options(reply: Any, count: int) -> list[float | None]:
    """From a reply how much speaks for each first option; NaN for don't know, None if unread."""
    try:
        choice = reply["choices"][0]
        letters = Prompt.read(choice["message"]["content"], count)
    except (KeyError, IndexError, TypeError):
        return [None] * count
    if count == 1 and letters[0] in ("A", "B"):
        graded = _graded(choice.get("logprobs"))
        if graded is not None:
            return [graded]
    values = {"A": 1.0, "B": 0.0, SHRUG: math.nan}
    return [None if letter is None else values[letter] for letter in letters]


def _graded(logprobs: Any) -> float | None:
    """The probability of A among A and B, from the first token that could be either."""
    try:
        tokens = logprobs["content"][0]["top_logprobs"]
        mass = {"A": 0.0, "B": 0.0}
        for token in tokens:
            letter = str(token["token"]).strip().upper()
            if letter in mass:
                mass[letter] += math.exp(float(token["logprob"]))
    except (KeyError, IndexError, TypeError, ValueError):
        return None
    total = mass["A"] + mass["B"]
    return mass["A"] / total if total > _MEANT else None


def _asked_for(header: str | None) -> float:
    """Seconds that an endpoint asks to be left alone for."""
    try:
        return max(0.0, float(header)) if header is not None else 0.0
    except ValueError:  # a date: the pause that doubles will do
        return 0.0


def _httpx() -> Any:
    try:
        import httpx2  # noqa: PLC0415 - of the extra nearer[llm]
    except ImportError:
        raise InvalidInput(
            "language models need the package httpx2: pip install 'nearer[llm]'"
        ) from None
    return httpx2
