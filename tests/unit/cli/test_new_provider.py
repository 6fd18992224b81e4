"""``fivespot new-provider``: names, files, and what it refuses. The project itself is tested on a server."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from fivespot.cli.main import cli
from fivespot.cli.new_provider.project import _FILES, Names, name_project, write_project
from fivespot.runtime import ConfigError


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new") / "hours"
    write_project(name_project("OfficeHours"), folder)
    return folder


def test_names_follow_from_the_kind() -> None:
    assert name_project("OfficeHours") == Names("OfficeHours", "office_hours_provider", "office-hours-provider")
    assert name_project("NYSECalendar2") == Names("NYSECalendar2", "nyse_calendar2_provider", "nyse-calendar2-provider")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("office-hours", "letters and digits only, such as OfficeHours"),
        ("officeHours", "write it in CamelCase"),
        ("Office Hours", "such as OfficeHours"),
        ("9to5", "such as OfficeHours"),
        ("", "such as OfficeHours"),
        ("../Evil", "such as Evil"),
        ("Ärger", "write it in CamelCase"),
        ("A" * 51, "51 characters, at most 50"),
        ("AaBbCcDdEeFfGgHhIiJjKkLlMmNnOoPpQqRrSsTtUuVvWwXxYy", "cannot be a package"),
        ("ManualSchedule", "ManualSchedule comes with fivespot already"),
    ],
)
def test_a_name_that_cannot_be_a_kind_is_refused_with_a_better_one(kind: str, words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        name_project(kind)


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    target = tmp_path / "mine"
    target.mkdir()
    (target / "README.md").write_text("mine")
    result = CliRunner().invoke(cli, ["new-provider", "OfficeHours", "--output", str(target)])
    assert isinstance(result.exception, ConfigError)
    assert f"{target} is there already and not empty" in str(result.exception)
    assert [path.name for path in target.iterdir()] == ["README.md"]
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(ConfigError, match="nothing is overwritten"):
        write_project(name_project("OfficeHours"), file)


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"file: (Not a directory|File exists)|Not a directory"):
        write_project(name_project("OfficeHours"), tmp_path / "file" / "project")


def test_every_template_is_used_and_filled(project: Path) -> None:
    templates = {path.name for path in (files("fivespot.cli") / "_template").iterdir()}
    assert templates == {f"{name}.in" for name in _FILES}
    texts = {
        path: path.read_text() for path in project.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    }
    assert len(texts) == len(_FILES) + 2
    assert not [path for path, text in texts.items() if re.search(r"@[A-Z]+@", text)]


def test_manifests_belong_together(project: Path) -> None:
    manifests = project / "manifests"
    listed = yaml.safe_load((manifests / "kustomization.yaml").read_text())["resources"]
    assert {*listed, "kustomization.yaml"} == {path.name for path in manifests.iterdir()}
    documents = [document for name in listed for document in yaml.safe_load_all((manifests / name).read_text())]
    kinds = [document["kind"] for document in documents]
    assert kinds[:3] == ["Namespace", "ServiceAccount", "CustomResourceDefinition"]
    assert kinds[-1] == "Deployment"
    [deployment] = documents[-1:]
    pod = deployment["spec"]["template"]["spec"]
    bound = [subject for document in documents for subject in document.get("subjects", ())]
    assert {(subject["namespace"], subject["name"]) for subject in bound} == {
        (deployment["metadata"]["namespace"], pod["serviceAccountName"])
    }


def test_what_is_written_is_formatted_and_has_no_lint(project: Path) -> None:
    ruff = [sys.executable, "-m", "ruff"]
    for arguments in (["check", "--no-cache", "."], ["format", "--no-cache", "--check", "."]):
        done = subprocess.run([*ruff, *arguments], cwd=project, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
