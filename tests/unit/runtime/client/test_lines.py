"""Lines out of blocks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fivespot.runtime.client.lines import LineSplitter


def drain(splitter: LineSplitter) -> list[bytes]:
    lines = []
    while line := splitter.pop():
        lines.append(line)
    return lines


@given(st.lists(st.binary(max_size=12)), st.binary(max_size=5).map(lambda b: b.replace(b"\n", b"")), st.data())
def test_lines_do_not_depend_on_where_the_blocks_were_cut(lines: list[bytes], rest: bytes, data: st.DataObject) -> None:
    lines = [line.replace(b"\n", b"") for line in lines]
    stream = b"".join(line + b"\n" for line in lines) + rest
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    splitter = LineSplitter()
    seen = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        splitter.feed(stream[start:end])
        if data.draw(st.booleans()):
            seen += drain(splitter)
    seen += drain(splitter)
    assert seen == [line for line in lines if line]
    assert splitter.unfinished == len(rest)
    assert splitter.take_rest() == rest


def test_the_rest_holds_lines_that_nobody_took() -> None:
    splitter = LineSplitter()
    splitter.feed(b"one\ntwo\nthr")
    assert splitter.pop() == b"one"
    assert splitter.take_rest() == b"two\nthr"
    assert (splitter.pop(), splitter.unfinished) == (b"", 0)


def test_a_line_of_many_small_blocks_is_whole() -> None:
    splitter = LineSplitter()
    for _ in range(6000):
        splitter.feed(b"x" * 1000)
        assert splitter.pop() == b""
    splitter.feed(b"\n")
    assert len(splitter.pop()) == 6_000_000
