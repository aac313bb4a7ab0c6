# Two commands do everything: `make demo` and `make test`. Both make .venv first.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
SOURCES := pyproject.toml $(shell find src -name '*.pyx' -o -name '*.h')

.PHONY: help demo test check bench clean

help:
	@echo 'make demo    install, then draw flowers, pack, verify, inspect, load, contact sheet'
	@echo 'make test    install with test extras, run the tests on all processors'
	@echo 'make check   lint, types, layers (what CI asks besides the tests)'
	@echo 'make bench   the benchmarks against TensorFlow, Arrow and others'
	@echo 'make clean   remove the environment and what was built'

# `pip install -e`: what you change in src/ is what runs; the kernels are built again when changed
$(VENV)/installed: $(SOURCES)
	$(PYTHON) -m venv $(VENV)
	$(RUN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(RUN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/test-extras: $(VENV)/installed
	$(RUN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@

$(VENV)/lint-extras: $(VENV)/installed
	$(RUN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,lint]'
	@touch $@

demo: $(VENV)/installed
	$(RUN)/recordsmith demo

test: $(VENV)/test-extras
	$(RUN)/python -m pytest -n auto --dist worksteal

check: $(VENV)/lint-extras
	$(RUN)/ruff format --check .
	$(RUN)/ruff check .
	$(RUN)/mypy
	$(RUN)/lint-imports

bench: $(VENV)/installed
	$(RUN)/python -m pip install --quiet --disable-pip-version-check -r benchmarks/requirements.txt
	$(RUN)/python benchmarks/run.py

clean:
	rm -rf $(VENV) build dist src/*.egg-info recordsmith-demo
	find src -name '*.so' -delete -o -path '*/kernel.c' -delete
