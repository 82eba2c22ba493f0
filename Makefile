# Requires python3 (3.11 or newer), git and make. `make help` lists the targets.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
JOBS   ?= auto
# Lets processes share compiled Python files.
unexport PYTHONDONTWRITEBYTECODE

RUNTIME := $(VENV)/.installed-runtime
DEV     := $(VENV)/.installed-dev
COMPILE := $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-strip-extras \
           --no-emit-index-url --no-header

.PHONY: demo test test-share test-all chaos live-github clis collect check layout lint types imports format bench docs pictures lock clean help
.PHONY: soak fuzz atheris structure words
.PHONY: sbom audit wheel dist

help:
	@echo "make demo         Show a fleet at work, without a model or a key."
	@echo "make test         Run the quick tests: 8 minutes on two cores."
	@echo "make test-share   Run one share of the extended tests (SHARE=2/6)."
	@echo "make test-all     Run everything for hours; write docs/measured/tests.json."
	@echo "make chaos        Kill a fleet at every boundary, then in 500 rounds (ROUNDS=20): hours."
	@echo "make soak         Run a fleet for a simulated day on both databases: 15 minutes."
	@echo "make fuzz         Fuzz every input (MINUTES=10, EXAMPLES=300, SEED=, ONLY=name)."
	@echo "make live-github  Process one issue of your repository (REPO=owner/name)."
	@echo "make clis         Install the real agents that tests drive, and GitHub's schemas."
	@echo "make check        Check format, lint, types, imports, structure, commit subjects."
	@echo "make bench        Measure accuracy and cost; write docs/numbers.md (PARTS=...)."
	@echo "make docs         Write the generated reference pages."
	@echo "make pictures     Take the dashboard pictures (needs chromium)."
	@echo "make format       Format the code."
	@echo "make lock         Write requirements*.lock and the SBOM."
	@echo "make audit        Check locked packages for known vulnerabilities."
	@echo "make wheel        Build the wheel twice; keep it if the bytes agree."
	@echo "make dist         Build and try a release: wheel, sources, SBOM, SHA256SUMS."

demo: $(RUNTIME)
	@$(BIN)/genba demo

PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist worksteal
# Which share of the extended tier CI runs: it changes from commit to commit. tests/tiers.py has the tiers.
SHARES ?= 6
SHARE  ?= $$(( 0x$$(git rev-parse --short=7 HEAD) % $(SHARES) + 1 ))/$(SHARES)

test: $(DEV) clis
	$(PYTEST) -m "not extended"

test-share: $(DEV) clis
	GENBA_TEST_SHARE=$(SHARE) $(PYTEST) -m extended

test-all: $(DEV) clis atheris
	$(BIN)/python -m tests.full

# Every boundary in processes that are started and not forked, then rounds.
chaos: $(DEV)
	GENBA_CHAOS_ROUNDS=$${GENBA_CHAOS_ROUNDS:-50} GENBA_TEST_FORK=0 \
	    $(PYTEST) tests/fleet/test_chaos_*.py tests/chaos/test_rounds.py
	$(BIN)/python -m tests.chaos --rounds $${ROUNDS:-500} --write-ledger $(if $(SEED),--add --seed $(SEED))

# A simulated day, changed clocks, and a hundred workers.
soak: $(DEV)
	$(BIN)/python -m bench.soak
	GENBA_TEST_FORK=0 $(BIN)/python -m pytest -q tests/fleet/test_clock_jumps.py \
	    tests/fleet/test_hundred_workers.py

# One seed for all of `make fuzz`: SEED, or a random one.
FUZZ_SEED = $(eval FUZZ_SEED := $(or $(SEED),$(strip $(shell od -An -N4 -tu4 /dev/urandom))))$(FUZZ_SEED)

# Atheris is installed beside the environment: it has no wheel for every Python.
atheris: $(DEV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
	    --upgrade --target $(VENV)/fuzz -r tests/fuzz/requirements.lock || echo "not installed: atheris"

# Random input from a seed that is printed.
fuzz: $(DEV) atheris
	$(BIN)/python -m tests.fuzz --minutes $(or $(MINUTES),10) --seed $(FUZZ_SEED) $(if $(ROUNDS),--rounds $(ROUNDS)) \
	    $(if $(ONLY),--only $(ONLY))
	$(if $(ONLY)$(ROUNDS),@true,GENBA_FUZZ_EXAMPLES=$(or $(EXAMPLES),300) $(BIN)/python -m pytest -q -n $(JOBS) \
	    --hypothesis-seed=$(FUZZ_SEED) tests/fuzz)

# Opens an issue and a pull request on your repository. No test needs it.
live-github: $(DEV)
	@$(BIN)/python -m tests.github.live "$(REPO)"

clis: $(DEV)
	@$(BIN)/python tests/clis/install.py $(VENV)/clis
	@$(BIN)/python -m tests.github.install $(VENV)/github

# Compiles the tests once, before parallel test processes would each do it.
collect: $(DEV)
	@$(BIN)/python -m pytest --collect-only -q | tail -n 1

check: layout lint types imports structure words

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

# All but the tests, which still have some.
words: $(DEV)
	@$(BIN)/python -m release.words src docs bench release deploy .ci .github Makefile *.md

format: $(DEV)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# All parts, or some: make bench PARTS="truth fleet". Each part writes docs/measured/PART.json and docs/numbers.md.
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

# The SBOM (CycloneDX), which the wheel contains.
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
