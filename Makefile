# make demo       from a fresh machine to a finished figure in results/demo
# make test       the tests
# make test-slow  those that take minutes; records their results in docs/validation.md
#                 (TESTS=tests/scan: of these alone)
# make test-part  the seventh of those that belongs to this commit
# make lint       ruff and pyright
# make bench      the benchmark tables
# make reference  the tables of docs/keys.md and docs/hdf5.md, from the declarations

VENV ?= .venv
# constraints.txt is resolved for 3.11; the first Python of these that runs is taken.
PYTHON ?= $(shell for p in python3.11 python3.12 python3; do \
	$$p -c '' 2>/dev/null && echo $$p && break; done)
PIP_INSTALL = $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
	--constraint constraints.txt --editable
WORKERS ?= 2

.DELETE_ON_ERROR:
.PHONY: demo test test-slow test-part lint bench reference environment test-environment clean

demo: environment
	$(VENV)/bin/python analysis/demo.py --out results/demo

test: test-environment
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist loadfile

test-slow: test-environment
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist loadfile -m slow --record $(TESTS)

test-part: test-environment
	part=$${PART:-$$($(VENV)/bin/python tests/slow_suite.py)} && \
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist loadfile -m slow --part $$part

lint: test-environment
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/pyright --pythonpath $(VENV)/bin/python

bench: environment
	for file in benchmarks/*.py; do $(VENV)/bin/python $$file || exit 1; done
	$(VENV)/bin/python benchmarks/saddle.py --growth --output results/saddle_growth.h5
	$(VENV)/bin/statmech-attn figure results/saddle_growth.h5 --output results

reference: environment
	$(VENV)/bin/python docs/reference.py

environment: $(VENV)/.installed
test-environment: $(VENV)/.installed-test

$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) '.[sampling,training,timeseries,images]'
	touch $@

$(VENV)/.installed-test: pyproject.toml constraints.txt
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) '.[test,dev]'
	touch $@

clean:
	rm -rf results build dist .pytest_cache .ruff_cache .hypothesis
