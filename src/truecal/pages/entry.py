"""Write a page: of one set of predictions, of several models, of a study, of a watch."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import truecal as tc
from truecal import options
from truecal.lenses.lens import Lens, check_lens
from truecal.pages.comparison import gather_comparison
from truecal.pages.model import PageSettings, gather
from truecal.pages.render import write_page
from truecal.pages.study import gather_study
from truecal.pages.watch import gather_watch
from truecal.predictions.arrays import takes_arrays
from truecal.predictions.predictions import check_predictions
from truecal.predictions.selection import Selection, check_selection

Reported: TypeAlias = (
    tc.Predictions
    | tc.profile.Profile
    | tc.Sketch
    | tc.engines.Scan
    | tc.Watch
    | tc.study.Store
    | Mapping[str, tc.Predictions]
    | Mapping[str, tc.Sketch]
)


@takes_arrays
def report(x: Reported, /, path: str | os.PathLike[str], **settings: Any) -> Path:
    """Write a self-contained HTML page and return its path.

    The file is written whole or not at all, and a path that cannot be written is refused before anything is computed.

    Parameters
    ----------
    x : Predictions, Profile, Sketch, Scan, mapping of Predictions or Sketches by name, Watch or study.Store
        What the page is about: one model, a comparison of several named models, calibration over time, or a study.
        `tc.report(y_true, y_prob, path="report.html")` takes labels and probabilities of one model.
    path : str or PathLike
        Where to write; a name that ends in .pdf is printed by an installed Chromium.
    **settings
        For one model those of `truecal.pages.report_model` (lens, select, by, tolerance, level, title, fast, clinical, ...),
        for several those of `report_comparison` (reference, key, paired, ...), for a study `report_study` (title, megabytes,
        command), for a watch `report_watch` (title, command).

    Returns
    -------
    pathlib.Path
        The file.

    Raises
    ------
    FileError
        If the path cannot be written.
    MissingExtraError
        If jinja2 or vl-convert-python is not installed: ``pip install 'truecal[report]'``.
    InputError
        If there is no page for `x`, or a setting does not fit it.

    See Also
    --------
    truecal.measure : The number in the headline.
    truecal.plot : Single pictures by matplotlib.

    Examples
    --------
    >>> import tempfile, truecal as tc
    >>> preds = tc.Predictions.from_probs([0.9, 0.2, 0.7, 0.4] * 50, [1, 0, 1, 0] * 50)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tc.report(preds, f"{folder}/report.html", fast=True).stat().st_size < 2_000_000
    True
    """
    if isinstance(x, Mapping):
        return report_comparison(x, path, **settings)
    if isinstance(x, tc.Watch):
        return report_watch(x, path, **settings)
    if isinstance(x, tc.study.Store):
        return report_study(x, path, **settings)
    return report_model(x, path, **settings)


def report_model(
    preds: tc.Predictions | tc.profile.Profile | tc.Sketch | tc.engines.Scan,
    path: str | os.PathLike[str],
    *,
    lens: Lens | None = None,
    select: Selection | None = None,
    by: str | Sequence[str] | None = None,
    tolerance: float = 0.02,
    level: float = 0.95,
    title: str = "Calibration report",
    source: str | None = None,
    command: str | None = None,
    fast: bool = False,
    clinical: bool = False,
    rng: int = 0,
    scale: Mapping[str, tuple[float, float]] | None = None,
    thresholds: Sequence[float] | None = None,
    files: Mapping[str, str] | None = None,
    rows: tc.inference.RowCounts | None = None,
    progress: Callable[[str], object] | None = None,
) -> Path:
    """Write the page of one model and return its path.

    Parameters
    ----------
    preds : Predictions, Profile, Sketch or Scan
        What to judge. A Profile gives a page without tables of classes and groups; a Sketch or a Scan (with its groups) one
        that states how far its numbers can be from those of all rows.
    path : str or PathLike
        Where to write; a name that ends in .pdf is printed by an installed Chromium.
    lens : Lens, optional
        What is judged; default the positive class of binary predictions, the top label of more. A lens on several
        probabilities (TopK, Grouping, Canonical) adds a section with its errors.
    select : Selection, optional
        Which rows the page is about. Rows selected by their label are judged in a section of their own, beside what a
        calibrated model would show there.
    by : str or sequence of str, optional
        Columns of the predictions; adds a table with one row per value or combination of values.
    tolerance : float, default 0.02
        The largest acceptable error; the verdict is phrased against it.
    level : float, default 0.95
        Of every interval.
    title : str, default "Calibration report"
        Heading of the page.
    source, command : str, optional
        Name of the data and what produced the page, for the reproducibility box.
    fast : bool, default False
        Leave out what takes seconds: segments, recalibration on held-out folds, the simulated bias of estimators.
    clinical : bool, default False
        Add the numbers of a clinical validation (O/E, slope, ICI, ...), with forest plots of groups.
    rng : int, default 0
        Seed of tests, folds and simulations.
    scale : mapping of str to (float, float), optional
        Words for intervals of scores, such as {"low risk": (0, 0.1), "high risk": (0.1, 1)}; adds a table of them.
    thresholds : sequence of float, optional
        Scores from which one acts; the verdict then says what miscalibration costs there (see `tc.decision_loss`).
    files : mapping of str to str, optional
        SHA-256 of the files the data came from, by name, for the reproducibility box.
    rows : RowCounts, optional
        How many rows were read, dropped and judged, for the headline.
    progress : callable, optional
        Called with a few words about what is being computed.

    Returns
    -------
    pathlib.Path
    """
    options.path(path)
    options.level(level)
    check_predictions(preds, tc.profile.Profile, tc.Sketch, tc.engines.Scan)
    check_selection(select)
    setting = PageSettings(
        tolerance, level, title, source, command, fast, clinical, rng, scale, files or {}, select, rows, thresholds
    )
    return write_page(path, lambda: gather(preds, setting, lens=lens, by=by, progress=progress or str).html())


def report_comparison(
    models: Mapping[str, tc.Predictions] | Mapping[str, tc.Sketch],
    path: str | os.PathLike[str],
    *,
    reference: str | None = None,
    max_increase: float | None = None,
    key: str | None = None,
    paired: bool = True,
    lens: Lens | None = None,
    level: float = 0.95,
    resamples: int = 1000,
    title: str = "Calibration of several models",
    command: str | None = None,
    rng: int = 0,
) -> Path:
    """Write the page that compares models, and return its path.

    Parameters
    ----------
    models : mapping of str to Predictions or Sketch
        Two to eight models by name; labels may be each model's own (whether *its* answer was correct). A column `task`
        adds a table by task. Sketches are compared unpaired.
    path : str or PathLike
        Where to write.
    reference : str, optional
        Compare every model with this one only, instead of every pair.
    max_increase : float, optional
        Largest acceptable increase of the error over the reference; the verdict then says whether it is met.
    key : str, optional
        Pair rows by this column instead of their position.
    paired : bool, default True
        Whether rows are paired at all.
    lens : Lens, optional
        What is judged, as in `report_model`.
    level : float, default 0.95
        Of every interval.
    resamples : int, default 1000
        Of a paired bootstrap, at least; more are drawn where the number of pairs needs them. The rank series needs none.
    title : str
        Heading of the page.
    command : str, optional
        What produced the page, for the reproducibility box.
    rng : int, default 0
        Seed of resamples.

    Returns
    -------
    pathlib.Path

    Examples
    --------
    >>> import tempfile, truecal as tc
    >>> from truecal.pages import report_comparison
    >>> a = tc.Predictions.from_probs([0.9, 0.2, 0.7, 0.4] * 50, [1, 0, 1, 0] * 50)
    >>> b = tc.Predictions.from_probs([0.6, 0.4, 0.6, 0.4] * 50, [1, 0, 1, 0] * 50)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report_comparison({"a": a, "b": b}, f"{folder}/compare.html", resamples=99).name
    'compare.html'
    """
    options.path(path)
    options.level(level)
    options.instance(
        models, Mapping, "models", "a mapping of Predictions by name", "write {'a': preds_a, 'b': preds_b}"
    )
    for name, preds in models.items():
        check_predictions(preds, tc.Sketch, name=name)
    check_lens(lens)
    settings: dict[str, Any] = {"lens": lens, "level": level, "rng": rng, "title": title, "command": command}
    settings |= {"key": key, "paired": paired, "resamples": resamples}
    settings |= {"reference": reference, "max_increase": max_increase}
    return write_page(path, lambda: gather_comparison(models, **settings).html())


def report_study(
    store: tc.study.Store | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    megabytes: float = 3.0,
    command: str | None = None,
) -> Path:
    """Write the page that explores the store of a study, and return its path.

    Parameters
    ----------
    store : Store, str or PathLike
        The store or its folder; a study that is still running shows what is finished.
    path : str or PathLike
        Where to write.
    title : str, optional
        Heading of the page; default the name of the study.
    megabytes : float, default 3.0
        How large the page may be; metrics and diagrams that do not fit are left out, the least asked for first, and named
        on the page.
    command : str, optional
        What produced the page, for the reproducibility box.

    Returns
    -------
    pathlib.Path
    """
    options.path(path)
    study = tc.study.Store(store) if isinstance(store, str | os.PathLike) else store
    options.instance(study, tc.study.Store, "store", "a study's store or its folder")
    return write_page(path, lambda: gather_study(study, title=title, megabytes=megabytes, command=command).html())


def report_watch(
    watch: tc.Watch,
    path: str | os.PathLike[str],
    *,
    title: str = "Calibration over time",
    command: str | None = None,
) -> Path:
    """Write the page of a :class:`truecal.Watch`, and return its path.

    Parameters
    ----------
    watch : Watch
        With at least one batch.
    path : str or PathLike
        Where to write.
    title : str
        Heading of the page.
    command : str, optional
        What produced the page, for the reproducibility box.

    Returns
    -------
    pathlib.Path
    """
    options.path(path)
    options.instance(watch, tc.Watch, "watch", "a Watch, such as tc.Watch.load('state.json')")
    return write_page(path, lambda: gather_watch(watch, title=title, command=command).html())
