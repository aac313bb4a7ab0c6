"""What the documents say is true: their code runs, their names are the ones there are."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

import recordsmith as rs
from recordsmith import loading
from recordsmith.cli import app
from recordsmith.exporting.outbox import ChangedName
from recordsmith.measuring.report import Sample
from recordsmith.wire import Repair

REPOSITORY = Path(__file__).parent.parent
README = (REPOSITORY / "README.md").read_text("utf-8")
GUIDE = (REPOSITORY / "docs" / "loading.md").read_text("utf-8")


def blocks(language: str, page: str = README) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


@pytest.fixture
def flowers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the README speaks of, in the current directory."""
    for label, name in enumerate(("daisy", "rose", "tulip")):
        (tmp_path / "flowers" / name).mkdir(parents=True)
        for number in range(10):
            picture = Image.new("RGB", (64, 48), (80 * label, 20 * number, 99))
            picture.save(tmp_path / "flowers" / name / f"{number}.jpg")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "flowers"


def test_the_readmes_commands_run(flowers: Path) -> None:
    (block,) = blocks("console")
    commands = [shlex.split(line[2:]) for line in block.splitlines() if line.startswith("$ ")]
    assert [command[:2] for command in commands] == [
        ["recordsmith", name] for name in ("pack", "verify", "inspect", "head", "sheet")
    ]
    for command in commands:
        result = subprocess.run(
            [sys.executable, "-m", *command], capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stderr
    assert sorted(os.listdir("out")) == [
        ".recordsmith",
        "dataset.json",
        "labels.txt",
        "train-00000-of-00002.tfrecord",
        "train-00001-of-00002.tfrecord",
        "validation-00000-of-00002.tfrecord",
        "validation-00001-of-00002.tfrecord",
    ]
    assert Path("out/labels.txt").read_text() == "0:daisy\n1:rose\n2:tulip\n"


def test_the_readmes_python_runs(flowers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = blocks("python")
    assert len(found) == 3
    for block in found:
        exec(compile(block, "README.md", "exec"), {})
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "21 ('daisy', 'rose', 'tulip')"
    assert "[0 1 2 3] (1001, 2) (1001,)" in shown
    assert sum(line.startswith("(8, 192, 192, 3) [") for line in shown) == 4
    assert "6 batches, 42 records" in shown
    with Image.open("batch.jpg") as page:
        page.load()


def test_the_guides_python_runs(flowers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All of it in one namespace; what its comments say is shown, is shown."""
    variables: dict[str, Any] = {}
    told = []
    for block in blocks("python", GUIDE):
        exec(compile(block, "loading.md", "exec"), variables)
        told += re.findall(r"^ *print\(.*?\)  # shows (.+)$", block, re.MULTILINE)
    shown = capsys.readouterr().out.splitlines()
    assert len(told) == 14
    for line in told:
        assert line in shown


def test_the_page_about_statistics_runs(flowers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rs.pack(rs.ImageFolder(flowers), "out")
    page = (REPOSITORY / "docs" / "inspect.md").read_text("utf-8")
    (code,) = blocks("python", page)
    exec(compile(code, "inspect.md", "exec"), {})
    (commands,) = blocks("console", page)
    for line in commands.splitlines():
        command, *arguments = shlex.split(re.split(r"\s{4,}", line[2:])[0])
        assert command == "recordsmith"
        assert CliRunner().invoke(app, arguments).exit_code == 0, line


def test_the_guide_tells_the_last_steps_of_ranks(flowers: Path) -> None:
    dataset = rs.open(rs.pack(rs.ImageFolder(flowers), "out").folder)[:21]
    rows = re.findall(r'^\| `"(keep|drop|pad)"`.*?\| (.*?) \| (.*?) \|$', GUIDE, re.MULTILINE)
    assert [ends for ends, *_ in rows] == ["keep", "drop", "pad"]
    for ends, *cells in rows:
        for world_size, cell in zip((2, 3), cells, strict=True):
            steps = []
            for rank in range(world_size):
                loader = rs.Loader(
                    dataset,
                    {"at": rs.Position()},
                    batch_size=4,
                    rank=rank,
                    world_size=world_size,
                    ends=ends,
                    threads=0,
                )
                *_, last = loader
                steps.append(", ".join(map(str, last["at"])))
            assert " · ".join(steps) == cell


def test_the_guide_and_the_readme_name_all_features_and_options() -> None:
    for option in list(inspect.signature(rs.Loader).parameters)[1:]:
        assert f"`{option}" in GUIDE, option
    for name in loading.__all__:
        assert name in GUIDE, name
        if name not in ("EntrySpec", "Examples", "Loader", "LoaderStats", "Mix"):
            assert f"`{name}`" in README, name


def test_the_readme_names_the_keys_of_a_picture(flowers: Path) -> None:
    source = rs.ImageFolder(flowers)
    features = source.read_sample(source.list_samples().samples[0])
    for key in features:
        assert f"`{key}`" in README


def json_keys(document: Any) -> set[str]:
    """The keys of a document, not those that name features, splits, classes or what is counted."""
    if isinstance(document, list):
        return {key for item in document for key in json_keys(item)}
    if not isinstance(document, dict):
        return set()
    named = ("splits", "features", "classes", "payloads", "records", "values", "formats",
             "channels", "quantiles", "within")  # fmt: skip
    return set(document) | {
        key
        for name, value in document.items()
        for key in json_keys(
            list(value.values()) if name in named and isinstance(value, dict) else value
        )
    }


def test_every_key_of_the_json_documents_is_documented(flowers: Path, tmp_path: Path) -> None:
    documented = (REPOSITORY / "docs" / "json.md").read_text("utf-8")
    report = rs.pack(rs.ImageFolder(flowers), "out")
    exported = rs.export("out", "boxes", "yolo")  # which has no place for classes of pictures
    exported.changed_names.append(ChangedName(0, "a/b", "a_b"))
    sheet = rs.sheet("out", "sheet.png", count=4)
    resharded = rs.reshard("out", "resharded")
    indexed = rs.index("out")
    with rs.ShardWriter("other.tfrecord") as writer:
        writer.write(b"\x0a\x05daisy\x10\x96\x01")
    with rs.ShardWriter("old.tfrecord") as writer:
        for number, example in enumerate(rs.open("out")):
            writer.write_example(example | ({"new": 1} if number == 7 else {}))
    differing = rs.diff("out", ["old.tfrecord", "other.tfrecord"])
    assert differing.changes
    assert differing.only_b
    statistics = rs.statistics("out")
    measured = rs.bench("out", size=8, seconds=0.1)
    with (tmp_path / "out" / "train-00000-of-00001.tfrecord").open("r+b") as shard:
        shard.seek(30)
        shard.write(b"\0\0")
    salvaged = rs.salvage("out", "rescued")
    salvaged.shards[0].add_repair(Repair(0, 0, "length"))
    for document in (
        report.to_json(),
        exported.to_json(),
        rs.inspect("out").to_json(),
        rs.inspect("other.tfrecord").to_json(),
        differing.to_json(),
        statistics.to_json(),
        rs.verify("out").to_json(),
        sheet.to_json(),
        rs.LoaderStats().to_json(),
        resharded.to_json(),
        indexed.to_json(),
        salvaged.to_json(),
        {**measured.to_json(), "sample": Sample(1, 2, 3).to_json()},
    ):
        keys = json_keys(document)
        assert len(keys) > 5
        for key in keys:
            assert f"`{key}`" in documented, key


def test_every_defect_and_command_is_documented() -> None:
    documented = (REPOSITORY / "docs" / "json.md").read_text("utf-8")
    for defect in rs.Defect:
        assert f"`{defect}`" in documented
    names = {command.callback.__name__ for command in app.registered_commands if command.callback}
    assert names == {
        "pack", "inspect", "head", "sheet", "verify", "schema", "diff", "salvage",
        "reshard", "edit", "append", "export", "index", "bench", "demo",
    }  # fmt: skip
    for name in names - {"demo"}:
        assert f"recordsmith {name}" in documented
        assert f"recordsmith {name}" in README


def test_the_python_of_the_pages_runs(
    flowers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Diff and raw payloads."""
    rs.pack(rs.ImageFolder(flowers), "out")
    with rs.ShardWriter("old") as writer:
        for number, example in enumerate(rs.open("out")):
            example["image/class/label"] += number == 7
            writer.write_example(example)
    (block,) = blocks("python", (REPOSITORY / "docs" / "diff.md").read_text("utf-8"))
    variables: dict[str, Any] = {}
    exec(compile(block, "diff.md", "exec"), variables)
    assert variables["report"].changed_count == 1
    assert re.search(r"^image/class/label \d -> \d$", capsys.readouterr().out, re.MULTILINE)
    page = (REPOSITORY / "docs" / "payloads.md").read_text("utf-8")
    first, _ = blocks("python", page)
    exec(compile(first, "payloads.md", "exec"), {})
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 2
    assert shown == [line[2:] for line in first.splitlines() if line.startswith("# ")]


def test_links_lead_somewhere() -> None:
    below = [*REPOSITORY.glob("docs/*.md"), *REPOSITORY.glob("examples/*/*.md")]
    pages = [*REPOSITORY.glob("*.md"), *below]
    links = [
        (page, link)
        for page in pages
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8"))
    ]
    assert len(links) > 4
    assert len(below) >= 4
    for page, link in links:
        assert (page.parent / link).exists(), f"{page.name}: {link}"
