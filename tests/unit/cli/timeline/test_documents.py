"""Files are read as kubectl reads them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from fivespot.cli.timeline.documents import read_objects, unknown_fields
from fivespot.runtime import ConfigError


def read(tmp_path: Path, text: str) -> list[dict[str, object]]:
    path = tmp_path / "file.yaml"
    path.write_text(text, encoding="utf-8")
    return read_objects([str(path)])


def test_dates_and_times_of_day_are_texts(tmp_path: Path) -> None:
    [body] = read(
        tmp_path,
        "kind: A\nspec: {day: 2027-11-26, at: 2027-01-01T00:00:00Z, open: 08:00, close: 18:30, late: 1:30, n: 10, "
        "f: 1.5, yes: true, none: null, octal: 010}\n",
    )
    assert body["spec"] == {
        "day": "2027-11-26",
        "at": "2027-01-01T00:00:00Z",
        "open": "08:00",
        "close": "18:30",
        "late": "1:30",
        "n": 10,
        "f": 1.5,
        "true": True,
        "none": None,
        "octal": 8,
    }


def test_many_documents_lists_and_json_are_read_in_order(tmp_path: Path) -> None:
    text = (
        "---\n# nothing\n---\nkind: A\n---\n"
        "apiVersion: v1\nkind: List\nitems: [{kind: B}, {kind: CList, items: [{kind: C}]}]\n---\n"
        '{"kind": "D", "metadata": {"name": "\\u00fc"}}\n'
    )
    assert [body["kind"] for body in read(tmp_path, text)] == ["A", "B", "C", "D"]


def test_several_files_and_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("\ufeffkind: A", encoding="utf-8")
    monkeypatch.setattr("sys.stdin", io.StringIO("kind: B"))
    assert [body["kind"] for body in read_objects([str(tmp_path / "a"), "-"])] == ["A", "B"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kind: A\nspec:\n  x: 1\n  x: 2\n", "file.yaml: line 4: the key 'x' occurs twice"),
        ("a: [", "file.yaml: is no YAML"),
        ("just a text", "file.yaml: document 1: is not a Kubernetes object"),
        ("kind: A\n---\n- kind: B\n", "file.yaml: document 2: is not a Kubernetes object"),
        ("kind: List\nitems: [{}]\n", "file.yaml: document 1: item 1: is not a Kubernetes object"),
        ("kind: A\nspec: &x [*x]\n", "file.yaml: document 1: cannot be written as JSON"),
        ("kind: A\nspec: !!binary aGVsbG8=\n", "file.yaml: document 1: cannot be written as JSON"),
        ("kind: A\nspec: .nan\n", "file.yaml: document 1: cannot be written as JSON"),
        ("kind: A\nspec: !!python/object/apply:os.getcwd []\n", "file.yaml: is no YAML"),
    ],
)
def test_what_is_no_object_is_told_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read(tmp_path, text)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere.yaml: No such file"):
        read_objects([str(tmp_path / "nowhere.yaml")])
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="binary: is not UTF-8 text"):
        read_objects([str(tmp_path / "binary")])


SCHEMA = {
    "type": "object",
    "properties": {
        "daysOfWeek": {"type": "array", "items": {"type": "string"}},
        "windows": {"type": "array", "items": {"type": "object", "properties": {"start": {"type": "string"}}}},
        "labels": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {}}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ({"daysOfWeek": ["mon"], "windows": [{"start": "x"}], "free": {"b": 1}, "labels": {"l": {"a": 1}}}, []),
        ({"daysofweek": []}, ["spec.daysofweek: there is no such field; did you mean daysOfWeek?"]),
        ({"days_of_week": []}, ["spec.days_of_week: there is no such field; did you mean daysOfWeek?"]),
        (
            {"windows": [{"start": "x"}, {"strat": 1}]},
            ["spec.windows[1].strat: there is no such field; did you mean start?"],
        ),
        ({"hours": []}, ["spec.hours: there is no such field; did you mean windows?"]),
        ({"zzz": 1}, ["spec.zzz: there is no such field; there are daysOfWeek, free, labels, windows"]),
        ({"labels": {"l": {"b": 1}}}, ["spec.labels.l.b: there is no such field; there are a"]),
        ("no object", []),
    ],
)
def test_fields_that_no_schema_has_are_found(value: object, found: list[str]) -> None:
    assert list(unknown_fields(value, SCHEMA)) == found
