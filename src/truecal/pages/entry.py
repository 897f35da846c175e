"""Write a page: of one set of predictions, of several models, of a study, of a watch."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import truecal as tc
from truecal import options
from truecal.pages.comparison import gather_comparison
from truecal.pages.model import gather_model
from truecal.pages.render import Page, write_page
from truecal.pages.study import gather_study
from truecal.pages.watch import gather_watch
from truecal.predictions.arrays import takes_arrays

Reported: TypeAlias = (
    tc.Predictions
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
    x : Predictions, Sketch, Scan, mapping of Predictions or Sketches by name, Watch or study.Store
        What the page is about: one model, a comparison of two to eight named models, calibration over time, or a study (one that
        is still running shows what is finished).
        `tc.report(y_true, y_prob, path="report.html")` takes labels and probabilities of one model.
    path : str or PathLike
        Where to write the page.
    **settings : keyword arguments
        Listed below by what the page is about.

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

    Notes
    -----
    Settings of every page: `title` and `command` (what produced the page, for the reproducibility box). Further ones of a
    page of one model:

    - `lens` : what is judged; default the positive class of two, the top label of more. A lens on several probabilities (TopK,
      Grouping, Canonical) adds a section with its errors.
    - `select` : which rows the page is about; rows selected by their label are judged in a section of their own.
    - `by` : columns of the predictions; adds a table of their groups, and a search for segments.
    - `tolerance` (0.02) : the largest acceptable error, which the verdict is about; `level` (0.95) : of every interval.
    - `fast` (False) : leave out what takes seconds: segments, recalibration on held-out folds.
    - `scale` : words for intervals of scores, such as ``{"low risk": (0, 0.1), "high risk": (0.1, 1)}``.
    - `thresholds` : scores from which one acts; the verdict then says what miscalibration costs there.
    - `source`, `files`, `rows` : name of the data, SHA-256 of its files by name, and RowCounts, for the headline and the box.
    - `rng` (0) : seed; `progress` : called with a few words about what is being computed.

    Of several models: `reference` (compare every model with this one only), `max_increase` (a gate against it), `key` (pair
    rows by this column), `paired` (True), `lens`, `level`, `resamples` (1000) and `rng`. Labels may be each model's own, and a
    column `task` adds a table by task.

    See Also
    --------
    truecal.measure : Measure the number in the headline.
    truecal.plot : Draw single pictures by matplotlib.

    Examples
    --------
    >>> import tempfile, truecal as tc
    >>> preds = tc.Predictions.from_probs([0.9, 0.2, 0.7, 0.4] * 50, [1, 0, 1, 0] * 50)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tc.report(preds, f"{folder}/report.html", fast=True).stat().st_size < 2_000_000
    True
    >>> other = tc.Predictions.from_probs([0.6, 0.4, 0.6, 0.4] * 50, [1, 0, 1, 0] * 50)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tc.report({"a": preds, "b": other}, f"{folder}/compare.html", resamples=99).name
    'compare.html'
    """
    options.path(path)
    gather: Callable[..., Page] = gather_model
    if isinstance(x, Mapping):
        gather = gather_comparison
    elif isinstance(x, tc.Watch):
        gather = gather_watch
    elif isinstance(x, tc.study.Store):
        gather = gather_study
    return write_page(path, lambda: gather(x, **settings).html())
