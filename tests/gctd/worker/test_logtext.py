"""The text of a log: harmless, without credentials, bounded. Reading from any place returns the stored text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctd.broker.attempt_logs import left_out
from gctd.broker.text_streams import TextChunk
from gctd.domain.task.events import AttemptLog
from gctd.http.tasks.attempt_logs import live_pieces, stored_pieces
from gctd.worker.attempts.log_text import LONGEST_LINE, BoundedText, readable


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("plain\ttext é \u6c49", "plain\ttext é \u6c49"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("a\x1b]0;title\x07b\x9b2Jc\u202ed\x00", r"a\x1b]0;title\x07b\x9b2Jc\u202ed\x00"),
        ("50%\r100%\r\n", r"50%\x0d100%"),
        ("fetch https://user:secret@host/a and ssh://me@host/b", "fetch https://***@host/a and ssh://***@host/b"),
        ("GET https://host/a?access_token=secret&x=1", "GET https://host/a?access_token=***&x=1"),
        ("Authorization: Bearer secret", "Authorization: Bearer ***"),
    ],
)
def test_a_line_is_harmless_and_has_no_credentials(said: str, shown: str) -> None:
    assert readable(said) == shown


def test_a_long_line_is_cut() -> None:
    assert readable("x" * (LONGEST_LINE + 5)) == "x" * LONGEST_LINE + " [5 characters more]"


LINES = st.lists(st.text("ab\u00e9", max_size=12).map(lambda text: f"{text}\n".encode()), max_size=60)


@given(LINES, st.integers(0, 80), st.integers(0, 80))
def test_beginning_and_end_are_kept_and_the_rest_is_counted(lines: list[bytes], head: int, tail: int) -> None:
    text = BoundedText(head, tail)
    for line in lines:
        text.append(line)
    whole, kept = b"".join(lines), text.kept()
    assert text.size == len(whole)
    assert len(kept) + text.cut == len(whole)
    assert kept[: text.cut_at] == whole[: text.cut_at]
    assert whole.endswith(kept[text.cut_at :])
    assert text.cut_at <= head
    assert len(kept) - text.cut_at <= tail
    assert text.whole == (len(whole) == text.cut_at)


@given(LINES, st.data())
def test_a_stored_log_can_be_read_from_any_line_on(lines: list[bytes], data: st.DataObject) -> None:
    text = BoundedText(60, 40)
    for line in lines:
        text.append(line)
    log = AttemptLog(digest="", size=len(text.kept()), cut=text.cut, cut_at=text.cut_at)
    pieces = list(stored_pieces(text.kept(), log, 0))
    shown = "".join(piece.text for piece in pieces)
    notice = left_out(text.cut) if text.cut else ""
    kept = text.kept().decode()
    assert shown == text.kept()[: text.cut_at].decode() + notice + text.kept()[text.cut_at :].decode()
    assert kept == shown.replace(notice, "", 1) if notice else kept == shown
    seen = data.draw(st.integers(0, len(pieces)))
    place = pieces[seen - 1].end if seen else 0
    assert "".join(piece.text for piece in [*pieces[:seen], *stored_pieces(text.kept(), log, place)]) == shown


@given(LINES, st.data())
def test_a_live_log_is_put_together_whatever_comes_twice(lines: list[bytes], data: st.DataObject) -> None:
    """Chunks that were stored though it was not known to the writer come again, longer."""
    whole = b"".join(lines)
    ends = [sum(map(len, lines[:count])) for count in range(len(lines) + 1)]
    chunks: list[TextChunk] = []
    place = 0
    while place < len(whole):
        end = data.draw(st.sampled_from([end for end in ends if end > place]))
        chunks.append(TextChunk(len(chunks) + 1, place, whole[place:end]))
        place = data.draw(st.sampled_from([at for at in ends if place < at <= end] if data.draw(st.booleans()) else [end]))
        if data.draw(st.booleans()):
            chunks.append(chunks[-1])
    pieces = list(live_pieces(chunks, 0))
    assert "".join(piece.text for piece in pieces).encode() == whole
    assert not whole or pieces[-1].end == len(whole)


def test_a_gap_between_two_chunks_is_named() -> None:
    chunks = [TextChunk(1, 0, b"a\n"), TextChunk(5, 10, b"b\n")]
    assert [(piece.text, piece.end) for piece in live_pieces(chunks, 0)] == [("a\n", 2), (left_out(8), 10), ("b\n", 12)]


@given(LINES, st.integers(1, 40))
def test_the_published_end_is_whole_lines_that_were_not_published(lines: list[bytes], most: int) -> None:
    text = BoundedText(0, 10_000)
    published = 0
    whole = b""
    for line in lines:
        text.append(line)
        whole += line
        offset, data = text.newest(published, most)
        assert offset >= published
        assert len(data) <= most
        assert whole[offset:] == data
        published = offset + len(data)
