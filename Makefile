# Needs Python 3.10 to 3.13 with pip and venv, and make. Everything else is installed into .venv.
PYTHON ?= python3
PY := .venv/bin/python
# installing compiles nothing and asks nothing; versions and hashes come from the lock files
PIP := $(PY) -m pip install --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev demo demo-flights dev test check bench screenshots lock clean

help: ## list what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: .venv/.run ## install what the demos need into .venv
setup-dev: .venv/.dev ## install what tests and checks need as well

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' || \
	  { echo "This needs Python 3.10 to 3.13, and $(PYTHON) is another. Set it, for example: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/.run: requirements.lock pyproject.toml | .venv/bin/python
	$(PIP) --require-hashes -r requirements.lock
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

.venv/.dev: requirements-dev.lock pyproject.toml | .venv/bin/python
	$(PIP) --require-hashes -r requirements-dev.lock
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $@ .venv/.run

demo: setup ## backfill May 2026 of the sample, and show what came of each day
	$(PY) -m backfill_assets.demo sales

demo-flights: setup ## backfill a year of real flights, New York days over UTC instants
	$(PY) -m backfill_assets.demo flights

dev: setup ## open the UI on the demo's data; stays up until Ctrl-C
	$(PY) -m backfill_assets.demo serve

test: setup-dev ## run the tests
	$(PY) -m pytest backfill_assets_tests

check: setup-dev ## lint, format, types and layers
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/basedpyright
	.venv/bin/lint-imports

bench: setup-dev ## measure against bare SQL and the stock IO manager; rewrites docs/benchmarks.md
	$(PY) -m backfill_assets_tests.bench

screenshots: setup-dev ## take the pictures of docs/ from the UI on the demo's data (needs chromium)
	$(PY) -m backfill_assets_tests.screenshots

LOCK := .venv/bin/uv pip compile --universal --python-version 3.10 --generate-hashes --no-emit-index-url \
  --no-header --no-annotate --no-strip-extras --quiet pyproject.toml
lock: setup-dev ## resolve both lock files anew
	$(LOCK) --extra dev -o requirements-dev.lock
	sed -E 's/\[[a-z0-9,-]+\]==/==/' requirements-dev.lock >.venv/.constraints
	$(LOCK) --extra flights -c .venv/.constraints -o requirements.lock

clean: ## remove the demo's data and caches, not .venv
	rm -rf .demo .pytest_cache .ruff_cache .hypothesis build *.egg-info
