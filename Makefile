# `make demo` and `make test` do everything a newcomer needs; the other targets are for developers.
SUDO := $(shell [ "$$(id -u)" -eq 0 ] || echo sudo)

.PHONY: setup test-setup demo test test-nightly test-mutants test-fast test-distros test-stock test-thirdparty soak stories picture docs lint bench clean

setup:
	@tools/setup

test-setup: setup
	@tools/setup-tests

# Without the core compiled, which a first look need not wait for; the run says so.
demo:
	@tools/setup --without-core
	@$(SUDO) .venv/bin/mrc-testbed run scenarios/quickstart.yaml

test: test-setup
	@$(SUDO) env CI="$$CI" tools/run-tests

# All there is, campaigns too: for hours. Nothing else may run beside it.
test-nightly: test-setup
	@$(SUDO) env CI="$$CI" tools/run-tests nightly
	@$(MAKE) soak MINUTES=15
	@$(MAKE) stories
	@$(MAKE) test-mutants MINUTES=10

test-fast: setup
	@tools/run-tests fast

# One mistake at a time in the judges, which tests must notice: all of them, or a sample of MINUTES drawn by SEED; ROOM is
# checks, expect, mapper or compare, or some of them with commas between. What is known already is not tried again.
test-mutants: setup
	@.venv/bin/python -m tests.mutants $(if $(filter command line environment,$(origin MINUTES)),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) $(if $(ROOM),--room $(ROOM))

# Options in ARGS, such as ARGS="--suite trixie --only demo" or ARGS=--containerfile.
# -E: the proxies and the place of the cache are those of the caller.
test-distros:
	@$(SUDO:sudo=sudo -E) tools/test-distros $(ARGS)

# The stock kernels of Debian 12 and 13 in QEMU. Options in ARGS, such as ARGS="--suite trixie --only quickstart".
test-stock: setup
	@$(SUDO:sudo=sudo -E) tools/test-stock $(ARGS)

# Runs what you have built over the MRC API through faults: PROGRAMS="/path/mrc_example /path/libnccl-net.so".
test-thirdparty: setup
	@$(SUDO) .venv/bin/python -m tests.thirdparty $(PROGRAMS)

# Mixed chaos on the kernel for MINUTES: memory, files, verdict. Nothing else may run beside it.
MINUTES ?= 60
soak: test-setup
	@$(SUDO) .venv/bin/python -m tests.soak --minutes $(MINUTES)

# Runs every story as it is shipped, and draws the pictures of docs/stories.md from these runs. The story train needs
# PyTorch, and is left out without it.
stories: setup
	@$(SUDO) .venv/bin/mrc-testbed run scenarios/stories/*.yaml --retry-inconclusive 2 --out results/stories
	-@$(SUDO) .venv/bin/mrc-testbed run programs/train --against baselines --variants mrc,roce-1,tcp --out results/stories
	@.venv/bin/python tools/story_pictures.py results/stories

# The documentation as a site, in site/. It needs neither a server nor a network to be read.
docs: setup
	@tools/setup-docs
	@NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build  # not --quiet: MkDocs 1.6 then takes no warning for an error

# Draws the moving picture of README.md: training over MRC and over TCP while links are cut and a switch reboots.
picture: setup
	@$(SUDO) .venv/bin/mrc-testbed run quickstart --against baselines --variants mrc,tcp --retry-inconclusive 2 --out results/picture
	@.venv/bin/python tools/animate.py docs/survives.svg results/picture

lint: setup
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/codespell
	@.venv/bin/mypy
	@.venv/bin/zizmor --offline --quiet .github/workflows action

bench: setup
	@$(SUDO) .venv/bin/python benchmarks/bringup.py
	@$(SUDO) .venv/bin/python benchmarks/endpoint.py
	@$(SUDO) .venv/bin/python benchmarks/transports.py
	@$(SUDO) .venv/bin/python -m benchmarks.routing
	@$(SUDO) .venv/bin/python -m benchmarks.bgp_neighbours
	@.venv/bin/python benchmarks/core.py
	@.venv/bin/python benchmarks/memory.py
	@.venv/bin/python -m benchmarks.static_tables
	@$(SUDO) .venv/bin/python -m benchmarks.programs
	@$(SUDO) .venv/bin/python benchmarks/cuts.py
	@$(SUDO) .venv/bin/python benchmarks/switch.py
	@$(SUDO) .venv/bin/python benchmarks/message_times.py slow
	@$(SUDO) .venv/bin/python benchmarks/message_times.py standard
	@$(SUDO) .venv/bin/python benchmarks/live.py
	@.venv/bin/python benchmarks/web.py
	@.venv/bin/python benchmarks/sweep.py
	@$(SUDO) .venv/bin/python benchmarks/capture.py cost
	@$(SUDO) .venv/bin/python benchmarks/capture.py steps

clean: setup
	@$(SUDO) .venv/bin/mrc-testbed clean
