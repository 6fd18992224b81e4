"""Builds kube-apiserver, kube-controller-manager, kubectl and etcd from their Go modules, once per machine.

``k8s.io/kubernetes`` is served as a Go module, but its go.mod replaces its staging modules by path, and replacements
of a dependency are ignored. So a main module is generated that requires it and replaces each staging module by the
published one of the same release (v0.X.Y for v1.X.Y).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .gotool import find_go, go_environment
from .versions import ETCD, cache_root, release_dir

# What Kubernetes 1.37 asks for; older releases are content with it.
MINIMUM_GO = (1, 26)

Say = Callable[[str], None]


class BuildFailed(RuntimeError):
    """A step of the build failed; the message holds the command's own error output."""


@dataclass(frozen=True)
class Binaries:
    """The four programs of one control plane."""

    kube_apiserver: Path
    kube_controller_manager: Path
    kubectl: Path
    etcd: Path

    @classmethod
    def of(cls, version: str) -> Binaries:
        """Return the paths of a release's programs, built or not."""
        bin_dir = release_dir(version) / "bin"
        return cls(*(bin_dir / step.name for step in STEPS))

    def present(self) -> bool:
        """Whether nothing remains to be built."""
        return all(
            path.is_file() for path in (self.kube_apiserver, self.kube_controller_manager, self.kubectl, self.etcd)
        )


@dataclass(frozen=True)
class _Step:
    name: str
    module: str
    package: str
    usually: str


STEPS = (
    _Step("kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver", "5 minutes"),
    _Step(
        "kube-controller-manager", "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager", "a minute and a half"
    ),
    _Step("kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl", "half a minute"),
    _Step("etcd", "etcd", "go.etcd.io/etcd/server/v3", "20 seconds"),
)


def say_to_stderr(line: str) -> None:
    """Progress goes to stderr, so that stdout stays usable for results."""
    print(f"controlplane: {line}", file=sys.stderr, flush=True)


def build(version: str, say: Say = say_to_stderr) -> Binaries:
    """The binaries of ``version``, built now unless they are there.

    Safe to call from several processes at once: one builds, the others wait.

    Raises:
        BuildFailed: a compiler or download error.
        GoUnavailable: there is no Go compiler and none could be installed.
    """
    binaries = Binaries.of(version)
    if binaries.present():
        return binaries
    with locked(cache_root() / f"build-{version}.lock", say):
        _build_missing(version, say)
    return binaries


def _build_missing(version: str, say: Say) -> None:
    target = release_dir(version)
    bin_dir = target / "bin"
    bin_dir.mkdir(parents=True, exist_ok=True)
    missing = [step for step in STEPS if not (bin_dir / step.name).is_file()]
    if not missing:
        return
    go = find_go(MINIMUM_GO, say)
    with tempfile.TemporaryDirectory(prefix="new-", dir=target) as scratch:
        modules = {
            "kubernetes": lambda: _kubernetes_module(go, version, Path(scratch) / "kubernetes"),
            "etcd": lambda: _etcd_module(Path(scratch) / "etcd"),
        }
        ready: dict[str, Path] = {}
        for step in missing:
            say(f"building {step.name} for Kubernetes {version}: about {step.usually} the first time")
            began = time.monotonic()
            if step.module not in ready:
                ready[step.module] = modules[step.module]()
            fresh = Path(scratch) / f"{step.name}.new"
            flags = ["-trimpath", "-ldflags", linker_flags(version) if step.module == "kubernetes" else "-s -w"]
            run_go([str(go), "build", *flags, "-o", str(fresh), step.package], cwd=ready[step.module])
            fresh.replace(bin_dir / step.name)
            say(f"built {step.name} in {time.monotonic() - began:.0f} s")


def linker_flags(version: str) -> str:
    """Flags that strip the binary and set the version it reports, which clients read."""
    major, minor, _ = version.split(".")
    facts = {
        "gitVersion": f"v{version}",
        "gitMajor": major,
        "gitMinor": minor,
        "gitCommit": "module",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
    }
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return " ".join(
        ["-s", "-w", *(f"-X {package}.{name}={value}" for package in packages for name, value in facts.items())]
    )


def kubernetes_go_mod(version: str, upstream: Mapping[str, Any]) -> str:
    """The main module that builds ``k8s.io/kubernetes`` of ``version``.

    ``upstream`` is its own go.mod, as ``go mod edit -json`` prints it.
    """
    staging = version.replace("1.", "v0.", 1)
    lines = ["module controlplane.fivespot.invalid/kubernetes", "", f"go {upstream['Go']}", ""]
    lines += [f"godebug {item['Key']}={item['Value']}" for item in upstream.get("GoDebug") or ()]
    lines += ["", f"require k8s.io/kubernetes v{version}", ""]
    for item in upstream.get("Replace") or ():
        path = item["Old"]["Path"]
        new = item["New"]
        if new["Path"].startswith("./staging/"):
            lines.append(f"replace {path} => {path} {staging}")
        else:
            lines.append(f"replace {path} => {new['Path']} {new.get('Version', '')}".rstrip())
    return "\n".join(lines) + "\n"


def _kubernetes_module(go: Path, version: str, folder: Path) -> Path:
    folder.mkdir()
    upstream = download(go, f"k8s.io/kubernetes@v{version}")["GoMod"]
    parsed = json.loads(run_go([str(go), "mod", "edit", "-json", upstream], cwd=folder))
    (folder / "go.mod").write_text(kubernetes_go_mod(version, parsed))
    return folder


def _etcd_module(folder: Path) -> Path:
    # A module of its own: what the chosen Kubernetes release links against must not decide which etcd runs.
    folder.mkdir()
    lines = ["module controlplane.fivespot.invalid/etcd", "go 1.26.0", f"require go.etcd.io/etcd/server/v3 v{ETCD}"]
    (folder / "go.mod").write_text("\n".join(lines) + "\n")
    return folder


def download(go: Path, module: str) -> dict[str, Any]:
    """Downloads one Go module and returns where its parts are, as ``go mod download -json`` prints it."""
    with tempfile.TemporaryDirectory(prefix="fivespot-go-") as nowhere:
        facts: dict[str, Any] = json.loads(run_go([str(go), "mod", "download", "-json", module], cwd=Path(nowhere)))
    return facts


@contextlib.contextmanager
def locked(path: Path, say: Say) -> Iterator[None]:
    """Holds an exclusive lock between processes; says so when it has to wait."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another build on this machine ({path})")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def build_once(binary: Path, what: str, usually: str, make: Callable[[], None], *, lock: str, say: Say) -> Path:
    """The program ``binary``, made now unless it is there. Safe to call from several processes: the others wait.

    :param usually: how long it takes the first time, in words.
    :param lock: the name of what is locked meanwhile, in the cache of this machine.
    """
    if not binary.is_file():
        binary.parent.mkdir(parents=True, exist_ok=True)
        with locked(cache_root() / f"{lock}.lock", say):
            if not binary.is_file():
                say(f"building {what}: about {usually} the first time")
                began = time.monotonic()
                make()
                say(f"built {what} in {time.monotonic() - began:.0f} s")
    return binary


def run_go(command: list[str], *, cwd: Path) -> str:
    """Runs one command of a build and returns what it printed.

    Raises:
        BuildFailed: it ended with an error.
    """
    done = subprocess.run(
        command, cwd=cwd, env=go_environment(), capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        # Downloads are reported line by line before the error; the end is what matters.
        tail = "\n".join((done.stderr + done.stdout).strip().splitlines()[-20:])
        raise BuildFailed(f"{' '.join(command[:4])} ... failed with code {done.returncode}:\n{tail}")
    return done.stdout
