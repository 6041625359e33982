# Two commands do all the set-up: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TOOLS := $(VENV)/tools
PIP_INSTALL := pip install --quiet --disable-pip-version-check

.PHONY: demo test lint check collect tools mutants structure bench crds reference dashboards pictures lock sbom licenses package clean

$(BIN)/.ready: pyproject.toml sandbox/pyproject.toml
	mkdir -p $(VENV)  # the other environment may create it at the same time
	$(PYTHON) -m venv $(VENV)
	$(BIN)/$(PIP_INSTALL) --editable '.[test]' --editable './sandbox[test]'
	touch $@

# Before version 25.1, pip cannot read dependency groups.
GROUP := import sys, tomllib; print(*tomllib.load(sys.stdin.buffer)["dependency-groups"]["tools"])

$(TOOLS)/.ready: pyproject.toml
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/$(PIP_INSTALL) $$($(PYTHON) -c '$(GROUP)' <pyproject.toml)
	touch $@

demo: $(BIN)/.ready  ## the release story on a Kubernetes API of its own
	$(BIN)/altershield demo --fast

test: SHELL := bash
test: export TIMEFORMAT := CPU time of all checks: %0lU user, %0lS system
test:  ## every check
	@time { $(MAKE) --no-print-directory -j2 lint collect tools && $(MAKE) --no-print-directory check; }

lint: $(BIN)/.ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check collect: export PYTHONDONTWRITEBYTECODE =  # the tests start hundreds of processes, which would compile the same modules
check: $(BIN)/.ready tools
	$(BIN)/python -m pytest -p tests.support.cpu_time -n 8 --dist loadgroup --no-loadscope-reorder  # for two cores: many tests wait

collect: $(BIN)/.ready  # compiles the tests once; without this, each worker of `check` would compile all of them
	-@$(BIN)/pytest --collect-only -qq >/dev/null  # `check` prints the errors

tools: $(TOOLS)/.ready  ## install the programs that check the workflows and write the SBOM

mutants: $(BIN)/.ready  ## check that the tests notice small mistakes in the code; takes hours, or SAMPLE=300 mutants of them
	$(BIN)/python -m tests.mutation $(if $(SAMPLE),--sample $(SAMPLE))

structure: $(BIN)/.ready  ## print the walks, the sizes and the complexity of the code; fails over a bound
	$(BIN)/python -m tests.structure

bench: $(BIN)/.ready  ## answer the questions of docs/figures.md and docs/reliability.md, or QUESTIONS="start rest"; needs wrk
	$(BIN)/python -m bench all $(QUESTIONS)

crds: $(BIN)/.ready  ## write the chart's CRDs, permissions, webhooks, admission policies and names of values anew, after a change of what they follow from
	$(BIN)/python -m command.install charts/altershield/files
	$(BIN)/python -m supply_chain.near_names charts/altershield/values.schema.json

reference: $(BIN)/.ready  ## write the reference pages anew, after a change of the code or the texts that they show
	$(BIN)/python -m docs.reference
	$(BIN)/python -m tests.structure.walks

dashboards: $(BIN)/.ready  ## write the dashboards' JSON anew, after a change of their code
	$(BIN)/python -m dashboards

pictures: $(BIN)/.ready  ## make docs/pictures anew, from the output of commands and the series of Prometheus; needs kubectl and prometheus
	$(BIN)/python -m docs.pictures
	$(BIN)/python -m tests.docs.denial
	$(BIN)/python -m tests.monitoring.pictures

# Renovate reads these options in the lock files; it knows only options with "=".
COMPILE := --universal --python-version=3.11 --generate-hashes

lock: $(BIN)/.ready  ## write the lock files anew, after a change of the dependencies; UPGRADE=--upgrade takes new versions
	$(BIN)/$(PIP_INSTALL) --editable '.[lock]'
	$(BIN)/uv pip compile --quiet $(UPGRADE) pyproject.toml $(COMPILE) --output-file=requirements.lock
	$(BIN)/uv pip compile --quiet $(UPGRADE) requirements.build.in $(COMPILE) --output-file=requirements.build.lock
	$(BIN)/uv pip compile --quiet $(UPGRADE) pyproject.toml --group=plugin --constraint=requirements.lock $(COMPILE) \
	  --output-file=requirements.plugin.lock

sbom: $(BIN)/.ready tools  ## write dist/altershield.cdx.json: the packages of the image, with versions and licences
	$(BIN)/python -m supply_chain.sbom dist/altershield.cdx.json

licenses: $(BIN)/.ready  ## print the licences of the dependencies; fails if one is not allowed
	$(BIN)/python -m supply_chain.licenses

package: $(BIN)/.ready  ## write the chart's archive to dist/: the same bytes for the same commit
	$(BIN)/python -m supply_chain.chart dist

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build *.egg-info sandbox/build sandbox/*.egg-info
