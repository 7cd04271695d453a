# The one list of commands. `make ask Q="..."` and `make test` set up everything they need.
PYTHON ?= python3
BIN := .venv/bin
# As written on the command line: a question may hold dollars, quotes and backticks.
override export Q := $(value Q)

.DEFAULT_GOAL := help
.PHONY: help ask test check dev bench

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-6s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

ask: .venv/.ready ## Run a debate: make ask Q="Your question"
	@$(BIN)/contend ask "$$Q"

test: .venv/.ready-dev ## Run all tests
	@$(BIN)/pytest

check: .venv/.ready-dev ## Lint, formatting, types, and the one-way dependencies
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

dev: .venv/.ready-dev ## Start langgraph dev for LangGraph Studio and Agent Protocol clients
	@$(BIN)/contend models pull

bench: .venv/.ready-dev ## Measure speed and growth against their limits
	@$(BIN)/python -m benchmarks

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Contend needs Python 3.11 or later: make PYTHON=python3.11 ..."; exit 1; }
	@$(PYTHON) -m venv .venv

.venv/.ready: .venv/bin/python pyproject.toml constraints.txt
	@echo "Setting up: installing packages into .venv (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

.venv/.ready-dev: .venv/.ready
	@echo "Setting up: installing development packages into .venv (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@
