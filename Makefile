# Everything runs in .venv (locked Python packages) and node_modules (locked npm packages); `make` names the verbs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
NODE_READY := node_modules/.ready
VECTORS := $(sort $(wildcard tests/vectors/worked/*.json tests/vectors/tensorrt_llm/*.json) \
  $(addprefix tests/vectors/vllm/,kv_sizing.json graph_capture.json defaults.json scheduler_steady_state.json model_shapes.json real_models.json) \
  $(addprefix tests/vectors/sglang/,memory_defaults.json memory_variants.json pool.json burst.json scheduler_steady_state.json))

.PHONY: help serve site compare test test-core test-site browser lint data pythons bench lock clean
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

$(NODE_READY): package-lock.json package.json
	@command -v node >/dev/null && command -v npm >/dev/null || { echo "The website needs Node.js 20 or newer with npm: not found." >&2; exit 1; }
	@node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 20 ? 1 : 0)' || { echo "The website needs Node.js 20 or newer; this is $$(node --version)." >&2; exit 1; }
	npm ci --silent
	@touch $@

serve: $(READY) $(NODE_READY) ## build the website, serve it on this machine, print the address
	@$(BIN)/python scripts/build_site.py --serve $(if $(PORT),--port $(PORT))

site: $(READY) $(NODE_READY) ## build the website into site/
	$(BIN)/python scripts/build_site.py

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

test: lint test-core test-site ## every test: lint, core, conformance, wasm parity, browser

test-core: $(READY) ## the core's tests and the vectors
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal --ignore tests/site_build --ignore tests/wasm --ignore tests/browser
	$(BIN)/python tests/conformance.py $(VECTORS)

# A browser test that fails is run once more, alone: a busy computer stalls, and a real fault fails twice.
test-site: $(READY) $(NODE_READY) browser ## the site: the same core in wasm, and the pages in a real browser
	$(BIN)/python scripts/build_site.py
	$(BIN)/python -m pytest tests/site_build tests/wasm --numprocesses 2 --dist worksteal
	$(BIN)/python -m pytest tests/browser --numprocesses 2 --dist worksteal || \
	  $(BIN)/python -m pytest tests/browser --last-failed --last-failed-no-failures none

browser: $(READY) # a Chromium for the tests
	@$(BIN)/python scripts/ensure_browser.py

pythons: $(READY) ## the published figures and one digest on every Python at hand
	$(BIN)/python scripts/every_python.py

bench: $(READY) $(NODE_READY) browser ## measure the core, then the site in a browser
	$(BIN)/python scripts/bench.py
	$(BIN)/python scripts/build_site.py
	$(BIN)/python scripts/bench_site.py

lock: ## resolve requirements/dev.in into requirements/dev.txt
	$(PYTHON) -m venv .cache/lock
	.cache/lock/bin/python -m pip install --quiet pip-tools
	.cache/lock/bin/pip-compile --quiet --generate-hashes --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --strip-extras --allow-unsafe --no-header --output-file requirements/dev.txt requirements/dev.in

clean: ## remove the environments, caches and the built site
	rm -rf $(VENV) node_modules site .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
