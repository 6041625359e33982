# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint unit e2e bench crds clean

$(BIN)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[sandbox,test]'
	touch $@

demo: $(BIN)/.ready  ## the release story on a Kubernetes API of its own
	$(BIN)/altershield demo --fast

test: lint unit  ## every check

lint: $(BIN)/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(BIN)/.ready
	$(BIN)/pytest

bench: $(BIN)/.ready  ## needs wrk
	$(BIN)/python -m bench

crds: $(BIN)/.ready  ## write the chart's CRDs anew, after a change of the kinds
	$(BIN)/python -m altershield.install charts/altershield/files/crds

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build *.egg-info
