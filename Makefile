# Two commands matter: `make demo` and `make test`. Both set up .venv first and are quick the second time.
PYTHON ?= python3
BIN := .venv/bin
SETUP := .venv/.ready

# Tests start many processes, each of which would otherwise compile the whole package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup browser demo test test-slow test-gpu test-peers test-oldest test-wheel docs bench paper format clean

# Python compiles a module when it is first imported; compiling all would double the time of this.
setup: $(SETUP)

$(SETUP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 $(MAKECMDGOALS)" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --editable '.[dev]'
	@touch $@

demo: $(SETUP)
	$(BIN)/nearer demo --out out/demo

# The browser tests want Debian's chromium; where it is not there and cannot be had, they are skipped.
browser:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  { apt-get update -qq; apt-get install -y -qq chromium; } >/dev/null 2>&1; } || \
	  echo "no chromium here and none can be installed: the browser tests will be skipped"

# One process runs all tests of a file, so that a browser and a served study are started once for them.
test: $(SETUP) browser
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder

# Statistics over many seeds, clusters, the paper, processes that are killed.
test-slow: $(SETUP)
	$(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder -m slow

# PyTorch is no part of .venv: the GPU's code has an environment of its own, with one exact build for processors.
.venv-gpu/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-gpu
	.venv-gpu/bin/pip install --quiet --disable-pip-version-check 'torch==2.13.0' 'triton>=3.2' pytest --editable .
	@touch $@

test-gpu: .venv-gpu/.ready
	.venv-gpu/bin/pytest tests_gpu

# Files that we write, read by other people's packages; these are installed beside .venv.
test-peers: $(SETUP)
	NEARER_PEERS=1 $(BIN)/pytest -rs tests/test_peers.py

# The oldest versions that pyproject.toml allows, in an environment of their own. They warn of newer ones.
test-oldest:
	$(PYTHON) scripts/oldest.py > .venv-oldest.txt
	$(PYTHON) -m venv --clear .venv-oldest
	.venv-oldest/bin/pip install --quiet --disable-pip-version-check --requirement .venv-oldest.txt --editable .
	.venv-oldest/bin/pytest -n auto --ignore tests/test_study_fuzz.py -o filterwarnings=default

# What is built for others installs in an empty environment and works outside this folder.
test-wheel: $(SETUP)
	$(BIN)/pip install --quiet --disable-pip-version-check build
	$(BIN)/python scripts/try_wheel.py

# The site, in out/site: open out/site/index.html. No warning is let pass.
.venv/.docs: $(SETUP)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev,docs]'
	@touch $@

docs: .venv/.docs browser
	rm -rf out/site
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --jobs 2 --doctree-dir out/doctrees docs out/site
	$(BIN)/pytest tests_docs

paper: $(SETUP)
	$(BIN)/python -m paper all --quick

bench: $(SETUP)
	$(BIN)/python -m benchmarks

format: $(SETUP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf .venv .venv-gpu .venv-oldest .venv-oldest.txt out build dist docs/gallery docs/reference
	rm -rf docs/sg_execution_times.rst .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
