"""`truecal demo`: real classifiers, trained here on scikit-learn's bundled data, measured as a newcomer would."""

from collections.abc import Iterator
from pathlib import Path
from textwrap import fill

import click

import truecal as tc
from truecal.cli.output import OutputFile, number, table
from truecal.errors import MissingExtraError
from truecal.lenses.one_probability import default_lens

_TOLERANCE = 0.02


@click.command()
@click.option(
    "--out",
    cls=OutputFile,
    metavar="FILE",
    default="truecal-demo.html",
    show_default=True,
    help="Where the report goes.",
)
def demo(out: str) -> None:
    """Train classifiers on scikit-learn's digits and breast-cancer data, measure them, and write a report."""
    rows, verdicts = [], []
    kept: dict[str, tc.Predictions] = {}
    for data, model, preds in _predictions():
        summary = tc.scores.summary(preds)
        est = tc.measure(preds)
        assert est.interval is not None
        rows.append(
            [
                f"{data}: {model}",
                str(summary.n),
                number(summary.accuracy, 3),
                number(summary.mean_confidence, 3),
                number(float(est.value), 3),
                f"{number(float(est.interval.low), 3)} to {number(float(est.interval.high), 3)}",
                number(None if est.p_value is None else float(est.p_value), 3),
            ]
        )
        verdict = tc.inference.conclude(est, tolerance=_TOLERANCE, profile=default_lens(preds)(preds))
        text = fill(f"{verdict.sentence} {verdict.reading}", 100, initial_indent="    ", subsequent_indent="    ")
        verdicts.append(f"  {data}: {model}\n{text.rstrip()}")
        kept[f"{data}: {model}"] = preds
    header = ["held-out predictions", "n", "accuracy", "confidence", "error (rms)", "95% interval", "p"]
    click.echo("How far is their confidence from the truth?\n")
    click.echo(table(header, rows))
    click.echo("\nWhat to conclude\n")
    click.echo("\n".join(verdicts))
    good, poor = "digits: logistic regression", "digits: random forest"
    click.echo(f"\nThe same question put to every estimator, for {good}\n")
    click.echo(_all_estimators(kept[good]))
    click.echo(
        "\nOne model, the same rows: most of these numbers depend on bins or bandwidth and lean upwards when a model is good.\n"
        "Quote the rank series with its interval; give the others when a reader asks for them.\n"
    )
    _write_report(kept[poor], poor, out)


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
        rows.append(
            [name, kind, number(float(est.value)), _interval(est), "-" if est.bins is None else str(est.bins.filled)]
        )
    return table(["estimator", "average", "error", "95% interval", "bins"], rows)


def _interval(est: "tc.Estimate") -> str:
    from truecal.cli.output import number

    if est.interval is None:
        return "-"
    return f"{number(float(est.interval.low))} to {number(float(est.interval.high))}"


def _write_report(preds: "tc.Predictions", name: str, out: str) -> None:
    from truecal.cli.output import note

    path = tc.report(
        preds,
        out,
        title=f"Calibration of {name}",
        tolerance=_TOLERANCE,
        source="scikit-learn digits",
        command="truecal demo",
    )
    note(f"Report: {Path(path).resolve()}")
