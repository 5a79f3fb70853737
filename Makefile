# One command each. `make test` is everything that CI runs; it needs Python 3.11, make and npm. While you write, `make
# quick` takes a minute; `make nightly` takes two hours.
SHELL := /bin/sh
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
# Tests that wait leave the two cores to others: six workers. Each would compile all tests if none could save the result.
export PYTHONDONTWRITEBYTECODE =
# What is made ready before the tests waits for other things than processors: for downloads, and for one another.
ifeq ($(MAKELEVEL) $(words $(MAKECMDGOALS)),0 1)
MAKEFLAGS += --jobs=3
endif
PYTEST_ARGS ?= -n 6 --dist loadgroup
BENCH_ARGS ?=
FAULTS_ARGS ?=
SOAK_ARGS ?=
LOCK_ARGS ?=
DEMO_ARGS ?=
UV := uv==0.13.8
COMPILE := UV_CUSTOM_COMPILE_COMMAND="make lock" .cache/lock/bin/uv pip compile --quiet --no-config --universal \
	--python-version 3.11 --generate-hashes --no-annotate --no-strip-extras
BIN := .venv/bin
READY := .venv/.ready
DEMO := $(if $(wildcard .venv/.ready),.venv,.cache/demo)
WHEELED := .cache/wheel/.ready

# What needs no agent, no database and next to no process.
QUICK := tests/core tests/storage tests/config tests/chat/screens tests/agents \
	--ignore-glob='*/test_plugin.py' --ignore=tests/agents/opencode/test_calls.py --ignore=tests/agents/test_contract.py

.PHONY: test quick nightly collect demo pictures bench faults soak check scenes opencode format cover lock wheel size \
	clean

# The tests run against the built wheel; PYTHONSAFEPATH keeps what lies in this folder from standing in for it.
test: check scenes collect $(WHEELED)
	HERMES_REQUIRE_WHEEL=1 PYTHONSAFEPATH=1 .cache/wheel/bin/python -m pytest $(PYTEST_ARGS) -m "not nightly"

quick: $(READY)
	$(BIN)/python -m pytest -q -m "not scene and not database and not long" $(QUICK)

# Every test with every version, then the fault suite, the soak and the bench.
nightly: check scenes collect $(WHEELED)
	HERMES_REQUIRE_WHEEL=1 PYTHONSAFEPATH=1 .cache/wheel/bin/python -m pytest $(PYTEST_ARGS)
	$(MAKE) faults
	$(MAKE) soak
	$(MAKE) bench

# Hermes in the browser, without a token, an account or an agent; needs no npm. DEMO_ARGS="--opencode",
# "--open", "--topics", "--machines 3" (needs PostgreSQL's `initdb`).
demo: $(DEMO)/.ready
	@$(DEMO)/bin/python -m hermes demo $(DEMO_ARGS)

# Makes the pictures of README again; needs Chromium, and fonts with emoji to look well.
pictures: $(READY)
	HERMES_PICTURES=1 $(BIN)/pytest -q tests/commands/demo/test_page_pictures.py

# Ten minutes on a machine that does nothing else; BENCH_ARGS="--quick", "--only hook tap", "--json FILE".
bench: $(READY) scenes
	$(BIN)/python -m tests.bench $(BENCH_ARGS)

# Three quarters of an hour on two cores; FAULTS_ARGS="--rounds 100", "--seed 1 --only 7", "--json FILE".
faults: $(READY) scenes
	$(BIN)/python -m tests.faults $(FAULTS_ARGS)

# Twenty minutes of one listener at work; SOAK_ARGS="--minutes 60", "--seed 1", "--json FILE".
soak: $(READY)
	$(BIN)/python -m tests.soak $(SOAK_ARGS)

check: $(READY)
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy

# pytest compiles each test file with more to say in its asserts, and keeps that. Else each of six workers would do it.
collect: $(READY)
	@said=$$($(BIN)/python -m pytest --collect-only -qq 2>&1) || { echo "$$said" | tail -50 >&2; exit 1; }

# Without the binaries the scenes are skipped; HERMES_REQUIRE_SCENES=1 (as in CI) makes that a failure.
scenes:
	@{ tests/opencode/fetch && tests/npm/fetch; } || [ -z "$$HERMES_REQUIRE_SCENES" ]

opencode:
	@tests/opencode/fetch

format: $(READY)
	$(BIN)/ruff check --quiet --fix-only .
	$(BIN)/ruff format .

cover: $(READY) scenes
	$(BIN)/pytest $(PYTEST_ARGS) --cov --cov-report=term --cov-report=html

wheel: $(READY)
	$(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

# An environment with the wheel alone; what it needs comes from .venv, whose editable Hermes is not seen from here.
$(WHEELED): $(READY) $(shell find hermes systemd -type f -not -path '*/__pycache__/*')
	@rm -rf .cache/wheel && mkdir -p .cache/wheel
	@$(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir .cache/wheel .
	@$(BIN)/python -m venv --without-pip .cache/wheel
	@$(BIN)/python -c 'import pathlib, sysconfig; print(sysconfig.get_path("purelib"), pathlib.Path.cwd(), sep="\n")' \
		> "$$(.cache/wheel/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/beside.pth"
	@$(BIN)/python -m pip --python .cache/wheel/bin/python install --quiet --disable-pip-version-check --no-deps \
		--no-index .cache/wheel/*.whl
	@touch $@

$(READY): requirements.lock pyproject.toml hermes/__init__.py
	@[ -n "$(PYTHON)" ] || { echo "make: Python 3.11 or newer is needed (PYTHON=/path/to/it)" >&2; exit 1; }
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# What Hermes itself and a database need, and no more: somebody waits for it.
.cache/demo/.ready: requirements-run.lock pyproject.toml
	@[ -n "$(PYTHON)" ] || { echo "make: Python 3.11 or newer is needed (PYTHON=/path/to/it)" >&2; exit 1; }
	@echo "The first start installs what Hermes needs, in .cache/demo: about a minute."
	@[ -x .cache/demo/bin/python ] || $(PYTHON) -m venv .cache/demo
	.cache/demo/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-run.lock
	@.cache/demo/bin/python -c 'import pathlib, sysconfig; \
		pathlib.Path(sysconfig.get_path("purelib"), "hermes.pth").write_text(f"{pathlib.Path.cwd()}\n")'
	@touch $@

# Keeps what is pinned as far as pyproject.toml lets it; LOCK_ARGS=--upgrade takes the newest of all.
lock:
	@[ -x .cache/lock/bin/uv ] || $(PYTHON) -m venv .cache/lock
	@.cache/lock/bin/python -m pip install --quiet --disable-pip-version-check $(UV)
	$(COMPILE) --extra test $(LOCK_ARGS) --output-file requirements.lock pyproject.toml
	$(COMPILE) --extra postgres --constraint requirements.lock --output-file requirements-run.lock pyproject.toml

# The lines of each folder of hermes/, and those of the last release (a tag such as v1.0), if there is one.
size:
	@last=$$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null); \
	{ [ -z "$$last" ] || git grep -c '' "$$last" -- 'hermes/*.py'; git grep -c '' -- 'hermes/*.py' | sed 's/^/:/'; } | \
	awk -F: -v last="$$last" ' \
		{ split($$2, part, "/"); folder = part[2] ~ /[.]py$$/ ? "(beside them)" : part[2]; all[folder]; \
		  lines[$$1, folder] += $$3; sum[$$1] += $$3 } \
		END { for (folder in all) printf "%-14s %7d %7s\n", folder, lines["", folder], last ? lines[last, folder] : ""; \
		  printf "%-14s %7d %7s\n", "~ in all", sum[""], last ? sum[last] " in " last : "" }' | sort | tr '~' ' '

clean:
	rm -rf .venv .cache .hypothesis dist
	find hermes tests -name __pycache__ -type d -prune -exec rm -rf {} +
