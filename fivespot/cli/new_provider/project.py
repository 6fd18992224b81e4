"""The project of a new provider: names, files from templates, and manifests that follow from them."""

from __future__ import annotations

import keyword
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

from fivespot import __version__
from fivespot.api.names import KIND
from fivespot.providers.registry import SHIPPED
from fivespot.runtime import ConfigError, FivespotError

__all__ = ["Names", "name_project", "write_project"]

_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]*")
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*|[0-9]+")
_LONGEST: Final = 50
"""Characters of a kind; with ``-provider`` behind it, its name is also that of a namespace (63)."""
_TAKEN: Final = frozenset({KIND, *SHIPPED})
_SECONDS: Final = 60

_FILES: Final[Mapping[str, str]] = {
    "README.md": "README.md",
    "pyproject.toml": "pyproject.toml",
    "Containerfile": "Containerfile",
    "gitignore": ".gitignore",
    "init.py": "@PACKAGE@/__init__.py",
    "spec.py": "@PACKAGE@/spec.py",
    "decide.py": "@PACKAGE@/decide.py",
    "provider.py": "@PACKAGE@/provider.py",
    "test_decide.py": "tests/test_decide.py",
    "test_manifests.py": "tests/test_manifests.py",
    "test_conformance.py": "tests/test_conformance.py",
    "conformance.yaml": "tests/conformance.yaml",
    "kustomization.yaml": "manifests/kustomization.yaml",
    "namespace.yaml": "manifests/namespace.yaml",
    "deployment.yaml": "manifests/deployment.yaml",
    "example.yaml": "examples/example.yaml",
}
"""Template, without its ``.in`` -> where it goes."""


@dataclass(frozen=True, slots=True)
class Names:
    """The names derived from a kind: ``office_hours_provider`` and ``office-hours-provider`` for ``OfficeHours``."""

    kind: str
    package: str
    slug: str

    def fill(self, text: str) -> str:
        """A template with the names in it."""
        values = {
            "KIND": self.kind,
            "LOWER": self.kind.lower(),
            "PACKAGE": self.package,
            "SLUG": self.slug,
            "VERSION": __version__,
        }
        return re.sub(r"@([A-Z]+)@", lambda found: values[found[1]], text)


def name_project(kind: str) -> Names:
    """The names that follow from a kind.

    :raises ConfigError: it cannot be a kind of one's own; the text says what to write instead.
    """
    words = [word.lower() for word in _WORD.findall(kind)]
    if not _KIND.fullmatch(kind):
        joined = "".join(word.capitalize() for word in re.findall(r"[A-Za-z0-9]+", kind))
        near = f", such as {joined}" if _KIND.fullmatch(joined) else ", such as OfficeHours"
        raise ConfigError(f"{kind!r} cannot be a kind: write it in CamelCase, letters and digits only{near}")
    if len(kind) > _LONGEST:
        raise ConfigError(f"{kind!r} is too long for a kind: {len(kind)} characters, at most {_LONGEST}")
    if kind in _TAKEN:
        raise ConfigError(f"{kind} comes with fivespot already; choose another kind")
    slug = "-".join([*words, "provider"])
    package = "_".join([*words, "provider"])
    if not package.isidentifier() or keyword.iskeyword(package) or len(slug) > 63:
        raise ConfigError(f"{kind!r} cannot be a kind: {package!r} cannot be a package; choose another")
    return Names(kind, package, slug)


def write_project(names: Names, folder: Path) -> list[Path]:
    """Write the whole project into a new or empty folder; the paths of its files, in order.

    :raises ConfigError: the folder holds something, or cannot be written to.
    :raises FivespotError: the manifests cannot be made.
    """
    templates = files("fivespot.cli") / "_template"
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise ConfigError(f"{folder} is there already and not empty; nothing is overwritten")
        for template, target in _FILES.items():
            path = folder / names.fill(target)
            path.parent.mkdir(parents=True, exist_ok=True)
            text = (templates / f"{template}.in").read_text(encoding="utf-8")
            path.write_text(names.fill(text), encoding="utf-8")
        manifests = folder / "manifests"
        account = f"{names.slug}/{names.slug}"
        (manifests / "crd.yaml").write_text(_crds(names, folder), encoding="utf-8")
        (manifests / "rbac.yaml").write_text(_crds(names, folder, "--rbac", "--service-account", account))
    except OSError as error:
        raise ConfigError(f"{error.filename or folder}: {error.strerror or error}") from error
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _crds(names: Names, folder: Path, *arguments: str) -> str:
    """Return the output of ``fivespot crds`` for the new provider, from a process that imports it as users do."""
    command = [sys.executable, "-B", "-m", "fivespot.cli", "crds", "--provider", f"{names.package}:PROVIDER"]
    done = subprocess.run(
        [*command, *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=_SECONDS
    )
    if done.returncode:
        raise FivespotError(f"the manifests cannot be made: {done.stderr.strip() or done.returncode}")
    return done.stdout
