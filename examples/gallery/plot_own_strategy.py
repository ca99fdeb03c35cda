"""
Writing your own strategy
=========================

An algorithm never asks: it yields questions and is sent answers. So the same dozen lines run
with a formula, a noisy crowd or people who reply days apart; a budget, a memory and a journal can
be added from outside.
"""

# %%
# A *medoid* is the object with the smallest sum of distances to the others. This strategy finds it
# in rounds: in each, random heads compare pairs of candidates, and the worse half is removed.

import matplotlib.pyplot as plt
import numpy as np

import nearer


def find_middle(n_objects, heads=40, random_state=None):
    """Find the object in the middle; a generator of questions."""
    rng = np.random.default_rng(random_state)
    left = rng.permutation(n_objects)
    rounds = [left]
    while len(left) > 1:
        pairs = left[: len(left) // 2 * 2].reshape(-1, 2)
        head = rng.integers(n_objects, size=(len(pairs), heads))
        a, b = (np.repeat(column, heads).reshape(len(pairs), heads) for column in pairs.T)
        questions = np.stack([head, a, b], axis=2).reshape(-1, 3)
        fair = (questions[:, 0] != questions[:, 1]) & (questions[:, 0] != questions[:, 2])
        first_is_nearer = np.zeros(len(questions))
        first_is_nearer[fair] = yield questions[fair]  # ask; go on when the answers are there
        votes = np.where(fair, 2 * first_is_nearer - 1, 0).reshape(len(pairs), heads).sum(axis=1)
        winners = np.where(votes > 0, pairs[:, 0], pairs[:, 1])
        left = rng.permutation(np.append(winners, left[len(pairs) * 2 :]))
        rounds.append(left)
    return int(left[0]), rounds


# %%
# `nearer.run` puts a strategy and an oracle together. Here one answer of ten is wrong.

X = np.random.default_rng(4).gamma(2.0, size=(300, 2))
oracle = nearer.NoisyOracle(nearer.PointOracle(X), flip=0.1, random_state=0)
record = nearer.asking.Record()
middle, rounds = nearer.run(
    nearer.asking.recorded(find_middle(300, random_state=0), record), oracle
)
print(f"{record.n_comparisons} comparisons in {record.n_rounds} rounds")

# %%
# Objects that remain after more rounds are drawn darker.

figure, ax = plt.subplots(figsize=(7, 5))
for step, left in enumerate(rounds[::2]):
    shade = plt.get_cmap("Blues")(0.2 + 0.7 * step / len(rounds[::2]))
    ax.scatter(*X[left].T, s=18 + 14 * step, color=shade, linewidths=0)
ax.scatter(*X[middle], s=160, marker="*", color="#d1495b", zorder=3, label="found")
ax.scatter(*X.mean(axis=0), s=90, marker="+", color="black", zorder=4, label="mean of the points")
ax.set(xticks=[], yticks=[], aspect="equal")
ax.legend(frameon=False)

# %%
# The same strategy can wait for its answers: a `nearer.asking.Session` holds the open questions and
# takes answers in any order, even days later.

session = nearer.asking.Session(find_middle(12, heads=5, random_state=1))
while not session.done:
    waiting = session.open
    session.tell(waiting, nearer.PointOracle(X[:12])(waiting))
print(f"of the first twelve, object {session.result[0]} is in the middle")
