# make demo       from a fresh machine to a finished figure in results/demo
# make test       the tests
# make test-slow  those that take longer; records their results in docs/validation.md
#                 (TESTS=tests/scan: of these alone)
# make test-part  the eighth of those that belongs to this commit
# make test-newest  native programs, batches and a share of those on the newest Python
#                 that is installed, with the newest version of everything
# make lint       ruff, pyright and the spelling
# make docs       the site in docs/build/html, with the tutorials run
# make docs-check the site without running them; as in `make docs`, warnings are errors
# make docs-links every external link of the site; needs the internet
# make bench      the benchmark tables
# make bench-gpu  rates of a GPU beside two cores
# make bench-peers  this package beside others, those that are installed
# make reference  the tables of docs/keys.md and docs/hdf5.md, from the declarations

VENV ?= .venv
# constraints.txt is resolved for 3.11; the first Python of these that runs is taken.
PYTHON ?= $(shell for p in python3.11 python3.12 python3; do \
	$$p -c '' 2>/dev/null && echo $$p && break; done)
CONSTRAINT ?= --constraint constraints.txt
PIP_INSTALL = $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
	$(CONSTRAINT)
PARTS ?= 8
NEWEST_TESTS = $(foreach part,native batches,tests/$(part) statmech_attn/$(part))
# Path of the newest Python that can make an environment, if there is one.  What pyenv
# has under a version's name runs where the version is chosen.
NEWEST = for v in 3.14 3.13 3.12; do PYENV_VERSION=$$v python$$v -c \
	'import ensurepip, sys; print(sys.executable)' 2>/dev/null && break; done
WORKERS ?= 2
SPHINX = $(VENV)/bin/python -m sphinx --quiet --fail-on-warning --keep-going

.DELETE_ON_ERROR:
.PHONY: demo test test-slow test-part test-newest lint docs docs-check docs-links bench \
	bench-gpu bench-peers reference environment test-environment \
	docs-environment clean

demo: environment
	$(VENV)/bin/python analysis/demo.py --out results/demo

# Tests begin many processes, which share bytecode, that of assertions included.
test test-slow test-part: export PYTHONDONTWRITEBYTECODE =

test: test-environment
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist loadfile $(TESTS)

test-slow: test-environment
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist loadfile -m slow --record $(TESTS)

test-part: test-environment
	part=$${PART:-$$($(VENV)/bin/python tests/slow_suite.py $(PARTS))} && \
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist loadfile -m slow --part $$part

test-newest:
	@python=$$($(NEWEST)); \
	if test -z "$$python"; then \
		echo "test-newest: skipped, no Python of 3.12 to 3.14 runs here"; \
	else $(MAKE) --no-print-directory test test-part VENV=$(VENV)/newest \
		PYTHON=$$python CONSTRAINT= PARTS=32 TESTS="$(NEWEST_TESTS)"; fi

lint: test-environment
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/pyright --pythonpath $(VENV)/bin/python
	$(VENV)/bin/codespell --dictionary - --dictionary .ci/words.txt

docs: docs-environment
	$(SPHINX) -b html docs docs/build/html

docs-check: docs-environment
	$(SPHINX) -b html -t unexecuted docs docs/build/unexecuted

docs-links: docs-environment
	$(SPHINX) -b linkcheck -t unexecuted docs docs/build/links

bench: environment
	for file in $(filter-out $(addprefix benchmarks/,peers.py descents.py gpu.py), \
		$(wildcard benchmarks/*.py)); do \
		$(VENV)/bin/python $$file || exit 1; done
	$(VENV)/bin/python benchmarks/saddle.py --growth

bench-gpu: environment
	$(VENV)/bin/python benchmarks/gpu.py --output results/gpu.csv

bench-peers: environment
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(VENV)/bin/python benchmarks/peers.py

reference: environment
	$(VENV)/bin/python docs/reference.py

environment: $(VENV)/.installed
docs-environment: $(VENV)/.installed-docs
test-environment: $(VENV)/.installed-test

$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) --editable '.[explore,sampling,training,timeseries,images]'
	touch $@

$(VENV)/.installed-test: pyproject.toml constraints.txt
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) 'pip>=25.1'  # for groups
	$(PIP_INSTALL) --editable . --group dev
	touch $@

$(VENV)/.installed-docs: pyproject.toml constraints.txt
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) 'pip>=25.1'
	$(PIP_INSTALL) --editable . --group docs
	touch $@

clean:
	rm -rf results build dist docs/build docs/generated .pytest_cache .ruff_cache .hypothesis
