# Every target sets up what it needs. Needs Python >= 3.11 with pip and venv, and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests wait for processes and leases as well as they compute: one worker more than there are cores keeps these busy.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

# The tests start some hundred processes of Twiceshy; without files of bytecode each would compile all of it anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

help: ## Print these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.installed: pyproject.toml sdk/pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Twiceshy needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ./sdk --editable '.[dev]'
	@touch $@

install: $(VENV)/.installed ## Put Twiceshy and its tools into .venv

demo: install ## Book one calendar hold through four accidents, without and with the guard
	$(BIN)/twiceshy demo

example-refund: install ## Refund a payment behind approval, with the agent killed while a person decides
	$(BIN)/python -m examples.refund

example-booking: install ## Book a room as a saga that fails, with the agent killed in between
	$(BIN)/python -m examples.booking

example-contracts: install ## Find, fork, mend and test the contract that was silently called low risk
	$(BIN)/python -m examples.contracts

example-retention: install ## Replay the retention call that nobody can reproduce, and find the one input that decides
	$(BIN)/python -m examples.retention

test: install ## Run all tests on real SQLite and real PostgreSQL 18
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --maxprocesses 4 --dist loadfile --no-loadscope-reorder

machine: install ## Search the running service for longer: other lives of effects each time, what they met is printed
	$(BIN)/python -m pytest tests/acceptance/machine/test_machine.py -q --hypothesis-profile=search

weather: install ## Run the service's tests with a Redis that is fair, lies, is killed, is cut off: each weather for all of them
	for weather in fair lying killed partitioned; do \
	  WEATHER=$$weather $(BIN)/python -m pytest tests/integration --ignore tests/integration/sinks -q \
	    --numprocesses $(WORKERS) --maxprocesses 4 --dist loadfile --no-loadscope-reorder || exit 1; \
	done

soak: install ## Soak the service for SOAK_MINUTES (15) and check the whole history; then growth at full size: about forty minutes
	$(BIN)/python -m tests.soak $(ARGS)
	$(BIN)/python -m bench.growth

soak-kills: install ## Kill a recorded agent at 200 random events, and relays and brokers during 10,000 messages each: fifteen minutes
	SOAK=200 $(BIN)/python -m pytest tests/acceptance/test_resume.py -q
	SOAK=10000 $(BIN)/python -m pytest tests/acceptance/test_relay_kills.py tests/acceptance/test_broker_kills.py -q
	SOAK=10000 $(BIN)/python -m pytest tests/integration/test_relay_burdens.py -q

check: install ## Lint, format, types, import contracts, coverage of the pure core, documents
	$(MAKE) --no-print-directory --jobs 2 --output-sync=target check-style check-core check-types check-docs

check-style: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PYTHONPATH=. $(BIN)/lint-imports

check-types: install
	$(BIN)/mypy
	$(BIN)/mypy tests bench examples

check-core: install
	$(BIN)/coverage run -m pytest tests/unit/core -q --ignore tests/unit/core/test_state_search.py
	$(BIN)/coverage report

check-docs: install
	$(BIN)/mkdocs build --strict --quiet

bench: install ## Measure Twiceshy against DBOS, Restate and others; ARGS="--only replay" for one row
	$(BIN)/python -m bench $(ARGS)

bench-charts: install ## Write docs/reference/benchmarks.md and its charts from the last results
	$(BIN)/python -m bench.publish

bench-publish: install ## Measure all rows, then write the page and its charts
	$(BIN)/python -m bench --all --publish $(ARGS)

serve: install ## Start the guard on http://127.0.0.1:8700 with ./twiceshy.db
	$(BIN)/twiceshy serve

format: install ## Let ruff put the code in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove what the targets above made
	rm -rf $(VENV) site bench/.peers .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage

.PHONY: help install demo example-booking example-contracts example-refund example-retention test machine weather soak check check-style check-types check-core check-docs bench bench-charts bench-publish serve format clean
