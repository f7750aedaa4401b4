# Every workflow from a fresh clone. Needs Python 3.11 or newer. A Java is part of the environment.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# Tests start hundreds of interpreters that import Airflow: each would compile it again.
unexport PYTHONDONTWRITEBYTECODE
MAKEFLAGS += --no-print-directory

VENV := .venv
PY := $(VENV)/bin/python
# The version the lock file was proven with comes first. Another: make PYTHON=python3.13 env
PYTHONS := $(PYTHON) python3.11 python3.12 python3.13 python3.14 python3
# Where plain words are checked. docs/style/words.txt says which words are not, and why.
PROSE := README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md CODE_OF_CONDUCT.md .github docs/pages \
	airflow_provider_streams servers dags_examples tests
EVENTS ?= 200000
MINUTES ?= 1
AIRFLOW ?= 3.1.8
# More for pytest: make test ARGS="-k ledger -x"
ARGS ?=
# A database and its connector, which is a large download: make pipeline.
PIPELINE := tests/pipeline

.PHONY: help env servers locks lint format test test-all test-fast test-lowest test-lowest-part .venv-lowest tour pipeline mutants bench fuzz demo demo-pulsar demo-pravega docs clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

env: ## .venv with everything the lock file names (again only when it changed)
	@wanted=$$(cat uv.lock pyproject.toml | cksum | tr ' ' '-'); \
	if [[ ! -x $(PY) || "$$(cat $(VENV)/.synced 2>/dev/null || true)" != "$$wanted" ]]; then \
		$(MAKE) --silent $(VENV)/bin/uv; \
		UV_PROJECT_ENVIRONMENT=$(VENV) $(VENV)/bin/uv sync --frozen --all-extras --python $(PY); \
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
	@$(PY) -m stream_servers fetch

locks: env ## write again which files the servers consist of (servers/stream_servers/locks); needs Maven
	@$(PY) -m stream_servers lock

lint: env ## ruff, mypy, plain words, and the documentation built strictly
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/codespell --config docs/style/codespell.cfg $(PROSE)
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs --quiet build --strict --config-file docs/mkdocs.yml --site-dir $(CURDIR)/site

format: env ## let ruff repair what it can
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

test: servers ## the gate: each promise on real servers, Spark and Airflow (or ARGS="..." for pytest)
ifneq ($(ARGS),)
	$(PY) -m pytest $(ARGS)
else
	$(PY) -m tests.gate quick
endif

test-all: servers ## every test, those marked slow included
	$(PY) -m tests.gate all

test-fast: env ## the quick tests of tests/unit and tests/fuzz, which start no server
	$(PY) -m tests.gate fast $(ARGS)

# The Airflow side: the rest of the package does not import Airflow.
LOWEST := $(addprefix tests/unit/,airflow_runtime cli connections hooks operators plugin sensors timetables triggers) \
	$(wildcard tests/unit/test_*.py) tests/airflow tests/integration/pulsar/test_messages_without_shared_streams.py

# Of it, what shows within minutes that an older Airflow still has all of it: imports, discovery, forms, triggers on a
# broker, the page in a browser and its backfills, DAGs by `dag.test`, and that every example parses.
LOWEST_PART := $(addprefix tests/unit/,test_provider_info.py test_airflow_features.py test_queues.py test_retry.py sensors \
	plugin triggers/test_base.py triggers/test_watchers_stored.py) tests/airflow/test_backfill_actions.py \
	tests/integration/pulsar/test_messages_without_shared_streams.py tests/airflow/test_events.py \
	tests/airflow/ui/test_page.py::test_a_month_of_all_sources_is_counted_as_it_was_written \
	tests/airflow/test_example_dags.py::test_every_example_is_a_dag_that_airflow_can_store

# Airflow's own providers import deprecated names there
LOWEST_PYTEST := .venv-lowest/bin/python -m pytest -W ignore::FutureWarning -W ignore::DeprecationWarning

# Airflow 3.2 does not bound what its API server is made of, and starts with no newer ones
LOWEST_BOUNDS := 'fastapi<0.137' 'cadwyn<8' 'starlette<1.4' 'svcs<26'

.venv-lowest: env ## with one version of Airflow (again when another is asked for)
	@wanted="$(AIRFLOW) $$(cksum < pyproject.toml | tr ' ' '-')"; \
	if [[ "$$(cat .venv-lowest/.made 2>/dev/null || true)" != "$$wanted" ]]; then \
		echo "Airflow $(AIRFLOW): making .venv-lowest"; \
		$(VENV)/bin/uv venv --quiet --clear --python $(PY) .venv-lowest; \
		$(VENV)/bin/uv pip install --quiet --python .venv-lowest/bin/python --group test -e '.[pulsar,pulsar-client,pravega,spark,formats,iceberg,delta,messaging,postgres,mysql,java]' \
			-e servers ruff 'apache-airflow==$(AIRFLOW)' $(LOWEST_BOUNDS); \
		echo "$$wanted" > .venv-lowest/.made; \
	fi

pipeline: env ## Postgres to Debezium to a stream to tables that equal the database's (450 MB are fetched)
	$(PY) -m pytest $(PIPELINE) $(ARGS)

test-lowest: servers .venv-lowest ## the tests of the Airflow side, on the oldest Airflow that is supported (AIRFLOW=3.1.8)
	$(LOWEST_PYTEST) $(or $(ARGS),$(LOWEST))

test-lowest-part: servers .venv-lowest ## of them, those that tell most in a few minutes
	$(LOWEST_PYTEST) $(LOWEST_PART)

tour: servers ## all commands of both pages "Get started", from wheels in empty environments (takes many minutes)
	STREAMS_TOUR=whole $(PY) -m pytest tests/install/test_get_started.py $(ARGS)

mutants: env ## whether the tests notice twenty faults that a tired engineer might make (ARGS="names")
	$(PY) -m tests.mutants $(ARGS)

bench: servers ## side by side with the peers on this machine; prints the ratios
	$(PY) -m tests.bench $(ARGS)

fuzz: env ## damaged and unusual bytes for every decoder, then new examples for every property (MINUTES=1 of each)
	$(PY) -m tests.fuzz legal --minutes $(MINUTES)
	$(PY) -m tests.fuzz damaged --minutes $(MINUTES)
	$(PY) -m tests.fuzz.pravega --minutes $(MINUTES)
	$(PY) -m tests.fuzz.formats --minutes $(MINUTES)
	$(PY) -m tests.fuzz.properties --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

demo: servers ## windows of real Pulsar and Pravega servers in an Iceberg table, queried by DuckDB (EVENTS=200000)
	$(PY) dags_examples/run_demo.py --events $(EVENTS)

demo-pulsar: servers ## with Pulsar only
	$(PY) dags_examples/run_demo.py pulsar --events $(EVENTS)

demo-pravega: servers ## with Pravega only
	$(PY) dags_examples/run_demo.py pravega --events $(EVENTS)

docs: env ## serve the documentation, rebuilt as it changes
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs serve --config-file docs/mkdocs.yml

clean: ## remove what was built here, and .venv
	rm -rf $(VENV) .venv-lowest site dist .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse metastore_db derby.log .demo
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
