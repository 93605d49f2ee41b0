# Each target installs what it needs into .venv. make PYTHON=python3.12 uses another Python.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
# constraints.txt pins the tested versions, for the Python that they were tested with.
CONSTRAINTS := $(shell $(PYTHON) -c 'import sys; print("-c constraints.txt" if sys.version_info[:2] == (3, 11) else "")')
NATIVE := $(wildcard bertdata/_native/*.h bertdata/_native/*/*.h bertdata/_native/*.cpp)

.PHONY: setup horovod demo test test-fast xla check bench clean
setup: $(READY)

$(READY): setup.py pyproject.toml constraints.txt $(NATIVE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet $(CONSTRAINTS) --editable '.[dev]'
	touch $@

# The wheel is built once and kept in the user's cache.
horovod: $(READY)
	$(BIN)/python tools/install_horovod.py $(CONSTRAINTS)

demo: horovod
	BIN=$(BIN) bash tools/demo.sh

test: horovod
	$(BIN)/python -m pytest -q -n 2

test-fast: horovod
	$(BIN)/python -m pytest -q -n 2 -m 'not slow'

# The trainer on torch_xla on the CPU, in an environment of its own, because it needs another torch.
xla: $(READY)
	$(PYTHON) -m venv .venv-xla
	.venv-xla/bin/python -m pip install --quiet torch==2.9.0 torch_xla==2.9.0 numpy safetensors jsonschema rich fsspec
	BERTDATA_XLA_PYTHON=$(CURDIR)/.venv-xla/bin/python $(BIN)/python -m pytest tests/trainer/devices/test_xla.py

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# Peers that only benchmarks need. --no-deps: their requirements are installed, TensorFlow as tensorflow-cpu.
bench: $(READY)
	$(BIN)/python -m pip install --quiet --no-deps -c constraints.txt nanotoken tensorflow-text
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) .venv-xla build *.egg-info demo-output bench-output bertdata/_native/*.so
