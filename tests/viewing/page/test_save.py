"""The commands that save the records of a view, and those that are marked."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import recordsmith as rs

from ...images import encode, smooth
from ..conftest import write
from .conftest import Open, wait_for_count

pytestmark = pytest.mark.slow


def test_the_commands_save_the_records(
    tmp_path: Path, open_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "it's a folder"
    folder.mkdir()
    image = encode(smooth(16, 12), "PNG")
    classes = {number: {"image/class/label": number % 3} for number in range(30)}
    examples = [{"id": n, "image/encoded": image, **classes[n]} for n in range(30)]
    for split, part in (("test", examples[:10]), ("train", examples[10:])):
        write(folder / f"{split}-00000-of-00001.tfrecord", part)
    monkeypatch.chdir(tmp_path)

    def saved(page: Any, name: str) -> list[int]:
        """Run the commands of a section; return the ids in the new dataset."""
        page.click("#save")
        section = f"#dialog h3:has-text('{name}') ~ .command"
        lines = page.locator(f"{section} code").all_text_contents()[:4]
        for line in lines[1:]:
            if line.startswith("rs."):
                exec(line, {"rs": rs, "dataset": dataset})
            else:
                command = [sys.executable, "-m", *shlex.split(line)]
                subprocess.run(command, check=True, capture_output=True)
        page.keyboard.press("Escape")
        (out,) = {path.parent for path in tmp_path.glob("*/dataset.json")}
        assert out.with_name(f"{out.name}.png").exists()
        assert out.with_name(f"{out.name}-files").is_dir()
        found = sorted(int(example["id"][0]) for example in rs.open(out))
        for path in tmp_path.glob(f"{out.name}*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return found

    page = open_page(folder)
    page.click("#tile-3 .mark")
    page.click("#tile-20 .mark")
    assert saved(page, "marked") == [3, 20]
    page = open_page(folder, fragment="split=train&where=image/class/label+==+1")
    wait_for_count(page, "7 of 20")
    matching = [number for number in range(10, 30) if classes[number] == {"image/class/label": 1}]
    assert saved(page, "Records of this view") == matching
    dataset = rs.open(folder)[5:25]
    page = open_page(dataset)
    page.click("#tile-4 .mark")
    assert saved(page, "marked") == [9]
