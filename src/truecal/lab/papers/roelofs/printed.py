"""Table 2 of Roelofs et al., as printed: AIC, b0 and b1 of every calibration curve fitted to every network."""

from collections.abc import Mapping
from types import MappingProxyType

# Curve, AIC, b0, b1 of resnet110_c10, the network whose outputs are public; for the others the row of lowest AIC is in
# truecal.lab.worlds.paper_worlds.
RESNET110_C10: Mapping[str, tuple[float, float | None, float | None]] = MappingProxyType(
    {
        "logflip_logflip_b0_b1": (2779.22, -0.24, 0.30),
        "logit_logflip_b0_b1": (2790.40, -0.55, -0.38),
        "logit_logflip_b1": (2827.51, None, -0.31),
        "logit_logit_b0_b1": (2840.70, -0.38, 0.36),
        "logit_logit_b1": (2900.02, None, 0.30),
        "logflip_logflip_b1": (2932.09, None, 0.34),
        "log_log_b0_b1": (3221.72, -0.06, 2.53),
        "logit_logit_b0": (3799.63, 1.99, None),
        "logflip_logflip_b0": (3811.98, -2.13, None),
        "log_log_b0": (3829.05, -0.13, None),
        "logit_logflip_b0": (3868.40, 1.95, None),
        "log_log_b1": (4281.78, None, 4.75),
    }
)

# Table 3: equal-width ECE (norm 2, percent) on the networks' own outputs, and averaged over simulations.
TABLE_3: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "resnet110_c10": (6.67, 8.42),
        "resnet110_SD_c10": (6.54, 8.79),
        "resnet_wide32_c10": (6.09, 8.44),
        "densenet40_c10": (6.70, 8.09),
        "resnet110_c100": (20.26, 18.87),
        "resnet110_SD_c100": (17.44, 15.78),
        "resnet_wide32_c100": (20.40, 17.53),
        "densenet40_c100": (23.12, 19.69),
        "resnet152_imgnet": (6.85, 9.26),
        "densenet161_imgnet": (6.15, 6.87),
    }
)
