"""Plans kept for the debug endpoint."""

from __future__ import annotations

from fivespot.runtime.manager import PlanBook
from fivespot.runtime.objects import Key


def test_the_plan_book_keeps_the_latest_plan_of_each_object_and_no_more_than_it_may() -> None:
    book = PlanBook(size=2)
    web, db, api = (Key("prod", name) for name in ("web", "db", "api"))
    book.note("machines", web, {"create": 1})
    book.note("machines", db, {"create": 2})
    book.note("machines", web, {"create": 3})
    book.note("machines", api, {"create": 4})
    assert book.snapshot() == [
        {"controller": "machines", "object": "prod/web", "plan": {"create": 3}},
        {"controller": "machines", "object": "prod/api", "plan": {"create": 4}},
    ]
    book.forget("machines", web)
    book.forget("machines", db)
    assert [entry["object"] for entry in book.snapshot()] == ["prod/api"]
