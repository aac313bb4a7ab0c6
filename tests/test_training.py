"""examples/training: the programs learn, and resume as if they had not been interrupted.

Each runs in separate processes, with less data than by default. Those that resume are called
several times in one process, because loading and compiling a framework takes longer than training;
the checkpoint is their only state.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image

TRAINING = Path(__file__).parent.parent / "examples" / "training"
README = (TRAINING.parent / "README.md").read_text("utf-8")
PROGRAMS = {  # program: required packages
    "torch_classifier": ("torch",),
    "torch_ddp": ("torch",),
    "torch_segmentation": ("torch",),
    "torch_patches": ("torch",),
    "torch_detection": ("torch",),
    "jax_classifier": ("jax", "optax"),
    "keras_classifier": ("keras",),
    "tensorflow_feature_spec": ("tensorflow",),
}
IMAGES = 150  # 105 of them to train with: 5 steps an epoch
CHANCE = 20  # percent: there are five species
CALLS = """\
import importlib, json, sys
sys.path.insert(0, sys.argv[1])
program = importlib.import_module(sys.argv[2])
for arguments in json.loads(sys.argv[3]):
    sys.argv = [program.__file__, *arguments]
    program.main()
    print("done", flush=True)
"""


Folders = Callable[[str], Path]


class Epoch(NamedTuple):
    """What a program prints after an epoch; the score in percent."""

    number: int
    loss: float
    score: float


def epochs_in(output: str) -> list[Epoch]:
    lines = re.findall(r"^epoch +(\d+)  loss ([\d.]+)  \D+ ([\d.]+)%$", output, re.MULTILINE)
    return [Epoch(int(number), float(loss), float(score)) for number, loss, score in lines]


def skip_without(*packages: str) -> None:
    """Skip without importing the packages: programs run in other processes."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")


def run(command: list[Any], **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": "lo" if sys.platform == "linux" else "lo0",
            **environment,
        },
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def options(folder: Path, epochs: int, images: int = IMAGES) -> list[str]:
    return ["--folder", str(folder), "--images", str(images), "--epochs", str(epochs)]


def run_alone(
    name: str, folder: Path, epochs: int, images: int = IMAGES, **environment: str
) -> str:
    skip_without(*PROGRAMS[name])
    return run([TRAINING / f"{name}.py", *options(folder, epochs, images)], **environment)


def run_calls(name: str, epochs: int, *calls: tuple[Path, str]) -> list[str]:
    """Return the output of each of several calls in one process."""
    skip_without(*PROGRAMS[name])
    arguments = json.dumps([options(folder, epochs) + given.split() for folder, given in calls])
    return run(["-c", CALLS, TRAINING, name, arguments]).split("done\n")[:-1]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the flowers of all classifiers."""
    folder = tmp_path_factory.mktemp("training")
    draw = (
        "import pathlib, sys; sys.path.insert(0, sys.argv[1]); import data; "
        "data.packed_flowers(pathlib.Path(sys.argv[2]), int(sys.argv[3]))"
    )
    run(["-c", draw, TRAINING, folder, IMAGES])
    return folder


@pytest.fixture
def folders(drawn: Path, tmp_path: Path) -> Folders:
    """Create folders with the same flowers, for checkpoints."""
    return lambda name: Path(shutil.copytree(drawn, tmp_path / name))


def check_learned(output: str, epoch_count: int, bar: float) -> None:
    epochs = epochs_in(output)
    assert [epoch.number for epoch in epochs] == list(range(1, epoch_count + 1))
    assert epochs[-1].loss < 0.7 * epochs[0].loss
    assert epochs[-1].score > bar


def test_the_readme_lists_each_program() -> None:
    assert {path.stem for path in TRAINING.glob("*.py")} == {"data", *PROGRAMS}
    for name in PROGRAMS:
        words = ast.get_docstring(ast.parse((TRAINING / f"{name}.py").read_text("utf-8"))) or ""
        commands = re.findall(rf"^ *(.*examples/training/{name}\.py.*)$", words, re.MULTILINE)
        assert commands
        for command in commands:
            assert f"\n$ {command}\n" in README
        assert f"](training/{name}.py)" in README
    for link in re.findall(r"\]\(([^)]+)\)", README):
        assert (TRAINING.parent / link).exists(), link


# -- classifiers -----------------------------------------------------------------------------------


def equal(one: Any, other: Any) -> bool:
    """Compare bit for bit, also nested values."""
    import torch

    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    return bool(one == other)


@pytest.mark.slow
def test_torch_resumes_with_and_without_workers(folders: Folders) -> None:
    folder, undisturbed = folders("stopped"), folders("undisturbed")
    whole, *parts = run_calls(
        "torch_classifier",
        8,
        (undisturbed, ""),
        (folder, "--stop-after 12"),
        (folder, "--resume --workers 2 --stop-after 18"),
        (folder, "--resume"),
    )
    check_learned(whole, 8, bar=3 * CHANCE)
    assert [part.splitlines()[-1] for part in parts[:2]] == [
        "stopped after step 12, in epoch 3",  # of 5 steps each
        "stopped after step 18, in epoch 4",
    ]
    assert [epoch for part in parts for epoch in epochs_in(part)] == epochs_in(whole)

    import torch

    saved, expected = (torch.load(path / "torch_classifier.pt") for path in (folder, undisturbed))
    assert len(expected["losses"]) == 40
    assert equal(saved, expected)


@pytest.mark.slow
def test_jax_resumes_with_the_loader_and_with_grain(folders: Folders) -> None:
    has_grain = importlib.util.find_spec("grain") is not None
    calls, compared = [], []
    for reader in ["", "--grain"] if has_grain else [""]:
        folder, undisturbed = folders(f"stopped{reader}"), folders(f"undisturbed{reader}")
        calls += [(undisturbed, reader), (folder, f"{reader} --stop-after 12")]
        calls += [(folder, f"{reader} --resume")]
        compared += [(folder, undisturbed)]
    outputs = run_calls("jax_classifier", 8, *calls)
    for number, paths in enumerate(compared):
        whole, stopped, resumed = outputs[3 * number : 3 * number + 3]
        check_learned(whole, 8, bar=3 * CHANCE)
        assert stopped.splitlines()[-1] == "stopped after step 12, in epoch 3"
        assert epochs_in(stopped) + epochs_in(resumed) == epochs_in(whole)
        saved, expected = (np.load(path / "jax_classifier.npz") for path in paths)
        assert saved.files == expected.files
        assert len(expected["losses"]) == 40
        for name in expected.files:
            np.testing.assert_array_equal(saved[name], expected[name])


@pytest.mark.slow
def test_ddp_resumes_with_another_number_of_processes(drawn: Path) -> None:
    skip_without("torch")

    def run_two(*arguments: str) -> str:
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
        command = [*launcher, TRAINING / "torch_ddp.py", *options(drawn, 8), *arguments]
        try:
            return run(command)
        except AssertionError as error:  # torch's threads, as a process ends on a busy machine
            if "terminate called without an active exception" not in str(error):
                raise
        return run(command)

    whole = run_two()
    check_learned(whole, 8, bar=3 * CHANCE)
    stopped, resumed = run_two("--stop-after", "12"), run_two("--resume")
    assert stopped.splitlines()[-1] == "stopped after step 12, in epoch 3"
    assert epochs_in(stopped) + epochs_in(resumed) == epochs_in(whole)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["tensorflow", "torch"])
def test_keras_learns_on_each_backend(drawn: Path, backend: str) -> None:
    skip_without(backend)
    output = run_alone("keras_classifier", drawn, 10, KERAS_BACKEND=backend)
    assert f"backend: {backend}\n" in output
    losses = re.findall(r" - loss: ([\d.]+)", output)
    scores = re.findall(r" - val_accuracy: ([\d.]+)", output)
    assert len(losses) == len(scores) == 10
    assert float(losses[-1]) < 0.7 * float(losses[0])
    assert 100 * float(scores[-1]) > 2 * CHANCE


@pytest.mark.slow
def test_tensorflow_learns_from_records_without_a_loader(drawn: Path) -> None:
    output = run_alone("tensorflow_feature_spec", drawn, 10)
    assert "image/encoded       FixedLenFeature(shape=(), dtype=tf.string" in output
    check_learned(output, 10, bar=2 * CHANCE)


# -- meadows ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_segmentation_learns(tmp_path: Path) -> None:
    output = run_alone("torch_segmentation", tmp_path, 6, images=80)
    check_learned(output, 6, bar=25)  # 14 are right where all is taken for meadow
    with Image.open(tmp_path / "segmentation.jpg") as page:
        assert page.width > page.height > 96


@pytest.mark.slow
def test_patches_learn(tmp_path: Path) -> None:
    output = run_alone("torch_patches", tmp_path, 10, images=6)
    check_learned("".join(output.splitlines(keepends=True)[1:-1]), 10, bar=20)
    for name in ("patches", "field"):
        assert f"drawn: {tmp_path / name}.jpg\n" in output
        with Image.open(tmp_path / f"{name}.jpg") as page:
            assert min(page.size) > 600


@pytest.mark.slow
def test_detection_learns(tmp_path: Path) -> None:
    output = run_alone("torch_detection", tmp_path, 6, images=100)
    check_learned(output, 6, bar=30)
    told = re.match(r"10 images with ([\d, ]+) boxes, filled up to (\d)", output)
    assert told is not None
    counts = [int(count) for count in told[1].split(", ")]
    assert len(counts) == 10
    assert len(set(counts)) > 1
    assert max(counts) == int(told[2])
    assert (tmp_path / "detection.jpg").exists()
