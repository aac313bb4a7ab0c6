"""Jobs as pipelines in several processes make the same bytes as threads."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs
from recordsmith.engines import parse_engine
from recordsmith.support.tasks import Outcome, Task, run_task

from ...raising import raises
from ..engine_contract import EngineContract, tasks

pytest.importorskip("apache_beam")
pytest.importorskip("pyarrow")

OPTIONS = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]
IN_PROCESS = ["--direct_running_mode=in_memory"]


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[str]:
    """Where tasks and outcomes are; empty in the end."""
    folder = tmp_path / "tasks"
    folder.mkdir()
    yield str(folder)
    assert not [*folder.iterdir()]


class TestBeam(EngineContract):
    takes_tasks_as_they_run = False

    @pytest.fixture
    def engine(self, folder: str) -> Any:
        return rs.engines.Beam(None, OPTIONS, folder=folder)

    @pytest.fixture
    def address(self) -> str:
        return "beam:"

    @pytest.fixture
    def in_bucket(self, s3: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, str]]:
        for name, value in s3.variables("bucket").items():
            monkeypatch.setenv(name, value)
        engine = rs.engines.Beam(None, [*OPTIONS, "--temp_location=s3://bucket/tmp"])
        yield engine, "s3://bucket"
        assert not s3.objects(prefix="tmp/")


def test_files_of_others_are_not_unpickled(folder: str) -> None:
    """As of someone who may write to the folder, but does not have the key of the job."""
    forged = str(Path(folder) / "unpickled")

    def forge(task: Task) -> Outcome:
        from pathlib import Path

        class Harmful:
            def __reduce__(self) -> Any:
                return Path.touch, (Path(forged),)

        (job,) = Path(folder).iterdir()
        (job / "outcomes" / f"{task.number}.task").write_bytes(bytes(32) + pickle.dumps(Harmful()))
        return Outcome(task.number, lambda: None)  # which cannot be written

    with raises(rs.OptionError, option="results"):
        [*rs.engines.Beam(None, IN_PROCESS, folder=folder).map(forge, tasks(1))]
    assert not Path(forged).exists()


def test_a_runner_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("no job server")

    monkeypatch.setattr("recordsmith.engines.beam._start_pipeline", fail)
    with raises(rs.OptionError, option="engine", value="FlinkRunner", match="no job server"):
        next(rs.engines.Beam("FlinkRunner").map(run_task, tasks(1)))


def test_text_of_options() -> None:
    engine: Any = parse_engine("beam:FlinkRunner --flink_master=localhost:8081 --name='a b'")
    assert repr(engine) == "Beam('FlinkRunner')"
    assert engine._options == ["--flink_master=localhost:8081", "--name=a b"]
    local: Any = parse_engine("beam:")
    assert repr(local) == "Beam('FnApiRunner')"
    assert "--direct_running_mode=multi_processing" in local._options
    with raises(rs.OptionError, option="engine"):
        parse_engine('beam:"')
    with raises(rs.OptionError, option="engine", value="NoRunner"):
        [*rs.engines.Beam("NoRunner").map(run_task, tasks(1))]
    with raises(rs.OptionError, option="options"):
        rs.engines.Beam(None, "--a")
    with raises(rs.OptionError, option="options", match="direct_num_workers"):
        rs.engines.Beam(None, ["--direct_num_workers=x"])


@pytest.mark.slow
def test_the_page(run_page: Callable[[str], None]) -> None:
    run_page("beam.md")


@pytest.mark.slow
def test_examples_of_docstrings(run_examples: Callable[..., None]) -> None:
    import apache_beam as beam

    from recordsmith.beam.reading import ReadBatches, ReadExamples
    from recordsmith.beam.writing import WriteDataset

    transforms = (ReadBatches, ReadExamples, WriteDataset)
    known = {transform.__name__: transform for transform in transforms}
    run_examples(*transforms, rs.engines.Beam, beam=beam, **known)
    assert rs.open("numbers").read_columns(["label"])["label"].tolist() == [*range(10)]
