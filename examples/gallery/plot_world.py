"""
The world, from comparisons alone
=================================

Five hundred cities. Nobody tells where they are; all that can be asked is "is city a nearer to
this city than city b is?". The answers give the globe back.
"""

# %%
# The cities are part of the package. The oracle is the only one who sees where they are.

import nearer

cities = nearer.datasets.load_cities()
oracle = nearer.PointOracle(cities.points)
found = nearer.embed(oracle, 500, random_state=0)
found

# %%
# Three dimensions were found, as it should be: the distances are those through the globe. The map
# is laid over the globe and read as latitude and longitude.

nearer.plotting.plot_world(found.positions, cities)

# %%
# How well does it rank what is near to what? Kendall's τ between true and found distances is 1
# where every ranking is right.

tau = nearer.metrics.mean_kendall_tau(cities.points, found.positions)
all_questions = 500 * 499 * 498 // 2
print(f"τ = {tau:.4f} from {found.n_comparisons:,} of {all_questions:,} possible comparisons")
