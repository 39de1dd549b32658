# Everything a contributor runs. Needs make, Python 3.11 or newer with venv, and Java 17 or newer, which is found or,
# where that is possible, installed.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV   := .venv
BIN    := $(VENV)/bin
LOCKED := $(VENV)/.locked
READY  := $(VENV)/.ready
PYTEST_ARGS ?=
APART := spark or slow or chaos or soak or kafka or bench
# A file stays with one session; files are taken in their order, so that those that take long do not come last.
TWO_SESSIONS := -n 2 --dist loadfile --no-loadscope-reorder
SPARK_TESTS  := tests/batch tests/cli tests/docs tests/engine tests/spark
NEXT_SPARK := 4.3.0
NEXT_VENV  := $(VENV)-spark43
EVENT_TIME_TESTS := tests/spark/test_watermark_calls.py tests/spark/test_watch.py tests/spark/test_quick_json.py tests/engine/test_event_time.py
# The tool that writes the lock files; it is needed for `make lock` only, so it has an environment of its own.
UV_VERSION := 0.13.7
LOCK_VENV  := $(VENV)-lock
# Counts which lines run. It slows everything down and no test needs it, so it is kept apart.
COVERAGE_VERSION := 7.17.2
COVERAGE   := $(VENV)-coverage
# Flink, to measure beside. Only the jars in its package are used: what it needs in Python stays away.
FLINK_VERSION := 2.3.0
FLINK      := $(VENV)-flink
BENCH_ARGS ?=
COMPILE    := $(LOCK_VENV)/bin/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet --upgrade

.PHONY: help setup run test test-slow test-oracle test-chaos test-kafka test-soak test-spark43 coverage java check bench bench-kafka bench-nexmark lock clean

help: ## show the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

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

run: $(READY) ## half a minute of a trade stream, its windows and watermarks live, and the proof
	@$(BIN)/python -m penstock.interfaces.demo --install-java

# First all that needs no Spark, on every core; then what needs it, in two processes with one Spark session each.
test: $(READY) java ## the tests; sets up everything they need
	@$(BIN)/python -m pytest -q -n auto -m "not ($(APART))" $(PYTEST_ARGS)
	@$(BIN)/python -m pytest -q $(TWO_SESSIONS) $(SPARK_TESTS) -m "spark and not (slow or chaos or soak or kafka or bench)" $(PYTEST_ARGS)

test-slow: $(READY) java ## more of the same: examples, the demo, many jobs at once, every shape of query
	@$(BIN)/python -m pytest -q -n auto tests/unit -m "slow and not (spark or chaos or soak or kafka or bench)" $(PYTEST_ARGS)
	@$(BIN)/python -m pytest -q $(TWO_SESSIONS) $(SPARK_TESTS) -m "slow and not (chaos or soak or kafka or bench)" $(PYTEST_ARGS)

test-oracle: $(READY) java ## more random queries beside DuckDB
	@PENSTOCK_ORACLE_EXAMPLES=2 $(BIN)/python -m pytest -q $(TWO_SESSIONS) tests/engine/test_oracle.py tests/engine/test_dimension_oracle.py tests/engine/test_random_changes.py -m "not soak" $(PYTEST_ARGS)

test-chaos: $(READY) java ## kills the engine at seeded moments and at every failpoint
	@$(BIN)/python -m pytest -q -m "chaos and not (soak or kafka)" $(PYTEST_ARGS)

test-kafka: $(READY) java ## against a real broker, which the tests fetch and start
	@$(BIN)/python -m pytest -q $(TWO_SESSIONS) tests/kafka -m "kafka and not soak" $(PYTEST_ARGS)

test-soak: $(READY) java ## the full matrices; takes an hour or more
	@HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-random} $(BIN)/python -m pytest -q -m soak $(PYTEST_ARGS)

# The calls into Spark's JVM are not public: they are tried on the next version too, in an environment of its own.
test-spark43: $(NEXT_VENV)/.ready java ## the event-time tests on Spark 4.3.0
	@$(NEXT_VENV)/bin/python -m pytest -q $(EVENT_TIME_TESTS) $(PYTEST_ARGS)

coverage: $(READY) ## how much of the code the quick tests reach
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $(COVERAGE) coverage==$(COVERAGE_VERSION)
	@PYTHONPATH=$(COVERAGE) $(BIN)/python -m coverage run --data-file=$(COVERAGE)/data --source=src/penstock -m pytest -q -p no:cacheprovider -m "not ($(APART))" $(PYTEST_ARGS)
	@PYTHONPATH=$(COVERAGE) $(BIN)/python -m coverage report --data-file=$(COVERAGE)/data --skip-covered --sort=cover

java: $(READY)
	@$(BIN)/python -c "import sys; from penstock.interfaces.demo.java import have_java; sys.exit(not have_java(install=True))"

check: $(READY) ## lint, format, types, direction of imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet . || { echo "run: $(BIN)/ruff format ." >&2; exit 1; }
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -q tests/architecture/test_imports.py

bench: $(READY) java ## how fast it is: front end, topics, jobs beside PySpark written by hand
	@$(BIN)/python -m compileall -q src/penstock
	@for each in front_end topic_log topic_read event_time nexmark_generator functions claims engine keyed; do echo "== $$each"; $(BIN)/python -m benchmarks.$$each; done

bench-kafka: $(READY) $(FLINK)/.ready java ## the same over Kafka, beside PySpark and Flink SQL; BENCH_ARGS="--rows 300000"
	@PENSTOCK_FLINK=$(FLINK) $(BIN)/python -m benchmarks.kafka $(BENCH_ARGS)

bench-nexmark: $(READY) $(FLINK)/.ready java ## the 24 queries of Nexmark, beside PySpark, Flink SQL and DuckDB; BENCH_ARGS="--events 100000"
	@PENSTOCK_FLINK=$(FLINK) $(BIN)/python -m benchmarks.nexmark $(BENCH_ARGS)

$(FLINK)/.ready:
	@python3 -m venv --clear $(FLINK)
	@$(FLINK)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps apache-flink-libraries==$(FLINK_VERSION)
	@touch $@

lock: $(LOCK_VENV)/.ready ## resolve requirements/*.txt anew: hashes, no addresses
	@$(COMPILE) --output-file requirements/runtime.txt
	@$(COMPILE) --group dev --group build --constraint requirements/runtime.txt --output-file requirements/dev.txt
	@if grep -nE '://|^--(index|find)' requirements/*.txt; then echo "make: a lock file names an address" >&2; exit 1; fi

$(LOCK_VENV)/.ready:
	@python3 -m venv --clear $(LOCK_VENV)
	@$(LOCK_VENV)/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@touch $@

$(NEXT_VENV)/.ready: $(LOCKED) pyproject.toml
	@$(BIN)/python -m venv --clear $(NEXT_VENV)
	@awk '/^[a-z]/ {other = !/^pyspark==/} other' requirements/dev.txt > $(NEXT_VENV)/rest.txt
	@$(NEXT_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps pyspark==$(NEXT_SPARK)
	@$(NEXT_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $(NEXT_VENV)/rest.txt
	@$(NEXT_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

clean: ## remove what the targets above made
	rm -rf $(VENV) $(LOCK_VENV) $(NEXT_VENV) $(COVERAGE) $(FLINK) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
