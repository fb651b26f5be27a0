# Two commands do everything on a fresh machine with Python 3.11+: `make demo` and `make test`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# the tested versions of all dependencies; `make test CONSTRAINTS=` takes the newest ones that pyproject.toml allows
CONSTRAINTS ?= constraints.txt
# --no-compile: byte-compiling every dependency would double the installation time
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile $(CONSTRAINTS:%=--constraint %)
# so what is imported must be kept compiled: where the environment forbids it, every process would compile all of it again
unexport PYTHONDONTWRITEBYTECODE
# an environment from before the distribution was renamed would keep two of them: the old one goes before the new one comes
RENAME := if ls $(VENV)/lib/python*/site-packages/veil-[0-9]*.dist-info > /dev/null 2>&1; then $(BIN)/python -m pip uninstall --quiet --yes veil; fi
# two states of one environment: enough for the demo, and with everything that tests need
DEMO_READY := $(VENV)/.demo-ready
READY := $(VENV)/.ready

# with what is run seldom: it has to start, at least
TYPES := $(BIN)/mypy && $(BIN)/lint-imports && $(BIN)/python -m bench --help > /dev/null && $(BIN)/python -m acceptance --help > /dev/null

TESTS := $(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder

.PHONY: demo test quick acceptance bench lint style types clean setup dist constraints

setup: $(READY)

$(BIN)/pip:
	$(PYTHON) -m venv $(VENV)

$(DEMO_READY): pyproject.toml $(CONSTRAINTS) | $(BIN)/pip
	@$(RENAME)
	$(INSTALL) --editable '.[collector]'
	@touch $@

$(READY): pyproject.toml $(CONSTRAINTS) | $(BIN)/pip
	@$(RENAME)
	$(INSTALL) --editable '.[dev]'
	@touch $(DEMO_READY) $@

demo: $(DEMO_READY)
	$(BIN)/veil demo

lint: style types

style: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(TYPES)

# types are checked beside the tests, because mypy keeps one core busy for a minute or two
test: style
	($(TYPES)) & types=$$!; $(TESTS) -m 'not acceptance' $(ARGS); tests=$$?; wait $$types && exit $$tests

# before a commit, in under a minute on two cores: no types, and only unit tests that are not slow
quick: style
	$(BIN)/lint-imports
	$(TESTS) -m 'not acceptance and not slow' tests/unit

# resumable, in under an hour on two cores; ARGS=--full leaves nothing to samples
acceptance: $(READY)
	$(BIN)/python -m acceptance $(ARGS)

# ARGS='--rows sql' measures some rows; ARGS='--against COMMIT' compares with an earlier commit
bench: $(READY)
	$(BIN)/python -m bench $(ARGS)

# in fresh environments, one for each Python from 3.11 to 3.13; takes some minutes
constraints:
	$(PYTHON) tools/make_constraints.py

# a release: the source archive, the wheel made from it, an SBOM and digests; refused while placeholders are left
dist: $(READY)
	$(BIN)/python tools/release.py check
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/twine check --strict dist/*
	$(BIN)/python tools/release.py describe dist

clean:
	rm -rf $(VENV) .bench-against clients/js/node_modules clients/js/build clients/js/dist clients/js/LICENSE build dist *.egg-info src/*.egg-info .mypy_cache .ruff_cache .hypothesis
	git worktree prune 2> /dev/null || true
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
