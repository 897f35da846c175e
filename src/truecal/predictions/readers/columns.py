"""Which columns of a file hold labels and predictions, told from their names when the user does not say."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from truecal.errors import InputError

LABELS = (
    "label",
    "labels",
    "y",
    "y_true",
    "target",
    "truth",
    "true_label",
    "class",
    "outcome",
    "event",
    "gold",
)
CORRECT = ("correct", "is_correct", "iscorrect", "was_correct", "correctness")  # rows that are yes-or-no events
SCORES = (
    "p",
    "prob",
    "proba",
    "probs",
    "probability",
    "probabilities",
    "score",
    "scores",
    "risk",
    "y_prob",
    "y_score",
    "y_proba",
)
CONFIDENCES = ("confidence", "conf", "p_true", "p_correct", "stated_confidence")  # that the answer is correct
ANSWERS = ("pred", "prediction", "predicted", "predicted_label", "y_pred", "answer", "response")
LOGITS = ("logit", "logits", "log_odds")
PROB_STEMS = ("p_", "prob_", "proba_", "probs_", "probability_", "y_prob_", "p", "prob", "proba")
LOGIT_STEMS = ("logit_", "logits_", "z_", "logit", "z")


@dataclass(frozen=True)
class Choice:
    """The columns to read: `probs` or `logits`, never both. `named` are the parts that the user named."""

    label: str
    probs: str | Sequence[str] | None
    logits: str | Sequence[str] | None
    named: frozenset[str]

    @property
    def outputs(self) -> str | Sequence[str]:
        """The columns of predictions, of either kind."""
        outputs = self.probs if self.probs is not None else self.logits
        assert outputs is not None
        return outputs

    def describe(self, columns: Sequence[str]) -> str:
        """What was chosen, marking what was told from the names."""
        kind = "probabilities" if self.probs is not None else "logits"
        wanted = self.outputs if isinstance(self.outputs, str) else ", ".join(self.outputs)
        many = sum(fnmatchcase(name, wanted) for name in columns) if "*" in wanted else 1
        shown = f"{wanted!r} ({many} columns)" if many > 1 else repr(wanted)

        def mark(part: str) -> str:
            return "" if part in self.named else " [detected]"

        return f"label {self.label!r}{mark('label')}, {kind} {shown}{mark('predictions')}"


def choose(
    columns: Sequence[str],
    *,
    label: str | None,
    probs: str | Sequence[str] | None,
    logits: str | Sequence[str] | None,
    other: Sequence[str] = (),
    by: Sequence[str] = (),
) -> Choice:
    """Fill in what the user left open, or refuse with the question to answer.

    `other` are columns known to be something else; columns grouped `by` are the label only if no other column can be.

    >>> choose(["y", "p_cat", "p_dog", "site"], label=None, probs=None, logits=None).describe(["y", "p_cat", "p_dog", "site"])
    "label 'y' [detected], probabilities 'p_*' (2 columns) [detected]"
    """
    given = probs if probs is not None else logits
    named = frozenset(name for name, value in (("label", label), ("predictions", given)) if value is not None)
    taken = {given} if given is None or isinstance(given, str) else set(given)
    free = [name for name in columns if name not in {label, *taken, *other}]
    if given is None:
        probs, logits = _predictions([name for name in free if name not in by], columns)
        given = probs if probs is not None else logits
    if label is None:
        # a list holds names, which are not free, and no patterns
        rest = [name for name in free if not (isinstance(given, str) and fnmatchcase(name, given))]
        rest = [name for name in rest if name not in by or not _labels([r for r in rest if r not in by])]
        label = _label(rest, columns, of_confidence=isinstance(given, str) and given.lower() in CONFIDENCES)
    return Choice(label, probs, logits, named)


def choose_predictions(
    columns: Sequence[str], *, probs: str | None, logits: str | None
) -> tuple[str | None, str | None]:
    """(probs, logits) for a file whose labels do not matter; one of the two is None."""
    if probs is None and logits is None:
        return _predictions(columns, columns)
    return probs, logits


def _labels(free: Sequence[str]) -> list[str]:
    return [name for name in free if name.lower() in (*LABELS, *CORRECT)]


def _label(free: Sequence[str], columns: Sequence[str], *, of_confidence: bool) -> str:
    """The label: whether the answer was correct beside a confidence in it, else what was true."""
    correct, truth = ([name for name in free if name.lower() in names] for names in (CORRECT, LABELS))
    labels = (correct or truth) if of_confidence else (truth or correct)
    if len(labels) > 1:
        raise InputError(f"several columns could be the label ({_listed(labels)}); choose one: label= (--label)")
    if not labels:
        raise InputError(
            f"no column is named like a label; name it: label= (--label); the columns are {_listed(columns)}"
        )
    answers = [name for name in free if name.lower() in ANSWERS]
    if of_confidence and not correct and answers:
        raise InputError(
            f"a confidence beside {answers[0]!r} and {labels[0]!r} is that of the answer, not of a class; add a column that says "
            "whether the answer is correct, or name the label: label= (--label)"
        )
    return labels[0]


def _predictions(free: Sequence[str], columns: Sequence[str]) -> tuple[str | None, str | None]:
    for stems, names, is_logits in ((PROB_STEMS, (*SCORES, *CONFIDENCES), False), (LOGIT_STEMS, LOGITS, True)):
        pattern = next((f"{stem}*" for stem in stems if _is_family(free, stem)), None)
        single = [name for name in free if name.lower() in names]
        if pattern is None and len(single) > 1:
            raise InputError(
                f"several columns could be the prediction ({_listed(single)}); choose: score= (--score), probs= (--probs) or "
                "logits= (--logits)"
            )
        wanted = pattern or (single[0] if single else None)
        if wanted is not None:
            return (None, wanted) if is_logits else (wanted, None)
    raise InputError(
        "no column is named like a prediction; name it: score= (--score), probs='p_*' (--probs 'p_*') or logits='z_*' "
        f"(--logits 'z_*'); the columns are {_listed(columns)}"
    )


def _is_family(columns: Sequence[str], stem: str) -> bool:
    """At least two columns p_a, p_b, ...; without a separator (p0, p1, ...) only numbers may follow."""
    rests = [name[len(stem) :] for name in columns if name.startswith(stem) and len(name) > len(stem)]
    return len(rests) > 1 and (stem.endswith("_") or all(rest.isdigit() for rest in rests))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
