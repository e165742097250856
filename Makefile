# Two commands are all a newcomer needs: `make run` and `make test`. Each creates .venv, installs what it
# needs at the pinned versions and the package itself, and does its job.

PYTHON ?= python3
BIN := .venv/bin
PIP := PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: run test soak lint check docs bench reproduce format wheels clean

run: .venv/.installed-report
	@$(BIN)/normalfan demo

test: .venv/.installed-dev
	$(BIN)/python -m pytest -n auto --dist worksteal

# Hours of luck in minutes: at least 200 kills of a watch, every bit of a file flipped, tens of
# thousands of near-ties, thousands of small problems against exact answers.
soak: .venv/.installed-dev
	SOAK=1 $(BIN)/python -m pytest tests/watch/test_kill.py tests/jobs/test_cluster.py \
	  tests/pricing tests/ranges/test_enumeration.py tests/watch/test_journal.py tests/test_mutations.py \
	  tests/io tests/test_files.py tests/replan/test_library.py

lint: .venv/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test

docs: .venv/.installed-docs
	$(BIN)/python -m sphinx -W --keep-going -n -E -j auto -q docs docs/_build/html
	@echo "The site is in docs/_build/html: open index.html."

bench: .venv/.installed-bench
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python benchmarks/ranging.py

reproduce: .venv/.installed-plot,report
	$(BIN)/normalfan reproduce

format: .venv/.installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

wheels: .venv/.installed-dev
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist . ./companion

clean:
	rm -rf .venv dist

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("normalfan needs Python 3.11 or newer; pass one: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv .venv

# One stamp for each extra, so that nobody waits for what they do not use.
.venv/.installed-%: pyproject.toml constraints.txt | .venv/bin/python
	@echo "Installing normalfan[$*] into .venv (once, about a minute)…"
	@$(PIP) --editable '.[$*]'
	@touch $@
