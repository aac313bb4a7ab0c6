"""The pages are correct: their code runs and they name what exists."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import recordsmith as rs
from recordsmith import loading
from recordsmith.checking.linting.lint_report import all_checks
from recordsmith.cli import COMMANDS, app
from recordsmith.cli.demo import demo
from recordsmith.exporting.export_writer import ChangedName
from recordsmith.format.example.keys import BOX, MASK
from recordsmith.format.wire import Repair
from recordsmith.image import encode_mask
from recordsmith.loading.loader_stats import LoaderStats
from recordsmith.support.errors import MissingExtraError

from .reading import read_sample
from .servers.servers import Servers
from .sources.tfds_folder import image_feature, steps_feature, tensor_feature, write_by_hand

REPOSITORY = Path(__file__).parent.parent


def page(name: str) -> str:
    return (REPOSITORY / name).read_text("utf-8")


README = page("README.md")
FIRST_HALF, _, _ = README.partition("\n## How it compares\n")
GUIDE = page("docs/loading.md")


def blocks(language: str, text: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def run_commands(text: str) -> None:
    """Run the command lines of console blocks, all of which must succeed."""
    for block in blocks("console", text):
        for line in block.splitlines():
            command, *arguments = shlex.split(re.split(r"\s{4,}", line[2:])[0])
            assert command == "recordsmith"
            assert CliRunner().invoke(app, arguments).exit_code == 0, line


def run_python(text: str, name: str, shown: Callable[[], str]) -> None:
    """Run the Python of a page in one namespace; `# shows` comments state the output."""
    variables: dict[str, Any] = {}
    for block in blocks("python", text):
        exec(compile(block, name, "exec"), variables)
    assert lines_shown(text) <= Counter(shown().splitlines())


VISION = os.environ.get("RECORDSMITH_VISION", "")
"""A folder with timm and torchvision, whose compiled operators need another build of torch."""
WITHOUT_OPERATORS = """\
import torch

try:
    import torchvision
except RuntimeError:
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor boxes, Tensor scores, float threshold) -> Tensor")
    from torchvision.ops import boxes as box_operators

    def nms(boxes, scores, threshold):
        overlaps, kept = box_operators.box_iou(boxes, boxes) > threshold, []
        for box in scores.argsort(descending=True).tolist():
            if not overlaps[box, kept].any():
                kept.append(box)
        return torch.tensor(kept, dtype=torch.int64)

    library.impl("nms", nms, "CPU")
    box_operators._assert_has_ops = lambda: None
"""


def is_installed(package: str) -> bool:
    in_vision = VISION and package in ("timm", "torchvision")
    return bool(in_vision) or find_spec(package) is not None


def skip_without(*packages: str) -> None:
    for package in packages:
        if not is_installed(package):
            pytest.skip(f"needs {package}")


WAIT_FOR_GLOO = "import atexit, time\natexit.register(time.sleep, 0.5)\n"
"""Time for PyTorch's threads of Gloo to free what they reduced: one ended by Python aborts."""


def run_python_apart(text: str, *launcher: str, count: int = 1, **environment: str) -> None:
    """Run the Python of a page in `count` processes, which a module of Python may start."""
    code = "\n".join(blocks("python", text))
    if VISION and re.search("timm|torchvision", code):
        code = WITHOUT_OPERATORS + code
        environment["PYTHONPATH"] = os.pathsep.join([VISION, os.environ.get("PYTHONPATH", "")])
    if launcher:
        code = WAIT_FOR_GLOO + code
    Path("page.py").write_text(code, "utf-8")
    done = subprocess.run(
        [sys.executable, *launcher, "page.py"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    printed = Counter(done.stdout.splitlines())
    for line, times in lines_shown(text).items():
        # torchrun's processes write a line and its end apart, so their lines may mix
        found = printed[line] if count == 1 else done.stdout.count(line)
        assert found >= times * count, done.stdout


def lines_shown(text: str) -> Counter[str]:
    """The lines that the code of a page prints, as its comments state."""
    code = "\n".join(blocks("python", text))
    shown = re.findall(r"^ *print\(.*?\)  # shows (.+)$", code, re.MULTILINE)
    assert shown or "# shows" not in text
    return Counter(shown)


@pytest.fixture
def flowers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder `flowers` of the tutorial, in the current directory."""
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks("python", page("docs/tutorial.md"))[0], "tutorial.md", "exec"), {})
    return tmp_path / "flowers"


SHIMS = {
    "recordsmith": 'exec "$PYTHON" -m recordsmith "$@"',
    "python": 'exec "$PYTHON" "$@"',
    "pip": "exit 0",  # it is installed, or the test is skipped
    "make": 'test "$*" = demo && mkdir -p .venv/bin && touch .venv/bin/activate && $DEMO',
}
"""Programs that the README runs, which here install nothing."""


@pytest.mark.parametrize("part", ["commands", pytest.param("all", marks=pytest.mark.slow)])
def test_the_readme_runs_in_order(tmp_path: Path, flowers: Path, part: str) -> None:
    """Its first half, every block, in the folder of a new user; `commands`: on small images."""
    languages = re.findall(r"^```(\w+)$", FIRST_HALF, re.MULTILINE)
    if part == "all":
        skip_without("duckdb", "torch")
        shutil.rmtree(flowers)
        demo = "recordsmith demo"
    else:
        (tmp_path / "recordsmith-demo").mkdir()
        flowers.rename(tmp_path / "recordsmith-demo" / "images")
        demo = "true"
    (tmp_path / "shims").mkdir()
    for name, text in SHIMS.items():
        program = tmp_path / "shims" / name
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path / 'shims'}{os.pathsep}{os.environ['PATH']}",
        "PYTHON": sys.executable,
        "DEMO": demo,
    }
    found = re.findall(r"^```(\w+)\n(.*?)^```$", FIRST_HALF, re.DOTALL | re.MULTILINE)
    assert [language for language, _ in found] == ["sh", "sh", "python", "sh"] == languages
    for language, block in found:
        if part == "commands" and language == "python":
            continue
        text = re.sub("recordsmith query.*", "", block) if part == "commands" else block
        Path("train.py").write_text(text, "utf-8")
        command = ["sh", "-e", "-c", text] if language == "sh" else [sys.executable, "train.py"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        if language == "python":
            shapes = re.findall(r"^torch.Size\(\[(\d), 3, 224, 224\]\)", done.stdout, re.MULTILINE)
            assert shapes == ["8"] * 10 + ["4"]
    assert Path("out/labels.txt").read_text().startswith("0:daisy\n")
    assert {file.name for file in Path("out").glob("*.tfrecord")} == {
        f"{split}-0000{number}-of-00002.tfrecord"
        for split in ("train", "validation")
        for number in range(2)
    }
    assert Path("report.html").is_file()
    exported = [file for file in Path("images").rglob("*.*") if file.suffix in (".jpg", ".png")]
    assert len(exported) == len(rs.open("out"))


def test_the_readme_names_what_its_programs_need() -> None:
    """With the line that the programs print without it."""
    for extra, use in (("torch", "import recordsmith.torch"), ("duckdb", "recordsmith query")):
        line = MissingExtraError(extra, extra).remedy.removeprefix("Install it: ")
        assert FIRST_HALF.index(line) < FIRST_HALF.index(use)


@pytest.mark.parametrize("name", ["README.md", "docs/pytorch.md", "docs/loading.md"])
def test_pages_name_the_range_of_float_pixels(flowers: Path, name: str) -> None:
    rs.pack("flowers", "out")
    image = rs.Image(size=8, dtype="float32")
    (batch,) = rs.Loader(rs.open("out"), {"image": image}, batch_size=60)
    assert 0.8 < batch["image"].max() <= 1
    assert re.search("float32.*0 to 1", page(name))


@pytest.mark.slow
def test_the_readmes_image_is_what_the_demo_draws(tmp_path: Path) -> None:
    (name,) = re.findall(r"!\[[^]]*\]\((.*?)\)", README)
    demo(str(tmp_path / "demo"))
    with (
        Image.open(REPOSITORY / name) as shown,
        Image.open(tmp_path / "demo" / "contact-sheet.png") as drawn,
    ):
        expected = np.asarray(drawn.convert("RGB").resize(shown.size), np.float32)
        assert np.abs(expected - np.asarray(shown.convert("RGB"), np.float32)).mean() < 4


def test_the_readme_is_short() -> None:
    """And no wider than a window, with one table of rivals that can be taken in."""
    lines = FIRST_HALF.splitlines()
    assert len(lines) <= 100
    assert len(FIRST_HALF.split()) <= 900
    assert max(map(len, lines)) <= 120
    assert len(re.findall(r"^\|", README, re.MULTILINE)) <= 2 + 8


def test_the_python_page_runs(flowers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = page("docs/python.md")
    assert len(blocks("python", text)) == 5
    run_python(text, "python.md", lambda: "")
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "42 ('daisy', 'rose', 'tulip')"
    assert "[0 1 2 3] (1001, 2) (1001,)" in shown
    assert {"8 [b'rose']", "8", "(4,)", "True 1000"} <= {*shown}


def test_the_page_about_buckets_runs(
    flowers: Path,
    servers: Servers,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, value in servers["s3"].variables("my-bucket").items():
        monkeypatch.setenv(name, value)
    text = page("docs/how-to/cloud.md")
    assert len(blocks("console", text)) == 2
    run_commands(text)
    capsys.readouterr()
    run_python(text, "cloud.md", lambda: capsys.readouterr().out)
    assert 0 < sum(path.stat().st_size for path in Path("cache").rglob("*")) <= 1 << 30


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["packing.md", "forecast.md", "exporting.md", "stats.md", "arrow.md", "lint.md"]
)
def test_the_commands_and_code_of_a_page_run(
    name: str, flowers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "arrow.md":
        for library in ("pyarrow", "polars", "duckdb"):
            pytest.importorskip(library)
        rs.pack(rs.ImageFolder(flowers), "out", splits={"train": 0.7, "test": 0.3})
    elif name not in ("packing.md", "forecast.md", "lint.md"):
        rs.pack(rs.ImageFolder(flowers), "out")
    text = page(f"docs/{name}")
    assert blocks("console", text)
    assert blocks("python", text)
    run_commands(text)
    run_python(text, name, lambda: capsys.readouterr().out)


def test_the_page_about_hugging_face_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    datasets = pytest.importorskip("datasets")
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    run_python(page("docs/huggingface.md"), "huggingface.md", lambda: capsys.readouterr().out)


_NEEDED = {
    "metric-learning": ["torch"],
    "earth-engine": ["torch"],
    "kaggle-tpu": ["torch"],
    "openvla-octo": ["av", "pyarrow"],
    "parquet": ["pandas"],
    "video-frames": ["torch"],
    "view": ["uvicorn", "starlette"],
    "windows-of-tables": ["duckdb"],
}


@pytest.mark.parametrize(
    "name",
    [
        "duplicates",
        "new-labels",
        "remove-photographs",
        "audio",
        "dicom-nifti-geotiff",
        "kaggle-tpu",
        "openvla-octo",
        "serialized-tensors",
        "youtube-8m",
    ],
)
def test_code_and_commands_run_in_turn(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for needed in _NEEDED.get(name, ()):
        pytest.importorskip(needed)
    monkeypatch.chdir(tmp_path)
    text = page(f"docs/how-to/{name}.md")
    variables: dict[str, Any] = {}
    for block in re.findall(r"^```(?:console|python)\n.*?^```$", text, re.DOTALL | re.MULTILINE):
        run_commands(block)
        for code in blocks("python", block):
            exec(compile(code, name, "exec"), variables)
    assert lines_shown(text) <= Counter(capsys.readouterr().out.splitlines())


@pytest.mark.parametrize(
    "name",
    [
        "corrupted-record",
        "without-tensorflow",
        "parquet",
        "class-imbalance",
        "metric-learning",
        "resume-training",
        "card",
        "view",
        "windows-of-tables",
        "earth-engine",
    ],
)
def test_the_answer_to_a_common_question_runs(
    name: str, flowers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for needed in _NEEDED.get(name, ()):
        pytest.importorskip(needed)
    rs.pack("flowers", "out", shards=2, splits={"train": 0.7, "validation": 0.3})
    text = page(f"docs/how-to/{name}.md")
    run_commands(text)
    capsys.readouterr()
    run_python(text, name, lambda: capsys.readouterr().out)


def test_the_page_about_splits_by_patient_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its commands and its code, in order."""
    monkeypatch.chdir(tmp_path)
    text = page("docs/how-to/splits-by-patient.md")
    variables: dict[str, Any] = {}
    for language, code in re.findall(r"^```(\w+)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        if language == "console":
            run_commands(f"```console\n{code}```")
        else:
            exec(compile(code, "splits-by-patient.md", "exec"), variables)
    assert lines_shown(text) <= Counter(capsys.readouterr().out.splitlines())
    assert set(rs.open("whole").splits) == {"train", "test"}


@pytest.mark.filterwarnings("ignore:.*no record has 'weight'")  # a default replaces it
def test_the_calls_that_replace_those_of_other_libraries_run(flowers: Path) -> None:
    skip_without("torch", "obstore")
    rs.pack("flowers", "out", shards=2, splits={"train": 0.7, "validation": 0.3})
    text = page("docs/migrating.md")
    variables: dict[str, Any] = {}
    (block,) = blocks("python", text)
    exec(block, variables)
    calls = re.findall(r"^\| .* \| `(.*)` \|$", text, re.MULTILINE)
    assert len(calls) == len(re.findall(r"^\| .* \|$", text, re.MULTILINE)) - 2 * 4
    for call in calls:
        exec(call, variables)
        if (loader := variables.pop("loader", None)) is not None:
            assert next(iter(loader)), call
            loader.close()


def test_the_page_about_shuffling_in_pytorch_runs(
    flowers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    rs.pack("flowers", "out")
    text = page("docs/how-to/shuffle-in-pytorch.md")
    run_python(text, "shuffle-in-pytorch", lambda: capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "packages", "processes"),
    [
        ("lightning", ["lightning"], 1),
        ("hugging-face-trainer", ["transformers", "accelerate"], 1),
        ("hugging-face-trainer", ["transformers", "accelerate"], 2),
        ("accelerate", ["accelerate"], 1),
        ("accelerate", ["accelerate"], 2),
        ("timm", ["timm", "torchvision"], 1),
        ("jax-devices", ["jax", "optax", "orbax"], 1),
    ],
)
def test_the_page_about_a_trainer_runs(
    flowers: Path, name: str, packages: list[str], processes: int
) -> None:
    """In processes of their own, because frameworks start threads."""
    skip_without(*packages)
    rs.pack("flowers", "out", splits={"train": 0.7, "validation": 0.3})
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    run_python_apart(
        page(f"docs/how-to/{name}.md"),
        *(launcher if processes > 1 else []),
        count=processes,
        ACCELERATE_USE_CPU="1",
        GLOO_SOCKET_IFNAME="lo" if sys.platform == "linux" else "lo0",
    )


@pytest.mark.slow
def test_the_page_about_mask_rcnn_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_without("torch", "torchvision")
    monkeypatch.chdir(tmp_path)
    # torchvision without compiled operators would compile them, which takes minutes
    run_python_apart(page("docs/how-to/mask-rcnn.md"), TORCHDYNAMO_DISABLE="1")


@pytest.mark.slow
def test_the_page_about_augmentation_runs(flowers: Path) -> None:
    """Up to the first library that is not installed."""
    skip_without("torch")
    rs.pack("flowers", "out", splits={"train": 0.7, "validation": 0.3})
    text = page("docs/how-to/augmentation.md")
    for library in ("albumentations", "torchvision"):
        if not is_installed(library):
            text = text[: text.index(f"## Boxes and masks with {library}")]
            break
    run_python_apart(text, NO_ALBUMENTATIONS_UPDATE="1")  # it asks for its newest version


@pytest.mark.parametrize("name", ["episodes", pytest.param("video-frames", marks=pytest.mark.slow)])
def test_the_pages_about_sequences_run(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for needed in _NEEDED.get(name, ()):
        pytest.importorskip(needed)
    monkeypatch.chdir(tmp_path)
    text = page(f"docs/how-to/{name}.md")
    run_python(text, f"{name}.md", lambda: capsys.readouterr().out)


def test_the_page_about_lerobot_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("av")
    monkeypatch.chdir(tmp_path)
    text = page("docs/how-to/lerobot.md")
    run_python(text, "lerobot.md", lambda: capsys.readouterr().out)
    run_commands(text)
    assert len(rs.open("out")) == 2


@pytest.mark.slow
def test_the_page_about_tokens_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    threads = torch.get_num_threads()
    run_python(page("docs/how-to/pack-tokens.md"), "tokens", lambda: capsys.readouterr().out)
    torch.set_num_threads(threads)


def test_the_page_about_stores_runs(flowers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_python(page("docs/stores.md"), "stores.md", lambda: capsys.readouterr().out)


def test_the_page_about_tfds_runs(flowers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With folders like those that it reads: `tests/interop` has real ones."""
    rs.pack(rs.ImageFolder("flowers"), "packed")
    rs.export("packed", "tensorflow_datasets/mnist/3.0.1", "tfds")
    step = {"observation/image": image_feature(), "action": tensor_feature("float32", [2])}
    photo = next(flowers.glob("*/*.*")).read_bytes()
    records = [
        {"steps/action": [0.5] * 2 * count, "steps/observation/image": [photo] * count}
        for count in (8, 12, 3, 20) * 5
    ]
    write_by_hand(Path("bridge/0.1.0"), {"steps": steps_feature(step)}, records)
    text = page("docs/tfds.md")
    if find_spec("array_record") is None:
        text = text[: text.index("## ArrayRecord")]
    run_commands(text)
    capsys.readouterr()
    run_python(text, "tfds.md", lambda: capsys.readouterr().out)


def test_the_index_packs_the_dataset_of_the_other_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = page("docs/README.md")
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks("python", text)[-1], "README.md", "exec"), {})
    first = rs.open("out")
    assert {name: len(part) for name, part in first.splits.items()} == {
        "train": 42,
        "validation": 18,
    }
    assert first.class_names == ("daisy", "rose", "tulip")
    shutil.move("out", "of_python")
    run_commands(text)
    assert rs.diff("of_python", "out").is_equal


def test_the_tutorial_runs_and_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = page("docs/tutorial.md")
    assert len(text.splitlines()) <= 40
    run_python(text, "tutorial.md", lambda: capsys.readouterr().out)


def test_the_loading_page_runs(flowers: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(re.findall(r"^ *print\(.*?\)  # shows ", GUIDE, re.MULTILINE)) >= 15
    run_python(GUIDE, "loading.md", lambda: capsys.readouterr().out)
    with Image.open("batch.jpg") as drawn:
        drawn.load()


def test_the_loading_page_has_the_last_steps_of_ranks(flowers: Path) -> None:
    dataset = rs.open(rs.pack(rs.ImageFolder(flowers), "out").folder)[:21]
    rows = re.findall(r'^\| `"(keep|drop|pad)"`.*?\| (.*?) \| (.*?) \|$', GUIDE, re.MULTILINE)
    assert [last_batch for last_batch, *_ in rows] == ["keep", "drop", "pad"]
    for last_batch, *cells in rows:
        for world_size, cell in zip((2, 3), cells, strict=True):
            steps = []
            for rank in range(world_size):
                loader = rs.Loader(
                    dataset,
                    {"at": rs.Position()},
                    batch_size=4,
                    rank=rank,
                    world_size=world_size,
                    last_batch=last_batch,
                    threads=0,
                )
                *_, last = loader
                steps.append(", ".join(map(str, last["at"])))
            assert " · ".join(steps) == cell


def test_the_loading_page_names_all_features_and_options() -> None:
    for option in list(inspect.signature(rs.Loader).parameters)[1:]:
        assert f"`{option}" in GUIDE, option
    public = set(rs.__all__) & set(loading.__all__)
    assert len(public) > 20
    for name in public - {"bench"}:
        assert name in GUIDE, name
        if name not in ("EntrySpec", "Examples", "Loader", "LoaderStats", "Mix"):
            assert f"`{name}`" in GUIDE, name


def test_the_packing_page_names_the_keys_of_an_image(flowers: Path) -> None:
    source = rs.ImageFolder(flowers)
    features = read_sample(source, source.list_samples().samples[0])
    text = page("docs/packing.md")
    for key in features:
        assert f"`{key}`" in text


def json_keys(document: Any) -> set[str]:
    """The keys of a document, except names of features, splits, classes, folders and values."""
    if isinstance(document, list):
        return {key for item in document for key in json_keys(item)}
    if not isinstance(document, dict):
        return set()
    named = ("splits", "features", "classes", "payloads", "records", "values", "formats",
             "channels", "variants", "masks", "quantiles", "within", "folders")  # fmt: skip
    return set(document) | {
        key
        for name, value in document.items()
        for key in json_keys(
            list(value.values()) if name in named and isinstance(value, dict) else value
        )
    }


def test_every_key_of_the_json_documents_is_documented(flowers: Path, tmp_path: Path) -> None:
    documented = page("docs/reference/json.md")
    report = rs.pack(rs.ImageFolder(flowers), "out")
    exported = rs.export("out", "boxes", "yolo")  # which cannot hold image classes
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
    assert differing.right_only
    found_stats = rs.stats("out")
    with rs.ShardWriter("objects.tfrecord") as writer:
        boxes = {key: [0.5] for key in BOX}
        writer.write_example({**boxes, MASK: encode_mask(np.ones((2, 2), np.uint8))})
    measured = rs.bench("out", size=8, seconds=0.1)
    with (tmp_path / "out" / "train-00000-of-00001.tfrecord").open("r+b") as shard:
        shard.seek(30)
        shard.write(b"\0\0")
    forecast = rs.forecast(rs.ImageFolder(flowers), sample_count=10)
    salvaged = rs.salvage("out", "rescued")
    shutil.copy("flowers/rose/1.jpg", "flowers/rose/2.png")
    linted = rs.lint(rs.ImageFolder("flowers"))
    assert len(linted.findings) == 2
    salvaged.shards[0].add_repair(Repair(0, 0, "length"))
    for document in (
        report.to_json(),
        rs.detect("flowers").to_json(),
        exported.to_json(),
        rs.inspect("out").to_json(),
        rs.inspect("other.tfrecord").to_json(),
        differing.to_json(),
        found_stats.to_json(),
        rs.verify("out").to_json(),
        sheet.to_json(),
        LoaderStats().to_json(),
        resharded.to_json(),
        indexed.to_json(),
        salvaged.to_json(),
        linted.to_json() | {"classes": {}},
        forecast.to_json(),
        measured.to_json(),
    ):
        keys = json_keys(document)
        assert len(keys) > 5
        for key in keys:
            assert f"`{key}`" in documented, key


def test_every_defect_and_command_is_documented() -> None:
    documented = page("docs/reference/json.md")
    for defect in rs.Defect:
        assert f"`{defect}`" in documented
    index = page("docs/README.md")
    for name in COMMANDS:
        assert f"`recordsmith {name}" in index
        assert name in ("demo", "view") or f"recordsmith {name}" in documented


def test_the_page_about_lint_lists_every_check_with_its_severity() -> None:
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| (\w+) \|", page("docs/lint.md"), re.MULTILINE)
    assert dict(rows) == {str(check): str(check.severity) for check in all_checks()}


def test_the_code_about_differences_runs(
    flowers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rs.pack(rs.ImageFolder(flowers), "out")
    with rs.ShardWriter("old") as writer:
        for number, example in enumerate(rs.open("out")):
            example["image/class/label"] += number == 7
            writer.write_example(example)
    (block,) = blocks("python", page("docs/diff.md"))
    variables: dict[str, Any] = {}
    exec(compile(block, "diff.md", "exec"), variables)
    assert variables["report"].changed_count == 1
    assert re.search(r"^image/class/label \d -> \d$", capsys.readouterr().out, re.MULTILINE)


def test_the_code_about_repairing_from_a_copy_runs(flowers: Path, tmp_path: Path) -> None:
    splits = {"train": 0.7, "validation": 0.3}
    rs.pack(rs.ImageFolder(flowers), "backup", splits=splits, shards=2)
    shutil.copytree("backup", "damaged")
    for shard in Path("damaged").glob("*-00000-*"):
        with shard.open("r+b") as file:
            file.seek(2000)
            file.write(bytes(30))
    rs.salvage("damaged", "rescued")
    (block,) = blocks("python", page("docs/salvage.md"))
    exec(compile(block, "salvage.md", "exec"), {})
    assert len(rs.open("missing")) == 2
    assert rs.verify("rescued", deep=True).is_good


def headings(text: str) -> set[str]:
    """The anchors of a page."""
    found = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in found}


def test_the_citation_has_the_version() -> None:
    assert f"\nversion: {rs.__version__}\n" in page("CITATION.cff")


def test_links_are_valid() -> None:
    nested = [*REPOSITORY.glob("docs/**/*.md"), *REPOSITORY.glob("examples/*/*.md")]
    links = [
        (path, *link)
        for path in [*REPOSITORY.glob("*.md"), *nested]
        for link in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", path.read_text("utf-8"))
    ]
    assert len(links) > 60
    for path, link, anchor in links:
        if link.startswith("src/") and not (REPOSITORY / "src").exists():
            continue  # the tests run with an installed package
        target = path.parent / link if link else path
        assert target.exists(), f"{path.name}: {link}"
        if anchor:
            assert anchor in headings(target.read_text("utf-8")), f"{path.name}: {link}#{anchor}"


def test_the_index_lists_all_pages() -> None:
    index = page("docs/README.md")
    for path in (REPOSITORY / "docs").rglob("*.md"):
        name = path.relative_to(REPOSITORY / "docs").as_posix()
        assert name == "README.md" or f"]({name})" in index, name
