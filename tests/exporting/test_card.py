"""Dataset cards, as the Hugging Face Hub and Croissant's own library read them."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import recordsmith as rs
from recordsmith.cli import app
from recordsmith.stores.local.reader import LocalReader
from recordsmith.support.errors import FileAccessError

from ..raising import raises

FEATURES = {
    "image/encoded": [b"\xff\xd8\xff\xe0" + bytes(16)],
    "image/class/label": [1],
    "scores": [0.5, 1.5, 2.5],
    "tags": [b"red", b"round"],
    "raw": [b"\xff\x00"],
}


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    rows = [FEATURES, FEATURES | {"tags": [b"red"]}, FEATURES]
    folder = tmp_path / "berries"
    folder.mkdir()
    for name, part in {"train": rows[:2], "test": rows[2:]}.items():
        with rs.ShardWriter(folder / f"{name}-00000-of-00001.tfrecord") as writer:
            for row in part:
                writer.write_example(row)
    (folder / "labels.txt").write_text("0:daisy\n1:rose\n")
    return folder


def header(readme: str) -> Any:
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load(readme.split("---\n")[1])


def test_the_hub_reads_the_header(packed: Path) -> None:
    hub = pytest.importorskip("huggingface_hub")
    datasets = pytest.importorskip("datasets")
    card = rs.card(packed, license="cc-by-4.0", description="Berries.")
    data = hub.DatasetCard(card.readme).data
    assert (data.license, data.pretty_name) == ("cc-by-4.0", "berries")
    assert (data.size_categories, data.tags) == (["n<1K"], ["tfrecord"])
    info = header(card.readme)["dataset_info"]
    features = datasets.Features._from_yaml_list(info["features"])
    assert features == datasets.Features(
        {
            "image/class/label": datasets.ClassLabel(names=["daisy", "rose"]),
            "image/encoded": datasets.Image(),
            "raw": datasets.Value("binary"),
            "scores": datasets.List(datasets.Value("float32"), length=3),
            "tags": datasets.List(datasets.Value("string")),
        }
    )
    sizes = {path.name.split("-")[0]: path.stat().st_size for path in packed.glob("*.tfrecord")}
    assert {split["name"]: split["num_bytes"] for split in info["splits"]} == sizes
    assert {split["name"]: split["num_examples"] for split in info["splits"]} == {
        "train": 2,
        "test": 1,
    }
    assert info["dataset_size"] == sum(sizes.values())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_croissant_is_valid(packed: Path) -> None:
    croissant = pytest.importorskip("mlcroissant")
    card = rs.card(packed, license="cc-by-4.0", citation="@misc{berries}", url="https://a.example")
    _, path = card.save(packed)
    metadata = croissant.Dataset(jsonld=Path(path)).metadata  # raises where it is invalid
    assert not metadata.ctx.issues.errors
    assert (metadata.name, metadata.cite_as, metadata.license) == (
        "berries",
        "@misc{berries}",
        ["cc-by-4.0"],
    )
    files = {file.id: file.sha256 for file in metadata.file_objects}
    assert files == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in packed.glob("*.tfrecord")
    }
    document = json.loads(Path(path).read_text())
    fields = {
        field["name"]: (field["dataType"], field.get("repeated", False))
        for field in document["recordSet"][0]["field"]
    }
    assert [field.name for field in metadata.record_sets[0].fields] == list(fields)
    assert fields == {
        "image/class/label": ("sc:Integer", False),
        "image/encoded": ("sc:ImageObject", False),
        "raw": ("sc:Text", False),
        "scores": ("sc:Float", True),
        "tags": ("sc:Text", True),
    }


def test_sequences_have_features_of_steps(tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        for count in (2, 3):
            steps = {"action": [[0.5, 1.0]] * count, "reward": [[1.0]] * count}
            writer.write(rs.encode_sequence_example({"id": [1]}, steps))
    features = header(rs.card(tmp_path / "a.tfrecord").readme)["dataset_info"]["features"]
    assert features == [
        {"name": "id", "dtype": "int64"},
        {"name": "action", "list": {"list": "float32", "length": 2}},
        {"name": "reward", "list": "float32"},
    ]


def test_a_slice_describes_its_shards(packed: Path) -> None:
    card = rs.card(rs.open(packed)[:1])
    files = [file for file in card.croissant["distribution"] if "sha256" in file]
    assert len(files) == 1
    shard = packed / files[0]["name"]
    assert files[0]["sha256"] == hashlib.sha256(shard.read_bytes()).hexdigest()


def test_a_card_of_a_file_is_next_to_it(packed: Path) -> None:
    shard = next(packed.glob("*.tfrecord"))
    assert CliRunner().invoke(app, ["card", str(shard)]).exit_code == 0
    assert (packed / "README.md").exists()


def test_the_command_writes_both_files(packed: Path, tmp_path: Path) -> None:
    arguments = ["card", str(packed), "--name", "Berries", "--citation", "`x`"]
    outcome = CliRunner().invoke(app, arguments)
    assert outcome.exit_code == 0, outcome.output
    assert outcome.output.split() == [str(packed / "README.md"), str(packed / "croissant.json")]
    assert "# Berries\n" in (packed / "README.md").read_text()
    assert json.loads((packed / "croissant.json").read_text())["name"] == "Berries"
    assert CliRunner().invoke(app, arguments).exit_code == 2  # they exist
    assert CliRunner().invoke(app, [*arguments, "--overwrite"]).exit_code == 0
    assert CliRunner().invoke(app, [*arguments, "--folder", str(tmp_path / "new")]).exit_code == 0
    assert (tmp_path / "new" / "README.md").exists()
    assert rs.verify(packed).is_good


def test_terms_of_use_stay_with_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = rs.Rows([{"x": number} for number in range(10)])
    rs.pack(rows, "out", license="cc-by-4.0", citation="@misc{rows}")
    rs.pack(rows, "fenced", license="a\u2028b", citation="```\n# not a heading")
    rs.reshard("out", "new", shards=2)
    rs.edit("new", "edited", add={"y": 1})
    for name in ("out", "new", "edited"):
        croissant = rs.card(name).croissant
        assert (croissant["license"], croissant["citeAs"]) == ("cc-by-4.0", "@misc{rows}")
    assert rs.card("edited", license="mit").croissant["license"] == "mit"
    with pytest.raises(rs.OptionError):  # the same records under other terms
        rs.pack(rows, "out", license="mit", citation="@misc{rows}")
    pytest.importorskip("pyarrow")
    rs.export("edited", "hub", "huggingface")
    readme = Path("hub", "README.md").read_text()
    assert header(readme)["license"] == "cc-by-4.0"
    assert "@misc{rows}" in readme
    rs.export("fenced", "hub2", "huggingface")
    readme = Path("hub2", "README.md").read_text()
    assert header(readme)["license"] == "a\u2028b"
    assert "\n````\n```\n# not a heading\n````\n" in readme


def test_texts_of_a_dataset_stay_what_they_are(tmp_path: Path) -> None:
    """In YAML, in a table and in a block of code; texts may come from another's manifest."""
    name, citation = "\U0001f33c\u2028\x85\xe9", "x\n```\n<b>````\n"
    rows = rs.Rows([{"xf/BBox10": 1, name: 1}])
    rs.pack(rows, tmp_path / "out", license=name, citation=citation)
    readme = rs.card(tmp_path / "out").readme
    assert header(readme)["license"] == name
    assert {each["name"] for each in header(readme)["dataset_info"]["features"]} == {
        "xf/BBox10",
        name,
    }
    assert "| `xf/BBox10` |" in readme
    assert readme.endswith(f"\n`````\n{citation}\n`````\n")


def test_names_from_records_are_no_markup(tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        writer.write_example({"a|b`<script>\n---\n": [1]})
    readme = rs.card(tmp_path / "a.tfrecord", name="x\n---\ny").readme
    assert "<script>" not in readme.split("---\n", 2)[2]
    assert header(readme)["pretty_name"] == "x\n---\ny"


HOSTILE = (
    "<script>alert(1)</script>",
    "a | b",
    "**bold** _it_ `code` ~no~",
    "[x](javascript:alert(1)) ![y](z)",
    "# heading",
    "- item",
    "12. item",
    "&lt;",
    "two\nlines\n---\n# more",
    "\\*",
    "$x$",
    "``` fence",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_names_and_texts_are_shown_as_they_are(tmp_path: Path, text: str) -> None:
    """As CommonMark with tables renders the page, after its header."""
    markdown = pytest.importorskip("markdown_it")
    with rs.ShardWriter(tmp_path / "a.tfrecord") as writer:
        writer.write_example({text: 1})
    card = rs.card(tmp_path / "a.tfrecord", name=text, description=text, url=text, citation=text)
    assert header(card.readme)["pretty_name"] == text
    assert header(card.readme)["dataset_info"]["features"][0]["name"] == text
    page = card.readme.split("---\n", 2)[2]
    tokens = markdown.MarkdownIt("commonmark").enable("table").parse(page)
    kinds = [token.type for token in tokens if token.level == 0 and token.nesting >= 0]
    assert kinds == [
        *("heading_open", "paragraph_open", "paragraph_open", "table_open", "table_open"),
        *("fence", "heading_open", "fence"),
    ]
    shown = [token for token in tokens if token.type == "inline"]
    line = " ".join(text.split())
    for token in shown[:3]:
        assert {child.type for child in token.children} <= {"text", "text_special"}
        assert "".join(child.content for child in token.children) == line
    cell = next(token for token in shown if "code" in str(token.children)).children
    assert {c.type for c in cell} <= {"text", "text_special", "code_inline", "html_inline"}
    tags = [child.content for child in cell if child.type == "html_inline"]
    assert tags in ([], ["<code>", "</code>"])
    code = "".join(child.content for child in cell if child.type != "html_inline")
    assert code == " ".join(text.replace("\n", "\\n").split())


def test_names_of_splits_are_escaped(tmp_path: Path) -> None:
    with rs.ShardWriter(tmp_path / "<b>x*_-00000-of-00001.tfrecord") as writer:
        writer.write_example({"a": 1})
    readme = rs.card(tmp_path).readme
    assert "| &lt;b&gt;x\\*\\_ | 1 |" in readme
    assert "<b>" not in readme.split("---\n", 2)[2].partition("```")[0]


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.ESTALE])
def test_a_shard_that_cannot_be_read(
    packed: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Also while it is read for its checksum."""
    dataset = rs.open(packed)
    rs.inspect(dataset)

    def refuse(*_: Any) -> bytes:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(LocalReader, "read", refuse, raising=False)
    with raises(FileAccessError, errno=number, path=dataset.shards[0].location):
        rs.card(dataset)


def _truncated(shard: Path) -> None:
    shard.write_bytes(shard.read_bytes()[:-3])


def _of_text(shard: Path) -> None:
    shard.write_text("words about the data")


def _folder(shard: Path) -> None:
    shard.unlink()
    shard.mkdir()


@pytest.mark.parametrize("change", [_truncated, _of_text, _folder, Path.unlink])
def test_the_command_reports_a_damaged_shard(tmp_path: Path, change: Any) -> None:
    rs.pack(rs.Rows([{"x": number} for number in range(10)]), tmp_path / "out", shards=2)
    change(next((tmp_path / "out").glob("*.tfrecord")))
    outcome = CliRunner().invoke(app, ["card", str(tmp_path / "out")])
    assert outcome.exit_code in (1, 2)
    assert isinstance(outcome.exception, SystemExit)
    assert not (tmp_path / "out" / "README.md").exists()


@pytest.mark.posix
@pytest.mark.parametrize("command", ["card", "normalisation"])
def test_what_a_killed_command_left_is_removed(tmp_path: Path, command: str) -> None:
    packed = tmp_path / "out"
    rs.pack(rs.Rows([{"x": number} for number in range(10)]), packed)
    names = {"card": ["README.md", "croissant.json"], "normalisation": ["normalisation.json"]}
    for name in names[command]:
        (packed / f".{name}.0123456789abcdef.partial").write_text("{")
    other = packed / ".other.json.0123456789abcdef.partial"
    other.touch()
    arguments = {"card": [], "normalisation": ["--feature", "x"]}
    outcome = CliRunner().invoke(app, [command, str(packed), *arguments[command]])
    assert outcome.exit_code == 0, outcome.output
    assert list(packed.glob(".*.partial")) == [other]
