# make demo   set up what is missing, then run the main job on a small real project
# make test   set up what is missing, then run the checks of every change
# make test-all  the same and all others, as CI does
# make help   the other targets
#
# Everything lives in .venv/ and build/; every target may be repeated.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
BIN := .venv/bin
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PACKAGES := g++ git make pkg-config python3-dev python3-venv libre2-dev libxxhash-dev \
            nlohmann-json3-dev libgtest-dev
CXX_FILES = $(shell git ls-files 'cpp/*.hpp' 'cpp/*.cpp' 'bindings/*.hpp' 'bindings/*.cpp' 'tests/cpp/*.cpp' 'fuzz/*.hpp' 'fuzz/*.cpp' 'benchmarks/*.cpp')
USER_HOME := $(shell getent passwd $$(id -u) 2>/dev/null | cut -d: -f6)
# Behind the PATH: where Go and Rust install themselves; their tests run where they are there.
export PATH := $(CURDIR)/$(BIN):$(PATH):/usr/local/go/bin:$(USER_HOME)/.cargo/bin
# Node brings certificates of its own; the system's count, too.
CERTIFICATES := $(wildcard /etc/ssl/certs/ca-certificates.crt)
export NODE_EXTRA_CA_CERTS ?= $(CERTIFICATES)
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

say = @printf '\n\033[1m==> %s\033[0m\n' "$(1)"

.PHONY: help setup install demo bench bench-decision samples gallery notebooks test test-all cpp asan tsan node agents plugins py system lint types stubs stubs-check format format-check fuzz fuzz-state dist clean

help: ## what there is to type
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# One build tree: what pip installs and what ctest runs.
BUILD := build/release

# --- set-up -------------------------------------------------------------------------------------------

# Installs what is missing of Debian's packages where it may, else says what to install.
define packages
	@missing=; for package in $(1); do \
	  dpkg -s $$package >/dev/null 2>&1 || missing="$$missing $$package"; done; \
	if [ -z "$$missing" ] || ! command -v dpkg >/dev/null; then echo "nothing missing"; \
	elif [ "$$(id -u)" = 0 ]; then apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $$missing; \
	elif sudo -n true 2>/dev/null; then sudo apt-get update -q && sudo DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $$missing; \
	else echo "Please install:  sudo apt-get install$$missing"; exit 1; fi
endef

build/system.stamp: Makefile
	$(call say,system packages)
	@mkdir -p build
	$(call packages,$(PACKAGES))
	@touch $@

build/tools.stamp: build/system.stamp pyproject.toml
	$(call say,virtual environment and tools)
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -q --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install -q --group dev
	@touch $@

setup: build/tools.stamp ## system packages, .venv/ and tools

SOURCES := $(shell find cpp bindings python cmake CMakeLists.txt pyproject.toml -type f -not -name '*.pyc' 2>/dev/null)
build/install.stamp: build/tools.stamp $(SOURCES)
	$(call say,build and install loki into .venv/)
	@$(BIN)/python -m pip install -q --no-build-isolation '.[demo]' -C build-dir=$(BUILD) \
	  -C cmake.define.LOKI_WARNINGS_AS_ERRORS=ON -C cmake.define.CMAKE_EXPORT_COMPILE_COMMANDS=ON
	@touch $@

install: build/install.stamp ## build and install into .venv/

# --- the main job ----------------------------------------------------------------------------------------

demo: install ## the closed loop on a small real project
	$(call say,loki demo)
	@$(BIN)/loki demo

# --- measuring ---------------------------------------------------------------------------------------------

bench: install ## recognition's speed beside others; ARGS="--quick" or "--logs FILE.jsonl.gz"
	$(call say,benchmarks)
	@$(BIN)/python -m pip install -q --group bench
	@$(BIN)/python -m benchmarks.recognition $(ARGS)

bench-decision: install ## backoff's and breakers' cost beside others; ARGS="--quick"
	$(call say,benchmarks)
	@$(BIN)/python -m pip install -q --group bench-decision
	@$(BIN)/cmake -G Ninja -S . -B build/bench -DLOKI_BUILD_BENCHMARKS=ON -DCMAKE_BUILD_TYPE=Release \
	  -Dpybind11_DIR="$$($(BIN)/python -m pybind11 --cmakedir)" -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python >/dev/null
	@$(BIN)/cmake --build build/bench --target _native
	@$(BIN)/python -m benchmarks.decision $(ARGS)

samples: install ## the samples of the tool files, made anew by running the tools; TOOLS="gcc go"
	@$(BIN)/python -m samples $(TOOLS)

notebooks: install ## execute the notebooks and write what came out; NAMES="tuning_patterns"
	@$(BIN)/python -m notebooks $(NAMES)

gallery: install ## docs/failures.md: what loki explain says of twenty tools' failures
	@$(BIN)/python -m samples.gallery

# --- checks ----------------------------------------------------------------------------------------------

test: format-check lint install stubs-check types cpp py ## the checks of every change: minutes
	$(call say,all checks passed)

test-all: export LOKI_EXAMPLES := all
test-all: test asan system ## everything, as CI: the second tier of Python tests and the sanitizers, too
	$(call say,all checks of both tiers passed)

format-check: setup
	$(call say,clang-format)
	@$(BIN)/clang-format --dry-run --Werror $(CXX_FILES)

lint: setup
	$(call say,ruff)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	$(call say,the house)
	@$(BIN)/python -m tools.house

types: install
	$(call say,mypy --strict)
	@$(BIN)/mypy

STUBGEN = cd / && $(CURDIR)/$(BIN)/pybind11-stubgen loki._core --exit-code -o
stubs-check: install
	$(call say,stubs: _core.pyi equals what the module has)
	@rm -rf build/stubs && ($(STUBGEN) $(CURDIR)/build/stubs)
	@diff -u python/loki/_core.pyi build/stubs/loki/_core.pyi || { echo "python/loki/_core.pyi is out of date: make stubs"; exit 1; }

stubs: install ## write python/loki/_core.pyi anew
	@rm -rf build/stubs && ($(STUBGEN) $(CURDIR)/build/stubs)
	@cp build/stubs/loki/_core.pyi python/loki/_core.pyi

cpp: install ## C++ tests, on the core that was installed
	$(call say,C++ tests)
	@cmake -S . -B $(BUILD) -DLOKI_BUILD_TESTS=ON >/dev/null && cmake --build $(BUILD) --target loki_tests
	@ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure > $(BUILD)/ctest.log || { cat $(BUILD)/ctest.log; exit 1; }
	@tail -n 5 $(BUILD)/ctest.log

asan: setup ## C++ tests under AddressSanitizer and UBSan
	$(call say,C++ tests under ASan and UBSan)
	@cmake --preset asan >/dev/null && cmake --build --preset asan && build/asan/tests/cpp/loki_tests --gtest_brief=1

tsan: setup ## C++ tests under ThreadSanitizer
	$(call say,C++ tests under TSan)
	@cmake --preset tsan >/dev/null && cmake --build --preset tsan && build/tsan/tests/cpp/loki_tests --gtest_brief=1

FUZZ_TARGETS ?= clean normalize site pattern rules breakers retry_after json_lines
FUZZ_SECONDS ?= 600
FUZZ_INPUTS ?= 50000
fuzz: fuzz-state install ## libFuzzer under ASan and UBSan, FUZZ_SECONDS for each of FUZZ_TARGETS; needs clang
	$(call say,fuzzing)
	$(call packages,clang)
	@cmake --preset fuzz >/dev/null && cmake --build --preset fuzz
	@$(BIN)/python -m loki.recognition.builtin build/fuzz/builtin.json
	@for target in $(FUZZ_TARGETS); do echo "$$target, $(FUZZ_SECONDS) s"; mkdir -p build/fuzz/corpus/$$target; \
	  LOKI_BUILTIN=build/fuzz/builtin.json build/fuzz/fuzz/fuzz_$$target build/fuzz/corpus/$$target fuzz/corpus/$$target \
	    -max_total_time=$(FUZZ_SECONDS) -dict=fuzz/words.dict -timeout=10 -print_final_stats=1 \
	    -artifact_prefix=build/fuzz/$$target- 2>build/fuzz/$$target.log || { tail -n 60 build/fuzz/$$target.log; exit 1; }; \
	  grep -E 'cov:' build/fuzz/$$target.log | tail -n 1; grep -E 'stat::number' build/fuzz/$$target.log; done

fuzz-state: install ## damaged files of .loki/ through every command, the library, MCP and the analysis; FUZZ_INPUTS of them
	$(call say,damaged state)
	@$(BIN)/python -m fuzz.state --inputs $(FUZZ_INPUTS) --jobs $(JOBS)

build/node.stamp: tests/node/package.json
	@mkdir -p build/node
	@if command -v npm >/dev/null; then \
	  cp tests/node/package.json build/node/ && \
	  npm install --prefix build/node --no-package-lock --no-audit --no-fund --loglevel=error && touch $@ \
	  || echo "npm could not install them: tests of JavaScript tools will be skipped"; \
	else echo "npm is not installed: tests of JavaScript tools will be skipped"; fi

node: build/node.stamp ## the JavaScript tools that tests run

build/agents.stamp: tests/node/agents/package.json
	@mkdir -p build/agents
	@if command -v npm >/dev/null; then \
	  cp tests/node/agents/package.json build/agents/ && \
	  npm install --prefix build/agents --no-package-lock --no-audit --no-fund --loglevel=error && touch $@ \
	  || echo "npm could not install them: tests of the real claude, codex and gemini will be skipped"; \
	else echo "npm is not installed: tests of the real claude, codex and gemini will be skipped"; fi

agents: build/agents.stamp ## the command-line agents that tests run: 910 MB on the disk; no key is needed
	@du -sh --si build/agents

build/plugins.stamp: build/tools.stamp pyproject.toml
	$(call say,plugins of pytest that --loki is tested beside)
	@rm -rf build/plugins && $(BIN)/python -m pip install -q --no-deps --target build/plugins --group pytest-plugins
	@touch $@

plugins: build/plugins.stamp ## the pytest plugins that tests run beside --loki

py: install ## Python tests that start no process; LOKI_EXAMPLES=all tries properties on all examples
	$(call say,Python tests of the first tier)
	@$(BIN)/python -m pytest -q -n $(JOBS) tests/py

system: install node plugins ## Python tests with processes, crashes, toolchains, frameworks, pages
	$(call say,Python tests of the second tier)
	@$(BIN)/python -m pytest -q -n $(JOBS) tests/system

format: setup ## reformat C++ and Python
	@$(BIN)/clang-format -i $(CXX_FILES)
	@$(BIN)/ruff check --fix-only -q . && $(BIN)/ruff format .

dist: setup ## sdist and wheel in dist/
	@rm -rf dist && $(BIN)/python -m build

clean: ## remove what was built
	@rm -rf build dist .venv
