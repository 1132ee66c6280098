"""The files that prove a step."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runq import artifacts
from runq.artifacts import damage, outputs, prove, stamps
from runq_schemas.events import Artifact

ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
"""`printf abc | sha256sum`"""


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    made = tmp_path / "bundle"
    made.mkdir()
    return made


def test_a_new_file_proves_the_step(bundle: Path) -> None:
    before = stamps(bundle, ["a.jsonl"])
    assert before == {"a.jsonl": None}
    (bundle / "a.jsonl").write_text("abc")
    proof = prove(bundle, before)
    assert proof.artifacts == (Artifact(path="a.jsonl", bytes=3, sha256=ABC),)
    assert proof.reason == ""


def test_a_missing_file_does_not(bundle: Path) -> None:
    proof = prove(bundle, stamps(bundle, ["a.jsonl", "b.csv"]))
    assert proof.missing == ("a.jsonl", "b.csv")
    assert proof.reason == "it left no a.jsonl, b.csv"


def test_an_older_file_proves_nothing(bundle: Path) -> None:
    (bundle / "a.jsonl").write_text("abc")
    proof = prove(bundle, stamps(bundle, ["a.jsonl"]))
    assert proof.artifacts == ()
    assert proof.stale == ("a.jsonl",)
    assert proof.reason == "it did not write a.jsonl: the file is older than the step"


def test_a_file_that_vanished_is_missing_not_stale(bundle: Path) -> None:
    (bundle / "a.jsonl").write_text("abc")
    before = stamps(bundle, ["a.jsonl"])
    (bundle / "a.jsonl").unlink()
    assert prove(bundle, before).missing == ("a.jsonl",)


def test_the_same_content_written_again_proves_the_step(bundle: Path) -> None:
    path = bundle / "a.jsonl"
    path.write_text("abc")
    before = stamps(bundle, ["a.jsonl"])
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))  # one nanosecond is enough
    assert prove(bundle, before).artifacts == (Artifact(path="a.jsonl", bytes=3, sha256=ABC),)


def test_the_same_content_and_time_in_another_file_proves_the_step(bundle: Path) -> None:
    path = bundle / "a.jsonl"
    path.write_text("abc")
    status = path.stat()
    before = stamps(bundle, ["a.jsonl"])
    new = bundle / "new"
    new.write_text("abc")
    os.utime(new, ns=(status.st_atime_ns, status.st_mtime_ns))
    new.replace(path)
    assert path.stat().st_mtime_ns == status.st_mtime_ns
    assert prove(bundle, before).reason == ""


def test_a_file_that_only_grew_proves_the_step(bundle: Path) -> None:
    path = bundle / "a.jsonl"
    path.write_text("ab")
    status = path.stat()
    before = stamps(bundle, ["a.jsonl"])
    with path.open("a") as stream:
        stream.write("c")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert prove(bundle, before).artifacts[0].sha256 == ABC


def test_a_folder_is_no_artifact(bundle: Path) -> None:
    before = stamps(bundle, ["a.jsonl"])
    (bundle / "a.jsonl").mkdir()
    assert prove(bundle, before).missing == ("a.jsonl",)


def test_a_symlink_is_the_file_it_leads_to(bundle: Path, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.jsonl"
    target.write_text("abc")
    before = stamps(bundle, ["a.jsonl", "b.jsonl"])
    (bundle / "a.jsonl").symlink_to(target)
    (bundle / "b.jsonl").symlink_to(tmp_path / "nowhere")
    proof = prove(bundle, before)
    assert proof.artifacts == (Artifact(path="a.jsonl", bytes=3, sha256=ABC),)
    assert proof.missing == ("b.jsonl",)
    again = stamps(bundle, ["a.jsonl"])
    assert prove(bundle, again).stale == ("a.jsonl",), "a link to an old file is an old file"


def test_what_is_missing_is_said_before_what_is_old(bundle: Path) -> None:
    (bundle / "old.csv").write_text("x")
    proof = prove(bundle, stamps(bundle, ["old.csv", "gone.csv"]))
    assert proof.reason == "it left no gone.csv"


def test_outputs_are_all_files_of_the_bundle(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (bundle / "deep" / "er").mkdir(parents=True)
    for name in ("b.txt", "a.txt", "deep/er/c.txt"):
        (bundle / name).touch()
    assert outputs(bundle) == ("a.txt", "b.txt", "deep/er/c.txt")
    monkeypatch.setattr(artifacts, "MAX_OUTPUTS", 2)
    assert outputs(bundle) == ("a.txt", "b.txt")


def test_damage_is_found_by_size_and_content(bundle: Path) -> None:
    recorded = [{"path": "a.jsonl", "bytes": 3, "sha256": ABC}]
    path = bundle / "a.jsonl"
    path.write_text("abc")
    assert damage(str(bundle), recorded) == ""
    os.utime(path, ns=(0, 0))
    assert damage(str(bundle), recorded) == "", "copying a runs folder changes times, not content"
    path.write_text("abd")
    assert damage(str(bundle), recorded) == "a.jsonl has changed since"
    path.write_text("abcd")
    assert damage(str(bundle), recorded) == "a.jsonl has changed since"
    path.unlink()
    assert damage(str(bundle), recorded) == "a.jsonl is gone"
    assert damage(str(bundle.with_name("pruned")), recorded) == "a.jsonl is gone"
    assert damage(None, recorded) == "its bundle is not recorded"
