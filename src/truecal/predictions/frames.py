"""Which columns of a file hold labels and predictions, detected by name unless the user names them."""

import shlex
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase, translate
from re import compile as pattern
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from truecal.digits import count_of
from truecal.errors import InputError, TruecalWarning, printable
from truecal.names import did_you_mean
from truecal.predictions.files import NA_WORDS
from truecal.predictions.validation import LARGEST_EXACT, SUSPICIOUS_ROWS, shown, spells_number

if TYPE_CHECKING:
    import narwhals as nw


# ----------------------------------------------------------------------------------------------------
# Which columns of a file hold labels and predictions, detected by name unless the user names them

LABELS = ("label", "labels", "y", "y_true", "target", "truth", "true_label", "class", "outcome", "event", "gold")
CORRECT = ("correct", "is_correct", "iscorrect", "was_correct", "correctness")  # rows that are yes-or-no events
SCORES = (
    *("p", "prob", "proba", "probs", "probability", "probabilities", "score", "scores", "risk"),
    *("y_prob", "y_score", "y_proba"),
)
CONFIDENCES = ("confidence", "conf", "p_true", "p_correct", "stated", "stated_confidence")  # that the answer is correct
ANSWERS = ("pred", "prediction", "predicted", "predicted_label", "y_pred", "answer", "response")
LOGITS = ("logit", "logits", "log_odds")
SCORE_ENDINGS = ("_prob", "_proba", "_probability", "_score", "_risk", "_confidence")
PROB_STEMS = ("p_", "prob_", "proba_", "probs_", "probability_", "y_prob_", "p", "prob", "proba")
LOGIT_STEMS = ("logit_", "logits_", "z_", "logit", "z")


@dataclass(frozen=True)
class ColumnChoice:
    """The columns to read: the label, and `probs` or `logits` (a name, a pattern with a star or a list), the other being None.

    `named` holds "label" and "predictions", where the user named these.
    """

    label: str
    probs: str | Sequence[str] | None
    logits: str | Sequence[str] | None
    named: frozenset[str]

    @property
    def outputs(self) -> str | Sequence[str]:
        """The columns of predictions: `probs` if given, else `logits`.

        >>> ColumnChoice("y", "p_*", None, frozenset()).outputs
        'p_*'
        """
        outputs = self.probs if self.probs is not None else self.logits
        assert outputs is not None
        return outputs

    def describe(self, columns: Sequence[str]) -> str:
        """Describe the chosen columns: "label 'y' [detected], probabilities 'p_*' (2 columns)".

        " [detected]" marks those found by name; `columns` are counted that match a pattern.

        >>> ColumnChoice("y", "p_*", None, frozenset(["label"])).describe(["y", "p_a", "p_b"])
        "label 'y', probabilities 'p_*' (2 columns) [detected]"
        """
        kind = "probabilities" if self.probs is not None else "logits"
        pattern = self.outputs if isinstance(self.outputs, str) else ", ".join(self.outputs)
        matches = sum(fnmatchcase(name, pattern) for name in columns) if "*" in pattern else 1
        columns_text = f"{pattern!r} ({matches} columns)" if matches > 1 else repr(pattern)

        def mark(part: str) -> str:
            """Return " [detected]" unless the user named this part."""
            return "" if part in self.named else " [detected]"

        return f"label {self.label!r}{mark('label')}, {kind} {columns_text}{mark('predictions')}"


def choose(
    columns: Sequence[str],
    *,
    label: str | None,
    probs: str | Sequence[str] | None,
    logits: str | Sequence[str] | None,
    other: Sequence[str] = (),
    by: Sequence[str] = (),
    score_like: "Callable[[Sequence[str]], list[str]] | None" = None,
    label_like: "Callable[[Sequence[str]], list[str]] | None" = None,
) -> ColumnChoice:
    """Choose the label and prediction columns that are not named, or refuse with the question to answer.

    `other` are columns known to be something else; columns grouped `by` are the label only if no other column can be. Where no
    name is recognised, `score_like` and `label_like` map names to those whose values could be scores or labels.

    >>> choose(["y", "p_cat", "p_dog", "site"], label=None, probs=None, logits=None).describe(["y", "p_cat", "p_dog", "site"])
    "label 'y' [detected], probabilities 'p_*' (2 columns) [detected]"
    """
    outputs = probs if probs is not None else logits
    named = frozenset(name for name, value in (("label", label), ("predictions", outputs)) if value is not None)
    named_outputs = {outputs} if outputs is None or isinstance(outputs, str) else set(outputs)
    free = [name for name in columns if name not in {label, *named_outputs, *other}]
    if outputs is None:
        probs, logits = _choose_outputs([name for name in free if name not in by], columns, score_like)
        outputs = probs if probs is not None else logits
    if label is None:
        # a list holds names, which are not free, and no patterns
        candidates = [name for name in free if not (isinstance(outputs, str) and fnmatchcase(name, outputs))]
        not_grouped = [name for name in candidates if name not in by]
        if any(plain_name(name) in (*LABELS, *CORRECT) for name in not_grouped):
            candidates = not_grouped
        of_confidence = isinstance(outputs, str) and plain_name(outputs) in CONFIDENCES
        label = _choose_label(candidates, columns, label_like, of_confidence=of_confidence)
    return ColumnChoice(label, probs, logits, named)


def choose_predictions(
    columns: Sequence[str], *, probs: str | Sequence[str] | None, logits: str | None
) -> tuple[str | Sequence[str] | None, str | None]:
    """Choose (probs, logits) of a file without labels, one of which is None: those given, else columns found by name.

    Known names are those of `_choose_outputs`, such as p_*, score, confidence or logit; refuse none and several.

    >>> choose_predictions(["id", "p_cat", "p_dog"], probs=None, logits=None), choose_predictions(["id"], probs="s", logits=None)
    (('p_*', None), ('s', None))
    """
    if probs is None and logits is None:
        return _choose_outputs(columns, columns)
    return probs, logits


def _choose_label(
    free: Sequence[str],
    columns: Sequence[str],
    label_like: "Callable[[Sequence[str]], list[str]] | None",
    *,
    of_confidence: bool,
) -> str:
    """Return the label among the `free` columns by name; where none is recognised, the only one of `label_like`.

    Names in CORRECT ("correct", "is_correct", ...) precede those in LABELS ("y", "label", "target", ...) if the prediction is a
    confidence in an answer, else follow them. Refuses none, several, and a confidence beside an answer and its true value.
    `columns` are listed in the refusal.

    >>> _choose_label(["label", "id"], ["label", "id"], None, of_confidence=False)
    'label'
    """
    correct, truth = ([name for name in free if plain_name(name) in names] for names in (CORRECT, LABELS))
    labels = (correct or truth) if of_confidence else (truth or correct)
    if len(labels) > 1:
        raise InputError(
            f"several columns could be the label ({_join_names(labels)}); choose one: label= (--label)",
            options=f"--label {labels[0]}",
        )
    if not labels:
        several = [name for name in columns if name.startswith("y_") and f"p_{name[2:]}" in columns]
        if len(several) > 1:
            raise InputError(
                f"{_join_names(several)} are labels with a probability each (p_*): read several labels per row by "
                "multilabel=True (--multilabel), or name one: label= (--label)",
                options="--multilabel",
            )
        candidates = [] if label_like is None else label_like(free)
        if len(candidates) == 1:
            return candidates[0]
        hint = f"; with two values each: {_join_names(candidates)}" if candidates else ""
        raise InputError(
            f"no column is named like a label; name it: label= (--label); the columns are {_join_names(columns)}{hint}",
            options=f"--label {candidates[0]}" if candidates else "",
        )
    answers = [name for name in free if plain_name(name) in ANSWERS]
    if of_confidence and not correct and answers:
        raise InputError(
            f"a confidence beside {answers[0]!r} and {labels[0]!r} is that of the answer, not of a class; add a column that says "
            "whether the answer is correct, or name the label: label= (--label)"
        )
    return labels[0]


def _choose_outputs(
    free: Sequence[str],
    columns: Sequence[str],
    score_like: "Callable[[Sequence[str]], list[str]] | None" = None,
) -> tuple[str | None, str | None]:
    """Choose the columns of predictions by name: (probabilities, None) or (None, logits); refuse none or several.

    In this order: a family such as p_*, a name of SCORES ("p", "score", ...) or CONFIDENCES ("confidence", ...), the same for
    logits, a single name such as prob_x or x_score, the only column of `score_like`. `columns` are listed in the refusal.

    >>> _choose_outputs(["p_cat", "p_dog"], []), _choose_outputs(["score"], []), _choose_outputs(["logit"], [])
    (('p_*', None), ('score', None), (None, 'logit'))
    """
    for stems, names, is_logits in ((PROB_STEMS, (*SCORES, *CONFIDENCES), False), (LOGIT_STEMS, LOGITS, True)):
        pattern = next((f"{stem}*" for stem in stems if _is_family(free, stem)), None)
        single = [name for name in free if plain_name(name) in names]
        if pattern is None and len(single) > 1:
            raise InputError(
                f"several columns could be the prediction ({_join_names(single)}); choose: score= (--score), probs= (--probs) or "
                "logits= (--logits)",
                options=f"--score {single[0]}",
            )
        chosen = pattern or (single[0] if single else None)
        if chosen is not None:
            return (None, chosen) if is_logits else (chosen, None)
    prefixes = tuple(stem for stem in PROB_STEMS if stem.endswith("_"))
    affixed = [
        name for name in free if plain_name(name).startswith(prefixes) or plain_name(name).endswith(SCORE_ENDINGS)
    ]
    candidates = affixed if len(affixed) == 1 or score_like is None else score_like(affixed or free)
    if len(candidates) == 1:
        return candidates[0], None
    hint = f"; with numbers from 0 to 1: {_join_names(candidates)}" if candidates else ""
    raise InputError(
        "no column is named like a prediction; name it: score= (--score), probs='p_*' (--probs 'p_*') or logits='z_*' "
        f"(--logits 'z_*'); the columns are {_join_names(columns)}{hint}",
        options=f"--score {candidates[0]}" if candidates else "",
    )


def plain_name(name: str) -> str:
    """Return a name in lower case with "_" for spaces and hyphens, as names of columns are compared.

    >>> plain_name("Predicted Risk")
    'predicted_risk'
    """
    return name.strip().lower().replace(" ", "_").replace("-", "_")


def _is_family(columns: Sequence[str], stem: str) -> bool:
    """Whether two or more columns share a stem (p_a, p_b, ...); if the stem has no "_" (p0, p1, ...), only digits may follow.

    >>> _is_family(["p_cat", "p_dog"], "p_"), _is_family(["p0", "p1"], "p"), _is_family(["pa", "pb"], "p")
    (True, True, False)
    """
    suffixes = [name[len(stem) :] for name in columns if name.startswith(stem) and len(name) > len(stem)]
    return len(suffixes) > 1 and (stem.endswith("_") or all(suffix.isdigit() for suffix in suffixes))


def _join_names(names: Sequence[str], limit: int = 12) -> str:
    """Join the first `limit` names by commas, followed by ", ..." if there are more.

    >>> _join_names(["a", "b", "c"], 2)
    'a, b, ...'
    """
    return ", ".join(map(_shorten_name, names[:limit])) + (", ..." if len(names) > limit else "")


def _shorten_name(name: str) -> str:
    """Escape control characters in a name and cut it to 60 characters, the last three "...".

    >>> len(_shorten_name("a" * 70)), _shorten_name("site")
    (60, 'site')
    """
    text = printable(name)  # a name may hold lines
    return text if len(text) <= 60 else f"{text[:57]}..."


# ----------------------------------------------------------------------------------------------------
# The values of prediction columns: numbers, lists of numbers, or one number per named class


_WORDS_HINT = (
    "words are given their probability by tc.read(words=) (--words 'likely=0.8', which goes together with --percent); "
    "--words '{}=nan' makes it a missing value, which --drop-null leaves out"
)


def outputs_of(table: "nw.DataFrame[Any]", names: Sequence[str]) -> tuple[NDArray[Any], list[str] | None]:
    """Return the predictions in these columns, shape (n,) or (n, k), and the class names that a column of mappings holds.

    Several columns are stacked; one column holds numbers, lists or mappings, by its first row. Text is refused with the options to
    read it.
    """
    if len(names) > 1:
        return table.select(names).to_numpy(), None
    column, name = table[names[0]], names[0]
    first = next(iter(column.head(1).to_list()), None)
    if isinstance(first, Mapping):
        return _stack_mappings(column.to_list(), name)
    if isinstance(first, list | tuple | np.ndarray):
        return _stack_lists(column.to_list(), name), None
    if isinstance(first, str):
        row, value = _first_not_number(column.to_list())
        if value.strip().endswith("%"):
            hint = "; if they are percentages, read them with percent=True (--percent)"
        else:
            hint = "" if spells_number(value) else f"; {_WORDS_HINT.format(value[:60])}"
        options = _suggest_options(column.to_list())
        if spells_number(value.replace(",", ".")) and "," in value:
            hint, options = "; write it with a decimal point, or separate the columns by semicolons", ""
        raise InputError(f"column {name!r} must be numbers: row {row} is {shown(value)}{hint}", options=options)
    return column.to_numpy(), None


def _suggest_options(values: Sequence[Any]) -> str:
    """Return the command-line options, such as "--percent --drop-null", that read a column; "" if none is needed.

    They are for percent, words and missing values. Words beside numbers become missing; where there are only words, P stands for
    the probability of each.

    >>> _suggest_options(["90%", "unsure"]), _suggest_options(["likely", "unsure"]), _suggest_options(["0.5", None])
    ('--percent --words unsure=nan --drop-null', '--words likely=P,unsure=P', '--drop-null')
    """
    texts = dict.fromkeys("" if value is None else str(value).strip() for value in values)
    unknown = [text for text in texts if text.lower() not in NA_WORDS and not spells_number(text.removesuffix("%"))]
    if len(unknown) == len(texts):  # nothing but words: each needs a probability
        return f"--words {shlex.quote(','.join(f'{word}=P' for word in unknown[:12]))}"
    missing = bool(unknown) or any(text.lower() in NA_WORDS for text in texts)
    words = [f"--words {shlex.quote(','.join(f'{word}=nan' for word in unknown[:6]))}"] if unknown else []
    percent = ["--percent"] if any(text.endswith("%") for text in texts) else []
    return " ".join([*percent, *words, *(["--drop-null"] if missing else [])])


def _first_not_number(values: Sequence[Any]) -> tuple[int, str]:
    """Return row and text of the first value that is not a finite number, and not missing if another is neither.

    >>> _first_not_number(["0.5", "nan", "x"]), _first_not_number([1, 2])
    ((2, 'x'), (0, '1'))
    """
    rows = [row for row, value in enumerate(values) if not spells_number(str(value))]
    row = next((row for row in rows if str(values[row]).strip().lower() not in NA_WORDS), rows[0] if rows else 0)
    return row, str(values[row])


def as_shares(column: "nw.Series[Any]", name: str, words: Mapping[str, float] | None) -> NDArray[np.float64]:
    """Convert percent (50, "50%") to probabilities, or `words` to those given for them; return shape (n,).

    Missing values stay missing (NaN). With `words`, text in percent is read too and bare numbers are refused. Refuses what is
    neither, by row; warns if 10 or more rows have no value above 1 %.
    """
    share_of_word = {word.strip().lower(): value for word, value in (words or {}).items()}
    shares = np.full(len(column), np.nan)
    for row, value in enumerate(column.to_list()):
        text = "" if value is None else str(value).strip().lower()
        if text in NA_WORDS:
            continue
        if text in share_of_word:
            shares[row] = share_of_word[text]
            continue
        try:
            if words is not None and not text.endswith("%"):
                raise ValueError
            shares[row] = float(text.removesuffix("%").strip()) / 100
        except ValueError as error:
            expected = "percent" if words is None else f"percent nor one of the words {', '.join(words)}"
            without_words = [v for v in column.to_list() if str(v).strip().lower() not in share_of_word]
            suggested = _suggest_options(without_words)
            raise InputError(
                f"column {name!r}: row {row} is {shown(value)}, which is not {expected}; {_WORDS_HINT.format(text[:60])}",
                options=suggested if words is not None else suggested.removeprefix("--percent "),
            ) from error
    if words is None and len(shares) >= SUSPICIOUS_ROWS and np.nanmax(shares, initial=0.0) <= 0.01:
        message = f"column {name!r} is declared percent and has no value above 1; if it holds probabilities, leave out percent"
        warnings.warn(message, TruecalWarning, stacklevel=4)
    return shares


def _stack_lists(rows: list[Any], name: str) -> NDArray[Any]:
    """Stack rows that are lists, shape (n, width); refuse different lengths.

    >>> _stack_lists([[0.2, 0.8], [0.5, 0.5]], "probs")
    array([[0.2, 0.8],
           [0.5, 0.5]])
    """
    width = len(rows[0])
    for i, row in enumerate(rows):
        if not isinstance(row, list | tuple | np.ndarray):
            raise InputError(f"column {name!r} holds lists, but row {i} is {row!r}")
        if len(row) != width:
            raise InputError(
                f"column {name!r} holds lists of different lengths: row 0 has {width} values and row {i} has {len(row)}"
            )
    return np.array(rows)


def _stack_mappings(rows: list[Any], name: str) -> tuple[NDArray[Any], list[str]]:
    """Stack rows that map classes to numbers, shape (n, k), with the classes in the order of row 0; refuse other classes.

    >>> _stack_mappings([{"cat": 0.2, "dog": 0.8}, {"dog": 0.5, "cat": 0.5}], "probs")
    (array([[0.2, 0.8],
           [0.5, 0.5]]), ['cat', 'dog'])
    """
    classes = list(rows[0])
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InputError(f"column {name!r} holds mappings, but row {i} is {row!r}")
        if set(row) != set(classes):
            unmatched = sorted(set(row) ^ set(classes))
            raise InputError(f"column {name!r}: row {i} differs from row 0 in the class {unmatched[0]!r}")
    return np.array([[row[key] for key in classes] for row in rows]), classes


# ----------------------------------------------------------------------------------------------------
# Frames of any library, through narwhals: which columns are meant, and their values as arrays

_MAX_COLUMNS_LISTED = 40  # by choice: columns named in a message


def matching(columns: Sequence[str], selector: str | Sequence[str], what: str) -> tuple[list[str], list[str] | None]:
    """Select columns by a name, a list, or a pattern with a star; refuse unknown names and a pattern without a match.

    Return the names, and what the star matched in each; None without a pattern, or if all matches are numbers (then sorted by
    them). `what` says in messages what the columns are for.

    >>> matching(["p_cat", "p_dog", "id"], "p_*", "predictions"), matching(["p10", "p2"], "p*", "predictions")
    ((['p_cat', 'p_dog'], ['cat', 'dog']), (['p2', 'p10'], None))
    """
    if not isinstance(selector, str):
        names, existing = list(selector), set(columns)
        if not names:
            raise InputError(
                f"no column is named for {what}; the columns are {_join_names(columns, _MAX_COLUMNS_LISTED)}"
            )
        for name in names:
            if name not in existing:
                raise InputError(_no_column(name, columns))
        return names, None
    if selector in columns:
        return [selector], None
    if "*" not in selector:
        raise InputError(_no_column(selector, columns))
    regex = pattern(translate(selector))
    names = [name for name in columns if regex.match(name)]
    if not names:
        raise InputError(
            f"no column matches {selector!r} for {what}; the columns are {_join_names(columns, _MAX_COLUMNS_LISTED)}"
        )
    stars = _match_stars(names, selector)
    if all(star.isdigit() for star in stars):  # p_0 ... p_10 in the order of the numbers, not of the letters
        order = sorted(range(len(names)), key=lambda i: int(stars[i]))
        return [names[i] for i in order], None
    return names, stars


def refuse_shared(outputs: Sequence[str], label: str, weights: str | None) -> None:
    """Refuse a column that is named as two of label, predictions and weights.

    >>> refuse_shared(["p"], "y", "p")
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: column 'p' is named as the weights and as the predictions; name another for one of them
    """
    for name, what in ((label, "the label"), (weights, "the weights")):
        if name in outputs:
            raise InputError(f"column {name!r} is named as {what} and as the predictions; name another for one of them")
    if label == weights:
        raise InputError(f"column {label!r} is named as the label and as the weights; name another for one of them")


def match_outputs(
    columns: Sequence[str], selector: str | Sequence[str], classes: Sequence[object] | None
) -> tuple[list[str], list[str] | None]:
    """Return the columns of predictions and the classes in their names; None for classes if numbered, listed or a single name.

    Both are in the order of `classes` if these are the same names, else of the columns.

    >>> match_outputs(["p_cat", "p_dog"], "p_*", ["dog", "cat"]), match_outputs(["score"], "score", None)
    ((['p_dog', 'p_cat'], ['dog', 'cat']), (['score'], None))
    """
    names, stars = matching(columns, selector, "predictions")
    if stars is None or len(names) < 2:
        return names, None
    given_names = [] if classes is None else [str(name) for name in classes]
    if sorted(given_names) != sorted(stars):
        return names, stars
    return [names[stars.index(name)] for name in given_names], given_names


def refuse_twins(columns: Sequence[str], names: Sequence[str]) -> None:
    """Refuse a name that another column has too, but for upper and lower case: some engines take both for one.

    >>> refuse_twins(["site", "Site"], ["site"])
    Traceback (most recent call last):
        ...
    truecal.errors.InputError: columns 'site' and 'Site' differ only in upper and lower case; rename one of them
    """
    for name in names:
        twin = next((other for other in columns if other != name and other.casefold() == name.casefold()), None)
        if twin is not None:
            raise InputError(f"columns {name!r} and {twin!r} differ only in upper and lower case; rename one of them")


def refuse_nested(schema: Mapping[str, Any], names: Sequence[str], what: str) -> None:
    """Refuse columns of lists, structures, bytes, durations and times of day where `what` needs one number or text per row."""
    import narwhals as nw

    for name in names:
        if schema[name].is_nested() or isinstance(schema[name], (nw.Binary, nw.Duration, nw.Time)):
            raise InputError(
                f"column {name!r} holds {schema[name]}, and {what} are numbers or text; name another column"
            )


def label_columns(names: Sequence[str]) -> str:
    """Word the column of each of the first six class indices: ", labels 0 = 'p_a', 1 = 'p_b'".

    >>> label_columns(["p_a", "p_b"])
    ", labels 0 = 'p_a', 1 = 'p_b'"
    """
    pairs = [f"{i} = {name!r}" for i, name in enumerate(names[:6])]
    return f", labels {', '.join(pairs)}{', ...' if len(names) > 6 else ''}"


def as_table(frame: Any) -> "nw.DataFrame[Any]":
    """Return a frame in memory of any library as a narwhals frame.

    Raises InputError for two columns of one name, and for what is no data frame.
    """
    import narwhals as nw

    try:
        table = nw.from_native(frame, eager_only=True)
        table.columns  # noqa: B018
    except nw.exceptions.DuplicateError as error:
        raise InputError("two columns of the frame have the same name; rename one of them") from error
    except TypeError as error:
        raise InputError(f"{type(frame).__name__} is not a data frame that narwhals can read in memory") from error
    return table


def to_array(column: "nw.Series[Any]") -> NDArray[Any]:
    """Return the values of a column as an array.

    Text becomes objects, since arrays of text are as wide as their longest value; so do integers beside missing values where some
    are beyond 2**53, which the floats that hold NaN would round.
    """
    has_values = 0 < column.null_count() < len(column)
    if column.dtype.is_integer() and has_values and max(abs(column.max()), abs(column.min())) > LARGEST_EXACT:
        return np.array(column.to_list(), object)
    native: Any = column.to_native()
    return np.asarray(native.to_numpy()) if column.implementation.is_polars() else column.to_numpy()


def class_names(
    names: Sequence[str],
    selector: str | Sequence[str],
    events: Sequence[str] | None,
    classes: Sequence[object] | None,
    *,
    numeric: bool,
) -> Sequence[object] | None:
    """Return the classes of columns `names`, in their order: `classes` if given, else `events`, but None for numeric labels.

    `events` are the classes in the names of the columns (p_cat: cat), None where these are numbered; `selector` chose the
    columns. Numeric labels are positions of columns: without `classes`, refuse columns not numbered from 0, or named in other
    than alphabetical order. Refuse `classes` that contradict the columns.

    >>> class_names(["p_cat", "p_dog"], "p_*", ["cat", "dog"], None, numeric=False)
    ['cat', 'dog']
    """
    numbers = [int(star) for star in _match_stars(names, selector)] if _numbered(names, selector, events) else None
    if classes is None:
        if numbers is not None and numbers != list(range(len(numbers))):
            listed = ", ".join(map(str, numbers[:3])) + (", ..." if len(numbers) > 3 else "")
            raise InputError(
                f"the columns {selector!r} are numbered {listed}, not from 0, so a label does not name its column; if label "
                f"{numbers[0]} means {names[0]!r}, give classes=[{listed}] (--class-names {listed.replace(' ', '')})"
            )
        if events is not None and numeric and list(events) != sorted(events):
            listed, alphabetical = ",".join(events[:8]), ",".join(sorted(events)[:8])
            raise InputError(
                "labels are numbers, and the columns are named after classes that are not in alphabetical order: label 0 may mean "
                f"{events[0]!r} (the first column) or {min(events)!r}; name the order: classes= (--class-names {listed}, or "
                f"{alphabetical}); scores of several models are judged one by one (--score {names[0]})"
            )
        return None if events is None or numeric else list(events)
    given_names = [str(name) for name in classes]
    column_classes = list(events) if events is not None else None
    if numbers is not None and all(name.isdigit() for name in given_names):
        column_classes = [str(number) for number in numbers]
        column_classes = None if numbers == list(range(len(numbers))) else column_classes
    if column_classes is not None and column_classes != given_names and len(column_classes) == len(given_names):
        i = next(k for k, name in enumerate(column_classes) if name != given_names[k])
        raise InputError(
            f"the class names contradict the columns: column {names[min(i, len(names) - 1)]!r} is class {given_names[i]!r} by its "
            f"position; list the classes of the columns ({', '.join(column_classes[:8])}), or leave them out"
        )
    return classes


def _numbered(names: Sequence[str], selector: str | Sequence[str], events: Sequence[str] | None) -> bool:
    """Whether several columns were selected by a pattern with `*` and hold no names of their events.

    >>> _numbered(["p0", "p1"], "p*", None), _numbered(["p_a", "p_b"], "p_*", ["a", "b"])
    (True, False)
    """
    return len(names) > 1 and isinstance(selector, str) and "*" in selector and events is None


def _match_stars(names: Sequence[str], selector: str | Sequence[str]) -> list[str]:
    """Return the text that the star of a pattern with one star matches in each name.

    >>> _match_stars(["p_cat", "p_dog"], "p_*")
    ['cat', 'dog']
    """
    before, _, after = str(selector).partition("*")
    return [name[len(before) : len(name) - len(after)] for name in names]


def refuse_missing_values(column: "nw.Series[Any]", name: str, *, has_scores: bool = False) -> None:
    """Refuse a column with null or NaN values, naming how many and the first row.

    `has_scores`: a column of predictions, for which the refusal also names the options that read its text.
    """
    missing = column.is_null()
    if column.dtype.is_float():
        missing = missing | column.is_nan().fill_null(True)
    if missing.any():
        rows = np.flatnonzero(missing.to_numpy())
        raise InputError(
            f"column {name!r} has {count_of(len(rows), 'missing value')}, the first in row {rows[0]}; "
            "drop or fill those rows, or leave them out with drop_null=True (--drop-null)",
            options=_suggest_options(column.to_list())
            if str(column.dtype) == "String" and has_scores
            else "--drop-null",
        )


def _no_column(name: str, columns: Sequence[str]) -> str:
    """Word that a column does not exist, with the first 40 columns there are, and the similar ones.

    >>> _no_column("labl", ["label", "score"])
    "there is no column 'labl'; the columns are label, score; did you mean 'label'?"
    """
    return f"there is no column {name!r}; the columns are {_join_names(columns, _MAX_COLUMNS_LISTED)}{did_you_mean(name, columns)}"
