# Bare `make` lists the targets: the text behind ## is their help.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Build back ends are pinned like everything else.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export UV_CONSTRAINT := $(CURDIR)/constraints.txt
export UV_BUILD_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help setup demo test check format docs wheel-test system-tools bench soak clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(VENV)/.ready ## create .venv with what Assay needs to run

demo: $(VENV)/.ready ## set everything up and run the main job
	@PATH="$(CURDIR)/$(BIN):$$PATH" ./examples/demo.sh

test: $(VENV)/.ready-dev system-tools check wheel-test ## set everything up and run all tests (what CI runs)
	@echo "test: running all tests"
	@$(BIN)/pytest

check: $(VENV)/.ready-dev ## format, lint, types and imports
	@echo "check: format, lint, types, imports"
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@PYTHONPATH= $(BIN)/lint-imports --no-cache

format: $(VENV)/.ready-dev ## put the code in its format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: $(VENV)/.ready-dev ## generate the references of commands and HTTP, and the JSON Schemas
	@$(BIN)/python tools/generate_cli_reference.py
	@$(BIN)/python tools/generate_http_reference.py
	@$(BIN)/python -m schemas.generate

wheel-test: $(VENV)/.ready-dev ## build the wheel and try it in an empty environment
	@./tools/wheel-test.sh $(BIN)/python

bench: $(VENV)/.ready-dev ## measure everything anew and draw the plots (about two hours, on a quiet machine)
	@$(BIN)/python bench/all.py

soak: $(VENV)/.ready-dev ## 20 minutes of load while processes and servers are killed at random
	@$(BIN)/python bench/soak.py

system-tools: ## install the tools no wheel carries, where that is possible (root on Debian or Ubuntu)
	@./tools/system-tools.sh

clean: ## remove what make created
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/bin/python:
	@echo "setup: creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.ready: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "setup: installing Assay into $(VENV)"
	@./tools/install.sh $(BIN)/python .
	@touch $@

$(VENV)/.ready-dev: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "setup: installing Assay and its test tools into $(VENV)"
	@./tools/install.sh $(BIN)/python '.[dev,claude-code]'
	@touch $@ $(VENV)/.ready
