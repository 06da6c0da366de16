"""What holds between processes: keys, stores, forms of storage, and the limits of a port
without a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from .other_process import elsewhere, result_of, start
from .support import KEY

pytestmark = pytest.mark.processes
TASK = {"flow": "paying", "key": KEY.decode(), "amount": 5}


@pytest.mark.parametrize("do", ["resume", "resume pickle"])
def test_another_process_with_the_same_key_resumes_without_repeating_a_call(
    tmp_path: Path, do: str
) -> None:
    task = {**TASK, "checkpoint": tmp_path / "run"}
    assert elsewhere(do="pause", **task) == {"status": "paused", "spent": ["look"]}
    assert elsewhere(do=do, **task) == {
        "status": "completed",
        "results": ["seen", "paid 5"],
        "spent": ["pay 5"],
    }


@pytest.mark.parametrize("key", [None, "another key of sufficient length"])
def test_without_the_key_a_checkpoint_does_not_resume_in_another_process(
    tmp_path: Path, key: str | None
) -> None:
    task = {**TASK, "checkpoint": tmp_path / "run"}
    elsewhere(do="pause", **task)
    refused = {"refused": "checkpoint-tampered", "spent": []}
    assert elsewhere(do="resume", **{**task, "key": key}) == refused
    assert elsewhere(do="resume pickle", **{**task, "key": key}) == refused


def test_the_default_key_is_another_in_every_process(tmp_path: Path) -> None:
    task = {**TASK, "checkpoint": tmp_path / "run", "key": None}
    assert elsewhere(do="pause", **task)["status"] == "paused"
    assert elsewhere(do="resume", **task) == {"refused": "checkpoint-tampered", "spent": []}


def test_a_port_without_a_store_can_resume_twice_in_two_processes(tmp_path: Path) -> None:
    task = {**TASK, "checkpoint": tmp_path / "run"}
    elsewhere(do="pause", **task)
    for _ in range(2):
        assert elsewhere(do="resume", **task)["spent"] == ["pay 5"]


def test_a_shared_store_refuses_the_second_process(tmp_path: Path) -> None:
    task = {**TASK, "checkpoint": tmp_path / "run", "store": tmp_path / "store"}
    elsewhere(do="pause", **task)
    assert elsewhere(do="resume", **task)["spent"] == ["pay 5"]
    assert elsewhere(do="resume", **task) == {"refused": "already-decided", "spent": []}


def test_of_two_processes_that_resume_at_once_one_runs(tmp_path: Path) -> None:
    task = {**TASK, "flow": "only_paying"}
    task |= {"checkpoint": tmp_path / "run", "store": tmp_path / "store"}
    elsewhere(do="pause", **task)
    both = [result_of(process) for process in [start(do="resume", **task) for _ in range(2)]]
    assert sorted(len(told["spent"]) for told in both) == [0, 1]
    assert sorted(told.get("refused", "") for told in both) == ["", "already-decided"]
