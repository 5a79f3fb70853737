# One command each. `make test` is everything that CI runs; it needs Python 3.11, make and npm.
SHELL := /bin/sh
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
PYTEST_ARGS ?= -n 2 --dist loadgroup
BENCH_ARGS ?=
FAULTS_ARGS ?=
LOCK_ARGS ?=
UV := uv==0.13.8
BIN := .venv/bin
READY := .venv/.ready

.PHONY: test bench faults check scenes opencode format cover lock wheel clean

test: check scenes
	$(BIN)/pytest $(PYTEST_ARGS)

# Ten minutes on a machine that does nothing else; BENCH_ARGS="--quick", "--only hook tap", "--json FILE".
bench: $(READY) scenes
	$(BIN)/python -m tests.bench $(BENCH_ARGS)

# Three quarters of an hour on two cores; FAULTS_ARGS="--rounds 100", "--seed 1 --only 7", "--json FILE".
faults: $(READY) scenes
	$(BIN)/python -m tests.faults $(FAULTS_ARGS)

check: $(READY)
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy

# Without the binaries the scenes are skipped; HERMES_REQUIRE_SCENES=1 (as in CI) makes that a failure.
scenes:
	@tests/opencode/fetch || [ -z "$$HERMES_REQUIRE_SCENES" ]

opencode:
	@tests/opencode/fetch

format: $(READY)
	$(BIN)/ruff check --quiet --fix-only .
	$(BIN)/ruff format .

cover: $(READY) scenes
	$(BIN)/pytest $(PYTEST_ARGS) --cov --cov-report=term --cov-report=html

wheel: $(READY)
	$(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

$(READY): requirements.lock pyproject.toml hermes/__init__.py
	@[ -n "$(PYTHON)" ] || { echo "make: Python 3.11 or newer is needed (PYTHON=/path/to/it)" >&2; exit 1; }
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# Keeps what is pinned as far as pyproject.toml lets it; LOCK_ARGS=--upgrade takes the newest of all.
lock:
	@[ -x .cache/lock/bin/uv ] || $(PYTHON) -m venv .cache/lock
	@.cache/lock/bin/python -m pip install --quiet --disable-pip-version-check $(UV)
	UV_CUSTOM_COMPILE_COMMAND="make lock" .cache/lock/bin/uv pip compile --quiet --no-config --universal \
		--python-version 3.11 --generate-hashes --no-annotate --extra test $(LOCK_ARGS) \
		--output-file requirements.lock pyproject.toml

clean:
	rm -rf .venv .cache .hypothesis dist
	find hermes tests -name __pycache__ -type d -prune -exec rm -rf {} +
