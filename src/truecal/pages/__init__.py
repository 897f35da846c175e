"""Pages: one offline HTML file for a model, a comparison, a study or a watch."""

from truecal.pages.entry import report, report_comparison, report_model, report_study, report_watch

__all__ = ["report", "report_comparison", "report_model", "report_study", "report_watch"]
