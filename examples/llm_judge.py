"""A map of animals from the answers of a language model.

    python examples/llm_judge.py --stub                        a simulated model, no key, no cost
    OPENAI_API_KEY=… python examples/llm_judge.py --model gpt-4o-mini --max-cost 1

Every answer is stored in the journal: stop it at any time, and repeat the command to continue.
"""

from __future__ import annotations

import argparse
from contextlib import nullcontext

from stub_server import StubServer

import nearer
from nearer.judges import ChatJudge

# how large and how tame, for the simulated model
ANIMALS = {
    "ant": (0.0, 0.2), "bee": (0.1, 0.5), "beetle": (0.2, 0.1), "mouse": (1.0, 0.7),
    "rat": (1.2, 0.6), "squirrel": (1.3, 0.3), "rabbit": (1.8, 1.3), "cat": (2.0, 1.9),
    "fox": (2.4, 0.4), "dog": (2.6, 2.0), "goat": (3.1, 1.6), "sheep": (3.2, 1.7),
    "wolf": (3.0, 0.1), "pig": (3.4, 1.6), "deer": (3.6, 0.5), "donkey": (4.0, 1.7),
    "cow": (4.4, 1.8), "horse": (4.5, 1.9), "bear": (4.4, 0.0), "elephant": (6.0, 0.9),
}  # fmt: skip


def main(arguments: list[str] | None = None) -> None:
    """Ask, place, say what it cost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stub", action="store_true", help="ask a simulated model")
    parser.add_argument("--model", default="gpt-4o-mini")
    parser.add_argument("--endpoint", default="https://api.openai.com/v1")
    parser.add_argument("--budget", type=int, default=600, help="questions")
    parser.add_argument("--max-cost", type=float, default=1.0, help="money")
    parser.add_argument("--journal", default="animals.db")
    parser.add_argument("--plot", help="write a picture of the map to this file")
    options = parser.parse_args(arguments)

    server = StubServer(ANIMALS, lapse=0.1, bias=0.1) if options.stub else nullcontext()
    with server:
        judge = ChatJudge(
            options.model,
            endpoint=server.url if isinstance(server, StubServer) else options.endpoint,
            key=None if options.stub else "OPENAI_API_KEY",
            question="Which animal is more like a {head}?",
            price=(0.15, 0.60),
        )
        embedding = nearer.embed(
            judge,
            list(ANIMALS),
            budget=options.budget,
            max_in_flight=16,
            max_cost=options.max_cost,
            journal=options.journal,
            random_state=0,
        )
    print(f"{embedding.n_comparisons} answers, {embedding.dimension} dimensions")
    print(judge.report())
    for name, row in zip(embedding.names, embedding.positions, strict=True):
        print(f"{name:>10}", *(f"{x:7.2f}" for x in row))
    if options.plot:
        nearer.plotting.save(embedding.plot(), options.plot)


if __name__ == "__main__":
    main()
