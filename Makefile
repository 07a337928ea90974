# Needs Python 3.10 to 3.13 with pip and venv, and make. Everything else is installed into .venv.
PYTHON ?= python3
PY := .venv/bin/python
# installing needs no compiler; every version and hash comes from the lock files
PIP := $(PY) -m pip install --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev demo demo-dbt demo-flights demo-replay demo-cutover dev doctor test check bench screenshots dbt pins lock clean

help: ## list what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: .venv/.run ## install what the demos need into .venv
setup-dev: .venv/.dev ## install what tests and checks need as well

SUPPORTED := import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))

.venv/bin/python:
	@$(PYTHON) -c '$(SUPPORTED)' || \
	  { echo "This needs Python 3.10 to 3.13, and $(PYTHON) is another. Set it, for example: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv

# a .venv that was made by hand, or half made, may hold another Python or no pip
define READY
@$(PY) -c '$(SUPPORTED)' || \
  { echo "This needs Python 3.10 to 3.13, and .venv holds another. Remove .venv and run make again."; exit 1; }
@$(PY) -c 'import pip' 2>/dev/null || $(PY) -m ensurepip >/dev/null || \
  { echo ".venv has no pip, and $(PY) brings none. Install your system's python3-venv, remove .venv and run make again."; exit 1; }
endef

# what builds a source package (the flights, and this one) is locked too, so it is there before anything is built
define INSTALL
awk '/^[^ ]/ { keep = /^(packaging|setuptools|wheel)==/ } keep' $(1) >.venv/.build
$(PIP) --require-hashes -r .venv/.build
$(PIP) --require-hashes --no-build-isolation -r $(1)
$(PIP) --no-deps --no-build-isolation -e .
endef

.venv/.run: requirements.lock pyproject.toml | .venv/bin/python
	$(READY)
	$(call INSTALL,requirements.lock)
	@touch $@

.venv/.dev: requirements-dev.lock pyproject.toml | .venv/bin/python
	$(READY)
	$(call INSTALL,requirements-dev.lock)
	@touch $@ .venv/.run

demo: setup ## backfill May 2026 of the sample, and show what came of each day
	$(PY) -m backfill_assets.demo sales

demo-dbt: setup ## fill a new column of a dbt model for 90 days, with customers as they were
	$(PY) -m backfill_assets.demo dbt --home .demo/dbt

demo-replay: setup ## make a week of payments again from their events, and see an older day refused
	$(PY) -m backfill_assets.demo replay --home .demo/replay

demo-cutover: setup ## find what an old job does wrong by comparing, move its readers to the new table, and back
	$(PY) -m backfill_assets.demo cutover --home .demo/cutover

demo-flights: setup ## backfill a year of real flights, New York days over UTC instants
	$(PY) -m backfill_assets.demo flights

dev: setup ## open the UI on the demo's data; stays up until Ctrl-C
	$(PY) -m backfill_assets.demo serve

# make doctor DOCTOR="--ddl analytics.fct_sales"; of a location of your own: DOCTOR="-m my_package.definitions"
doctor: setup ## try in the warehouse of BACKFILL_WAREHOUSE_URL what a load does, and say what would fail
	@$(PY) -m backfill_assets.operations.doctor $(DOCTOR)

test: setup-dev ## run the tests
	$(PY) -m pytest -n 3 --dist loadfile --no-loadscope-reorder backfill_assets_tests

check: setup-dev ## lint, format, types and layers
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/basedpyright
	.venv/bin/lint-imports

bench: setup-dev ## measure against bare SQL and the stock IO manager; rewrites docs/benchmarks.md
	$(PY) -m backfill_assets_tests.bench

screenshots: setup-dev ## take the pictures of docs/ on the way through the browser's story (needs chromium)
	STORY_IMAGES=docs/images $(PY) -m pytest -q backfill_assets_tests/stories/test_browser.py

dbt: setup-dev ## write what is generated for dbt: the shared SQL of its macros, and the manifest
	$(PY) -m backfill_assets.dbt.spelled
	$(PY) -m backfill_assets.dbt.manifest

pins: setup-dev ## ask the registry whether a version that is held back may move
	BACKFILL_TEST_PINS=1 $(PY) -m pytest -q backfill_assets_tests/test_pins.py

LOCK := .venv/bin/uv pip compile --universal --python-version 3.10 --generate-hashes --no-emit-index-url \
  --no-header --no-annotate --no-strip-extras --quiet pyproject.toml
lock: setup-dev ## resolve both lock files anew
	$(LOCK) --extra dev -o requirements-dev.lock
	sed -E 's/\[[a-z0-9, -]+\]==/==/' requirements-dev.lock >.venv/.constraints
	$(LOCK) --extra dbt --extra flights -c .venv/.constraints -o requirements.lock
	$(PY) .ci/lock_extras.py requirements.lock requirements-dev.lock

clean: ## remove the demo's data and caches, not .venv
	rm -rf .demo .pytest_cache .ruff_cache .hypothesis build *.egg-info
