# The recipes of the checkout; `./dev RECIPE` sets up .venv first.

set shell := ["bash", "-euo", "pipefail", "-c"]
set positional-arguments

export PATH := justfile_directory() / ".venv/bin:" + env("PATH")
export PYTHONPATH := justfile_directory() / "tools"

# Tests on a server mostly wait, so three workers suit two cores; each control plane takes 1 GB.
jobs := env("FIVESPOT_TEST_JOBS", "3")

# List the recipes
default:
    @just --justfile "{{ justfile() }}" --list --unsorted

# Make .venv (what ./dev does before anything else)
setup:
    @./dev setup

# Run a demo of the whole system in one process (--headless --for 40s for scripts)
demo *ARGS:
    @exec fivespot demo "$@"

# Everything that has to pass (17 minutes on two cores); --order-seed N shuffles the tests, arguments go to pytest
test *ARGS:
    #!/usr/bin/env bash
    set -euo pipefail
    recipe() { "{{ just_executable() }}" --justfile "{{ justfile() }}" "$@"; }
    export FIVESPOT_TEST_SUMMARY="$PWD/.cache/test-summary.txt"
    mkdir -p .cache && : >"$FIVESPOT_TEST_SUMMARY"
    recipe lint
    recipe unit "$@"
    code=0
    if recipe build-controlplane; then
        recipe embedded "$@"
        recipe server "$@"
    else
        echo "left out: every test on a server; kubectl and the control plane cannot be built here" >>"$FIVESPOT_TEST_SUMMARY"
        code=1
    fi
    cat "$FIVESPOT_TEST_SUMMARY"
    PYTHONPATH="$PYTHONPATH:tests" python -m support.contract_page
    exit $code

# Checks that take longer (simulation, mutants, order, comparison); results go to docs/proofs (--help for options)
prove *ARGS:
    @PYTHONPATH="$PYTHONPATH:tests" exec nice python -m proofs "$@"

# Style, types, import directions (20 s)
lint:
    ruff check .
    ruff format --check .
    mypy fivespot tests tools benchmarks examples
    lint-imports --no-cache

# Tests that need no server (four minutes)
unit *ARGS:
    pytest tests/unit tests/simulation -n {{ jobs }} "$@"

# tests/server on the embedded API server, the contract's tests in virtual time (a minute; --long adds slow ones)
embedded *ARGS:
    pytest tests/server --server embedded -n {{ jobs }} --dist loadfile "$@"

# Not sorted by size: files with a single test would come last, and they take longest.
# Tests on the real control plane, those with the real Cluster API included (12 minutes; --long adds slow ones)
server *ARGS: build-controlplane
    pytest tests/server -m alone "$@" || test $? = 5 # no tests selected
    pytest tests/e2e tests/server tests/apiserver -m "not alone" -n {{ jobs }} --dist loadfile --no-loadscope-reorder "$@"

# Tests with the real Cluster API alone (3 minutes; FIVESPOT_CLUSTER_API_VERSION=1.10.7 takes an older one)
e2e *ARGS: build-controlplane
    pytest tests/e2e -n {{ jobs }} --dist loadfile "$@"

# Build the control plane, Cluster API and a Go client once per machine (11 to 14 minutes; nothing when they are there)
build-controlplane:
    @python -m controlplane build

# Start a real control plane and print its kubeconfig, until Ctrl-C (--help for options)
controlplane *ARGS:
    @exec python -m controlplane "$@"

# Write manifests/crds from the models
crds:
    fivespot crds --output manifests/crds

# Run random days of the whole system, about a second each (--help for options)
simulate *ARGS:
    @PYTHONPATH="$PYTHONPATH:tests" exec nice python -m simulation "$@"

# Measure (see benchmarks/)
bench *ARGS:
    python -m benchmarks "$@"

# Format, and fix lint findings that can be fixed
fmt:
    ruff check --fix-only .
    ruff format .

# Lock the dependencies again: hashes only, so that no package index is named
lock *ARGS:
    uv pip compile {{ compile }} pyproject.toml --extra cli --extra tls --extra uvloop -o requirements/runtime.txt "$@"
    uv pip compile {{ compile }} pyproject.toml requirements/dev.in --all-extras -c requirements/runtime.txt -o requirements/dev.txt "$@"
    uv pip compile {{ compile }} requirements/go.in -o requirements/go.txt "$@"

compile := "--quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links"
