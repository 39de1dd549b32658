# Everything a contributor runs. Needs make, Python 3.11 or newer with venv, and (once queries run) Java 17.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV   := .venv
BIN    := $(VENV)/bin
LOCKED := $(VENV)/.locked
READY  := $(VENV)/.ready
PYTEST_ARGS ?=
# The tool that writes the lock files; it is needed for `make lock` only, so it has an environment of its own.
UV_VERSION := 0.13.7
LOCK_VENV  := $(VENV)-lock
COMPILE    := $(LOCK_VENV)/bin/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet --upgrade

.PHONY: help setup run test check bench lock clean

help: ## show the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z]+:.*## / {printf "  make %-6s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## make the virtual environment; does nothing when it is up to date

$(LOCKED): requirements/dev.txt
	@python=; \
	for candidate in $${PYTHON:-} python3 python3.13 python3.12 python3.11; do \
		if "$$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$$candidate; break; fi; \
	done; \
	if [ -z "$$python" ]; then echo "make: no Python 3.11 or newer with venv found; install one, or name it: make setup PYTHON=/path/to/python" >&2; exit 1; fi; \
	echo "setting up $(VENV) with $$($$python --version)"; \
	"$$python" -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/dev.txt
	@touch $@

$(READY): $(LOCKED) pyproject.toml
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@# Also where Python is told not to write bytecode by itself: start-up would compile every module each time.
	@$(BIN)/python -m compileall -q src/penstock
	@touch $@

run: $(READY) ## a tour of what works today
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/tour.sh

test: $(READY) ## the tests that need neither Spark nor a broker
	@$(BIN)/python -m pytest -q -n auto $(PYTEST_ARGS)

check: $(READY) ## lint, format, types, direction of imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet . || { echo "run: $(BIN)/ruff format ." >&2; exit 1; }
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -q tests/architecture/test_imports.py

bench: $(READY) ## how fast the front end is
	@$(BIN)/python -m compileall -q src/penstock
	@$(BIN)/python benchmarks/front_end.py

lock: $(LOCK_VENV)/.ready ## resolve requirements/*.txt anew: hashes, no addresses
	@$(COMPILE) --output-file requirements/runtime.txt
	@$(COMPILE) --group dev --group build --constraint requirements/runtime.txt --output-file requirements/dev.txt
	@if grep -nE '://|^--(index|find)' requirements/*.txt; then echo "make: a lock file names an address" >&2; exit 1; fi

$(LOCK_VENV)/.ready:
	@python3 -m venv --clear $(LOCK_VENV)
	@$(LOCK_VENV)/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@

clean: ## remove what the targets above made
	rm -rf $(VENV) $(LOCK_VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
