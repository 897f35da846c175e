"""Pages: one offline HTML file for a model, a comparison, a study or a watch."""

from truecal.pages.entry import report

__all__ = ["report"]
