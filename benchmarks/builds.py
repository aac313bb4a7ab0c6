"""Builds of this package to measure side by side: of the working tree, or of an earlier commit."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def build_commit(commit: str, data: Path) -> Path:
    """Return where the package of a commit is installed; built once and kept with the inputs."""
    target = data / f"build-{commit}-{sys.implementation.cache_tag}"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=data) as folder:
            archive = subprocess.run(
                ["git", "archive", commit], cwd=ROOT, check=True, stdout=subprocess.PIPE
            )
            source = Path(folder) / "source"
            source.mkdir()
            subprocess.run(["tar", "-x", "-C", source], input=archive.stdout, check=True)
            install(source, Path(folder) / "installed").rename(target)
    return target


def install(source: Path, target: Path) -> Path:
    """Build the package of a source tree without leaving anything in it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        ignored = shutil.ignore_patterns(".*", "build", "*.so", "*.egg-info", "tests")
        shutil.copytree(source, copy, ignore=ignored)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        environment = {**os.environ, "PYTHONWARNINGS": "ignore"}  # setuptools' about itself
        subprocess.run([*command, "--target", target, copy], check=True, env=environment)
    return target
