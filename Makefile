# The two commands of the README are `make demo` and `make test`; `make help` lists the rest.
# Each sets up what it needs: a virtual environment built by plain pip from the hashed lock file.

VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

.PHONY: help demo test check soak bench format lock clean test-all test-wheel
.DEFAULT_GOAL := help

help: ## what can be made
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

$(STAMP): requirements.lock pyproject.toml
	@sh .ci/make-venv "$(VENV)" requirements.lock

.venv-bench/.ready: requirements-bench.lock pyproject.toml
	@sh .ci/make-venv .venv-bench requirements-bench.lock

demo: $(STAMP) ## run the inventory and demand sample, no account needed
	@$(BIN)/python samples/inventory_demand.py

test: $(STAMP) ## run the tests (under ten minutes on two cores)
	@$(BIN)/python -m pytest -q -m "not soak" $(ARGS)

soak: $(STAMP) ## run what takes long: kill matrices, 10,000 programs, fuzzing
	@$(BIN)/python -m pytest -q -m soak --timeout=3600 $(ARGS)

check: $(STAMP) ## ruff, mypy --strict, import-linter
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

bench: .venv-bench/.ready ## run every benchmark and rewrite the tables of docs/performance.md (or BENCH="search tools")
	@.venv-bench/bin/python -m benchmarks $(BENCH)

test-all: ## run the tests on every Python 3.11 to 3.14 that this machine has
	@sh .ci/test-all

test-wheel: $(STAMP) ## build the wheel and test it without the source
	@sh .ci/test-wheel "$(VENV)"

format: $(STAMP) ## format the code
	@$(BIN)/ruff check --fix . && $(BIN)/ruff format .

LOCKED := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --group dev \
	--extra monty --extra otel
lock: ## renew requirements.lock and requirements-bench.lock (needs uv)
	uv pip compile pyproject.toml $(LOCKED) -o requirements.lock
	uv pip compile pyproject.toml $(LOCKED) --extra search-hybrid --extra bench -c requirements.lock \
	    -o requirements-bench.lock

clean: ## remove the virtual environment and caches
	rm -rf .venv .venv-* .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
