"""Kirchenbauer, Oaks and Heim, "What is your metric telling you?" (2022, G): the numbers that its items test."""

import re

import numpy as np

from papers.grading import Number, Quantities
from papers.roelofs import select
from truecal.lab import Frame

_SHORT = {
    "none": "base",
    "label-smoothing": "smoothing",
    "bias-corrected-temperature": "bcts",
    "histogram": "binning",
    "histogram-width": "binning_width",
}


def compared(table: Frame) -> Quantities:
    """Every number as intervention_lens[_metric][_in_label], the change from the base model as ..._change, floors as ..._floor."""
    quantities = {}
    for row in table:
        words = [_SHORT.get(row["intervention"], row["intervention"]), row["lens"]]
        words += [row["metric"]] if row["metric"] != "error" else []
        words += ["in", row["selection"].removeprefix("label ")] if row["selection"] != "all" else []
        name = re.sub(r"\W+", "_", "_".join(words))
        if row["value"] is None or not np.isfinite(row["value"]):
            continue
        quantities[name] = Number(row["value"], row["se"])
        if row["change"] is not None and np.isfinite(row["change"]):
            quantities[f"{name}_change"] = Number(row["change"], row["change_se"])
        if row["if_calibrated"] is not None:
            quantities[f"{name}_floor"] = Number(row["if_calibrated"])
    after = ("label-smoothing", "mixup", "focal", "temperature", "bias-corrected-temperature", "histogram")
    traditional = {row["intervention"]: row["value"] for row in select(table, lens="traditional", metric="error")}
    full = {row["intervention"]: row["value"] for row in select(table, lens="full", metric="error")}
    present = [n for n in after if n in traditional]
    quantities["lowered"] = Number(float(sum(traditional[n] < traditional["none"] for n in present)))
    quantities["full_lowered"] = Number(float(sum(full[n] < full["none"] for n in present)))
    groups = next((row["lens"] for row in table if row["lens"].startswith("groups") and row["selection"] == "all"), "")
    grouped = {r["intervention"]: r["value"] for r in select(table, lens=groups, metric="error", selection="all")}
    quantities["groups_raised"] = Number(float(sum(grouped[n] > grouped["none"] for n in present if n in grouped)))
    accuracy = {row["intervention"]: row["value"] for row in select(table, lens="top-1", metric="accuracy")}
    order = sorted(present, key=accuracy.__getitem__)
    for place, name in enumerate(order, 1):
        quantities[f"{_SHORT.get(name, name)}_place"] = Number(float(place))
    if "focal" in order and "bias-corrected-temperature" in order:
        places = [quantities["focal_place"], quantities["bcts_place"]]
        quantities["focal_or_bcts_place"] = min(places, key=lambda number: number.value)
    changes = [quantities.get(f"{_SHORT.get(name, name)}_rank_5_confidence_change") for name in present]
    quantities["rank_5_raised"] = Number(float(sum(change.value > 0 for change in changes if change is not None)))
    return quantities


def accuracies(table: Frame) -> Quantities:
    """Count the printed columns (of 18) in which temperature scaling keeps the accuracy, and find the largest loss of all cells."""
    base = {(row["table"], row["network"]): row["accuracy"] for row in select(table, intervention="Base Model")}
    losses = [base[row["table"], row["network"]] - row["accuracy"] for row in table]
    scaled = select(table, intervention="Temp. Scaling")
    kept = sum(row["accuracy"] == base[row["table"], row["network"]] for row in scaled)
    return {"columns_kept": Number(float(kept)), "largest_loss": Number(max(losses))}


def floor(table: Frame) -> Quantities:
    quantities = {}
    for row in table:
        name = f"{_SHORT.get(row['intervention'], row['intervention'])}_{row['lens'].replace('-', '_')}"
        quantities[name] = Number(row["value"])
        quantities[f"{name}_floor"] = Number(row["if_calibrated"])
    return quantities


def granularity(table: Frame) -> Quantities:
    full = [row for row in table if row["lens"] == "full"]
    largest = max(row["rows"] for row in full)
    quantities = {}
    for row in full:
        k = round(float(np.log2(1 / row["gamma"])))
        m = row["resamples"]
        if row["rows"] == largest:
            quantities[f"error_{k}"] = Number(row["error"], row["sd"] / m**0.5)
            quantities[f"median_{k}"] = Number(row["median_in_bin"])
            quantities[f"most_{k}"] = Number(row["most_in_bin"])
    for lens in ("full", "top-1"):
        for short, rows in (("few", min), ("all", max)):
            size = rows(row["rows"] for row in table)
            part = select(table, lens=lens, rows=size)
            sds = [row["sd"] for row in part]
            m = part[0]["resamples"]
            name = f"{lens.replace('-', '_')}_{short}"
            finest = next(row for row in part if row["gamma"] == 1 / 16)
            quantities[f"sd_{name}"] = Number(finest["sd"], finest["sd"] / (2 * max(m - 1, 1)) ** 0.5)
            quantities[f"range_{name}"] = Number(
                max(sds) - min(sds), (max(sds) ** 2 + min(sds) ** 2) ** 0.5 / (2 * max(m - 1, 1)) ** 0.5
            )
    return quantities
