"""Classic mistakes, planted one at a time in a small implementation: each misses a conformance case, and without them none."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest

from conformance import run


@dataclass(frozen=True)
class Tool:
    """An implementation of binned errors as people write them, with one mistake or none."""

    mistake: str = "none"

    def answer(self, case, data):
        """The value of a case, or None for a definition that the tool does not have."""
        definition, lens = case["definition"], case.get("lens", {"name": "none"})
        if definition["name"] not in ("binned", "debiased") or lens["name"] not in ("none", "top-label", "class-wise"):
            return None
        if definition["name"] == "debiased" and (definition["norm"] != 2 or definition.get("correction") != "kumar"):
            return None
        if (definition["name"] == "debiased" and len(data["scores"]) < 10) or "importance" in case["data"]:
            return None
        norm = math.inf if definition["norm"] == "inf" else definition["norm"]
        w = np.array(data["weights"], float) if "weights" in data and self.mistake != "weights ignored" else None
        powers = [self.power(c, y, w, definition, norm) for c, y in self.views(data, lens["name"])]
        mean = float(np.mean(powers))
        return mean if norm in (1, math.inf) or self.mistake == "no root" else max(mean, 0.0) ** (1 / norm)

    def views(self, data, lens):
        if data["kind"] == "scores" and lens == "none":
            return [(np.array(data["scores"], data["precision"]), np.array(data["outcomes"]))]
        p = self.probabilities(data)
        y = np.array(data["outcomes" if data["kind"] == "scores" else "labels"])
        if lens == "top-label":
            top = p.argmax(axis=1)
            if self.mistake == "last of equal classes" or data["kind"] == "scores":
                top = p.shape[1] - 1 - p[:, ::-1].argmax(axis=1)
            return [(p[np.arange(len(p)), top], (top == y).astype(int))]
        classes = y.max() + 1 if self.mistake == "classes counted from the labels" else p.shape[1]
        return [(p[:, k], (y == k).astype(int)) for k in range(classes)]

    def probabilities(self, data):
        if data["kind"] == "scores":
            p = np.array(data["scores"], data["precision"])
            return np.stack([1 - p, p], axis=1)
        if data["kind"] == "probs":
            return np.array(data["probs"])
        z = np.array(data["logits"])
        if self.mistake != "softmax without a shift":
            z = z - z.max(axis=1, keepdims=True)
        with np.errstate(all="ignore"):
            e = np.exp(z)
            return e / e.sum(axis=1, keepdims=True)

    def power(self, c, y, w, definition, norm):
        if np.isnan(c).any():
            return math.nan
        weight = np.ones(len(c)) if w is None else w
        mask = weight > 0
        c, y, weight = c[mask], y[mask], weight[mask]
        bins = definition["bins"]
        debiased = definition["name"] == "debiased"
        if debiased:
            bins = max(1, min(bins, int(weight.sum() // 2)))
        if definition.get("scheme", "mass") == "width":
            of = self.width(c, bins, definition["closed"])
            parts = [(c[of == k], y[of == k].astype(float), weight[of == k]) for k in np.unique(of)]
        else:
            parts = self.mass(c, y, weight, bins, definition.get("ties", "keep"))
        float_type = np.float32 if self.mistake == "single-precision sums" else np.float64
        shares, gaps = [], []
        for score, rate, size in parts:
            n = size.sum()
            mean_c, mean_y = (
                float((a.astype(float_type) * size.astype(float_type)).sum() / float_type(n)) for a in (score, rate)
            )
            gap = abs(mean_c - mean_y)
            if debiased:
                gap = gap**2 - mean_y * (1 - mean_y) / (n if self.mistake == "n instead of n - 1" else n - 1)
            shares.append(n)
            gaps.append(gap)
        shares = np.array(shares) / np.sum(shares)
        if self.mistake == "mean over bins":
            shares = np.full(len(shares), 1 / len(shares))
        if norm == math.inf:
            return max(gaps)
        return float(shares @ (np.array(gaps) if debiased else np.array(gaps) ** norm))

    def width(self, c, bins, closed):
        if self.mistake == "floor(c * bins)":
            return np.minimum((c * bins).astype(int), bins - 1)
        if self.mistake == "an extra bin for 1.0":
            return np.digitize(c, (np.arange(bins + 1) / bins).astype(c.dtype)) - 1
        edges = np.linspace(0, 1, bins + 1) if self.mistake == "linspace edges" else np.arange(bins + 1) / bins
        if self.mistake != "edges in double precision":
            edges = edges.astype(c.dtype)
        left = closed == "left"
        if self.mistake == "the other side of an edge":
            left = not left
        return np.searchsorted(edges[1:-1], c, "right" if left else "left")

    def mass(self, c, y, weight, bins, ties):
        order = np.argsort(c, kind="stable")
        c, y, count = c[order].astype(float), y[order].astype(float), weight[order].astype(int)
        c, y = np.repeat(c, count), np.repeat(y, count)
        n = len(c)
        if self.mistake != "ties parted by row order":
            for value in np.unique(c):
                y[c == value] = y[c == value].mean()
        cuts = [-(-k * n // bins) for k in range(bins + 1)]
        if ties == "keep" and self.mistake != "ties parted by row order":
            first, last = np.searchsorted(c, c, "left"), np.searchsorted(c, c, "right")
            results = []
            for cut in cuts:
                inside = 0 < cut < n and c[cut - 1] == c[cut]
                low, high = (first[cut], last[cut]) if inside else (cut, cut)
                results.append(high if (cut - low) * 2 >= high - low else low)
            cuts = results
        one = np.ones(n)
        return [(c[a:b], y[a:b], one[a:b]) for a, b in itertools.pairwise(cuts) if b > a]


MISTAKES = [
    "floor(c * bins)",
    "linspace edges",
    "an extra bin for 1.0",
    "the other side of an edge",
    "edges in double precision",
    "ties parted by row order",
    "single-precision sums",
    "mean over bins",
    "no root",
    "n instead of n - 1",
    "weights ignored",
    "classes counted from the labels",
    "softmax without a shift",
    "last of equal classes",
]


def missed(tool: Tool) -> list[str]:
    wrong = []
    for case, data in run.cases():
        value, expected = tool.answer(case, data), float(case["expected"]["value"])
        if value is not None and not abs(value - expected) <= case["tolerance"]:
            wrong.append(case["id"])
    return wrong


def test_without_a_mistake_every_case_is_met():
    assert missed(Tool()) == []
    assert sum(Tool().answer(case, data) is not None for case, data in run.cases()) > 300


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_found(mistake):
    assert missed(Tool(mistake)), f"no case notices: {mistake}"


def test_the_readme_lists_the_mistakes():
    assert len(MISTAKES) >= 10
