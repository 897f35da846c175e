# One word per job. Every target makes and reuses .venv by itself; all it needs is python3.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BENCH := .venv-bench
.PHONY: demo test check bench docs clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $(STAMP)

demo: $(STAMP)           ## train real classifiers, then measure how far to trust them
	$(BIN)/truecal demo

test: $(STAMP)           ## every test, doctest and statistical check
	$(BIN)/pytest -n auto $(ARGS)

check: $(STAMP)          ## lint, format, types, architecture
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(STAMP)           ## build the documentation into site/
	$(BIN)/mkdocs build --strict --quiet

bench: $(BENCH)/.installed  ## speed and memory beside other libraries, as ratios of one run
	$(BENCH)/bin/python -m benchmarks $(ONLY)

$(BENCH)/.installed: pyproject.toml benchmarks/requirements.txt
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BENCH)/bin/pip install --quiet --disable-pip-version-check -e '.[all]' -r benchmarks/requirements.txt
	@touch $(BENCH)/.installed

clean:
	rm -rf $(VENV) $(BENCH) site build dist
