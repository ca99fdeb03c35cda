"""Small embeddings of simulated answers, for tests of what can be done with one."""

import numpy as np

import nearer
from nearer.questions import answered, random_questions

N = 20
NAMES = tuple(f"thing <{i}>" for i in range(N))


def fitted(seed=0, *, n=N, d=2, m=800, flip=0.1, people=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    questions = random_questions(n, m, rng)
    right = nearer.PointOracle(X)(questions)
    rows = answered(questions, right ^ (rng.random(m) < flip))
    who = None if people is None else rng.choice(people, m)
    embedding = nearer.fit(rows, n_components=d, n_objects=n, people=who, random_state=seed)
    return X, embedding
