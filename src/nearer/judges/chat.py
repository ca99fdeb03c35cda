"""A language model as the judge, over the protocol of OpenAI; see docs/judges.md.

Each object takes one line of the prompt, so that no text can forge an option. Several questions in
one prompt are numbered, and so are the lines of the reply. Only the connection holds the key: if
an endpoint repeats it in an error, it is removed.
"""

from __future__ import annotations

import asyncio
import json
import math
import mimetypes
import os
import re
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nearer import checks
from nearer.asking.protocol import OptionOrder, PricedAnswers, Shown
from nearer.errors import InvalidInput, JudgeError
from nearer.files import data_url, one_message, read_bytes

_PICTURES = {".png", ".jpg", ".jpeg", ".gif", ".webp"}

_TEMPORARY = {408, 409, 425, 429, 500, 502, 503, 504, 529}
_LONGEST_PAUSE = 60.0
_LONGEST_REPLY = 1 << 20  # bytes; an answer takes a few hundred
_UNREADABLE = 20  # replies; a run ends at this many unreadable ones, if they are half of all

_ONE = "Answer with the letter A or B and nothing else."
_SEVERAL = (
    "Answer every question. Write one line for each: its number, a colon, and the letter A or B. "
    "Write nothing else."
)
_AGAIN = "That was not an answer in the form asked for. "
_LETTER = re.compile(r"[\s\"'(*`]*([AB?])[\s\"')*`.]*", re.IGNORECASE)
_LABELLED = re.compile(r"[\s\"'(*`]*([AB])[)*`]*[).:][)*`]*\s.*", re.IGNORECASE)  # "B) dog"
_WORDED = re.compile(
    r".*\b(?:answer|option|choice|letter)\b\W*(?:is\W+)?(?:option\W+)?([AB])\W*", re.IGNORECASE
)
_LINE = re.compile(
    r"\W*(?:question\s*)?(\d{1,9})\s*[:.)][^\w?]*(?:option[^\w?]+)?([AB?])\W*", re.IGNORECASE
)


@dataclass
class ChatReport:
    """The questions, replies and costs of a language model so far.

    Attributes
    ----------
    n_questions
        Questions it was asked.
    n_unsure
        Those without a usable answer, after a second try.
    n_malformed
        Replies that were not in the form asked for.
    n_failed
        Calls that failed and were made again.
    n_calls, tokens_in, tokens_out, cost
        The use and cost of the calls.
    n_read, first
        Answers that could be read, and the sum of those for the option shown first.
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
        """The share of answers that chose the option shown first, minus one half."""
        return self.first / self.n_read - 0.5 if self.n_read else 0.0

    @property
    def position_error(self) -> float:
        """Standard error of the bias, if there were none."""
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
        The question, with ``{head}`` in the place of the head.
    key
        The environment variable that holds the key; None if the endpoint needs none.
    system
        The system prompt.
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
        Seed of the order of the two options, which is drawn for each question.

    Examples
    --------
    >>> from nearer.judges import ChatJudge
    >>> judge = ChatJudge("llama3", endpoint="http://localhost:11434/v1", key=None)
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
        together: int = 1,
        grades: bool = False,
        price: tuple[float, float] = (0.0, 0.0),
        timeout: float = 60.0,
        attempts: int = 6,
        pause: float = 1.0,
        options: dict[str, Any] | None = None,
        random_state: int = 0,
    ) -> None:
        self._where = _server_of(endpoint)
        self.model: str = checks.text("model", model)
        self.question: str = check_question(question)
        self.system: str = checks.text("system", system)
        self.option_order: OptionOrder = OptionOrder(random_state)
        self.block_size: int = checks.whole("together", together)
        if checks.flag("grades", grades) and together > 1:
            rule = "log-probabilities are read for one question a prompt; choose one of them"
            raise InvalidInput(f"grades=True with together={together}: {rule}")
        self._key = checks.title(key, "key")
        if key is not None and not self._secret():
            remedy = "put the key there, name another with key=, or key=None if none is needed"
            raise JudgeError(f"the environment variable {key} is not set: {remedy}")
        self._endpoint, self._grades = endpoint.rstrip("/"), grades
        prices = checks.array("price", price, (2,), "for a million tokens in and out").tolist()
        self._price = tuple(checks.not_negative("price", each) for each in prices)
        self._timeout = checks.positive("timeout", timeout)
        self._attempts = checks.whole("attempts", attempts)
        self._pause = checks.not_negative("pause", pause)
        rule = "fields of the request in JSON, such as {'temperature': 0}, but model and messages"
        self._options = checks.one("options", {} if options is None else options, dict, rule)
        try:
            json.dumps(options, allow_nan=False)
            if self._options.keys() & {"model", "messages"}:
                raise ValueError("these have arguments of their own")
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"options={options!r:.80}: must be {rule} ({error})") from None
        self._counts = ChatReport()
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        return f"ChatJudge({self.model!r}, endpoint={self._where!r})"

    @property
    def about(self) -> dict[str, Any]:
        """The identity of this judge; a journal of another one is refused."""
        return {
            "model": self.model,
            "question": self.question,
            "system": self.system,
            "together": self.block_size,
            "grades": self._grades,
        }

    def expected_cost(self, questions: Sequence[Sequence[Any]]) -> float:
        """What a call for these questions will cost, at four letters a token, without pictures."""
        parts = [part for question in questions for part in self._parts("", Shown(*question))]
        letters = len(self.system + _SEVERAL) + sum(len(x) for x in parts if isinstance(x, str))
        return (letters / 4 * self._price[0] + 2 * len(questions) * self._price[1]) / 1e6

    def report(self) -> ChatReport:
        """The questions, answers and costs so far, and the bias for the first option."""
        return self._counts

    def resume(
        self, answered: Iterable[tuple[Sequence[Any], Any, Any]], calls: int, cost: float
    ) -> None:
        """Count what a journal has, so that the report is that of the whole run."""
        self._counts = ChatReport(n_calls=calls, cost=cost)
        self.option_order.restart()
        for question, answer, _ in answered:
            shown = self.option_order.show(question)
            self._count([None if answer is None else float(shown.answer(answer))])

    def request(self, shown: Sequence[Shown], *, again: bool = False) -> dict[str, Any]:
        """The body of a request that asks these questions."""
        rule = _ONE if len(shown) == 1 else _SEVERAL
        parts: list[str | Path] = []
        for number, one in enumerate(shown, 1):
            parts += self._parts("" if len(shown) == 1 else f"{number}. ", one)
        content: Any = "".join(map(str, parts)).strip()  # only words, for every endpoint
        if any(isinstance(part, Path) for part in parts):
            content = [_part(part) for part in parts]
        messages = [
            {"role": "system", "content": f"{self.system} {_AGAIN if again else ''}{rule}"},
            {"role": "user", "content": content},
        ]
        grades = {"logprobs": True, "top_logprobs": 5} if self._grades else {}
        return {"model": self.model, "messages": messages, **grades, **self._options}

    def _parts(self, number: str, one: Shown) -> list[str | Path]:
        """The words and pictures that show one question."""
        pictured = _is_picture(one.head)
        asked = self.question.format(head="this picture" if pictured else one_line(one.head))
        parts: list[str | Path] = [f"{number}{asked}\n", *([one.head] if pictured else [])]
        for letter, thing in (("A", one.first), ("B", one.second)):
            picture = [f"{letter}:", thing]
            parts += picture if _is_picture(thing) else [f"{letter}: {one_line(thing)}\n"]
        return parts

    async def __call__(self, questions: Sequence[Sequence[Any]]) -> PricedAnswers:
        """Ask questions in one call, or two if a reply cannot be read."""
        shown = [self.option_order.show(question) for question in questions]
        firsts, cost = await self._ask(shown, again=False)
        unread = [i for i, first in enumerate(firsts) if first is None]
        if unread:
            second, more = await self._ask([shown[i] for i in unread], again=True)
            cost += more
            for i, first in zip(unread, second, strict=True):
                firsts[i] = first
        self._count(firsts)
        answers = [
            None if first is None or math.isnan(first) else one.answer(first)
            for one, first in zip(shown, firsts, strict=True)
        ]
        return PricedAnswers(answers, cost=cost)

    def _count(self, firsts: list[float | None]) -> None:
        read = [first for first in firsts if first is not None and not math.isnan(first)]
        counts = self._counts
        counts.n_questions += len(firsts)
        counts.n_read += len(read)
        counts.first += sum(read)
        counts.n_unsure += len(firsts) - len(read)

    async def _ask(self, shown: list[Shown], *, again: bool) -> tuple[list[float | None], float]:
        """For each question the probability of the first option, and the cost of the call."""
        reply = await self._post(self.request(shown, again=again))
        usage = reply.get("usage") if isinstance(reply, dict) else None
        used = usage if isinstance(usage, dict) else {}
        tokens: list[Any] = [used.get(name) for name in ("prompt_tokens", "completion_tokens")]
        if not all(isinstance(count, int) and 0 <= count <= sys.maxsize for count in tokens):
            if any(self._price):
                rule = "its two counts of tokens must be whole numbers from 0; leave out price="
                raise JudgeError(f"{self._where} says usage={usage!r:.80}: {rule}")
            tokens = [0, 0]
        cost = (tokens[0] * self._price[0] + tokens[1] * self._price[1]) / 1e6
        self._counts.n_calls += 1
        self._counts.tokens_in += tokens[0]
        self._counts.tokens_out += tokens[1]
        self._counts.cost += cost
        firsts = first_options(reply, len(shown))
        if None in firsts:
            self._note_unreadable(reply)
        return firsts, cost

    def _note_unreadable(self, reply: Any) -> None:
        """Count a reply without an answer; if most are such, the run ends."""
        self._counts.n_malformed += 1
        bad, calls = self._counts.n_malformed, self._counts.n_calls
        if bad >= max(_UNREADABLE, calls / 2):
            said = reply.get("choices", reply) if isinstance(reply, dict) else reply
            last = self._without_key(repr(said))[:300]
            what = f"{bad} of the {calls} replies of {self._where} are no answers"
            remedy = "mend question= or system=, or take another model"
            raise JudgeError(f"{what}, the last is {last}; {remedy}")

    async def _post(self, body: dict[str, Any]) -> Any:
        """The reply to a request, which is repeated after temporary failures."""
        with one_message(self._where, "a language model"):
            import httpx2 as httpx  # noqa: PLC0415 - an extra
            import tenacity  # noqa: PLC0415
        doubling = tenacity.wait_random_exponential(self._pause, max=_LONGEST_PAUSE)

        def wait(state: Any) -> float:
            asked = state.outcome.exception().retry_after
            return float(max(doubling(state), min(asked, _LONGEST_PAUSE)))

        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(_Unavailable),
            stop=tenacity.stop_after_attempt(self._attempts),
            wait=wait,
            reraise=True,
        )
        try:
            return await retrying(self._post_once, httpx, body)
        except _Unavailable as error:
            what = f"gave no answer in {self._attempts} attempts (the last: {error})"
            remedy = "check the address, lower max_in_flight, or try later; a journal loses nothing"
            raise JudgeError(f"{self._where} {what}; {remedy}") from None

    async def _post_once(self, httpx: Any, body: dict[str, Any]) -> Any:
        url, data = f"{self._endpoint}/chat/completions", b""
        try:
            call = self._connected(httpx).stream("POST", url, json=body)
            async with asyncio.timeout(self._timeout), call as reply:
                async for part in reply.aiter_bytes():
                    data += part
                    if len(data) > _LONGEST_REPLY:
                        remedy = "check the address, or lower max_tokens in options="
                        raise JudgeError(
                            f"{self._where} replies with over {_LONGEST_REPLY:,} bytes; {remedy}"
                        )
            if reply.status_code == 200:
                return json.loads(data)
            if reply.status_code not in _TEMPORARY:
                said = self._without_key(" ".join(data.decode("utf-8", "replace").split()))[:200]
                remedy = "check the model's name and the request"
                if reply.status_code in (401, 403):
                    remedy = f"check the key in the environment variable {self._key}"
                why = f"HTTP {reply.status_code}: {said}"
                raise JudgeError(f"{self._where} refuses ({why}); {remedy}")
            failure = _Unavailable(f"HTTP {reply.status_code}", reply.headers.get("retry-after"))
        except (httpx.TransportError, TimeoutError) as error:
            trouble = f"{type(error).__name__}: {self._without_key(str(error))}".rstrip(": ")
            failure = _Unavailable(trouble)
        except (ValueError, RecursionError):
            failure = _Unavailable("its reply is no JSON")
        self._counts.n_failed += 1
        raise failure

    def _secret(self) -> str:
        """The key, checked here because the client's error about a bad header would show it."""
        secret = os.environ.get(self._key, "") if self._key else ""
        if not (secret.isascii() and secret.isprintable()) or " " in secret:
            rule = "holds a character that no key has; set it without, as in $(cat key.txt)"
            raise JudgeError(f"the key in the environment variable {self._key} {rule}")
        return secret

    def _without_key(self, text: str) -> str:
        secret = self._secret()
        return text.replace(secret, "[key]") if secret else text

    def _connected(self, httpx: Any) -> Any:
        """The connections of this event loop."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            secret = self._secret()
            self._loop = loop
            self._client = httpx.AsyncClient(
                headers={"Authorization": f"Bearer {secret}"} if secret else {},
                timeout=None,  # `_post_once` limits the time of the whole reply
                limits=httpx.Limits(max_connections=None),
            )
        return self._client

    async def aclose(self) -> None:
        """Close the connections; the next call opens new ones."""
        if self._client is not None and self._loop is asyncio.get_running_loop():
            await self._client.aclose()
        self._client = None


class _Unavailable(Exception):
    """A temporary failure of the endpoint, which may say how many seconds it lasts."""

    def __init__(self, trouble: str, retry_after: str | None = None) -> None:
        super().__init__(trouble)
        try:
            self.retry_after = max(0.0, float(retry_after or 0.0))
        except ValueError:  # it is a date: the doubling pause is enough
            self.retry_after = 0.0


def _server_of(endpoint: str) -> str:
    """The server of an address, without parts that may be secret."""
    try:
        parts = urlsplit(endpoint)
        server = f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}"
    except (ValueError, TypeError, AttributeError):  # port not a number, or address not a text
        server = ""
    if not re.match("https?://(?!None)", server) or not endpoint.isprintable():
        rule = "must be an address that begins with http:// or https://"
        raise InvalidInput(f"endpoint={endpoint!r}: {rule}")
    return server


def first_options(reply: Any, count: int) -> list[float | None]:
    """The probability of each first option in a reply; NaN: don't know, None: unreadable."""
    try:
        choice = reply["choices"][0]
        letters = read_letters(choice["message"]["content"], count)
    except (KeyError, IndexError, TypeError):
        return [None] * count
    if count == 1 and letters[0] in ("A", "B"):
        graded = _graded(choice.get("logprobs"))
        if graded is not None:
            return [graded]
    values = {"A": 1.0, "B": 0.0, "?": math.nan, None: None}
    return [values[letter] for letter in letters]


def read_letters(reply: Any, count: int) -> list[str | None]:
    """The letter given to each question, ``"?"`` for don't know, None if unreadable."""
    if not isinstance(reply, str):
        return [None] * count
    lines = _lines(reply, keyed=count > 1)
    if count == 1:  # the last line, or else the only letter in any line
        each = [_read_letter(line, alone=len(lines) == 1) for line in lines] or [None]
        different = {letter for letter in each if letter is not None}
        return [each[-1] or (different.pop() if len(different) == 1 else None)]
    answers: dict[int, set[str]] = {}
    for line in lines:
        match = _LINE.fullmatch(line)
        if match:
            answers.setdefault(int(match[1]), set()).add(match[2].upper())
    letters = [answers.get(number, set()) for number in range(1, count + 1)]
    return [next(iter(named)) if len(named) == 1 else None for named in letters]


def _lines(reply: str, keyed: bool) -> list[str]:
    """The lines of a reply after its thoughts; of a JSON object its values, perhaps with keys."""
    text = reply.rpartition("</think>")[2]
    try:
        fields = json.loads(text[text.index("{") : text.rindex("}") + 1])
    except (ValueError, RecursionError):
        return [line for line in text.splitlines() if re.search(r"[\w?]", line)]
    return [f"{key}: {value}" if keyed else str(value) for key, value in fields.items()]


def _read_letter(line: str, alone: bool) -> str | None:
    """The letter of a line, as "B" or "the answer is B"; of a line `alone` also before a colon."""
    if len(set(re.findall(r"\b[AB]\b", line))) > 1:
        return None
    match = _LETTER.fullmatch(line) or _WORDED.fullmatch(line)
    match = match or (_LABELLED.fullmatch(line) if alone else None)
    return match[1].upper() if match else None


def one_line(thing: Any) -> str:
    """A text without what could begin another line, or move a terminal's cursor."""
    return " ".join(checks.UNREADABLE.sub(" ", str(thing)).split())


def _graded(logprobs: Any) -> float | None:
    """The probability of A among A and B, from the first token that could be either."""
    try:
        tokens = logprobs["content"][0]["top_logprobs"]
        mass = {"A": 0.0, "B": 0.0}
        for token in tokens:
            letter = str(token["token"]).strip().upper()
            if letter in mass:
                mass[letter] += math.exp(float(token["logprob"]))
    except (KeyError, IndexError, TypeError, ValueError, OverflowError):
        return None
    total = mass["A"] + mass["B"]
    # Below one half the reply probably was something else.
    return mass["A"] / total if total > 0.5 else None


def _is_picture(thing: Any) -> bool:
    return isinstance(thing, Path) and thing.suffix.lower() in _PICTURES


def check_question(question: str) -> str:
    """The words of a question, which must have a place for the head."""
    checks.text("question", question)
    with suppress(KeyError, IndexError, ValueError):
        if question.format(head="\0") != question.format(head=""):
            return question
    rule = "must hold {head} and no other braces, such as 'Which is more like {head}?'"
    raise InvalidInput(f"question={question!r}: {rule}")


def _part(part: str | Path) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    url = data_url(read_bytes(part), mimetypes.guess_type(part.name)[0] or "")
    return {"type": "image_url", "image_url": {"url": url}}
