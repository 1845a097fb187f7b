# `make` alone lists the targets. Each of them sets up what it needs first.
PYTHON ?= python3
NOTEBOOK := notebooks/01_tune_buckets.ipynb
LAB_ARGS ?=
PYTEST_ARGS ?=
# --quick, --only TABLE, --json FILE
PEERS_ARGS ?=
# of gpu-check: .venv's Python where there is one
GPU_PYTHON ?= $(firstword $(wildcard .venv/bin/python) $(PYTHON))
GPU_SECONDS ?= 240
# --moves N, --many N, --json FILE
BENCH_UI_ARGS ?=
# --base IMAGE
CONTAINER_ARGS ?=

BIN := .venv/bin
STAMP := .venv/.setup-done
PEERS := tests/benchmarks/peers
PEERS_STAMP := .venv-peers/.setup-done
# what only the tests need: the command that must be there, the Debian/Ubuntu package that brings it
TEST_TOOLS := chromium:chromium g++:g++ node:nodejs
# Jupyter refuses to run as root unless told
LAB_FLAGS := $(shell [ "$$(id -u)" = 0 ] && echo --allow-root)
# small messages of widgets are sent at once
NO_DELAY := --ServerApp.jpserver_extensions="{'labkit.server_extension': True}"
# the plugin that asks about news and looks for updates
QUIET_LAB := labextension disable --level=sys_prefix @jupyterlab/apputils-extension:announcements
# notebooks are kept without outputs: they are saved when a person saves them, not every two minutes
LAB_SETTINGS := .venv/share/jupyter/lab/settings
NO_AUTOSAVE := {"@jupyterlab/docmanager-extension:plugin": {"autosave": false}}

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup setup-tests lab test test-lint test-unit test-kernels test-notebooks test-browser report mutants gpu-check bench bench-peers \
  bench-ui container-check clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

setup: $(STAMP) ## install labkit and what it needs into .venv (no root; done once, then again when the requirements change)

$(STAMP): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "setup: Python >= 3.11 is needed, $(PYTHON) is: $$($(PYTHON) --version 2>&1 || true). Name another: make PYTHON=python3.12 setup" >&2; exit 1; }
	@[ -x $(BIN)/pip ] || $(PYTHON) -m venv --clear .venv || \
	  { echo "setup: $(PYTHON) cannot make a virtual environment. On Debian/Ubuntu: sudo apt-get install python3-venv" >&2; exit 1; }
	@echo "setup: installing into .venv (the first time takes a few minutes)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock -e '.[gpu,dev]'
	@$(BIN)/jupyter $(QUIET_LAB) >/dev/null 2>&1
	@mkdir -p $(LAB_SETTINGS) && echo '$(NO_AUTOSAVE)' > $(LAB_SETTINGS)/overrides.json
	@touch $@

setup-tests: setup ## install what only the tests need: Chromium, a C++ compiler, node
	@packages=""; \
	for tool in $(TEST_TOOLS); do command -v "$${tool%%:*}" >/dev/null 2>&1 || packages="$$packages $${tool#*:}"; done; \
	[ -n "$$packages" ] || exit 0; \
	install="apt-get install -y --no-install-recommends$$packages"; \
	if ! command -v apt-get >/dev/null 2>&1; then \
	  echo "setup-tests: missing:$$packages. Install them with your package manager (on Debian/Ubuntu: sudo $$install)" >&2; exit 1; fi; \
	if [ "$$(id -u)" = 0 ]; then sudo=""; \
	elif sudo -n true 2>/dev/null; then sudo="sudo -n"; \
	else echo "setup-tests: missing:$$packages. Run: sudo $$install" >&2; exit 1; fi; \
	echo "setup-tests: installing$$packages"; \
	{ $$sudo env DEBIAN_FRONTEND=noninteractive $$install >/dev/null 2>&1 \
	  || { $$sudo apt-get update -q && $$sudo env DEBIAN_FRONTEND=noninteractive $$install; }; } \
	  || { echo "setup-tests: failed. Run: sudo $$install" >&2; exit 1; }

lab: setup ## open JupyterLab on the tuning notebook (LAB_ARGS="--no-browser --port 8890" adds arguments)
	$(BIN)/jupyter lab --LabApp.default_url=/lab/tree/$(NOTEBOOK) $(NO_DELAY) $(LAB_FLAGS) $(LAB_ARGS)

test: setup setup-tests test-lint test-unit test-kernels test-notebooks test-browser ## run everything that needs no GPU, tier by tier
	@echo "make test: passed all 5 tiers: lint, unit, kernels, notebooks, browser"

test-lint: setup ## tier: style, types, floors of the tree, notebooks without outputs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@$(BIN)/nbstripout --verify --keep-id notebooks/*.ipynb >/dev/null || { echo "notebooks were saved with outputs or other traces" \
	  "of a run; they are kept without. Run: $(BIN)/nbstripout --keep-id notebooks/*.ipynb" >&2; exit 1; }

# a worker a core: more threads would wait for each other
test-unit: export OMP_NUM_THREADS = 1
test-unit: setup ## tier: unit and property tests (PYTEST_ARGS="-k edges" narrows any tier)
	$(BIN)/python -m pytest tests --ignore=tests/kernels -m "not (browser or notebook or gpu or slow)" -n 2 $(PYTEST_ARGS)

test-kernels: setup ## tier: CUDA kernels without a GPU: compiled, run on the CPU, compared, checked; a shard of their mutants
	$(BIN)/python -m pytest tests/kernels -m "not (gpu or slow)" -n 2 $(PYTEST_ARGS)

test-notebooks: setup ## tier: the notebooks, each in a kernel of its own
	$(BIN)/python -m pytest tests -m "notebook and not gpu" $(PYTEST_ARGS)

test-browser: setup ## tier: a real JupyterLab in Chromium
	$(BIN)/python -m pytest tests -m "browser and not gpu" $(PYTEST_ARGS)

report: setup ## run the tuning notebook headless: its result and tuned.json into results/
	$(BIN)/labkit run $(NOTEBOOK) --out results

# On a machine with a GPU, in the Python that has its torch and CuPy: nothing is installed for it.
mutants: setup ## make every small mistake in every kernel and see which are noticed, into results/mutants.json
	@mkdir -p results
	$(BIN)/python -m labkit.gpu.verify.mutate --survivors tests/kernels/survivors.json --json results/mutants.json

gpu-check: ## check and time everything that needs a GPU, into results/gpu-check.json (GPU_PYTHON=python3, GPU_SECONDS=240)
	@mkdir -p results
	$(GPU_PYTHON) -m labkit.gpu_check --json results/gpu-check.json --seconds $(GPU_SECONDS)

bench: setup ## measure labkit's own speed against its bars
	$(BIN)/python -m tests.benchmarks

bench-peers: $(PEERS_STAMP) ## measure labkit beside the tools people use today, in an environment of their own (.venv-peers)
	.venv-peers/bin/python -m tests.benchmarks.peers $(PEERS_ARGS)

$(PEERS_STAMP): $(PEERS)/requirements.txt $(PEERS)/requirements-no-deps.txt
	@[ -x .venv-peers/bin/pip ] || $(PYTHON) -m venv --clear .venv-peers || \
	  { echo "bench-peers: $(PYTHON) cannot make a virtual environment. On Debian/Ubuntu: sudo apt-get install python3-venv" >&2; exit 1; }
	@echo "bench-peers: installing the peers into .venv-peers (the first time takes a few minutes)"
	@.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check -r $(PEERS)/requirements.txt
	@.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r $(PEERS)/requirements-no-deps.txt -e .
	@touch $@

bench-ui: setup setup-tests ## measure how quickly the screen answers, in a real JupyterLab in Chromium
	$(BIN)/python -m tests.ui.bench $(BENCH_UI_ARGS)

container-check: setup ## build the image (Docker, or buildah without an engine), start it, look at it from outside and inside
	$(BIN)/python -m tests.container $(CONTAINER_ARGS)

clean: ## remove .venv, .venv-peers, caches and results
	rm -rf .venv .venv-peers build dist results test-results .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find labkit tests -name __pycache__ -type d -prune -exec rm -rf {} +
