# Two commands do everything: `make demo` and `make test`. Both make .venv first.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
# without the warnings that build tools give each other
PIP := PYTHONWARNINGS=ignore $(RUN)/python -m pip install --quiet --disable-pip-version-check
SOURCES := pyproject.toml $(shell find src -name '*.pyx' -o -name '*.pxd' -o -name '*.h')

.PHONY: help demo test check bench clean

help:
	@echo 'make demo    install, then draw flowers, pack, verify, inspect, load, contact sheet'
	@echo 'make test    install with test extras, run the tests on all processors'
	@echo 'make check   lint, types, layers (what CI asks besides the tests)'
	@echo 'make bench   the benchmarks against TensorFlow, Arrow and others'
	@echo 'make clean   remove the environment and what was built'

# `pip install -e`: what you change in src/ is what runs; the kernels are built again when changed
$(VENV)/installed: $(SOURCES)
	@echo 'making $(VENV), with NumPy, OpenCV and the kernels; this takes about a minute'
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --upgrade pip
	@$(PIP) -e .
	@touch $@

# by its name, as it is installed: so that the kernels are not built again
$(VENV)/test-extras: $(VENV)/installed
	@$(PIP) 'recordsmith[test]'
	@touch $@

$(VENV)/lint-extras: $(VENV)/installed
	@$(PIP) 'recordsmith[test,lint]'
	@touch $@

demo: $(VENV)/installed
	@$(RUN)/recordsmith demo
	@echo
	@echo '. $(RUN)/activate makes recordsmith a command of your shell.'

test: $(VENV)/test-extras
	$(RUN)/python -m pytest -n auto --dist worksteal

check: $(VENV)/lint-extras
	$(RUN)/ruff format --check .
	$(RUN)/ruff check .
	$(RUN)/mypy
	$(RUN)/lint-imports

bench: $(VENV)/installed
	@$(PIP) -r benchmarks/requirements.txt
	$(RUN)/python benchmarks/run.py

clean:
	rm -rf $(VENV) build dist src/*.egg-info recordsmith-demo
	find src -name '*.so' -delete -o -name '*.c' -delete
