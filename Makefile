# Everything a user or a developer types. `make help` lists it.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
TXNS ?= 10000

.DEFAULT_GOAL := help
.PHONY: help install demo test lint bench bench-rpc bench-catalogue isolation serve doctor lock clean

help: ## List the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(VENV)/installed ## Make the environment (.venv) with the locked dependencies

$(VENV)/installed: requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "hive-acid needs Python 3.11: set PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "This Python has no ensurepip (Debian ships it in python3-venv): installing that package."; \
	    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y python3-venv; } >/dev/null 2>&1 \
	      || { echo "apt-get could not install python3-venv"; exit 1; }; \
	  else echo "This Python has no ensurepip: install your system's python3-venv package."; exit 1; fi; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing the locked dependencies into $(VENV) (Spark is large: the first time takes a while)."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517 --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: install ## ACID on Spark, on real data: New York's flights of 2013
	@$(BIN)/python -m hive_acid.demo $(ARGS)

test: install ## All tests
	@$(BIN)/python -m pytest $(ARGS)

lint: install ## Format, lint, types and the direction of imports
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --config pyproject.toml

bench: install ## Ratios: RPC cycles beside bare Postgres, an ACID scan beside plain ORC
	@$(BIN)/python -m tests.bench $(ARGS)

bench-rpc: install ## The transactional calls, measured (ARGS="--against thrift://host:9083 --only write,read …")
	@$(BIN)/python -m tests.bench.rpc $(ARGS)

bench-catalogue: install ## A table with 200,000 partitions: each call beside bare SQL (ARGS="--partitions N")
	@$(BIN)/python -m tests.bench.catalogue $(ARGS)

isolation: install ## Snapshot isolation under kills, restarts and lost calls (TXNS=100000 ARGS="--seed N")
	@$(BIN)/python -m tests.isolation --txns $(TXNS) $(ARGS)

serve: install ## Run the metastore in the foreground (ARGS="--port 9083 --warehouse DIR …")
	@exec $(BIN)/metastore serve $(ARGS)

doctor: install ## Say what is wrong before a user finds out
	@$(BIN)/metastore doctor $(ARGS)

lock: ## Renew requirements.lock from pyproject.toml (needs uv)
	uv pip compile pyproject.toml --all-extras --generate-hashes --no-emit-index-url --no-annotate --no-header \
	  --python-version 3.11 -q -o requirements.lock $(ARGS)

clean: ## Remove the environment and the caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
