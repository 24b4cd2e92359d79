# Everything runs in .venv, made from the locked requirements; `make` names the verbs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
VECTORS := $(sort $(wildcard tests/vectors/worked/*.json tests/vectors/tensorrt_llm/*.json) \
  $(addprefix tests/vectors/vllm/,kv_sizing.json graph_capture.json defaults.json scheduler_steady_state.json) \
  $(addprefix tests/vectors/sglang/,memory_defaults.json memory_variants.json pool.json burst.json scheduler_steady_state.json))

.PHONY: help compare test lint data pythons bench lock clean
help: ## what each verb does
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(READY): requirements/dev.txt pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "enginemem needs Python 3.11 or newer: $(PYTHON) was not found. Set PYTHON=/path/to/python3." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "enginemem needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1)." >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "$(PYTHON) has no venv module: install the distribution's python3-venv package." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

compare: $(READY) ## print the default comparison
	@$(BIN)/enginemem compare

data: $(READY) ## validate data/ and regenerate the packaged JSON
	$(BIN)/python scripts/build_data.py

lint: $(READY) ## ruff, mypy --strict, import contracts, stale data
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/build_data.py --check

test: $(READY) ## every test: core, conformance, lint
	$(MAKE) --no-print-directory lint
	$(BIN)/python -m pytest
	$(BIN)/python tests/conformance.py $(VECTORS)

pythons: $(READY) ## the published figures and one digest on every Python at hand
	$(BIN)/python scripts/every_python.py

bench: $(READY) ## measure compare and import times
	$(BIN)/python scripts/bench.py

lock: ## resolve requirements/dev.in into requirements/dev.txt
	$(PYTHON) -m venv .cache/lock
	.cache/lock/bin/python -m pip install --quiet pip-tools
	.cache/lock/bin/pip-compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --strip-extras --allow-unsafe --no-header --output-file requirements/dev.txt requirements/dev.in

clean: ## remove the environment and caches
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
