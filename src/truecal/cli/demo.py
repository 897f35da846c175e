"""`truecal demo`: real classifiers, trained here on scikit-learn's bundled data, measured as a newcomer would."""

from collections.abc import Iterator
from pathlib import Path
from textwrap import fill

import click

import truecal as tc
from truecal import digits
from truecal.cli.output import Result, number, out_option, table, writes
from truecal.errors import MissingExtraError
from truecal.inference.conclusion import conclude
from truecal.lenses.one_probability import default_lens

_TOLERANCE = 0.02
_GOOD, _POOR = "digits: logistic regression", "digits: random forest"


@click.command()
@out_option("Where the report goes.", "truecal-demo.html")
@writes
def demo(out: str) -> Result:
    """Train classifiers on scikit-learn's digits and breast-cancer data, measure them, and write a report."""
    models = {f"{data}: {model}": preds for data, model, preds in _predictions()}
    rows, verdicts, records = [], [], []
    for name, preds in models.items():
        summary = tc.scores.summary(preds)
        conclusion = conclude(tc.measure(preds), tolerance=_TOLERANCE, profile=default_lens(preds)(preds))
        sizes = [number(x, 3) for x in (summary.accuracy, summary.mean_confidence, conclusion.value)]
        ends = f"{number(conclusion.low, 3)} to {number(conclusion.high, 3)}"
        rows.append([name, str(summary.n), *sizes, ends, digits.p_text(conclusion.p_value)])
        text = f"{conclusion.headline}. {conclusion.sentence} {conclusion.reading}"
        verdicts.append(f"  {name}\n{fill(text, 100, initial_indent='    ', subsequent_indent='    ')}")
        records.append({"model": name, **conclusion.to_dict()})
    header = ["held-out predictions", "n", "accuracy", "confidence", "error (rms)", "95% interval", "p"]
    path = tc.report(
        models[_POOR],
        out,
        title=f"Calibration of {_POOR}",
        tolerance=_TOLERANCE,
        source="scikit-learn digits",
        command="truecal demo",
    )
    text = "\n".join(
        [
            f"How far is their confidence from the truth?\n\n{table(header, rows)}",
            "\nWhat to conclude\n",
            *verdicts,
            f"\nThe same question put to every estimator, for {_GOOD}\n\n{_all_estimators(models[_GOOD])}",
            "\nMost of these numbers depend on bins or a bandwidth and are too large when a model is good. Quote the rank series",
            "with its interval; give the others when a reader asks for them.",
            f"\nReport: {Path(path).resolve()}",
        ]
    )
    return Result("demo", {"models": records, "path": str(Path(path).resolve())}, text)


def _predictions() -> Iterator[tuple[str, str, "tc.Predictions"]]:
    """Held-out predictions of classifiers that are known to differ in how they are miscalibrated."""
    try:
        from sklearn.datasets import load_breast_cancer, load_digits
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import train_test_split
        from sklearn.naive_bayes import GaussianNB
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError as error:
        raise MissingExtraError.of("scikit-learn", "sklearn") from error
    models = {
        "naive Bayes": GaussianNB(),
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        "random forest": RandomForestClassifier(200, random_state=0),
    }
    for data, load in (("digits", load_digits), ("breast cancer", load_breast_cancer)):
        X, y = load(return_X_y=True)
        train_x, test_x, train_y, test_y = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
        for name, model in models.items():
            probs = model.fit(train_x, train_y).predict_proba(test_x)
            yield data, name, tc.Predictions.from_probs(probs[:, 1] if probs.shape[1] == 2 else probs, test_y)


def _all_estimators(preds: "tc.Predictions") -> str:
    """Measure by every estimator, some of them in both norms."""
    chosen = {
        "rank series (default)": tc.RankSeries(),
        "rank series, absolute": tc.RankSeries(norm=1),
        "equal width, 15 bins": tc.BinnedECE(),
        "equal mass, 15 bins": tc.BinnedECE(scheme="mass"),
        "label-binned, 15 bins": tc.estimators.LabelBinnedECE(),
        "debiased, 15 bins": tc.DebiasedECE(),
        "debiased, absolute": tc.DebiasedECE(norm=1),
        "monotone sweep": tc.SweepECE(),
        "monotone sweep, absolute": tc.SweepECE(norm=1),
        "nearest neighbours": tc.NearestECE(),
        "kernel density": tc.estimators.KernelDensityECE(),
        "smooth (smECE)": tc.SmoothECE(),
        "isotonic (CORP)": tc.estimators.IsotonicError(),
    }
    rows = []
    for name, estimator in chosen.items():
        est = tc.measure(preds, estimator=estimator)
        kind = {1.0: "mean absolute", 2.0: "root mean square"}[est.norm]
        ends = "-" if est.interval is None else f"{float(est.interval.low):.4f} to {float(est.interval.high):.4f}"
        rows.append([name, kind, number(float(est.value)), ends, "-" if est.bins is None else str(est.bins.filled)])
    return table(["estimator", "average", "error", "95% interval", "bins"], rows)
