# The one list of commands. `make ask Q="..."` and `make test` set up everything they need.
PYTHON ?= python3
BIN := .venv/bin
PORT ?= 2024
# As written on the command line: a question may hold dollars, quotes and backticks.
override export Q := $(value Q)

.DEFAULT_GOAL := help
.PHONY: help ask serve test test-all check dev cluster bench

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

ask: .venv/.ready ## Run a debate: make ask Q="Your question"
	@$(BIN)/contend ask -- "$$Q"

serve: .venv/.ready ## Open the web page
	@$(BIN)/contend serve

PYTEST := $(BIN)/pytest -n 3 --dist worksteal --durations=25
test: .venv/.ready-dev ## Run the tests, about four minutes
	@$(PYTEST) -m "smoke or not (slow or embedded)"

# Property tests run again here, with more examples.
test-all: test ## Run the long tests too: kills, real weights, outages, every documented command
	@$(PYTEST) -m "(slow or embedded or hypothesis) and not smoke" --hypothesis-profile=long

check: .venv/.ready-dev .typing ## Lint, formatting, types, and the one-way dependencies
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@cd .typing && ../$(BIN)/lint-imports --config ../pyproject.toml

dev: .venv/.ready-dev ## Start langgraph dev for LangGraph Studio and Agent Protocol clients
	@$(BIN)/python -c 'import socket, sys; s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("127.0.0.1", int(sys.argv[1])))' $(PORT) 2>/dev/null \
		|| { echo "Port $(PORT) is taken: stop what listens there, or choose another: make dev PORT=2025"; exit 2; }
	@$(BIN)/contend models pull
	@LANGGRAPH_STRICT_MSGPACK=true LANGGRAPH_CLI_NO_ANALYTICS=1 LANGGRAPH_NO_VERSION_CHECK=true \
		$(if $(wildcard .env),$(BIN)/dotenv -f .env run --no-override --) \
		sh -c 'LANGSMITH_TRACING="$${LANGSMITH_TRACING:-false}" exec $(BIN)/langgraph dev --no-browser --no-reload --host 127.0.0.1 --port $(PORT) --n-jobs-per-worker 8'

cluster: .venv/.ready-dev ## Start a cluster for a trial: PostgreSQL, Redis, two Aegra workers and the page
	@PYTHON="$(PYTHON)" $(if $(wildcard .env),$(BIN)/dotenv -f .env run --no-override --) $(BIN)/python -m deploy

bench: .venv/.ready-dev ## Measure speed and growth against their limits
	@$(BIN)/python -m benchmarks

# A terminal shows the seconds and what pip does now; elsewhere only errors are printed.
define install
	log=.venv/install.log; \
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off -c constraints.txt $(1) >$$log 2>&1 & pip=$$!; \
	trap 'kill $$pip; exit 130' INT TERM; seconds=0; \
	while kill -0 $$pip 2>/dev/null; do \
		sleep 1; seconds=$$((seconds + 1)); \
		if [ -t 1 ]; then printf '\r\033[K%4d s  %s' $$seconds "$$(grep -oE '(Collecting|Downloading|Using cached|Building|Installing collected)[^(,;:<>=!~]*' $$log | tail -n 1 | sed 's/-[0-9].*//')"; fi; \
	done; \
	if [ -t 1 ]; then printf '\r\033[K'; fi; \
	wait $$pip || { grep -iE 'error' $$log || tail -n 20 $$log; echo "Could not install the packages: see $$log"; exit 1; } >&2
endef

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Contend needs Python 3.11 or later: make PYTHON=python3.11 ..."; exit 1; }
	@$(PYTHON) -m venv .venv

.venv/.ready: .venv/bin/python pyproject.toml constraints.txt
	@echo "Setting up, once: installing packages into .venv (a minute or two) ..."
	@$(call install,-e .)
	@touch $@

.venv/.ready-dev: .venv/.ready
	@echo "Setting up, once: installing development packages into .venv (a minute or two) ..."
	@$(call install,--group dev)
	@touch $@

# mypy and import-linter read files, not installed packages: to them the rooms must lie in one folder.
ROOMS := graph nodes prompts models retrieval debates service cli evals
.typing: Makefile contend
	@rm -rf .typing && mkdir -p .typing/contend
	@for part in contend/*; do ln -s ../../$$part .typing/contend/; done
	@for room in $(ROOMS); do ln -s ../../$$room .typing/contend/; done
	@touch .typing
