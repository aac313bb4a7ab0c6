"""Every public name has an example in its docstring, and all of them run."""

from __future__ import annotations

import doctest
import inspect
import re
import shutil
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recordsmith as rs

from .test_docs import blocks, page

WITHOUT = {"__version__", "engines", "remote"}
"""Names that are no function or class, or whose example needs a bucket."""

NAMES = sorted({*rs.__all__} - WITHOUT)


def example_of(value: Any) -> str | None:
    """The code below `Example:` in a docstring."""
    text = inspect.getdoc(value) or ""
    match = re.search(r"^Example:\n((?:    .*\n?|\n)+)", text, re.MULTILINE)
    return textwrap.dedent(match[1]) if match else None


def members() -> Iterator[tuple[str, Any]]:
    """The public names, and the methods of the classes among them."""
    for name in NAMES:
        value = getattr(rs, name)
        yield name, value
        if isinstance(value, type):
            for key, member in vars(value).items():
                if not key.startswith("_") and example_of(member):
                    yield f"{name}.{key}", member


MEMBERS = [*members()]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which examples run: `flowers`, their dataset `out`, a copy, a damaged file."""
    folder = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(blocks("python", page("docs/tutorial.md"))[0], {})
        rs.pack("flowers", "out", splits={"train": 0.7, "validation": 0.3}, shards=2)
    shutil.copytree(folder / "out", folder / "copy")
    data = bytearray((folder / "out" / "train-00001-of-00002.tfrecord").read_bytes())
    data[100] ^= 1
    (folder / "damaged.tfrecord").write_bytes(data)
    return folder


@pytest.mark.parametrize(("name", "value"), MEMBERS, ids=[name for name, _ in MEMBERS])
def test_the_example_runs(
    name: str, value: Any, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = example_of(value)
    assert code is not None, name
    folder = shutil.copytree(prepared, tmp_path / "folder")
    monkeypatch.chdir(folder)
    variables: dict[str, Any] = {key: getattr(rs, key) for key in NAMES if key != "open"}
    variables |= {"rs": rs, "np": np, "dataset": rs.open("out")}
    if re.search(r'\b(pack|plan)\(.*"out"', code):
        shutil.rmtree("out")
    if code.startswith(">>>"):
        parsed = doctest.DocTestParser().get_doctest(code, variables, name, None, 0)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        output: list[str] = []
        assert runner.run(parsed, out=output.append).failed == 0, "".join(output)
    else:
        exec(compile(code, name, "exec"), variables)
