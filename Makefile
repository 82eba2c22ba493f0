# Two commands prove all: `make check` and `make test`. `make demo` shows it.
# Needs nothing but python3 (3.11 or newer), git and make.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
JOBS   ?= auto
# What is compiled once is not compiled again by each process.
unexport PYTHONDONTWRITEBYTECODE

RUNTIME := $(VENV)/.installed-runtime
DEV     := $(VENV)/.installed-dev
COMPILE := $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-strip-extras \
           --no-emit-index-url --no-header

.PHONY: demo test chaos live-github clis collect check layout lint types imports format bench docs pictures lock clean help
.PHONY: soak fuzz structure
.PHONY: sbom audit wheel dist

help:
	@echo "make demo    watch a fleet work, be judged and be merged (no model, no key)"
	@echo "make test    every test, and a share of the chaos"
	@echo "make chaos   kill a fleet at every boundary, then break it in 500 rounds (ROUNDS=20: fewer): hours"
	@echo "make soak    let a fleet live a day by a fast clock on both databases, and a hundred workers at once: 15 minutes"
	@echo "make fuzz    feed every way in with what nobody meant (MINUTES=10, EXAMPLES=300, SEED=..., ONLY=name)"
	@echo "make live-github REPO=owner/name   walk one issue through a repository of yours on GitHub"
	@echo "make clis    install the real agents that the tests drive, and the schemas of GitHub (make test does it too)"
	@echo "make check   format, lint, types, imports, size of packages, commit subjects"
	@echo "make bench   how often it is fooled, and what it costs beside the bare thing; writes docs/numbers.md"
	@echo "make docs    write the pages of the reference that are made from the code"
	@echo "make pictures   take the pictures of the dashboard anew (needs chromium)"
	@echo "make format  rewrite the code in the house format"
	@echo "make lock    write requirements*.lock anew, and the list of what is inside"
	@echo "make audit   ask whether anything that is locked has a known hole"
	@echo "make wheel   build the wheel twice, and keep it if the bytes are the same"
	@echo "make dist    what is given to others: wheel, sources, the list of what is inside, SHA256SUMS; tried once"

demo: $(RUNTIME)
	@$(BIN)/genba demo

test: $(DEV) clis
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

# All of the deaths of which `make test` has a share, each in processes that are started and not forked.
chaos: $(DEV)
	GENBA_CHAOS=whole GENBA_CHAOS_ROUNDS=$${GENBA_CHAOS_ROUNDS:-50} GENBA_TEST_FORK=0 \
	    $(BIN)/python -m pytest -n $(JOBS) --dist worksteal tests/fleet/test_chaos_*.py tests/chaos/test_rounds.py
	$(BIN)/python -m tests.chaos --rounds $${ROUNDS:-500} --write-ledger $(if $(SEED),--add --seed $(SEED))

# A day of a fleet by a clock that is wound; clocks that are set; a hundred workers.
soak: $(DEV)
	$(BIN)/python -m bench.soak
	GENBA_CHAOS=whole GENBA_TEST_FORK=0 $(BIN)/python -m pytest -q tests/fleet/test_clock_jumps.py \
	    tests/fleet/test_hundred_workers.py

# One seed for all of `make fuzz`: the one that is given, or dice that are thrown when it is first asked for.
FUZZ_SEED = $(eval FUZZ_SEED := $(or $(SEED),$(strip $(shell od -An -N4 -tu4 /dev/urandom))))$(FUZZ_SEED)

# What nobody meant, from a seed that is printed. Atheris lies beside the environment: it has no wheel for every Python.
fuzz: $(DEV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
	    --upgrade --target $(VENV)/fuzz -r tests/fuzz/requirements.lock || echo "not installed: atheris"
	$(BIN)/python -m tests.fuzz --minutes $(or $(MINUTES),10) --seed $(FUZZ_SEED) $(if $(ROUNDS),--rounds $(ROUNDS)) \
	    $(if $(ONLY),--only $(ONLY))
	$(if $(ONLY)$(ROUNDS),@true,GENBA_FUZZ_EXAMPLES=$(or $(EXAMPLES),300) $(BIN)/python -m pytest -q -n $(JOBS) \
	    --hypothesis-seed=$(FUZZ_SEED) tests/fuzz)

# Opt-in: it opens an issue and a pull request on a repository of yours. No test needs it.
live-github: $(DEV)
	@$(BIN)/python -m tests.github.live "$(REPO)"

clis: $(DEV)
	@$(BIN)/python tests/clis/install.py $(VENV)/clis
	@$(BIN)/python -m tests.github.install $(VENV)/github

# Each process of the tests would read and rewrite all of them for itself: with this, one has done it before.
collect: $(DEV)
	@$(BIN)/python -m pytest --collect-only -q | tail -n 1

check: layout lint types imports structure

layout: $(DEV)
	$(BIN)/ruff format --check .

lint: $(DEV)
	$(BIN)/ruff check .

types: $(DEV)
	$(BIN)/mypy

imports: $(DEV)
	$(BIN)/lint-imports

structure: $(DEV)
	@$(BIN)/python -m release.structure

format: $(DEV)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Everything, or what is named: make bench PARTS="truth fleet". Each part writes its own ledger, and the page is made of all.
bench: $(DEV)
	$(BIN)/python -m bench --write $(PARTS)

docs: $(DEV)
	@$(BIN)/python docs/generate.py

pictures: $(DEV)
	@$(BIN)/python docs/images/take_pictures.py

lock: $(DEV)
	$(COMPILE) pyproject.toml -o requirements.lock
	$(COMPILE) --group build -o requirements-build.lock
	$(COMPILE) pyproject.toml --group dev -o requirements-dev.lock
	@$(MAKE) --no-print-directory sbom

# What Genba is made of, for whoever looks for a package in it (CycloneDX). The wheel carries it.
sbom: $(DEV)
	@$(BIN)/python -m release.sbom

audit: $(DEV)
	@$(BIN)/python -m release.audit

wheel: $(DEV)
	@$(BIN)/python -m release.wheel

dist: $(DEV)
	@$(BIN)/python -m release.wheel --dist

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "error: $(PYTHON) is older than 3.11"; echo "hint: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
	    || { rm -rf $(VENV); echo "hint: on Debian and Ubuntu: apt-get install python3-venv"; exit 1; }

$(RUNTIME): requirements.lock requirements-build.lock pyproject.toml | $(BIN)/python
	@echo "installing the locked dependencies into $(VENV)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --require-hashes -r requirements.lock -r requirements-build.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-index --no-build-isolation -e .
	@touch $@

$(DEV): requirements-dev.lock $(RUNTIME)
	@echo "installing the locked development dependencies into $(VENV)"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --require-hashes -r requirements-dev.lock
	@touch $@
