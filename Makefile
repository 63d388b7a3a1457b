# make demo         train tic-tac-toe until the network cannot be beaten, and prove it
# make test         every promise in its fast form, ruff and mypy
# make test-whole   what takes longer: real processes, SIGKILL, a wheel in an empty environment, and other checks of style
# make test-memory  the tests that run machine code, with bounds checked and blocks of memory guarded
# make test-newer   tests on Debian 13's Python, where it can be installed (root, debootstrap)
# make servers      NVIDIA Triton and MLServer in environments of their own, for a slow test of the client
# make soak         an hour of random kills, crashes and restarts
# make attacks      half an hour of failing system calls, full volumes, wrong clocks and more, together with kills
# make test-browser the web page in a real browser, where there is Chromium, and its JavaScript linted, where there is npx
# make test-docker  the containers, where there is a Docker engine with Compose
# make bench        write benchmarks/results/speed.md, half an hour
# make gpu-check    everything that a GPU has to show, in build/gpu-check: a JSON file and a page, half an hour
# make bots         train the bundled bots again, about ten hours
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOOP := $(VENV)/.loop
READY := $(VENV)/.ready
UV := $(shell command -v uv)
LOOP_EXTRAS := cpu,train,web
TOOL_EXTRAS := ,openspiel,grpc,s3,plot,experiments,argo,browser,dev
OPENSPIEL := build/openspiel
GPU := build/gpu
SERVERS := build/pytriton build/mlserver
# One process of the test runner more than there are cores: some tests wait.
PROCESSES := $(shell $(PYTHON) -c 'import os; print(os.cpu_count() + 1)')
TEST_OPTIONS :=
# Without it each process would compile the modules that it imports, since pip does not.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-whole test-slow test-memory test-newer test-browser test-docker servers soak attacks bench gpu-check bots levels lint lint-whole clean

demo: $(LOOP)
	$(BIN)/python examples/demo.py

test: $(READY) lint
	$(BIN)/pytest -m "not slow and not soak and not docker and not browser" --numprocesses $(PROCESSES) --dist worksteal $(TEST_OPTIONS)

test-whole test-slow: $(READY) lint-whole
	$(BIN)/pytest -m slow --numprocesses 3 --dist worksteal --durations 25

# The bounds of arrays are checked, and the allocator guards its blocks against what has no bounds, such as copies.
# Left out is what runs no machine code (files, catalogs, kept code, plain Python, games of OpenSpiel), or none that the
# other tests do not run too.
WITHOUT_CODE := $(addprefix --ignore=tests/,search/test_numba_kernel.py selfplay/test_backpressure.py \
	selfplay/test_benchmark.py selfplay/test_replay_writer.py)
test-memory: $(READY)
	mkdir -p build
	$(CC) -O1 -shared -fPIC -fno-builtin -Wall -Wextra -o build/guard.so tests/helpers/guard.c -lpthread
	LD_PRELOAD=$(CURDIR)/build/guard.so NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -p tests.helpers.guard \
		-m "not slow and not soak" --numprocesses auto --dist worksteal $(WITHOUT_CODE) \
		-k "not compiler_off and not all_values_of and not (test_games.py and (plain or refused or canonical or loaded))" \
		tests/games tests/search tests/selfplay

# What is most likely to differ: the trainer, what compiles, and what reads signatures, annotations and files.
NEWER := build/newer-python
NEWER_TESTS ?= tests/search/test_golden.py tests/trainer/test_trainer.py tests/trainer/test_parts.py tests/selfplay/test_worker.py
test-newer: $(NEWER)/.ready
	tests/newer_python.sh test $(NEWER) -m '"not slow and not soak"' --numprocesses auto --dist worksteal $(NEWER_TESTS)

$(NEWER)/.ready:
	tests/newer_python.sh install $(NEWER)

soak: $(READY)
	$(BIN)/pytest -m soak --timeout 3600
	$(BIN)/python benchmarks/soak.py --run runs/soak-$$(date +%s) --minutes 20

attacks: $(READY)
	$(BIN)/python benchmarks/attacks.py --run runs/attacks-$$(date +%s) --minutes 30

# By path: a walk through the project would find the copy in build/newer-python. Tests of the dashboard share one run.
BIOME := @biomejs/biome@2.6.8
test-browser: $(READY)
	if command -v npx > /dev/null; then npx --yes $(BIOME) lint --error-on-warnings plyzero/kits/web/page; fi
	$(BIN)/pytest -m browser -rs --numprocesses 2 --dist worksteal --ignore tests/kits/web/test_dashboard.py tests/kits/web
	$(BIN)/pytest -m browser -rs tests/kits/web/test_dashboard.py

test-docker: $(READY)
	$(BIN)/pytest -m docker -rs

bench: $(READY) $(OPENSPIEL)/.ready
	$(BIN)/python benchmarks/speed.py --write benchmarks/results/speed.md --openspiel $(OPENSPIEL)/bin/python

gpu-check: $(GPU)/.ready
	$(GPU)/bin/python -m benchmarks.gpu_check connect-four --write build/gpu-check

$(GPU)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(GPU)
	$(GPU)/bin/pip install --quiet --constraint constraints.txt --editable '.[gpu,train,grpc]'
	touch $@

BOT := $(BIN)/python -m benchmarks.strength.bots
SHORT := --workers 1 --games 40 --most 256
LEVELS := $(BIN)/python -m benchmarks.strength.levels

# Those with one worker were trained two at a time, each process bound to one core (taskset -c N).
bots: $(READY)
	$(BOT) tic-tac-toe --minutes 1 --exam all
	$(BOT) connect-four --preset standard --minutes 60 --simulations 0 16 64 256 \
		--exam $(addprefix benchmarks/strength/connect-four-,dev.txt test.txt first.txt) \
		--openings benchmarks/strength/connect-four-dev.txt
	$(BOT) "othello(size=6)" --preset standard --minutes 30 \
		--exam $(addprefix benchmarks/strength/othello-6x6-,dev.txt test.txt) \
		--openings benchmarks/strength/othello-6x6-drawn.txt
	$(BOT) othello --minutes 120 $(SHORT) --rungs random mcts:50 mcts:200 mcts:800
	$(BOT) breakthrough --minutes 65 $(SHORT) --rungs random mcts:50 mcts:200 mcts:800
	$(BOT) hex --after "hex(size=7)" 8 --after "hex(size=9)" 12 --minutes 18 $(SHORT) --rungs random mcts:50 mcts:200 mcts:800
	$(BOT) "gomoku(size=9)" --minutes 65 $(SHORT) --rungs random mcts:50 mcts:200 mcts:800
	$(BOT) go --after "go(size=7)" 20 --minutes 42 $(SHORT) --rungs random mcts:50 mcts:200
	$(BOT) backgammon --minutes 55 --workers 1 --games 12 --most 64 --rungs random mcts:50 mcts:200
	$(BOT) chess --minutes 110 --seed 0 -o selfplay.resign_below=0.03 --games 20 --most 256 --rungs random mcts:50 mcts:200
	$(BOT) pig --minutes 5 --workers 1 --games 40 --most 64 --rungs random mcts:50 mcts:200

# Names the levels of the bots by scores against public programs: benchmarks/strength/levels.py says where they come from.
levels: $(READY)
	$(LEVELS) go --levels 4 5 6 7 8 --opponents gnugo:1
	$(LEVELS) othello --levels 4 5 6 7 8 9 --opponents grhino:1 grhino:3
	$(LEVELS) breakthrough --levels 3 4 5 6 7 8 --opponents fairy-stockfish:100 fairy-stockfish:10000
	$(LEVELS) chess --levels 6 7 8 --opponents random mcts:200 fairy-stockfish:30 fairy-stockfish:100
	$(LEVELS) connect-four --opponents benchmarks.perfect_player:Perfect --games 100 \
		--openings benchmarks/strength/connect-four-dev.txt
	$(LEVELS) backgammon --opponents pubeval gnubg --games 200
	$(LEVELS) pig --opponents optimum
	$(LEVELS) tic-tac-toe --opponents perfect

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

lint-whole: $(READY)
	$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin
	$(BIN)/hadolint Dockerfile
	$(BIN)/shellcheck container/start .ci/run .ci/release deploy/slurm/*.sbatch tests/*.sh
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.compose-spec compose.yaml compose.gpu.yaml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*

# $(call install,WHAT,EXTRAS): install plyzero with these extras, and say every eight seconds that it goes on.
# Modules are compiled when they are first imported: few of them are, and to compile all of torch takes half a minute.
INSTALL := $(if $(UV),$(UV) pip install --python $(BIN)/python,$(BIN)/pip install --no-compile --disable-pip-version-check)
define install
	@echo "Installing $(1) into $(VENV) with $(if $(UV),uv,pip) ..."
	@while sleep 8 > /dev/null; do echo "  still installing $(1) ..."; done & reminder=$$!; \
	$(INSTALL) --quiet --constraint constraints.txt --editable '.[$(2)]'; status=$$?; kill $$reminder; exit $$status
endef

# What the loop needs: self-play, training, play in a terminal and in the browser.
$(LOOP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "plyzero needs Python 3.11 or newer; set PYTHON=")'
	$(if $(UV),$(UV) venv --quiet --allow-existing --python $(PYTHON),$(PYTHON) -m venv) $(VENV)
	$(call install,what the loop needs,$(LOOP_EXTRAS))
	@touch $@

# The other parts, and the tools of the tests.
$(READY): $(LOOP)
	$(call install,the other parts and the tools,$(LOOP_EXTRAS)$(TOOL_EXTRAS))
	@touch $@

# A separate environment: here OpenSpiel is only measured beside plyzero.
$(OPENSPIEL)/.ready:
	$(PYTHON) -m venv $(OPENSPIEL)
	$(OPENSPIEL)/bin/pip install --quiet open_spiel onnxruntime jax flax optax chex
	touch $@

# Other servers of the protocol of plyzero evaluator. PyTriton needs a numpy that plyzero does not work with.
servers: $(addsuffix /.ready,$(SERVERS))

build/pytriton/.ready: PACKAGES := nvidia-pytriton
build/mlserver/.ready: PACKAGES := mlserver
$(addsuffix /.ready,$(SERVERS)):
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet $(PACKAGES) onnxruntime
	touch $@

clean:
	rm -rf $(VENV) runs build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -prune -exec rm -rf {} +
