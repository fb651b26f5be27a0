# Two commands do everything on a fresh machine with Python 3.11+: `make demo` and `make test`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test acceptance bench lint clean setup

setup: $(READY)

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

demo: $(READY)
	$(BIN)/veil demo

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: $(READY) lint
	$(BIN)/pytest -n auto -m 'not acceptance'

# resumable, in under an hour on two cores; ARGS=--full leaves nothing to samples
acceptance: $(READY)
	$(BIN)/python -m acceptance $(ARGS)

bench: $(READY)
	$(BIN)/python -m bench

clean:
	rm -rf $(VENV) clients/js/node_modules clients/js/build clients/js/dist clients/js/LICENSE build dist *.egg-info src/*.egg-info .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
