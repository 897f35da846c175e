"""`truecal demo`: real classifiers, trained here on scikit-learn's bundled data, measured as a newcomer would."""

from collections.abc import Iterator
from pathlib import Path
from textwrap import fill

import truecal as tc
from truecal import digits
from truecal.cli.command import WriteTo, command
from truecal.cli.estimators import EstimatorOptions
from truecal.cli.measure import GroupEstimate, estimates_table
from truecal.cli.output import Answer, number, table
from truecal.errors import MissingExtraError
from truecal.inference.conclusion import conclude
from truecal.lenses.one_probability import default_lens

_TOLERANCE = 0.02
_GOOD, _POOR = "digits: logistic regression", "digits: random forest"


@command()
def demo(*, out: WriteTo = "truecal-demo.html") -> Answer:
    """Train classifiers on scikit-learn's digits and breast-cancer data, measure them, and write a report.

    --out FILE  Where the report goes.
    """
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
    good = [GroupEstimate("", "", tc.measure(models[_GOOD], estimator=e)) for e in _ALL.estimators(None)]
    page = {"title": f"Calibration of {_POOR}", "source": "scikit-learn digits", "command": "truecal demo"}
    path = Path(tc.report(models[_POOR], out, tolerance=_TOLERANCE, **page)).resolve()
    text = "\n".join(
        [
            f"How far is their confidence from the truth?\n\n{table(header, rows)}",
            "\nWhat to conclude\n",
            *verdicts,
            f"\nEvery estimator on the same rows, for {_GOOD}\n\n{estimates_table(good)}",
            "\nMost of these numbers depend on bins or a bandwidth and are too large when a model is good. Quote the rank series",
            "with its interval; give the others when a reader asks for them.",
            f"\nReport: {path}",
        ]
    )
    return Answer("demo", {"models": records, "path": str(path)}, text)


_ALL = EstimatorOptions(estimator="all")


def _predictions() -> Iterator[tuple[str, str, "tc.Predictions"]]:
    """Predict held-out rows by classifiers that differ in how they are miscalibrated."""
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
