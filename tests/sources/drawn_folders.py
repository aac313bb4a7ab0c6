"""Folders of images and masks, to be detected: files by the kind of their pixels."""

from __future__ import annotations

from pathlib import Path

from .layouts.files import BLACK_AND_WHITE, COLOURS, Folder

OWN = {0: (1, 2, 3), 1: (64, 128, 64), 2: (192, 0, 128)}
KINDS = {
    "photo": Folder.photo,
    "gray": lambda folder, path: folder.photo(path, mode="L"),
    "depth": lambda folder, path: folder.photo(path, mode="I;16"),
    "numbers": Folder.mask,
    "palette": lambda folder, path: folder.mask(path, palette=COLOURS),
    "white": lambda folder, path: folder.mask(path, (0, 255)),
    "rgb": lambda folder, path: folder.mask(path, (0, 1), colours=BLACK_AND_WHITE),
    "voc": lambda folder, path: folder.mask(path, colours=COLOURS),
    "own": lambda folder, path: folder.mask(path, colours=OWN),
}


def write(root: Path, files: dict[str, str]) -> Path:
    """Write files: pixels by the name of their kind, others as text. `{1-3}` makes three files."""
    folder = Folder(root)
    for pattern, content in files.items():
        for path in _numbered(pattern):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            if content in KINDS:
                KINDS[content](folder, path)  # type: ignore[operator]
            else:
                folder.text(path, content)
    return root


def _numbered(pattern: str) -> list[str]:
    head, brace, rest = pattern.partition("{")
    if not brace:
        return [pattern]
    bounds, _, tail = rest.partition("}")
    first, _, last = bounds.partition("-")
    return [f"{head}{number:0{len(first)}d}{tail}" for number in range(int(first), int(last) + 1)]
