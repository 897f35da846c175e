"""The graph counterparts of `outputs`: model outputs as logits, probabilities and one score per class."""

from truecal.recalibrate.export.graph import Value
from truecal.recalibrate.solvers.likelihood import LOG_ZERO


def traced_logits(outputs: Value, kind: str) -> Value:
    """One logit per class: the logits themselves, or the logarithms of probabilities; at least the logarithm of zero."""
    return outputs if kind == "logits" else outputs.log().at_least(LOG_ZERO)


def traced_floor(logits: Value, floor: float) -> Value:
    """Logits, none of them more than `floor` below its row's largest."""
    return logits.at_least(logits.max() - floor)


def traced_probs(outputs: Value, kind: str) -> Value:
    """Class probabilities."""
    return outputs if kind == "probs" else outputs.softmax()


def traced_scores(outputs: Value, kind: str, count: int) -> Value:
    """One score per class: its probability, or from logits its log odds against the rest (see `class_scores`)."""
    if kind == "probs":
        return outputs
    if count == 2:
        difference = outputs.column(1) - outputs.column(0)
        return (-difference).beside(difference)
    leads = outputs.is_largest(count)
    peak = outputs.max()
    mass = (outputs - peak).exp()
    rest = leads.where(1.0, mass.sum() - mass)
    others = leads.where(4 * LOG_ZERO, outputs)
    second = others.max()
    of_leader = peak - second - (others - second).exp().sum().log()
    return leads.where(of_leader, outputs - peak - rest.log())
