# Two commands to start: `make demo` and `make test`. Both create .venv first.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin
# hides warnings of build tools
PIP := env PYTHONWARNINGS=ignore $(RUN)/python -m pip install --quiet --disable-pip-version-check
# `$(STEP) TITLE COMMAND…` shows what runs, a line every five seconds, and how long it took
STEP = @step() { title=$$1; shift; begin=$$(date +%s); echo "$$title"; \
	(seconds=0; while sleep 1 && kill -0 $$$$ 2>/dev/null; do seconds=$$((seconds + 1)); \
	if [ $$((seconds % 5)) = 0 ]; then echo "  … $$seconds s"; fi; done) & ticker=$$!; \
	"$$@"; status=$$?; kill $$ticker 2>/dev/null; \
	if [ $$status = 0 ]; then echo "  done in $$(($$(date +%s) - begin)) s"; fi; return $$status; }; step
SOURCES := pyproject.toml setup.py $(shell find src -name '*.pyx' -o -name '*.pxd' -o -name '*.h')

# for `make soak`
SECONDS ?= 600

.PHONY: help demo test test-slow test-all soak coverage check docs bench clean

help:
	@echo 'make demo       install, then draw flowers, pack, verify, inspect, load, preview'
	@echo 'make test       install with test extras, run the fast tests on all processors'
	@echo 'make test-all   the slow tests, too: servers with faults, kills, training'
	@echo 'make check      format, lint, types, layers (CI runs it, too)'
	@echo 'make docs       the documentation site, in build/site/index.html'
	@echo 'make soak       tests and fuzzers with new random inputs, for SECONDS=600'
	@echo 'make coverage   the tests with line coverage, in build/coverage/html'
	@echo 'make bench      the benchmarks against TensorFlow, Arrow and others'
	@echo 'make clean      remove the environment and build outputs'

# `pip install -e`: changes in src/ take effect at once; changed kernels are rebuilt
$(VENV)/installed: $(SOURCES)
	$(STEP) 'Create $(VENV)' $(PYTHON) -m venv $(VENV)
	$(STEP) 'Update pip' $(PIP) --upgrade pip
	$(STEP) 'Install NumPy, OpenCV and others, and compile recordsmith (one to three minutes)' \
		$(PIP) -e '.[standard]'
	@touch $@

# by name, because it is installed: the kernels are not rebuilt
$(VENV)/test-extras: $(VENV)/installed
	$(STEP) 'Install what the tests need' $(PIP) 'recordsmith[test]'
	@touch $@

$(VENV)/lint-extras: $(VENV)/installed
	$(STEP) 'Install what the tests and checks need' $(PIP) 'recordsmith[test,lint]'
	@touch $@

demo: $(VENV)/installed
	@$(RUN)/recordsmith demo
	@echo
	@echo '. $(RUN)/activate adds the command recordsmith to your shell.'

test: $(VENV)/test-extras
	$(RUN)/python -m pytest -n auto --dist worksteal -m 'not slow'

test-slow: $(VENV)/test-extras
	$(RUN)/python -m pytest -n auto --dist worksteal -m slow

test-all: test test-slow

soak: $(VENV)/test-extras
	$(RUN)/python tests/soak/run.py --seconds $(SECONDS)

# reports coverage also if a test failed
coverage: $(VENV)/lint-extras
	@rm -rf build/coverage
	@mkdir -p build/coverage
	@status=0; \
	$(RUN)/python -m coverage run -m pytest -n auto --dist worksteal || status=$$?; \
	$(RUN)/python -m coverage combine --quiet && $(RUN)/python -m coverage html --quiet && \
	$(RUN)/python -m coverage report --skip-covered && exit $$status

check: $(VENV)/lint-extras
	$(RUN)/ruff format --check .
	$(RUN)/ruff check .
	$(RUN)/mypy
	$(RUN)/lint-imports
	$(RUN)/python tests/language.py

# also writes llms.txt; fails if a link or an anchor is wrong
docs: $(VENV)/installed
	$(STEP) 'Install what builds the site' $(PIP) 'recordsmith[docs]'
	@$(RUN)/python docs/site/pages.py
	@$(RUN)/zensical build --clean --config-file build/mkdocs.yml
	@$(RUN)/python docs/site/pages.py finish
	@echo 'open build/site/index.html'

bench: $(VENV)/installed
	$(STEP) 'Install the other libraries' $(PIP) -r benchmarks/requirements.txt
	$(RUN)/python benchmarks/run.py

clean:
	rm -rf $(VENV) build dist src/*.egg-info recordsmith-demo
	find src -name '*.so' -delete -o -name '*.c' -delete
