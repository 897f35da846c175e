"""The command line inside tests, as in tests/cli."""

from tests.cli.conftest import truecal as truecal
