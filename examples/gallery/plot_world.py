"""
The world, from comparisons alone
=================================

Five hundred cities. Their positions are not known; all that can be asked is "is city a nearer to
this city than city b is?". The answers give the globe back.
"""

# %%
# The cities are part of the package. Only the oracle knows where they are.

import nearer

cities = nearer.datasets.load_cities()
oracle = nearer.PointOracle(cities.points)
embedding = nearer.embed(oracle, 500, random_state=0)
embedding

# %%
# The estimate of three dimensions is right: the distances are those through the globe. The map
# is aligned with the globe and drawn by latitude and longitude.

nearer.plotting.plot_world(embedding.positions, cities)

# %%
# How well does it rank distances? Kendall's τ between true and estimated distances is 1 if every
# ranking is right.

tau = nearer.metrics.mean_kendall_tau(cities.points, embedding.positions)
all_questions = 500 * 499 * 498 // 2
print(f"τ = {tau:.4f} from {embedding.n_comparisons:,} of {all_questions:,} possible comparisons")
