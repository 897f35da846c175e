# One word per job. Every target makes and reuses .venv by itself; all it needs is python3 (uv is used where it is installed).
PYTHON ?= python3
VENV := .venv
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := $(VENV)/$(SCRIPTS)
STAMP := $(VENV)/.installed
BENCH := .venv-bench
LOCK := requirements/dev.lock
UV := $(shell command -v uv 2> /dev/null)
INSTALL = $(if $(UV),uv pip install --quiet --python $(1),$(1)/$(SCRIPTS)/python -m pip install --quiet --disable-pip-version-check)
# One thread of linear algebra for every process of the tests: more would wait for each other. Compiled modules are kept even
# where the environment says otherwise: the tests start some hundreds of processes, and each would compile them again.
ALONE := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=
# One more than there are cores: browsers, kills and clusters wait more than they compute.
WORKERS := $(shell $(PYTHON) -c "import os; print(os.cpu_count() + 1)")
# What every change of the core can break, without simulations: see CONTRIBUTING.md for the measured time.
QUICK := tests/predictions tests/profile tests/lenses tests/estimators tests/recalibration tests/selective tests/tools tests/conformance \
	tests/cli/test_measure.py tests/test_public.py tests/test_select.py tests/scores
.PHONY: help demo papers test test-all test-adapters quick check picture coverage bench docs dist data lock clean hostile mutants sbom test-lowest

help:                    ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## */\1\t/' | expand -t 12

$(STAMP): pyproject.toml $(LOCK)
	$(PYTHON) -m venv $(VENV)
	$(call INSTALL,$(VENV)) -c $(LOCK) -e '.[dev]'
	@touch $(STAMP)

$(VENV)/.demo: pyproject.toml
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	test -e $(STAMP) || $(call INSTALL,$(VENV)) -c $(LOCK) -e '.[all]'
	@touch $@

demo: $(VENV)/.demo      ## train real classifiers, then measure how far to trust them; installs no more than the demo needs
	$(BIN)/truecal demo

test: $(STAMP)           ## before every landing, minutes: each behaviour once, simulations with a fifth of their datasets
	$(ALONE) $(BIN)/pytest -n $(WORKERS) --dist worksteal -m 'not full' $(ARGS)

test-all: $(STAMP)       ## before an issue is called resolved: full simulations, kills, clusters of processes, other CPUs, the papers
	TRUECAL_FULL=1 $(ALONE) $(BIN)/pytest -n $(WORKERS) --dist worksteal $(ARGS)

quick: $(STAMP)          ## under two minutes: the core without simulations and pages
	$(ALONE) $(BIN)/pytest -n auto -m 'not slow and not full' -k 'not estimator_checks' --hypothesis-profile=quick $(QUICK) $(ARGS)

check: $(STAMP)          ## lint, format, types; layers, cycles and base classes
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tools.layers
	$(BIN)/zizmor --offline --quiet .github/workflows

picture: $(STAMP)        ## draw docs/images: the architecture from the imports, pages by an installed Chromium
	$(BIN)/python -m tools.picture
	$(BIN)/python -m tools.screenshots

hostile: $(STAMP)        ## files x options x engines, damaged files, kills, races and full disks for MINUTES (10) in all; SEED=... repeats a run
	$(BIN)/python -m tools.hostile --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))

mutants: $(STAMP)        ## change validation, cuts, verify, resampling and readers line by line; which changes do the tests notice?
	$(BIN)/python -m tools.mutants $(ARGS)

sbom: $(STAMP)           ## what the package needs and under which licences, as CycloneDX; fails on a licence that is not permissive
	$(BIN)/python -m tools.sbom build/sbom.json

test-lowest:             ## the quick tests with the lowest versions that pyproject.toml allows, in an environment of their own
	$(PYTHON) -m venv .venv-lowest
	$(PYTHON) -m tools.lowest > .venv-lowest/lowest.txt
	$(call INSTALL,.venv-lowest) -r .venv-lowest/lowest.txt
	$(call INSTALL,.venv-lowest) --no-deps -e .
	.venv-lowest/$(SCRIPTS)/pytest -n auto -m 'not slow and not full' --hypothesis-profile=quick $(QUICK) \
		tests/engines/test_scan.py tests/engines/test_same_files.py $(ARGS)

test-adapters:           ## the adapters against the real packages (lm-eval, Inspect, evaluate, MLflow, wandb, skore), in an environment of their own
	$(PYTHON) -m venv .venv-adapters
	$(call INSTALL,.venv-adapters) torch==2.13.0
	$(call INSTALL,.venv-adapters) -e '.[all,torchmetrics]' -r requirements/adapters.txt
	$(ALONE) .venv-adapters/$(SCRIPTS)/pytest tests/integrations tests/lenses/test_multilabel.py tests/engines/test_streams.py $(ARGS)

coverage: $(STAMP)       ## lines and branches of src that the tests run; fails below the goal in pyproject.toml
	TRUECAL_FULL=1 $(ALONE) $(BIN)/pytest -n auto --cov --cov-report=term-missing:skip-covered --cov-report=html:build/coverage $(ARGS)

docs: $(STAMP)           ## build the documentation into site/
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m tools.site
	$(BIN)/python -m tools.links site

# Networks whose outputs are here (make data) are given to the experiments; items about others are left out of the page.
OUTPUTS := $(foreach pair,resnet110_c10=tests/data/resnet110_cifar10_logits.npz vgg16_c10=tests/data/vgg16_cifar10_probs.npz,\
	$(if $(wildcard $(lastword $(subst =, ,$(pair)))),--data $(pair)))
papers: $(STAMP)         ## the papers' experiments with few simulations, into build/papers; FULL=1: as many as the papers, into docs/papers.md
	$(BIN)/python -m papers page $(if $(FULL),--full --out docs/papers --cache build/papers-cache --record,--quick --out build/papers) $(OUTPUTS) $(ARGS)

bench: $(BENCH)/.installed  ## speed and memory beside other libraries, as ratios of one run; which of them agree with the conformance cases
	$(BENCH)/$(SCRIPTS)/python -m conformance.peers
	OPENBLAS_NUM_THREADS=1 $(BENCH)/$(SCRIPTS)/python -m benchmarks.speed $(ONLY)

$(BENCH)/.installed: pyproject.toml benchmarks/requirements.txt
	$(PYTHON) -m venv $(BENCH)
	$(call INSTALL,$(BENCH)) torch==2.13.0
	$(call INSTALL,$(BENCH)) -e '.[all]' -r benchmarks/requirements.txt
	@touch $(BENCH)/.installed

dist: $(STAMP)           ## build sdist and wheel, check them, install the wheel in empty environments and run README and doctests there
	$(BIN)/python -m tools.dist $(ARGS)

data:                    ## real logits for the tests that need them: make data FROM=<folder>
	@test -n "$(FROM)" || { echo "say where they are: make data FROM=<folder with *.npz>"; exit 2; }
	mkdir -p tests/data
	cp "$(FROM)"/resnet110_cifar10_logits.npz "$(FROM)"/vgg16_cifar10_probs.npz tests/data/

lock:                    ## pin the newest versions that satisfy pyproject.toml; run the tests before committing the result
	$(PYTHON) -m venv .venv-lock
	$(call INSTALL,.venv-lock) -e '.[dev]'
	.venv-lock/$(SCRIPTS)/python -m tools.lock > $(LOCK)
	rm -rf .venv-lock

clean:                   ## remove everything that make made
	rm -rf $(VENV) $(BENCH) .venv-lock .venv-lowest .venv-adapters site build dist
