"""Kirchenbauer, Oaks and Heim, "What is your metric telling you?" (2022): every numbered item (G).

Their networks and data sets are not public here: the figures are drawn from the outputs of another network, for the interventions
after training; those made while training are in `truecal study interventions`, by training or from ready logits.
"""

from collections.abc import Callable, Mapping, Sequence

from papers.kirchenbauer.interventions import BASE
from papers.page import RESNET, items_of, only
from truecal.lab import Frame

_AFTER = ("temperature", "bias-corrected temperature", "histogram, equal mass", "histogram, equal width")
_OTHER = f"on {RESNET.partition('=')[0]}, not on the paper's data"
_TWO_CLASSES = (
    "with ten classes the first two hold 99.8 % of the probability, so that every top-k error is the top-1 error (0.0475 for "
    "k = 1 to 5) and falls with it; with 1000 classes what the first gives up goes to 999 others"
)
_FEW_MEDIUM = (
    "the paper's task has two classes, whose outputs fill all three intervals; here 180 of 10,000 rows have a medium and one a low "
    "confidence, and the medium ones are right 41 % of the time at a confidence of 56 %"
)
_SURE = (
    "this network gives 89 % of its rows more than 0.99, an entropy of 0.04 that no calibrated output of its accuracy has, so that "
    "binning raises it too; a network that is right 76 % of the time starts with spread outputs"
)
_LITTLE = 0.25  # what counts as hardly: a quarter of the base model's error
_SAME = "the same command with the outputs of that network (--data NAME=FILE)"


def _value(table: Frame, intervention: str, lens: str, metric: str = "error", selection: str = "all") -> float:
    return float(only(table, intervention=intervention, lens=lens, metric=metric, selection=selection)[0]["value"])


def _change(table: Frame, lens: str) -> float:
    """By how much temperature scaling changes an error, relative to the base model's."""
    return _value(table, "temperature", lens) / _value(table, BASE, lens) - 1


def _lowered(table: Frame) -> int:
    return sum(_value(table, name, "traditional") < _value(table, BASE, "traditional") for name in _AFTER)


def _top_k(table: Frame) -> str:
    return (
        f"temperature: traditional {_change(table, 'traditional'):+.0%}, top-5 {_change(table, 'top-5'):+.0%}, full "
        f"{_change(table, 'full'):+.0%}; traditional lowered by {_lowered(table)} of 4"
    )


def _ranks(table: Frame) -> str:
    gaps = [
        _value(table, "temperature", f"rank {k}", "confidence") - _value(table, BASE, f"rank {k}", "confidence")
        for k in (1, 2, 3)
    ]
    return "temperature, ranks 1 to 3: " + ", ".join(f"{100 * gap:+.2f}" for gap in gaps)


def _ranks_hold(table: Frame) -> bool:
    first = [_value(table, name, "rank 1", "confidence") for name in (BASE, *_AFTER)]
    return all(after < first[0] for after in first[1:])


def _grouped(table: Frame) -> str:
    names = sorted({str(row["selection"]) for row in table if str(row["selection"]).startswith("label ")})
    own = ", ".join(f"{n.removeprefix('label ')} {_value(table, BASE, 'groups', selection=n):.4f}" for n in names)
    lens = ", ".join(f"{name} {_value(table, BASE, name):.4f}" for name in ("traditional", "groups", "full"))
    return f"base: {lens}; rows of one group: {own}"


def _finer(table: Frame) -> bool:
    """The finer the grouping, the larger the error."""
    return all(_value(table, name, "groups") < _value(table, name, "full") for name in (BASE, *_AFTER))


def _confidence(table: Frame) -> str:
    row = max(
        (
            r
            for r in only(table, intervention=BASE, metric="confidence")
            if not str(r["selection"]).endswith(r["lens"][8:])
        ),
        key=lambda r: r["value"],
    )
    after = _value(table, "temperature", str(row["lens"]), "confidence", str(row["selection"]))
    return f"{row['lens'].removeprefix('groups: ')} where {row['selection']}: {row['value']:.4f}, after temperature {after:.4f}"


def _likert(scale: str, metric: str) -> Callable[[Frame], str]:
    def ours(table: Frame) -> str:
        parts = []
        for name in (BASE, "temperature"):
            rows = [r for r in only(table, intervention=name, metric=metric) if str(r["lens"]).startswith(scale)]
            own = ", ".join(f"{str(r['lens']).removeprefix(scale + ' ')} {r['value']:.4f}" for r in rows)
            parts.append(f"{'base' if name == BASE else name}: {own}")
        return "; ".join(parts)

    return ours


def _more_medium(table: Frame) -> bool:
    return all(
        _value(table, name, "likert medium", "share") > _value(table, BASE, "likert medium", "share") for name in _AFTER
    )


def _entropy_holds(table: Frame) -> bool:
    """Temperatures raise it, histogram binning does not."""
    base = _value(table, BASE, "full", "entropy")
    return all((_value(table, n, "full", "entropy") > base) != n.startswith("histogram") for n in _AFTER)


def _medium_kept(table: Frame) -> bool:
    return all(_value(table, n, "likert medium", "beyond the interval") == 0 for n in (BASE, *_AFTER))


def _stable(table: Frame) -> str:
    most = max(int(row["rows"]) for row in table)
    whole = {round(1 / float(row["gamma"])): row for row in table if row["rows"] == most}
    return "1/gamma " + ", ".join(f"{k}: {whole[k]['error']:.4f} (sd {whole[k]['sd']:.4f})" for k in (2, 16, 2048))


def _biased(table: Frame) -> bool:
    most = max(int(row["rows"]) for row in table)
    whole = [float(row["error"]) for row in table if row["rows"] == most]
    return whole[-1] > whole[3] > whole[0]


def _held(table: Frame) -> str:
    most = max(int(row["rows"]) for row in table)
    row = next(r for r in table if r["rows"] == most and r["gamma"] == 1 / 16)
    return f"gamma 1/16: {row['least_in_bin']:.0f} to {row['most_in_bin']:.0f}, median {row['median_in_bin']:.0f}"


def _spread(table: Frame) -> str:
    rows = [r for r in table if r["gamma"] == 1 / 16]
    return ", ".join(f"{r['rows']} rows {r['sd']:.4f}" for r in rows)


def _less_spread(table: Frame) -> bool:
    rows = sorted((int(r["rows"]), float(r["sd"])) for r in table if r["gamma"] == 1 / 16)
    return rows[0][1] > rows[-1][1]


def _accuracies(table: Frame) -> str:
    return ", ".join(f"{n} {_value(table, n, 'top-1', 'accuracy'):.4f}" for n in (BASE, *_AFTER))


_beyond, _shares = _likert("likert", "beyond the interval"), _likert("likert", "share")
# The figures of other networks and data sets, for which the paper's statement is not checked.
_SEEN: Mapping[Callable[[Frame], str], Sequence[int]] = {
    _top_k: (14, 15, 16),
    _ranks: (17, 18, 19),
    _grouped: (3, 20, 21, 28),
    _confidence: (4, 22, 23, 29),
    _beyond: (24, 25),
    _shares: (26, 27),
}
ITEMS = items_of(
    "kirchenbauer",
    {
        **{f"Figure {number}": (ours, None) for ours, numbers in _SEEN.items() for number in numbers},
        "Figure 1": (
            _top_k,
            lambda t: _lowered(t) == 4 and _change(t, "top-5") > -_LITTLE and _change(t, "full") > -_LITTLE,
        ),
        "Figure 2": (_ranks, _ranks_hold),
        "Figure 5": (_beyond, _medium_kept),
        "Figure 6": (_shares, _more_medium),
        "Figure 7": (_stable, _biased),
        "Figure 8": (_held, None),
        "Figure 9": (_spread, _less_spread),
        "Figure 10": (
            lambda t: ", ".join(f"top-{k} {_value(t, BASE, f'top-{k}', 'accuracy'):.4f}" for k in (1, 2, 5)),
            None,
        ),
        "Figure 11": (
            lambda t: ", ".join(f"{n} {_value(t, n, 'full', 'entropy'):.3f}" for n in (BASE, *_AFTER)),
            _entropy_holds,
        ),
        "Figure 12": (_grouped, _finer),
        "Figure 13": (
            _likert("likert", "within the interval"),
            lambda t: _value(t, BASE, "likert medium", "within the interval") > 0.02,
        ),
        "Figure 30": (_likert("very high", "beyond the interval"), None),
        "Figure 31": (_likert("very high", "share"), None),
        **dict.fromkeys((f"Table {number}" for number in range(1, 7)), (_accuracies, None)),
    },
    {
        "other data": _OTHER,
        "two classes": f"{_TWO_CLASSES}; {_OTHER}",
        "few medium": f"{_FEW_MEDIUM}; {_OTHER}",
        "sure": f"{_SURE}; {_OTHER}",
        "same": f"{_SAME}; {_OTHER}",
    },
)
