"""The charting library (Vega, Vega-Lite and Vega-Embed), taken from the installed vl-convert package: nothing is downloaded.

Bundling takes seconds, so the result is kept in the user's cache folder under the package's version.
"""

import os
from functools import cache
from importlib.metadata import version
from pathlib import Path

from truecal.errors import FileError, extra
from truecal.writing import write_whole

_SNIPPET = "window.vegaEmbed = vegaEmbed;"


@cache
def charting_bundle() -> str:
    """JavaScript that defines `vegaEmbed`, safe to stand inside a script element."""
    vl_convert = extra("vl_convert")
    kept = _folder() / f"charting-{version('vl-convert-python')}.js"
    try:
        return kept.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        pass  # not kept yet
    bundle = inert(f"(() => {{{vl_convert.javascript_bundle(_SNIPPET)}}})();")
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_whole(kept, bundle)
    except (OSError, FileError):
        pass  # without a cache the next page takes seconds longer
    return bundle


def inert(script: str) -> str:
    """JavaScript in which no string can end the script element or open a comment in it."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "truecal"
