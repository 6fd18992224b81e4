"""Rules of this codebase that no ready-made linter knows, as functions from source text to findings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import chain

_SCOPES = frozenset(
    {"timeout", "timeout_at", "TaskGroup", "create_task_group", "move_on_after", "fail_after", "CancelScope"}
)
_CLOCK_CALLS = frozenset({"now", "utcnow", "today"})


def seam_violations(source: str, *, owns_tasks: bool = False) -> list[str]:
    """Uses of time, randomness and ownerless tasks that must go through the injected seams instead.

    ``random.Random`` as a type is fine (it is what gets injected); making one is not. ``owns_tasks`` is for the code
    whose purpose is to be the owner.
    """
    tree = ast.parse(source)
    found = [
        f"{node.lineno}: from {node.module} import {alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in {"time", "random"}
        for alias in node.names
        if alias.name != "Random"
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner, name = node.value.id, node.attr
            if owner == "time" or (owner == "random" and name != "Random"):
                found.append(f"{node.lineno}: {owner}.{name}")
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            owner, _, name = called.rpartition(".")
            last_owner = owner.rpartition(".")[2]
            if name == "Random" or (last_owner in {"datetime", "date"} and name in _CLOCK_CALLS):
                found.append(f"{node.lineno}: {called}()")
            ownerless = last_owner == "asyncio" or "loop" in last_owner
            if not owns_tasks and (name == "ensure_future" or (name == "create_task" and (ownerless or not owner))):
                found.append(f"{node.lineno}: {called}()")
    return sorted(found)


def yields_inside_scopes(source: str) -> list[str]:
    """``yield`` inside a timeout or task-group scope: the scope would then cancel the consumer of the generator."""
    return sorted(
        f"{inner.lineno}: yield inside the scope opened in line {node.lineno}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.AsyncWith | ast.With) and any(_opens_scope(item) for item in node.items)
        for inner in chain.from_iterable(_same_frame(statement) for statement in node.body)
        if isinstance(inner, ast.Yield | ast.YieldFrom)
    )


_CLAUSE = re.compile(r"(?:What|How|Who|Whose|Where|That|When|Which)\b")
_VERB_FORM = re.compile(r"(?:.*_)?(?!(?:ratcheting|string|testing|tracing)$)[a-z]+ing")
"""Names that end in -ing, those of field terms excepted."""


def clause_docstrings(source: str) -> list[str]:
    """First lines of docstrings that are a clause in place of a sentence or a noun phrase."""
    nodes = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return [
        text.splitlines()[0]
        for node in ast.walk(ast.parse(source))
        if isinstance(node, nodes) and (text := ast.get_docstring(node)) and _CLAUSE.match(text)
    ]


def is_verb_form(stem: str) -> bool:
    """Return whether a module is named by a verb form, such as ``waiting``."""
    return _VERB_FORM.fullmatch(stem) is not None


def _opens_scope(item: ast.withitem) -> bool:
    called = item.context_expr
    return isinstance(called, ast.Call) and ast.unparse(called.func).rpartition(".")[2] in _SCOPES


def _same_frame(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from _same_frame(child)
