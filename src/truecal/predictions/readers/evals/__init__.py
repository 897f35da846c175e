"""Evaluation logs of language models as tables: one row per answer, with its confidence and whether it was correct."""

from truecal.predictions.readers.evals.answers import EvalLog
from truecal.predictions.readers.evals.log import eval_log
from truecal.predictions.readers.evals.presets import PRESETS, preset_table

__all__ = ["PRESETS", "EvalLog", "eval_log", "preset_table"]
