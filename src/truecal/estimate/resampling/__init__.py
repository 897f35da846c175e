"""Resampling one dataset: draws of rows, outcomes redrawn from the scores, and the distribution of an estimate over them."""

from truecal.estimate.resampling import wide
from truecal.estimate.resampling.bootstrap import FEW_RESAMPLES, METHODS, Bootstrap, Method, bootstrap_cells
from truecal.estimate.resampling.cells import (
    CELLS,
    alike,
    cell_places,
    collapse,
    in_parts,
    profile_of,
    refuse_batch,
)
from truecal.estimate.resampling.draws import check_block, multinomial, unit_counts
from truecal.estimate.resampling.fixed_bins import in_fixed_bins
from truecal.estimate.resampling.grouped import GroupDraws, in_grouped_bins
from truecal.estimate.resampling.redraw import (
    REDRAWS,
    Redrawn,
    Statistic,
    against_redraws,
    against_signs,
    redraw,
    redrawn,
)
from truecal.estimate.resampling.units import Units, softened_incidence

__all__ = [
    "CELLS",
    "FEW_RESAMPLES",
    "METHODS",
    "REDRAWS",
    "Bootstrap",
    "GroupDraws",
    "Method",
    "Redrawn",
    "Statistic",
    "Units",
    "against_redraws",
    "against_signs",
    "alike",
    "bootstrap_cells",
    "cell_places",
    "check_block",
    "collapse",
    "in_fixed_bins",
    "in_grouped_bins",
    "in_parts",
    "multinomial",
    "profile_of",
    "redraw",
    "redrawn",
    "refuse_batch",
    "softened_incidence",
    "unit_counts",
    "wide",
]
