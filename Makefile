# make demo    set up, build, and sort real input, every result compared with torch
# make test    set up, build, and run all checks and tests
# make bench, tune, gpu-check, gpu-check-status, lint, build, clean
#
# Without PYTHON: a virtual environment in .venv with the pinned packages of requirements-dev.txt.
# PYTHON=/path/to/python make ...   that interpreter and its torch as they are: nothing is installed, and a tool that it lacks is skipped aloud.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo test lint host-test build bench tune gpu-check gpu-check-status clean

SYSTEM_PYTHON := $(firstword $(foreach name,python3 python3.14 python3.13 python3.12 python3.11 python3.10,\
  $(shell $(name) -c 'import sys; sys.version_info >= (3, 10) and print("$(name)")' 2>/dev/null)))
CASES := $(wildcard ../shared/cases)

ifdef PYTHON
PY := $(PYTHON)
READY :=
else
PY := .venv/bin/python
READY := .venv/ready
endif
# Programs of the chosen environment come first: ruff, clang-format.
export PATH := $(abspath $(dir $(PY))):$(PATH)
export PYTHONPATH := $(CURDIR)$(if $(PYTHONPATH),:$(PYTHONPATH))

help:
	@sed -n 's/^# \{0,1\}//p;/^$$/q' Makefile

.venv/ready: requirements.txt requirements-dev.txt
	@test -n "$(SYSTEM_PYTHON)" || { echo "Python 3.10 or newer is needed, and none is in PATH"; exit 1; }
	@echo "== virtual environment .venv with $(SYSTEM_PYTHON), packages of requirements-dev.txt (the first time takes minutes)"
	@test -x .venv/bin/python || $(SYSTEM_PYTHON) -m venv .venv
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

# setup.py decides what is out of date: objects, headers, flags.
build: $(READY)
	@echo "== build in place with $(PY)"
	@$(PY) -W ignore setup.py -q build_ext --inplace

demo: build
	@echo "== demo: preprocessing of the standard library's text"
	@$(PY) -m torch_gpusort info
	@$(PY) -m torch_gpusort demo

test: lint host-test build
	@echo "== tests"
	@$(PY) -c 'import pytest' 2>/dev/null || { echo "pytest is not installed for $(PY)"; exit 1; }
	@$(PY) -m pytest -q tests $(CASES)

lint: $(READY)
	@echo "== lint"
	@if command -v clang-format >/dev/null; then \
	  find csrc tests benchmarks -name '*.h' -o -name '*.cuh' -o -name '*.cpp' -o -name '*.cu' | sort | xargs clang-format --dry-run -Werror; \
	else echo "skipped: no clang-format"; fi
	@if command -v ruff >/dev/null; then ruff check --quiet . && ruff format --check --quiet .; else echo "skipped: no ruff"; fi

host-test:
	@if test -f tests/host/Makefile; then echo "== g++ tests of csrc/core and csrc/plan"; $(MAKE) --no-print-directory -C tests/host; \
	else echo "== no tests/host"; fi

bench: build
	@echo "== benchmarks"
	@$(PY) -m benchmarks.run_official $(ARGS)

tune: build
	@echo "== crossovers between the sorts on this GPU"
	@$(PY) -m benchmarks.tune $(ARGS)

gpu-check: build
	@echo "== GPU check"
	@$(PY) tests/gpu_check.py $(ARGS)

gpu-check-status:
	@$(or $(PYTHON),$(SYSTEM_PYTHON)) tests/gpu_check.py --status

clean:
	rm -rf build dist *.egg-info torch_gpusort/*.so tests/host/build
