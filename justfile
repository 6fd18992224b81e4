# The recipes of the checkout; `./dev RECIPE` sets up .venv first.

set shell := ["bash", "-euo", "pipefail", "-c"]
set positional-arguments

export PATH := justfile_directory() / ".venv/bin:" + env("PATH")
export PYTHONPATH := justfile_directory() / "tools"

# Most tests on a server wait more than they work, so three workers suit two cores; a control plane takes 1 GB for each.
jobs := env("FIVESPOT_TEST_JOBS", "3")

# List the recipes
default:
    @just --justfile "{{ justfile() }}" --list --unsorted

# Make .venv (what ./dev does before anything else)
setup:
    @./dev setup

# Watch machines come and go: the whole system in one process (--headless --for 40s for scripts)
demo *ARGS:
    @exec fivespot demo "$@"

# Everything that has to pass: lint, unit tests, tests on the servers (15 minutes)
test: lint unit build-controlplane embedded server

# Style, types, import directions (20 s)
lint:
    ruff check .
    ruff format --check .
    mypy fivespot tests tools benchmarks examples
    lint-imports --no-cache

# Tests that need no server (a minute)
unit *ARGS:
    pytest tests/unit tests/simulation -n {{ jobs }} "$@"

# The tests of tests/server on the server in memory, the contract's in virtual time (a minute; --long for slow ones too)
embedded *ARGS:
    pytest tests/server --server embedded -n {{ jobs }} --dist loadfile "$@"

# Files are not put in order: those with a single test would come last, and they take longest.
# Tests on the real control plane, those with the real Cluster API included (14 minutes)
server *ARGS: build-controlplane
    pytest tests/server -m alone "$@" || test $? = 5 # none was chosen
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

# Play random days of the whole system, about a second each (--help for options)
simulate *ARGS:
    @PYTHONPATH="$PYTHONPATH:tests" exec nice python -m simulation "$@"

# Measure (see benchmarks/)
bench *ARGS:
    python -m benchmarks "$@"

# Format and repair what can be repaired
fmt:
    ruff check --fix-only .
    ruff format .

# Lock the dependencies again: hashes only, so that no package index is named
lock *ARGS:
    uv pip compile {{ compile }} pyproject.toml --extra cli --extra uvloop -o requirements/runtime.txt "$@"
    uv pip compile {{ compile }} pyproject.toml requirements/dev.in --all-extras -c requirements/runtime.txt -o requirements/dev.txt "$@"
    uv pip compile {{ compile }} requirements/go.in -o requirements/go.txt "$@"

compile := "--quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links"
