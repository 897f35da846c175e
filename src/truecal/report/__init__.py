"""The report: one self-contained HTML page about one set of predictions, built from its profile.

`truecal.report(preds, "report.html")` is the door; everything behind it loads on use.
"""

from typing import TYPE_CHECKING

from truecal.lazy import lazy_names

if TYPE_CHECKING:
    from truecal.report.doors import report as report
    from truecal.report.doors import report_comparison as report_comparison
    from truecal.report.doors import report_study as report_study
    from truecal.report.doors import report_watch as report_watch
    from truecal.report.model.verdict import judge as judge

__getattr__, __all__ = lazy_names(
    __name__,
    {
        "truecal.report.doors": "report report_comparison report_study report_watch",
        "truecal.report.model.verdict": "judge",
    },
)
