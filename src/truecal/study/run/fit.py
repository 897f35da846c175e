"""What recalibrators learn: once for every model, clean dataset and seed, on all classes of the clean split, and kept.

A fit is a file of its own in the store, named by what it depends on, so that every file of the model uses the same map and a
temperature can be looked up later.
"""

import hashlib
import json
import warnings
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import truecal as tc
from truecal import names
from truecal.errors import FileError, InputError, TruecalWarning
from truecal.study.spec.files import Source
from truecal.study.spec.rows import Rows, load_rows
from truecal.study.spec.spec import Options
from truecal.study.spec.split import held_out, labels_digest
from truecal.writing import write_whole


@dataclass(frozen=True)
class Fit:
    """A recalibrator fitted on the clean split of one model.

    `map` is its JSON, None where it could not be fitted (`notes` say why). Above 1, `temperature` says that the model was
    overconfident; `confidence` and `accuracy` are those of the rows it learnt from.
    """

    model: str
    dataset: str
    seed: int
    recalibrator: str
    rows: int  # learnt from
    of: int
    labels: str  # digest of the labels of all rows
    map: str | None
    temperature: float | None
    nll_before: float | None
    nll_after: float | None
    confidence: float
    accuracy: float
    notes: tuple[str, ...] = ()

    def apply(self, outputs: NDArray[Any]) -> NDArray[np.float64] | None:
        """Recalibrated probabilities of all classes, or None where there is no map."""
        return None if self.map is None else _maps().Recalibrator.from_json(self.map).predict_proba(outputs)


def fit_name(fingerprint: tuple[object, ...], source: Source, recalibrator: str, options: Options) -> str:
    """The name of a fit in the store: a hash of all it depends on."""
    facts = [list(fingerprint), source.who, recalibrator, asdict(options.columns), asdict(options.split)]
    return hashlib.blake2b(json.dumps(facts, default=str).encode(), digest_size=12).hexdigest()


def read_fit(path: Path) -> Fit | None:
    """A fit that is there."""
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise FileError(f"{path} is damaged; delete it and run the study again") from error
    return Fit(**{**held, "notes": tuple(held["notes"])})


def learn(path: Path, source: Source, recalibrator: str, options: Options, rows: Rows | None = None) -> Fit:
    """Fit on the clean split of a file, and keep the result; `rows` are those of the file where they are there already."""
    held = load_rows(source.path, options.columns) if rows is None else rows
    learnt = held_out(held.labels, options.split.fraction, options.split.seed)
    preds = held.predictions(learnt, None)
    top = preds.probs if preds.probs.ndim == 1 else preds.probs.max(axis=1)
    confidence = np.maximum(top, 1 - top) if preds.probs.ndim == 1 else top
    fitted, notes = _fitted(recalibrator, options.columns.kind, held, learnt)
    after = None if fitted is None else fitted.recalibrate(preds, held.judged(learnt))
    fit = Fit(
        source.model,
        source.dataset,
        source.seed,
        recalibrator,
        rows=int(learnt.sum()),
        of=len(held),
        labels=labels_digest(held.labels),
        map=None if fitted is None else fitted.to_json(),
        temperature=None if fitted is None else getattr(fitted, "temperature_", None),
        nll_before=_finite(tc.scores.log_loss(preds)),
        nll_after=None if after is None else _finite(tc.scores.log_loss(after)),
        confidence=float(np.average(confidence, weights=preds.weights)),
        accuracy=float(np.average(_correct(preds), weights=preds.weights)),
        notes=notes,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(asdict(fit), indent=1))
    return fit


def _maps() -> Any:
    """The recalibrators, loaded on use: they need scikit-learn."""
    return import_module("truecal.recalibrate")


def _correct(preds: Any) -> NDArray[np.bool_]:
    top = preds.probs > 0.5 if preds.probs.ndim == 1 else preds.probs.argmax(axis=1)
    return np.asarray(top == preds.labels)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _fitted(name: str, kind: str, rows: Rows, learnt: NDArray[np.bool_]) -> tuple[Any, tuple[str, ...]]:
    recalibrator = names.recalibrator_named(name).of(_maps(), input=kind)
    weights = None if rows.weights is None else rows.weights[learnt]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TruecalWarning)
        try:
            recalibrator.fit(rows.outputs[learnt], rows.labels[learnt], weights)
        except InputError as error:
            return None, (f"{name} could not be fitted: {error}",)
    return recalibrator, tuple(str(one.message) for one in caught if issubclass(one.category, TruecalWarning))
