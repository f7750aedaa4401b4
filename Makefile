# Every workflow from a fresh clone. Needs Python 3.11 or newer, and Java 17 or newer for Spark and the servers.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv
PY := $(VENV)/bin/python
# The version the lock file was proven with comes first. Another: make PYTHON=python3.13 env
PYTHONS := $(PYTHON) python3.11 python3.12 python3.13 python3.14 python3
EVENTS ?= 200000
MINUTES ?= 1
# More for pytest: make test ARGS="-k ledger -x"
ARGS ?=
# Two at a time: those that start nothing, behind them the real Airflow, which mostly waits, tables of other formats, and
# where Spark runs, beside all others: each takes about as long. Where ten of the others fail, their cause is one, and
# each may wait for minutes.
ALONE := tests/unit tests/fuzz
STACK := tests/airflow/stack tests/integration/lake tests/spark/test_table_sink.py tests/spark/test_launch.py \
	tests/spark/test_own_sink.py
WITHOUT_SERVERS := not pulsar and not pravega and not spark and not stack and not postgres and not lake and not install

.PHONY: help env servers lint format test test-fast bench fuzz demo demo-pulsar demo-pravega docs clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

env: ## .venv with everything the lock file names (again only when it changed)
	@wanted=$$(cat uv.lock pyproject.toml | cksum | tr ' ' '-'); \
	if [[ ! -x $(PY) || "$$(cat $(VENV)/.synced 2>/dev/null || true)" != "$$wanted" ]]; then \
		$(MAKE) --silent $(VENV)/bin/uv; \
		UV_PROJECT_ENVIRONMENT=$(VENV) $(VENV)/bin/uv sync --frozen --all-extras --no-extra mysql --python $(PY); \
		echo "$$wanted" > $(VENV)/.synced; \
	fi

$(VENV)/bin/uv:
	@for candidate in $(PYTHONS); do \
		if "$$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			echo "$$("$$candidate" --version): making $(VENV)"; \
			"$$candidate" -m venv $(VENV); \
			exec $(PY) -m pip install --quiet --disable-pip-version-check uv; \
		fi; \
	done; \
	echo "No Python of version 3.11 or newer (with venv) on PATH. Install one (Debian, Ubuntu: apt-get install" \
		"python3 python3-venv), or name it: make PYTHON=/path/to/python3" >&2; \
	exit 1

servers: env ## fetch the servers of tests and demo (once, into the user's cache)
	@$(PY) -m airflow_provider_streams.testing.servers fetch

lint: env ## ruff, mypy, and the documentation built strictly
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs --quiet build --strict --config-file docs/mkdocs.yml --site-dir $(CURDIR)/site

format: env ## let ruff repair what it can
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

test: servers ## every test, with real servers, Spark and Airflow, two at a time
ifneq ($(ARGS),)
	$(PY) -m pytest $(ARGS)
else
	@said=$$(mktemp); trap 'rm -f "$$said"' EXIT; \
	{ ended=0; \
		$(PY) -m pytest $(ALONE) > "$$said" 2>&1 || ended=$$?; \
		$(PY) -m pytest --maxfail=5 $(STACK) >> "$$said" 2>&1 || ended=$$?; \
		cat "$$said"; exit $$ended; } & \
	failed=0; \
	$(PY) -m pytest --maxfail=10 $(addprefix --ignore=,$(ALONE) $(STACK)) || failed=$$?; \
	wait $$! || failed=$$?; \
	exit $$failed
endif

test-fast: env ## the tests that start nothing
	$(PY) -m pytest -m "$(WITHOUT_SERVERS)" $(ARGS)

bench: servers ## side by side with the peers on this machine; prints the ratios
	$(PY) -m tests.bench $(ARGS)

fuzz: env ## damaged and unusual bytes through every decoder, for so long each (MINUTES=1)
	$(PY) -m tests.fuzz legal --minutes $(MINUTES)
	$(PY) -m tests.fuzz damaged --minutes $(MINUTES)
	$(PY) -m tests.fuzz.pravega --minutes $(MINUTES)
	$(PY) -m tests.fuzz.formats --minutes $(MINUTES)

demo: servers ## windows of real Pulsar and Pravega servers in an Iceberg table, queried by DuckDB (EVENTS=200000)
	$(PY) dags_examples/run_demo.py --events $(EVENTS)

demo-pulsar: servers ## with Pulsar only
	$(PY) dags_examples/run_demo.py pulsar --events $(EVENTS)

demo-pravega: servers ## with Pravega only
	$(PY) dags_examples/run_demo.py pravega --events $(EVENTS)

docs: env ## serve the documentation, rebuilt as it changes
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs serve --config-file docs/mkdocs.yml

clean: ## remove what was built here, and .venv
	rm -rf $(VENV) site dist .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse metastore_db derby.log .demo
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
