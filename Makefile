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
# `make bench` lists what can be measured, and `make bench NAME=match OPTIONS="--rounds 3"` measures it.
# `make web` compiles the runtime to WebAssembly and builds build/web, a page that finds entities in the browser.
.PHONY: ner serve test lint types bench docs web wheel check-wheel check-image sanitize clean \
  install-core install-serve install-dev install-docs install-web install-setuptools_scm

ner: $(VENV)/.core
	@$(BIN)/cige predict "$${TEXT:-examples/news.txt}" --words

serve: $(VENV)/.serve
	@$(BIN)/cige serve $(SERVE)

# Bytecode is kept, whatever the environment says: hundreds of processes import the same packages, and a third of their
# time would go into compiling them again.
test: $(VENV)/.dev
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 3 --dist worksteal

lint: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/.dev
	$(BIN)/mypy

bench: $(VENV)/.dev
	@$(BIN)/python -m benchmarks $(NAME) $(OPTIONS)

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	$(BIN)/python .ci/check_site.py build/site

web: $(VENV)/.web
	$(BIN)/python web/build.py

wheel: $(VENV)/.dev
	$(BIN)/python .ci/check_wheel.py --keep dist

check-wheel: $(VENV)/.dev
	$(BIN)/python .ci/check_wheel.py

# make check-image ENGINE=podman: builds the image of examples/deploy and asks a server that runs from it.
check-image:
	$(PYTHON) .ci/check_image.py $(ENGINE)

# Folders whose authors mean harm, and odd texts, with AddressSanitizer: make sanitize FUZZ="--folders 10000".
sanitize: $(VENV)/.dev
	PYTHON=$(BIN)/python .ci/sanitize $(FUZZ)

SOURCES_C = $(wildcard src/cige/nn/native/*.[ch] src/cige/runtime/native/*.[ch] src/cige/lexicon/*.[ch]) \
  $(wildcard src/cige/instruction_sets/*.c)
# Without bytecode, which Python writes for the modules that are imported.
INSTALL = install -qq --no-compile --disable-pip-version-check --constraint constraints.txt
PIP = CIGE_BUILD=none $(BIN)/python -m pip $(INSTALL) --no-build-isolation
# Installing packages takes longer than compiling, so it goes first.
BUILD = nice $(BIN)/python setup.py -q build_ext --inplace --force --build-lib build/native --build-temp build/native

# An environment for each purpose: packages are installed while the compiler works. The kernels of training are compiled
# where PyTorch is installed, and there all levels of instruction sets, which tests compare.
$(VENV)/.core $(VENV)/.serve $(VENV)/.dev $(VENV)/.docs $(VENV)/.web: $(VENV)/.%: \
    $(VENV)/.python pyproject.toml setup.py constraints.txt $(SOURCES_C)
	@$(MAKE) --no-print-directory --jobs=2 $(VENV)/.built-$(if $(filter dev,$*),all,core) install-$*
	@touch $@

# The pip of $(PYTHON) installs the newest pip, which is quicker; where there is none, Python's own copy does.
$(VENV)/.python:
	$(PYTHON) -m venv --without-pip $(VENV)
	$(PYTHON) -m pip --python $(BIN)/python $(INSTALL) pip setuptools 2>/dev/null || \
	  { $(BIN)/python -m ensurepip && $(PIP) --upgrade pip setuptools; }
	@touch $@

install-core:
	$(PIP) --editable .

# seqeval asks for setuptools_scm while it is built, and finds it only where it is installed already.
install-dev: install-setuptools_scm
install-serve install-dev install-docs install-web: install-%:
	$(PIP) --editable ".[$*]"

install-setuptools_scm:
	$(PIP) setuptools_scm

$(VENV)/.built-core: $(VENV)/.python setup.py $(SOURCES_C)
	CIGE_BUILD=core $(BUILD)
	@touch $@

$(VENV)/.built-all: $(VENV)/.python setup.py $(SOURCES_C)
	CIGE_BUILD=all $(BUILD)
	@touch $@ $(VENV)/.built-core

clean:
	rm -rf $(VENV) build dist src/*.egg-info
