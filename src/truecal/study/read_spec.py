"""Reading a study file: everything that is wrong with it is listed at once, with its line.

Prediction files themselves are looked at in `files` (which there are) and `check` (whether they fit together).
"""

import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from truecal import names
from truecal.errors import InputError
from truecal.study.metrics import GRID, judges_several, parse_metric
from truecal.study.rows import check_files, make_selection
from truecal.study.spec import (
    LENSES,
    Columns,
    Entry,
    Options,
    Problems,
    Selected,
    Source,
    Spec,
    Split,
    read_datasets,
    read_document,
    read_sources,
    resolve,
    to_number,
)
from truecal.study.store import RESULTS

_KEYS = (
    "name",
    "predictions",
    "covariates",
    "models",
    "datasets",
    "columns",
    "lenses",
    "groupings",
    "selections",
    "class_subsets",
    "metrics",
    "recalibrators",
    "split",
    "intervals",
    "level",
    "fingerprint",
    "workers",
)
# Columns of a store, and of what is made from it.
_RESERVED = {*RESULTS, "file", "files", "clean", "independent", "by", "error", "bin", "count", "outcome", "seeds"}
_SELECTIONS = {
    "by_label": ("classes",),
    "by_output": ("class", "low", "high", "closed"),
    "by_column": ("column", "values", "low", "high", "closed"),
}


def read_spec(path: str | os.PathLike[str], *, skip_broken: bool = False) -> Spec:
    """Read a study file and look at every prediction file it names; raise with all problems and their lines.

    With `skip_broken`, files that cannot be read, or do not fit to the others, are left out and listed instead.
    """
    file = Path(path)
    top = read_document(file)
    problems = Problems(file.name)
    items = problems.keys(top, _KEYS, what="a study", required=("name", "predictions", "columns"))
    name = _text(problems, items.get("name"), "name") or ""
    covariates = _covariates(problems, items.get("covariates"))
    sources = read_sources(problems, items, file.parent, covariates)
    options = _options(problems, items, sources, covariates)
    workers = _whole(problems, items.get("workers"), "workers", low=1)
    by_content = _fingerprint(problems, items.get("fingerprint"))
    broken: tuple[tuple[str, str], ...] = ()
    if options is not None:
        lines = {key: entry.line for key, entry in items.items()}
        options = resolve(problems, options, sources, lines.get("datasets", 0))
        sources, broken = check_files(problems, sources, options, lines, skip_broken=skip_broken)
    problems.refuse()
    assert options is not None
    return Spec(name, tuple(sources), options, workers, top.plain(), covariates, by_content, broken)


def _covariates(problems: Problems, entry: Entry | None) -> tuple[str, ...]:
    """Names of what else is known of models, datasets and files."""
    if entry is None:
        return ()
    listed = tuple(str(member.plain()) for member in problems.items(entry, what="covariates"))
    for name in listed:
        if name in _RESERVED or not name.isidentifier():
            problems.add(entry.line, f"a covariate cannot be called {name!r}; choose another word, of letters and _")
    return listed


def _fingerprint(problems: Problems, entry: Entry | None) -> bool:
    if entry is None:
        return False
    if entry.value not in ("time", "content"):
        problems.add(
            entry.line, f"fingerprint must be time (size and time of change) or content, not {entry.plain()!r}"
        )
    return bool(entry.value == "content")


def _options(
    problems: Problems, items: dict[str, Entry], sources: Sequence[Source], covariates: tuple[str, ...]
) -> Options | None:
    columns = _columns(problems, items.get("columns"))
    given: dict[str, Any] = {"datasets": read_datasets(problems, items.get("datasets"), sources, covariates)}
    if "groupings" in items:
        given["groupings"] = _groupings(problems, items["groupings"])
    if "lenses" in items:
        groupings = [f"grouping:{name}" for name, _ in given.get("groupings", ())]
        given["lenses"] = _names(problems, items["lenses"], "lens", lambda name: _known_lens(name, groupings))
    if "metrics" in items:
        entry = items["metrics"]
        listed = entry if isinstance(entry.value, list) else Entry([entry], entry.line)
        given["metrics"] = _names(problems, listed, "metric", _known_metric)
    chosen = given.get("metrics") or (GRID,)
    for lens in given.get("lenses", ()):
        if judges_several(lens) and not any(name.startswith("generalized-") for name in chosen):
            problems.add(
                items["lenses"].line, f"the lens {lens!r} judges several probabilities; add the metric generalized-l1"
            )
    if "recalibrators" in items:
        given["recalibrators"] = _names(problems, items["recalibrators"], "recalibrator", _known_recalibrator)
    if "selections" in items:
        given["selections"] = _selections(problems, items["selections"])
    if "class_subsets" in items:
        given["class_subsets"] = _subsets(problems, items["class_subsets"], columns)
    if "split" in items:
        given["split"] = _split(problems, items["split"])
    if "intervals" in items:
        entry = items["intervals"]
        if entry.value != "bootstrap" and not isinstance(entry.value, bool):
            problems.add(entry.line, f"intervals must be true, false or bootstrap, not {entry.plain()!r}")
        given["intervals"] = entry.value
    if "level" in items:
        given["level"] = _between(problems, items["level"], "level") or 0.95
    return None if columns is None else Options(columns, **given)


def _columns(problems: Problems, entry: Entry | None) -> Columns | None:
    if entry is None:
        return None
    items = problems.keys(
        entry,
        ("label", "probs", "logits", "score", "classes", "weight", "cluster"),
        what="columns",
        required=("label",),
    )
    kinds = [kind for kind in ("probs", "logits", "score") if kind in items]
    if len(kinds) != 1:
        problems.add(entry.line, "columns needs one of probs (p_*), logits (z_*) or score (P(positive)), and one only")
        return None
    outputs = _names_of_columns(problems, items[kinds[0]], kinds[0])
    label = _text(problems, items.get("label"), "label")
    classes = None
    if "classes" in items:
        classes = tuple(member.plain() for member in problems.items(items["classes"], what="classes"))
        if len(set(map(str, classes))) < len(classes):
            problems.add(items["classes"].line, "classes names a class twice; names must differ")
    others = {name: _text(problems, items.get(name), name) for name in ("weight", "cluster")}
    if outputs is None or label is None:
        return None
    return Columns(label, outputs, "logits" if kinds[0] == "logits" else "probs", classes, **others)


def _names_of_columns(problems: Problems, entry: Entry, what: str) -> str | tuple[str, ...] | None:
    if not isinstance(entry.value, list):
        return _text(problems, entry, what)
    return tuple(str(member.plain()) for member in problems.items(entry, what=what))


def _selections(problems: Problems, entry: Entry) -> tuple[Selected, ...]:
    selections: list[Selected] = []
    for member in problems.items(entry, what="selections"):
        items = problems.keys(member, ("name", *_SELECTIONS), what="a selection", required=("name",))
        kinds = [kind for kind in _SELECTIONS if kind in items]
        name = _text(problems, items.get("name"), "the name of a selection")
        if len(kinds) != 1:
            problems.add(member.line, "a selection needs one of by_label, by_output or by_column, and one only")
            continue
        inner = items[kinds[0]]
        if kinds[0] == "by_label" and isinstance(inner.value, list):  # by_label: [cat, dog]
            inner = Entry({"classes": inner}, inner.line)
        arguments = problems.keys(inner, _SELECTIONS[kinds[0]], what=kinds[0])
        if name in {"all", *(one.name for one in selections)}:
            problems.add(member.line, f"there is already a selection {name!r}; give it another name")
        plain = tuple((key, _frozen(value.plain())) for key, value in arguments.items())
        selected = Selected(name or "", kinds[0], plain)
        try:
            make_selection(selected)
        except (InputError, TypeError) as error:
            problems.add(inner.line, f"selection {name!r}: {error}")
            continue
        selections.append(selected)
    return tuple(selections)


def _groupings(problems: Problems, entry: Entry) -> tuple[tuple[str, Any], ...]:
    """Groupings by name: {name: {group: [classes]}}."""
    if not isinstance(entry.value, dict) or not all(isinstance(one.value, dict) for one in entry.value.values()):
        problems.add(entry.line, "groupings must give lists of classes, such as use: {pet: [cat, dog], wild: [fox]}")
        return ()
    groupings = []
    for name, groups in entry.value.items():
        classes = {
            group: tuple(member.plain() for member in problems.items(listed, what=f"the group {group!r}"))
            for group, listed in groups.value.items()
        }
        groupings.append((name, tuple(classes.items())))
    return tuple(groupings)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _subsets(problems: Problems, entry: Entry, columns: Columns | None) -> tuple[tuple[str, tuple[object, ...]], ...]:
    if columns is not None and columns.kind == "probs":
        problems.add(
            entry.line,
            "class_subsets choose logits before the softmax, but columns names probabilities; store logits, or divide the "
            "probabilities of the subset by their sum in the files themselves",
        )
    if not isinstance(entry.value, dict):
        problems.add(
            entry.line, "class_subsets must give a list of classes for each dataset, such as imagenet-a: [6, 11]"
        )
        return ()
    subsets = []
    for dataset, listed in entry.value.items():
        classes = tuple(member.plain() for member in problems.items(listed, what=f"the classes of {dataset!r}"))
        if len(set(map(str, classes))) < len(classes):
            problems.add(listed.line, f"the classes of {dataset!r} name a class twice")
        elif len(classes) == 1:
            problems.add(listed.line, f"the classes of {dataset!r} must be at least two")
        subsets.append((dataset, classes))
    return tuple(subsets)


def _split(problems: Problems, entry: Entry) -> Split:
    items = problems.keys(entry, ("fraction", "seed", "fit", "dataset"), what="split")
    fraction = _between(problems, items["fraction"], "fraction") if "fraction" in items else None
    seed = _whole(problems, items.get("seed"), "seed", low=0)
    fit: Any = items["fit"].value if "fit" in items else "clean"
    if fit not in ("clean", "same"):
        problems.add(items["fit"].line, f"fit must be clean or same, not {items['fit'].plain()!r}")
    dataset = None if "dataset" not in items else str(items["dataset"].plain())
    if dataset is not None and fit == "same":
        problems.add(entry.line, "fit: same learns on the file that is judged, so leave out the dataset")
    return Split(0.2 if fraction is None else fraction, seed or 0, fit, dataset)


# ------------------------------------------------------------------ scalars


def _names(problems: Problems, entry: Entry, what: str, refusal: Any) -> tuple[str, ...]:
    listed: list[str] = []
    for member in problems.items(entry, what=f"the list of {what}s" if what != "lens" else "the list of lenses"):
        name = str(member.plain())
        wrong = refusal(name)
        if wrong:
            problems.add(member.line, wrong)
        elif name in listed:
            problems.add(member.line, f"the {what} {name!r} is listed twice")
        else:
            listed.append(name)
    return tuple(listed)


def _known_lens(name: str, groupings: Sequence[str]) -> str | None:
    if name in (*LENSES, *groupings) or re.fullmatch(r"class:.+|top-[1-9][0-9]*", name):
        return None
    return f"there is no lens {name!r}; use {', '.join((*LENSES, *groupings))}, top-K, class:NAME or grouping:NAME (see groupings)"


def _known_metric(name: str) -> str | None:
    if name == GRID:
        return None
    try:
        parse_metric(name)
    except InputError as error:
        return str(error)
    return None


def _known_recalibrator(name: str) -> str | None:
    if name == "none":
        return "the recalibrator 'none' is always there; leave it out of the list"
    if name not in names.RECALIBRATORS:
        return f"there is no recalibrator {name!r}; use {', '.join(names.RECALIBRATORS)}"
    return None


def _text(problems: Problems, entry: Entry | None, what: str) -> str | None:
    if entry is None:
        return None
    if not isinstance(entry.value, str) or not entry.value.strip():
        problems.add(entry.line, f"{what} must be a text, not {entry.plain()!r}")
        return None
    return entry.value


def _whole(problems: Problems, entry: Entry | None, what: str, *, low: int) -> int | None:
    if entry is None:
        return None
    value = entry.value
    if not isinstance(value, int) or isinstance(value, bool) or value < low:
        problems.add(entry.line, f"{what} must be a whole number of at least {low}, not {entry.plain()!r}")
        return None
    return value


def _between(problems: Problems, entry: Entry, what: str) -> float | None:
    value = to_number(entry.value)
    if value is None or math.isnan(value) or not 0 < value < 1:
        problems.add(entry.line, f"{what} must be a number between 0 and 1, not {entry.plain()!r}")
        return None
    return value
