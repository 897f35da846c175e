"""Peng, Alamzadeh and Ester, "Better calibration error estimation" (2023, P): the numbers that its items test."""

from papers.grading import Number, Quantities, average
from papers.roelofs import select
from truecal.lab import Frame

_NAMES = ("KNN", "SWEEP", "DEBIASED", "EW", "EM")


def by_n(table: Frame) -> Quantities:
    """Mean |bias| and mean bias (%) over datasets and sizes, by worlds and estimator, and at 200 rows."""
    quantities = {}
    for worlds, short in (("uncalibrated", "raw"), ("recalibrated", "fixed")):
        for name in _NAMES:
            rows = select(table, worlds=worlds, estimator=name)
            if not rows:
                continue
            numbers = [Number(row["bias_percent"], row["bias_se"]) for row in rows]
            quantities[f"{name}_{short}"] = average(numbers, absolute=True)
            quantities[f"{name}_{short}_bias"] = average(numbers)
            few = [number for number, row in zip(numbers, rows, strict=True) if row["n"] == 200]
            if few:
                quantities[f"{name}_{short}_200"] = average(few)
    near = [quantities.get(f"{name}_fixed_200") for name in ("KNN", "SWEEP", "DEBIASED")]
    if all(near):
        knn, sweep, debiased = (number for number in near if number is not None)
        for name, one in (("knn", knn), ("sweep", sweep)):
            quantities[f"gap_{name}_200"] = Number(abs(one.value - debiased.value), (one.se**2 + debiased.se**2) ** 0.5)
    return quantities


def figure_4(table: Frame) -> Quantities:
    names = ("resnet110_c10", "resnet110_c100", "resnet152_imgnet")
    shares = {row["network"]: float(row["share"]) for row in select(table, low=0.98)}
    rows = {name: sum(row["rows"] for row in select(table, network=name)) for name in shares}
    se = {name: (share * (1 - share) / rows[name]) ** 0.5 for name, share in shares.items()}
    short = {"resnet110_c10": "cifar10", "resnet110_c100": "cifar100", "resnet152_imgnet": "imagenet"}
    return {short[name]: Number(shares[name], se[name]) for name in names if name in shares}


def figure_7(table: Frame) -> Quantities:
    quantities = {}
    for name in _NAMES:
        rows = select(table, estimator=name)
        for short, column in (("raw", "uncalibrated"), ("fixed", "recalibrated")):
            numbers = [Number(row[f"{column}_bias"], row[f"{column}_se"]) for row in rows]
            quantities[f"{name}_{short}"] = average(numbers, absolute=True)
    return quantities


def means(table: Frame) -> Quantities:
    quantities = {}
    short = {"all": "", "CIFAR-10": "_cifar10", "CIFAR-100": "_cifar100", "ImageNet": "_imagenet"}
    for row in table:
        worlds = {"uncalibrated": "raw", "recalibrated": "fixed", "calibrated": "perfect"}[row["worlds"]]
        name = f"{row['estimator']}_{worlds}{short[row['dataset']]}"
        quantities[name] = Number(row["mean_bias"], row["mean_bias_se"])
        quantities[f"{name}_abs"] = Number(row["mean_abs_bias"], row["mean_abs_se"])
    return quantities


def t_tests(table: Frame) -> Quantities:
    quantities = {}
    names = [f"{name}{down}" for down in ("", "_down") for name in ("absolute", "bias", "recalibrated")]
    for row, name in zip(table, names, strict=True):
        quantities[f"t_{name}"] = Number(row["t_paired"], row["t_paired_se"])
        quantities[f"log10_p_{name}"] = Number(row["log10_p_paired"], row["log10_p_paired_se"])
    return quantities


def alphas(table: Frame) -> Quantities:
    names = {"alpha 10": "alpha_10", "alpha 100": "alpha_100", "alpha 200": "alpha_200", "k by risk": "by_risk"}
    return {
        short: average([Number(r["mean_abs_bias"], r["mean_abs_se"]) for r in select(table, variant=variant)])
        for variant, short in names.items()
    }
