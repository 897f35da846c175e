"""Pictures of pages: `python -m tools.screenshots` writes report, comparison, segments, watch and dossier to docs/images.

Needs an installed Chromium and the real data of the tests (a ResNet-110 on CIFAR-10) for the report.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import truecal as tc
from tests.real_data import real_data
from truecal.pages.dossier import write_dossier

ROOT = Path(__file__).resolve().parents[1]
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=20000")


def report(path: Path) -> None:
    """Write the report of a ResNet-110 on CIFAR-10."""
    with np.load(real_data("resnet110_cifar10_logits.npz"), allow_pickle=False) as arrays:
        preds = tc.Predictions.from_logits(arrays["test_logits"], arrays["test_labels"].astype(int).ravel())
    tc.report(preds, path, source="resnet110_cifar10")


def comparison(path: Path) -> None:
    """Write the comparison of three models that answer questions of four tasks."""
    rng = np.random.default_rng(0)
    task = rng.choice(["arithmetic", "history", "law", "medicine"], 3000)
    models = {}
    for name, mean, power in (("large", 5.0, 1.1), ("medium", 4.0, 1.5), ("small", 3.0, 2.2)):
        confidence = rng.beta(mean, 1.2, 3000)
        right = rng.random(3000) < confidence**power
        models[name] = tc.Predictions.from_answers(confidence, right, columns={"task": task})
    tc.report(models, path)


def segments(path: Path) -> None:
    """Write the groups and segments of a report in which one site is off on one device."""
    rng = np.random.default_rng(3)
    columns = {"site": rng.choice(["A", "B", "C"], 9000), "device": rng.choice(["mobile", "desktop"], 9000)}
    scores = rng.beta(2, 3, 9000)
    off = (columns["site"] == "B") & (columns["device"] == "mobile")
    labels = rng.random(9000) < np.clip(scores - 0.15 * off, 0, 1)
    tc.report(tc.Predictions.from_probs(scores, labels, columns=columns), path, by=["site", "device"])
    others = "main > section:not(#groups, #segments), nav { display: none }"
    path.write_text(path.read_text(encoding="utf-8").replace("</style>", f"{others}</style>", 1), encoding="utf-8")


def watch(path: Path) -> None:
    """Write the watch of fourteen days, in which one region goes off on the tenth."""
    rng = np.random.default_rng(0)
    days = tc.Watch(by="region")
    for day in range(1, 15):
        scores, region = rng.beta(2, 2, 3000), rng.choice(["APAC", "EU", "US"], 3000)
        labels = rng.random(3000) < np.clip(scores - 0.12 * ((region == "EU") & (day >= 10)), 0, 1)
        days.update(tc.Predictions.from_probs(scores, labels, columns={"region": region}), at=f"2026-05-{day:02}")
    tc.report(days, path)


def dossier(path: Path) -> None:
    """Write the dossier of a cohort of 300 patients at six sites."""
    rng = np.random.default_rng(0)
    patients = np.repeat(np.arange(300), 6)
    logits = rng.normal(-2, 1, len(patients))
    labels = rng.random(len(patients)) < 1 / (1 + np.exp(-1.2 * logits - 0.3))
    sites = np.array([f"Hospital {patient % 6 + 1}" for patient in patients])
    preds = tc.Predictions.from_probs(1 / (1 + np.exp(-logits)), labels, clusters=patients, columns={"site": sites})
    write_dossier(preds, path, by="site", source="cohort.csv")


PAGES = {report: "1200,1290", comparison: "1200,1900", segments: "1200,960", watch: "1200,1850", dossier: "1200,1830"}


def main() -> int:
    """Photograph every page at the top, 1200 pixels wide."""
    browser = shutil.which("chromium")
    if browser is None:
        print("there is no chromium to draw the pages with", file=sys.stderr)
        return 1
    for write, size in PAGES.items():
        with tempfile.TemporaryDirectory() as folder:
            page, picture = Path(folder) / "page.html", ROOT / "docs" / "images" / f"{write.__name__}.png"
            write(page)
            where = (f"--user-data-dir={folder}/profile", f"--screenshot={picture}", f"--window-size={size}")
            subprocess.run([browser, *FLAGS, *where, page.as_uri()], check=True, capture_output=True, timeout=120)
            print(picture.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
