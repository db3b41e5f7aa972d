# The two commands: `make ner` (or make ner TEXT="...") and `make test`. Both make .venv from the pinned set.
# `make wheel` puts a source distribution and a wheel into dist/ if `make check-wheel` finds nothing wrong with them.
PYTHON ?= python3
VENV ?= .venv
# As typed: a dollar sign in a text is not for make to expand.
override export TEXT := $(value TEXT)
BIN = $(VENV)/bin

.PHONY: ner test lint types wheel check-wheel clean

ner: $(VENV)/.core
	@$(BIN)/cige predict "$${TEXT:-examples/news.txt}" --words

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/.dev
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks

types: $(VENV)/.dev
	$(BIN)/mypy

wheel: $(VENV)/.dev
	$(BIN)/python .ci/check_wheel.py --keep dist

check-wheel: $(VENV)/.dev
	$(BIN)/python .ci/check_wheel.py

SOURCES_C = $(wildcard src/cige/nn/native/*.[ch] src/cige/lexicon/*.c)
PIP = $(BIN)/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt

$(VENV)/.core: pyproject.toml setup.py constraints.txt $(SOURCES_C)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) setuptools wheel
	$(PIP) --no-build-isolation --editable .
	@touch $@

# seqeval asks for setuptools_scm while it is built, and finds it only where it is installed already.
$(VENV)/.dev: $(VENV)/.core
	$(PIP) setuptools_scm
	$(PIP) --no-build-isolation --editable ".[dev]"
	@touch $@

clean:
	rm -rf $(VENV) build dist src/*.egg-info
