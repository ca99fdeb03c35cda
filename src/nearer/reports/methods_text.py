"""What was done, in the words of a methods section, and whom to cite for it."""

from __future__ import annotations

from typing import Any

from nearer import __version__
from nearer.embedding import Embedding
from nearer.wording import amount

__all__ = ["by_reliability", "held_fixed", "methods_text", "rates_people", "references"]

_REFERENCES = {
    "wilson": "Wilson, E. B. (1927). Probable inference, the law of succession, and statistical "
    "inference. Journal of the American Statistical Association, 22, 209–212.",
    "soe": "Terada, Y., and von Luxburg, U. (2014). Local ordinal embedding. Proceedings of the "
    "31st International Conference on Machine Learning, 847–855.",
    "ckl": "Tamuz, O., Liu, C., Belongie, S., Shamir, O., and Kalai, A. T. (2011). Adaptively "
    "learning the crowd kernel. Proceedings of the 28th International Conference on Machine "
    "Learning, 673–680.",
    "gnmds": "Agarwal, S., Wills, J., Cayton, L., Lanckriet, G., Kriegman, D., and Belongie, S. "
    "(2007). Generalized non-metric multidimensional scaling. Proceedings of the Eleventh "
    "International Conference on Artificial Intelligence and Statistics, 11–18.",
    "ste": "van der Maaten, L., and Weinberger, K. (2012). Stochastic triplet embedding. IEEE "
    "International Workshop on Machine Learning for Signal Processing, 1–6.",
    "basis": "Anderton, J., Pavlu, V., and Aslam, J. (2018). Revealing the basis: Ordinal "
    "embedding through geometry.",
    "luce": "Luce, R. D. (1959). Individual choice behavior: A theoretical analysis. Wiley.",
}
_REFERENCES["tste"] = _REFERENCES["ste"]
_LOSSES = {
    "soe": "soft ordinal embedding (Terada and von Luxburg, 2014)",
    "ckl": "the crowd kernel's likelihood (Tamuz et al., 2011)",
    "gnmds": "generalised non-metric multidimensional scaling (Agarwal et al., 2007)",
    "ste": "stochastic triplet embedding (van der Maaten and Weinberger, 2012)",
    "tste": "stochastic triplet embedding with Student's t (van der Maaten and Weinberger, 2012)",
}

_UNCERTAIN = {
    "the posterior": "its posterior covariance, the other objects held fixed",
    "answers drawn again": "its covariance over fits to answers drawn again (a bootstrap)",
    "other maps that obey": "its covariance over other maps that obey all answers, too",
}


def _spread_by(found: Embedding) -> str:
    known = "the posterior" if _method(found) == "noisy" else ""
    return str(found.details.get("covariances_by", known))


def _method(found: Embedding) -> str:
    """How positions were found; nothing where that was not recorded."""
    phases = {phase.name for phase in found.history}
    if "method" in found.details:
        return str(found.details["method"])
    if "posterior" in found.details:
        return "noisy"
    if "crowd kernel" in phases:
        return "ckl"
    if "loss" in found.details:
        return "soe"
    if "basis" in phases:
        return "basis"
    return "centre" if phases else ""


def _tail(found: Embedding) -> float:
    """Degrees of freedom of the t curve; 0 where distances count as they are."""
    posterior: Any = found.details.get("posterior")
    return 0.0 if posterior is None else float(posterior.noise.tail)


def _counted(tail: float) -> str:
    if not tail:
        return "the difference of the two distances, but for a share of lapses"
    return (
        "the difference of the two distances, each δ of which counts as (α + 1)/2 · log(1 + δ²/α) "
        f"with α = {tail:g}, the heavy tail of Student's t (van der Maaten and Weinberger, 2012)"
    )


def rates_people(found: Embedding) -> bool:
    """Whether the method counts answers by who gave them."""
    return _method(found) == "noisy"


def by_reliability(found: Embedding) -> str:
    """What is to be said of shares in which people count by their rating."""
    rated = rates_people(found) and found.details.get("reliability") is not None
    return ", each answer counted by the reliability of its person" if rated else ""


def held_fixed(found: Embedding) -> str:
    """What is to be said of uncertainties that know nothing of other objects'."""
    return ", the others held fixed" if _spread_by(found) == "the posterior" else ""


def references(found: Embedding) -> list[str]:
    """The works that the text cites, in order of their authors."""
    method = _method(found)
    cited = {method} & _REFERENCES.keys()
    if method == "noisy":
        cited |= {"luce", "tste"} if _tail(found) else {"luce"}
    if found.held_out is not None or found.people is not None:
        cited.add("wilson")
    own = f"The nearer developers. nearer, version {__version__} [computer software]."
    return sorted([own, *(_REFERENCES[key] for key in cited)], key=str.casefold)


def methods_text(found: Embedding) -> str:
    """A paragraph for a methods section."""
    n, d = len(found.positions), found.dimension
    method, held_out = _method(found), found.held_out is not None
    words = [
        f"The {n:,} objects were placed in {amount(d, 'dimension')} by ordinal "
        f"embedding of {amount(found.n_comparisons, 'answer')} with nearer, version {__version__}."
    ]
    if found.chosen and found.history:
        at_random = all(phase.name == "random" for phase in found.history)
        how = "drawn at random" if at_random else "chosen from the answers so far, round by round"
        words.append(f"The questions were {how}.")
    if method == "noisy":
        words.append(
            "Answers were taken to follow a choice rule (Luce, 1959): the nearer of two objects "
            f"is chosen with a probability that grows with {_counted(_tail(found))}; positions had "
            "a Gaussian prior. Positions are the most probable ones."
        )
        if held_out:
            words.append(
                "The width of the prior, the rate of lapses, the steepness of predictions and the "
                "way in which distances count were chosen by answers held out, all answers about "
                "the same three objects together."
            )
    elif method == "centre":
        words.append(
            "Positions are in the middle of what the answers allow: those of a logistic loss of "
            "the difference of the two distances, with a wide Gaussian prior."
        )
    elif method == "basis":
        words.append(
            "Positions are coordinates on axes that rankings of the objects show (Anderton, Pavlu "
            "and Aslam, 2018)."
        )
    elif method in _LOSSES:
        obeyed = ", which obeys all of them" if found.error_rate == 0 else ""
        words.append(f"Positions minimise the loss of {_LOSSES[method]}{obeyed}.")
    if held_out and any("probability" in x for x in found.evidence.values()):
        words.append(
            "The number of dimensions was estimated by how well answers held out were predicted in "
            "each, with a probability for each number of dimensions."
        )
    if found.held_out is not None and found.held_out.is_guessing:
        words.append(
            "Answers held out were predicted no better than by guessing, so that neither the "
            "positions nor their number of dimensions are established."
        )
    if method == "noisy" and found.details.get("reliability") is not None:
        words.append(
            "Each person was rated by how well their answers were predicted by fits that had seen "
            "none about the same three objects, and their answers counted by that rating; those "
            "of people who contradicted the others counted nothing."
        )
    if found.covariances is not None and (by := _UNCERTAIN.get(_spread_by(found))):
        words.append(f"The uncertainty of a position is {by}.")
    if found.held_out is not None or found.people is not None:
        words.append("Intervals of shares hold 95 % (Wilson, 1927), taking answers as independent.")
    return " ".join(words)
