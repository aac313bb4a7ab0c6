"""What coding agents read: `llms.txt` is current, and the skill's commands and code run."""

from __future__ import annotations

import csv
import re
import shlex
import shutil
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

import recordsmith as rs
from recordsmith.cli import app

from .test_docs import REPOSITORY, blocks, lines_shown, page, run_python_apart, skip_without
from .test_site import load_pages

SKILL = REPOSITORY / "skills" / "recordsmith" / "SKILL.md"
TEXT = SKILL.read_text("utf-8")
FRAMEWORK = re.compile(r"^import recordsmith\.(\w+)$", re.MULTILINE)
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
TRAINING = {
    found[1]: block
    for language, block in BLOCKS
    if language == "python" and (found := FRAMEWORK.search(block))
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the skill names, in the current directory."""
    monkeypatch.chdir(tmp_path)
    for name in ("tutorial", "how-to/duplicates", "how-to/splits-by-patient"):
        exec(compile(blocks("python", page(f"docs/{name}.md"))[0], name, "exec"), {})
    shutil.copytree("flowers/rose", "more/rose")
    images = Path("street", "images", "train")
    images.mkdir(parents=True)
    labels = Path("street", "labels", "train")
    labels.mkdir(parents=True)
    for number, source in enumerate(sorted(Path("photos/train/meadow").glob("*.jpg"))[:4]):
        shutil.copy(source, images / f"{number}.jpg")
        (labels / f"{number}.txt").write_text("0 0.5 0.5 0.25 0.25\n")
    Path("street", "data.yaml").write_text("train: images/train\nnames: [car]\n")
    paths = [path.relative_to("flowers").as_posix() for path in Path("flowers").glob("*/*")]
    species = [path.partition("/")[0] for path in paths]
    write_table("labels.csv", ("file", paths), ("class", species))
    write_table("checked.csv", ("file", paths), ("species", ["daisy", *species[1:]]))
    patients = [f"p{number // 5}" for number in range(40)]
    kinds = ["cat" if number % 3 else "dog" for number in range(40)]
    write_table("measurements.csv", ("patient", patients), ("species", kinds), ("mm", range(40)))
    rs.pack("flowers", "damaged", splits={"train": 0.7, "validation": 0.3}, stratify=True, shards=2)
    with Path("damaged", "train-00000-of-00002.tfrecord").open("r+b") as shard:
        shard.seek(3000)
        shard.write(bytes(9))
    return tmp_path


def write_table(name: str, *columns: tuple[str, Any]) -> None:
    with Path(name).open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow([title for title, _ in columns])
        rows.writerows(zip(*(values for _, values in columns), strict=True))


def test_the_skill_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All blocks in order but those of the frameworks: commands succeed, or exit as stated."""
    shown: Counter[str] = Counter()
    for language, block in BLOCKS:
        if language == "sh":
            for line in block.splitlines():
                run_command(line)
        elif block not in TRAINING.values():
            exec(compile(block, SKILL.name, "exec"), {})
            shown += lines_shown(f"```python\n{block}```")
    assert {language for language, _ in BLOCKS} == {"sh", "python"}
    assert shown.total() >= 5
    assert shown <= Counter(capsys.readouterr().out.splitlines())
    assert len(rs.open("missing")) == 1
    assert len(rs.open("rescued")) == 60
    assert len(rs.open("unique")) == len(rs.open("clean")) == 18
    assert set(rs.open("out").read_columns(["image/filename"])["image/filename"]) & {
        b"rose/7.jpg",
        b"rose/8.jpg",
    } == {b"rose/8.jpg"}


def run_command(line: str) -> None:
    command, *arguments = shlex.split(line, comments=True)
    assert command == "recordsmith"
    if arguments[0] == "query" and find_spec("duckdb") is None:
        return
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == ("exits with 1" in line), f"{line}\n{done.output}"


@pytest.mark.slow
@pytest.mark.parametrize("framework", ["torch", "jax", "tensorflow"])
def test_the_training_code_of_the_skill_runs(folder: Path, framework: str) -> None:
    assert set(TRAINING) == {"torch", "jax", "tensorflow"}
    skip_without(framework)
    rs.pack("flowers", "out", splits={"train": 0.7, "validation": 0.3})
    run_python_apart(f"```python\n{TRAINING[framework]}```")


def test_the_skill_has_the_form_of_a_skill() -> None:
    """As https://agentskills.io describes it: its header, and at most 5,000 tokens."""
    _, header, body = TEXT.split("---\n", 2)
    fields = yaml.safe_load(header)
    assert set(fields) == {"name", "description"}
    assert fields["name"] == SKILL.parent.name
    assert 200 < len(fields["description"]) <= 1024
    # of four tokenizers, GPT-2's makes the most tokens of it, one of 3.1 characters
    assert len(body) / 3 < 5000
    assert re.findall(r"^\*\*(\d+)\. ", body, re.MULTILINE) == [str(n) for n in range(1, 21)]


def test_the_messages_that_the_skill_explains_exist() -> None:
    """Each of them is in the source of the package."""
    package = Path(rs.__file__).parent
    source = "\n".join(path.read_text("utf-8") for path in package.rglob("*.py"))
    _, _, table = TEXT.partition("| message | meaning and remedy |\n| --- | --- |\n")
    rows = [line.split(" | ")[0].removeprefix("| ") for line in table.split("\n\n")[0].splitlines()]
    assert len(rows) >= 8
    for message in (message for row in rows for message in row.split(", ")):
        assert message in source, message


def test_the_index_for_agents_is_current() -> None:
    """`make docs` writes it; `python docs/site/pages.py` does so without the site's packages."""
    text = (REPOSITORY / "llms.txt").read_text("utf-8")
    assert text == load_pages().llms()
    lines = re.findall(r"^- \[(.+?)\]\((.+?)\): (.+)$", text, re.MULTILINE)
    assert len(lines) >= 70
    for title, path, line in lines:
        assert (REPOSITORY / path).is_file(), path
        assert re.fullmatch(r"[\w`][^|]{20,260}[.:?]", line), f"{title}: {line}"
    pages = {path for _, path, _ in lines}
    for path in (REPOSITORY / "docs").rglob("*.md"):
        name = path.relative_to(REPOSITORY).as_posix()
        assert name == "docs/README.md" or name in pages, name
