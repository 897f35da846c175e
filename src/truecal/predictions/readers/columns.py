"""Which columns of a file hold labels and predictions, told from their names when the user does not say."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from truecal.errors import InputError

LABELS = ("label", "labels", "y", "y_true", "target", "truth", "true_label", "class", "outcome", "gold")
SCORES = ("p", "prob", "proba", "probs", "probability", "score", "scores", "y_prob", "y_score", "y_proba")
LOGITS = ("logit", "logits", "log_odds")
PROB_STEMS = ("p_", "prob_", "proba_", "probs_", "probability_", "y_prob_", "p", "prob", "proba")
LOGIT_STEMS = ("logit_", "logits_", "z_", "logit", "z")


@dataclass(frozen=True)
class Choice:
    """The columns to read: `probs` or `logits`, never both. `said` are the parts the user named."""

    label: str
    probs: str | None
    logits: str | None
    said: frozenset[str]

    def describe(self, columns: Sequence[str]) -> str:
        """What was chosen, marking what was told from the names."""
        wanted = self.probs if self.probs is not None else self.logits
        assert wanted is not None
        kind = "probabilities" if self.probs is not None else "logits"
        many = sum(fnmatchcase(name, wanted) for name in columns) if "*" in wanted else 1
        columns_said = f"{wanted!r} ({many} columns)" if many > 1 else repr(wanted)

        def mark(part: str) -> str:
            return "" if part in self.said else " [detected]"

        return f"label {self.label!r}{mark('label')}, {kind} {columns_said}{mark('predictions')}"


def choose(
    columns: Sequence[str], *, label: str | None, probs: str | None, logits: str | None, other: Sequence[str] = ()
) -> Choice:
    """Fill in what the user left open, or refuse with the question to answer. `other` are columns known to be something else.

    >>> choose(["y", "p_cat", "p_dog", "site"], label=None, probs=None, logits=None).describe(["y", "p_cat", "p_dog", "site"])
    "label 'y' [detected], probabilities 'p_*' (2 columns) [detected]"
    """
    said = {name for name, given in (("label", label), ("predictions", probs or logits)) if given is not None}
    free = [name for name in columns if name not in {label, probs, logits, *other}]
    if probs is None and logits is None:
        probs, logits = _predictions(free, columns)
    if label is None:
        taken = {name for name in free if any(w is not None and fnmatchcase(name, w) for w in (probs, logits))}
        label = _label([name for name in free if name not in taken], columns)
    return Choice(label, probs, logits, frozenset(said))


def choose_predictions(
    columns: Sequence[str], *, probs: str | None, logits: str | None
) -> tuple[str | None, str | None]:
    """(probs, logits) for a file whose labels do not matter; one of the two is None."""
    if probs is None and logits is None:
        return _predictions(columns, columns)
    return probs, logits


def _label(free: Sequence[str], columns: Sequence[str]) -> str:
    found = [name for name in free if name.lower() in LABELS]
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError(f"several columns could be the label ({_listed(found)}); choose one with --label")
    raise InputError(f"no column is named like a label; name it with --label (columns: {_listed(columns)})")


def _predictions(free: Sequence[str], columns: Sequence[str]) -> tuple[str | None, str | None]:
    for stems, names, is_logits in ((PROB_STEMS, SCORES, False), (LOGIT_STEMS, LOGITS, True)):
        pattern = next((f"{stem}*" for stem in stems if _is_family(free, stem)), None)
        single = [name for name in free if name.lower() in names]
        if pattern is None and len(single) > 1:
            raise InputError(
                f"several columns could be the prediction ({_listed(single)}); choose with --score, --probs or --logits"
            )
        wanted = pattern or (single[0] if single else None)
        if wanted is not None:
            return (None, wanted) if is_logits else (wanted, None)
    raise InputError(
        f"no column is named like a prediction; use --score, --probs 'p_*' or --logits 'z_*' (columns: {_listed(columns)})"
    )


def _is_family(columns: Sequence[str], stem: str) -> bool:
    """At least two columns p_a, p_b, ...; without a separator (p0, p1, ...) only numbers may follow."""
    rests = [name[len(stem) :] for name in columns if name.startswith(stem) and len(name) > len(stem)]
    return len(rests) > 1 and (stem.endswith("_") or all(rest.isdigit() for rest in rests))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
