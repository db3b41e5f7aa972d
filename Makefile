# The two commands: `make ner` (or make ner TEXT="...") and `make test`. Both make .venv from the pinned set.
PYTHON ?= python3
VENV ?= .venv
TEXT ?=
BIN = $(VENV)/bin

.PHONY: ner test lint types bench clean

ner: $(VENV)/.core
	@$(BIN)/cige predict $(if $(TEXT),"$(TEXT)",examples/news.txt) --words

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/.dev
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks

types: $(VENV)/.dev
	$(BIN)/mypy

$(VENV)/.core: pyproject.toml setup.py constraints.txt src/cige/nn/native/kernels.c
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(BIN)/python -m pip install -q -c constraints.txt -e ".[dev]"
	@touch $@

clean:
	rm -rf $(VENV) build src/*.egg-info
