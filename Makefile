# Two commands are all a newcomer needs: `make run` and `make test`. Each creates .venv, installs the
# pinned dependencies and the package into it, and does its job.

PYTHON ?= python3
BIN := .venv/bin
PIP := PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check
STAMP := .venv/.installed

.PHONY: run test lint check bench format clean

run: $(STAMP)
	@$(BIN)/normalfan demo

test: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist worksteal

lint: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test

bench: .venv/.installed-bench
	$(BIN)/normalfan bench

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv dist

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("normalfan needs Python 3.11 or newer; pass one: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	@echo "Creating .venv and installing normalfan (once, about a minute)…"
	@$(PYTHON) -m venv .venv
	@$(PIP) --editable '.[dev]'
	@touch $@

.venv/.installed-bench: $(STAMP)
	@$(PIP) --editable '.[dev,bench]'
	@touch $@
