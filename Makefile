# The two commands: `make ner` (or make ner TEXT="...") and `make test`. Both make .venv from the pinned set; the first
# installs the core, without PyTorch, the second everything.
# `make wheel` puts a source distribution and a wheel into dist/ if `make check-wheel` finds nothing wrong with them.
# `make docs` builds the documentation site into build/site, where index.html can be opened from the disk.
PYTHON ?= python3
VENV ?= .venv
# As typed: a dollar sign in a text is not for make to expand.
override export TEXT := $(value TEXT)
BIN = $(VENV)/bin

# `make serve` answers over HTTP, with a page at http://127.0.0.1:8000; `make docs` builds the documentation site.
# `make web` compiles the runtime to WebAssembly and builds build/web, a page that finds entities in the browser.
.PHONY: ner serve test lint types docs web wheel check-wheel clean

ner: $(VENV)/.core
	@$(BIN)/cige predict "$${TEXT:-examples/news.txt}" --words

serve: $(VENV)/.serve
	@$(BIN)/cige serve $(SERVE)

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2

lint: $(VENV)/.dev
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks

types: $(VENV)/.dev
	$(BIN)/mypy

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	$(BIN)/python .ci/check_site.py build/site

web: $(VENV)/.web
	$(BIN)/python web/build.py

wheel: $(VENV)/.dev
	$(BIN)/python .ci/check_wheel.py --keep dist

check-wheel: $(VENV)/.dev
	$(BIN)/python .ci/check_wheel.py

SOURCES_C = $(wildcard src/cige/nn/native/*.[ch] src/cige/runtime/native/*.[ch] src/cige/lexicon/*.c)
PIP = $(BIN)/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt

$(VENV)/.core: pyproject.toml setup.py constraints.txt $(SOURCES_C)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) setuptools
	$(PIP) --no-build-isolation --editable .
	@touch $@

$(VENV)/.serve: $(VENV)/.core
	$(PIP) --no-build-isolation --editable ".[serve]"
	@touch $@

# seqeval asks for setuptools_scm while it is built, and finds it only where it is installed already.
$(VENV)/.dev: $(VENV)/.core
	$(PIP) setuptools_scm
	$(PIP) --no-build-isolation --editable ".[dev]"
	@touch $@

$(VENV)/.docs: $(VENV)/.core
	$(PIP) --no-build-isolation --editable ".[docs]"
	@touch $@

$(VENV)/.web: $(VENV)/.core
	$(PIP) --no-build-isolation --editable ".[web]"
	@touch $@

clean:
	rm -rf $(VENV) build dist src/*.egg-info
