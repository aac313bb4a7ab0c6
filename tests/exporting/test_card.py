"""Dataset cards, as the Hugging Face Hub and Croissant's own library read them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import recordsmith as rs
from recordsmith.cli import app

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
