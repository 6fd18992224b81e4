"""The codebase keeps the rules that CONTRIBUTING.md states and no ready-made linter checks."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.house_rules import clause_docstrings, is_verb_form, seam_violations, yields_inside_scopes

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ROOT / "fivespot"
LONGEST_FILE = 500

# The only places that read the clock or make a random source.
SEAMS = frozenset({PRODUCT / "runtime" / "clock.py"})

BINARY = frozenset({".png", ".gz"})
# What stops a manager's members stage by stage, which a task group cannot: it keeps, cancels and awaits its tasks.
TASK_OWNERS = frozenset(
    {PRODUCT / "runtime" / "manager" / "runnable_group.py", PRODUCT / "runtime" / "client" / "auth.py"}
)

# Written in parts, or this file would be its own finding.
HOSTS = ["pypi" + ".org", "python" + "hosted.org", "proxy." + "golang.org", "sum." + "golang.org", "crates" + ".io"]
HOSTS += ["registry." + "npmjs.org", "repo." + "maven"]
MACHINE_PATHS = re.compile(r"(?<![\w.~-])/(?:work|root)" + r"(?:/|\b)")


def sources(*folders: Path) -> Iterator[Path]:
    for folder in folders:
        yield from sorted(folder.rglob("*.py"))


def repository_files() -> Iterator[Path]:
    """Yield the files that are tracked or about to be: everything that is not ignored."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (path := ROOT / name).is_file() and path.suffix not in BINARY:
            yield path


def test_time_randomness_and_tasks_go_through_the_seams() -> None:
    folders = (PRODUCT / "runtime", PRODUCT / "controllers", PRODUCT / "providers")
    found = {
        str(path.relative_to(ROOT)): violations
        for path in sources(*folders)
        if path not in SEAMS and (violations := seam_violations(path.read_text(), owns_tasks=path in TASK_OWNERS))
    }
    assert not found


def test_nothing_yields_inside_a_timeout_or_task_group() -> None:
    found = {
        str(path.relative_to(ROOT)): yields
        for path in sources(PRODUCT)
        if (yields := yields_inside_scopes(path.read_text()))
    }
    assert not found


def test_docstrings_begin_with_a_sentence_or_a_noun_phrase() -> None:
    found = {
        str(path.relative_to(ROOT)): clauses
        for path in repository_files()
        if path.suffix == ".py" and (clauses := clause_docstrings(path.read_text()))
    }
    assert not found


def test_no_module_is_named_by_a_verb_form() -> None:
    assert not [str(path) for path in repository_files() if path.suffix == ".py" and is_verb_form(path.stem)]


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("What aiohttp says.", True),
        ("How a run ended.", True),
        ("Whether it is ready.", False),
        ("Map exceptions.", False),
        ("Whatever it is.", False),
    ],
)
def test_the_docstring_rule_finds_clauses(line: str, wrong: bool) -> None:
    assert bool(clause_docstrings(f'def f():\n    """{line}"""\n')) is wrong


@pytest.mark.parametrize(
    ("stem", "wrong"),
    [("waiting", True), ("standing_in", False), ("hand_polling", True), ("test_tracing", False), ("wait", False)],
)
def test_the_name_rule_finds_verb_forms(stem: str, wrong: bool) -> None:
    assert is_verb_form(stem) is wrong


def test_no_file_is_too_long_to_read() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in sources(PRODUCT, ROOT / "tools")}
    assert not {str(path.relative_to(ROOT)): lines for path, lines in lengths.items() if lines > LONGEST_FILE}


def test_every_package_states_its_public_names() -> None:
    without = []
    for init in (path for path in sources(PRODUCT) if path.name == "__init__.py"):
        body = ast.parse(init.read_text()).body
        assigned = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
        assigned += [node.target for node in body if isinstance(node, ast.AnnAssign)]
        stated = any(isinstance(target, ast.Name) and target.id == "__all__" for target in assigned)
        # A private package has no public names to state, nor has one that only explains itself.
        private = any(part.startswith("_") for part in init.parent.relative_to(ROOT).parts)
        if not stated and not private and any(not isinstance(node, ast.Expr) for node in body):
            without.append(str(init.relative_to(ROOT)))
    folders = {path.parent for path in sources(PRODUCT)}
    assert not without
    assert not [str(folder) for folder in folders if not (folder / "__init__.py").is_file()]


def test_nothing_names_a_package_index_or_a_path_of_one_machine() -> None:
    found = {}
    for path in repository_files():
        text = path.read_text(errors="replace")
        hits = [host for host in HOSTS if host in text] + MACHINE_PATHS.findall(text)
        if hits:
            found[str(path.relative_to(ROOT))] = sorted(set(hits))
    assert not found


def test_what_is_locked_satisfies_what_the_package_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    # The image has what the manager and the command line need; the rest is for those who develop.
    for lock, chosen in (("runtime.txt", ("cli", "uvloop")), ("dev.txt", tuple(extras))):
        asked = [*project["dependencies"], *(name for extra in chosen for name in extras[extra])]
        names = {re.split(r"[<>=~!\[; ]", requirement, maxsplit=1)[0] for requirement in asked}
        locked = set(re.findall(r"^([a-z0-9._-]+)==", (ROOT / "requirements" / lock).read_text(), re.MULTILINE))
        assert names <= locked, lock


@pytest.mark.parametrize(
    "line",
    [
        "import time\ntime.sleep(1)",
        "import time\nx = time.monotonic",
        "from time import monotonic",
        "import datetime\ndatetime.datetime.now(datetime.UTC)",
        "from datetime import datetime\ndatetime.now()",
        "from datetime import date\ndate.today()",
        "import random\nrandom.random()",
        "import random\nrng = random.Random()",
        "from random import Random\nrng = Random(1)",
        "from random import choice",
        "import asyncio\nasyncio.create_task(f())",
        "import asyncio\nasyncio.ensure_future(f())",
        "from asyncio import create_task\ncreate_task(f())",
        "import asyncio\nasyncio.get_running_loop().create_task(f())",
        "self._loop.create_task(f())",
    ],
)
def test_the_seam_rule_finds(line: str) -> None:
    assert seam_violations(line)


def test_the_owner_of_tasks_may_make_them_but_not_read_the_clock() -> None:
    assert not seam_violations("import asyncio\nasyncio.create_task(f())", owns_tasks=True)
    assert seam_violations("import time\ntime.time()", owns_tasks=True)


@pytest.mark.parametrize(
    "line",
    [
        "import random\ndef f(rng: random.Random) -> None: ...",
        "from random import Random\ndef f(rng: Random) -> None: ...",
        "group.create_task(f())",
        "clock.now()",
        "self._clock.monotonic()",
        "from datetime import datetime\ndatetime.fromisoformat(x)",
    ],
)
def test_the_seam_rule_allows(line: str) -> None:
    assert not seam_violations(line)


@pytest.mark.parametrize(
    "scope", ["asyncio.timeout(1)", "asyncio.TaskGroup() as g", "anyio.fail_after(3)", "create_task_group() as g"]
)
def test_the_yield_rule_finds_and_allows(scope: str) -> None:
    inside = f"async def f():\n    async with {scope}:\n        if x:\n            yield 1\n"
    nested = f"async def f():\n    async with {scope}:\n        async def g():\n            yield 1\n"
    after = f"async def f():\n    async with {scope}:\n        pass\n    yield 1\n"
    assert yields_inside_scopes(inside)
    assert not yields_inside_scopes(nested)
    assert not yields_inside_scopes(after)
