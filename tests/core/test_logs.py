"""Reading the logs of programs we do not know."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runq.logs import LONGEST_LINE_BYTES, clean, follow, one_line, tail


@pytest.fixture
def log(tmp_path: Path) -> Callable[[bytes], Path]:
    def write(data: bytes) -> Path:
        path = tmp_path / "e0-eval-1.log"
        path.write_bytes(data)
        return path

    return write


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31;1mred\x1b[0m", "red"),
        ("\x1b[38:2::255:0:0mtrue colour\x1b[m", "true colour"),
        ("\x1b]0;a title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1$r0m\x1b\\text", "text"),
        ("\x1b(B\x1b[mafter tput sgr0", "after tput sgr0"),
        ("\x1b7saved\x1b8", "saved"),
        ("\x1b[2K\x1b[1Gline", "line"),
        ("\x9b31mC1\x9b0m", "C1"),
        ("a\x00b\x07c\x7fd", "abcd"),
        ("tab\tstays", "tab\tstays"),
        ("\u202egnp.exe", "gnp.exe"),
        ("Büro 模型 🙂", "Büro 模型 🙂"),
        ("\x1b", ""),
        ("\x1b[", ""),
    ],
)
def test_clean(text: str, expected: str) -> None:
    assert clean(text) == expected


@given(st.text())
def test_nothing_clean_can_steer_a_terminal(text: str) -> None:
    assert all(letter in "\t\n" or (ord(letter) >= 32 and not 127 <= ord(letter) < 160) for letter in clean(text))


@given(st.text())
def test_one_line_is_one_line(text: str) -> None:
    assert len(one_line(text).splitlines()) <= 1


def test_the_last_lines(log: Callable[[bytes], Path]) -> None:
    path = log(b"".join(b"line %d\n" % n for n in range(100)))
    assert tail(path) == tuple(f"line {n}" for n in range(80, 100))
    assert tail(path, lines=2) == ("line 98", "line 99")


def test_empty_lines_at_the_end_are_no_last_lines(log: Callable[[bytes], Path]) -> None:
    assert tail(log(b"error: gone\n\n  \n\n")) == ("error: gone",)
    assert tail(log(b"")) == ()
    assert tail(log(b"without an end")) == ("without an end",)


def test_of_a_progress_bar_only_the_last_state_is_kept(log: Callable[[bytes], Path]) -> None:
    bar = b"".join(b"\r%3d%%|\xe2\x96\x88 |" % n for n in range(101))
    assert tail(log(b"start\n" + bar + b"\ndone\n")) == ("start", "100%|█ |", "done")
    assert tail(log(b"start\n" + bar)) == ("start", "100%|█ |")
    assert tail(log(b"start\n" + bar + b"\r")) == ("start", "100%|█ |")


def test_dos_line_ends(log: Callable[[bytes], Path]) -> None:
    assert tail(log(b"one\r\ntwo\r\n")) == ("one", "two")


def test_bytes_that_are_not_utf8(log: Callable[[bytes], Path]) -> None:
    assert tail(log(b"caf\xe9 \xf0\x9f\x99")) == ("caf\ufffd \ufffd",)


def test_terminal_escapes_do_not_reach_the_journal(log: Callable[[bytes], Path]) -> None:
    assert tail(log(b"\x1b[31mError\x1b[0m: \x1b]0;pwned\x07boom\n")) == ("Error: boom",)


def test_a_huge_file_costs_its_end_only(tmp_path: Path) -> None:
    path = tmp_path / "huge.log"
    with path.open("wb") as stream:
        stream.truncate(10 * 2**30)  # sparse: reading all of it would take minutes
        stream.seek(0, 2)
        stream.write(b"\nthe end\n")
    assert tail(path)[-1] == "the end"


def test_a_line_that_never_ends_is_cut(log: Callable[[bytes], Path]) -> None:
    (line,) = tail(log(b"x" * 1_000_000))
    assert line == "x" * 500


def test_a_tail_that_begins_within_a_letter(log: Callable[[bytes], Path]) -> None:
    lines = tail(log("ü\n".encode() * 50_000))
    assert lines == ("ü",) * 20


def test_no_log_is_no_lines(tmp_path: Path) -> None:
    assert tail(tmp_path / "gone.log") == ()
    assert tail(tmp_path) == ()


# --- following --------------------------------------------------------------------------------------------------


class Growing:
    """A log that grows by the next piece at every wait, and has ended with the last."""

    def __init__(self, path: Path, *pieces: bytes) -> None:
        self.path = path
        self.pieces = list(pieces)
        self.path.write_bytes(self.pieces.pop(0))

    def grow(self) -> None:
        with self.path.open("ab") as stream:
            stream.write(self.pieces.pop(0))

    def lines(self) -> Iterator[str]:
        return follow(self.path, ended=lambda: not self.pieces, wait=self.grow)


def test_a_finished_log_is_read_once(log: Callable[[bytes], Path]) -> None:
    path = log(b"one\ntwo\nthree")

    def never() -> None:
        raise AssertionError("there is nothing to wait for")

    assert list(follow(path, ended=lambda: True, wait=never)) == ["one", "two", "three"]


def test_a_line_is_given_when_it_is_whole(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "l", b"one\ntw", b"o\nth", b"r", b"ee")
    assert list(growing.lines()) == ["one", "two", "three"]


def test_a_letter_that_arrives_in_pieces_is_whole(tmp_path: Path) -> None:
    data = "Büro\n".encode()
    assert list(Growing(tmp_path / "l", data[:2], data[2:]).lines()) == ["Büro"]


def test_what_is_written_before_the_end_is_not_missed(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "l", b"one\n", b"two\n")
    lines = growing.lines()
    assert next(lines) == "one"
    assert list(lines) == ["two"]


def test_a_progress_bar_gives_one_state_at_each_look(tmp_path: Path) -> None:
    bar = b"".join(b"%d%%\r" % n for n in range(50))
    growing = Growing(tmp_path / "l", bar, b"60%\r70%\r", b"100%\r\ndone\n")
    assert list(growing.lines()) == ["49%", "70%", "100%", "done"]


def test_a_bar_that_begins_with_the_carriage_return(tmp_path: Path) -> None:
    growing = Growing(tmp_path / "l", b"\r10%\r20%", b"\r30%", b"\n")
    assert list(growing.lines()) == ["20%", "30%"]


def test_a_line_without_end_is_not_kept_in_memory(log: Callable[[bytes], Path]) -> None:
    lines = list(follow(log(b"x" * (3 * LONGEST_LINE_BYTES)), ended=lambda: True, wait=lambda: None))
    assert "".join(lines) == "x" * (3 * LONGEST_LINE_BYTES)
    assert max(map(len, lines)) <= LONGEST_LINE_BYTES + 65536


def test_a_missing_log_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(follow(tmp_path / "gone", ended=lambda: True, wait=lambda: None))
