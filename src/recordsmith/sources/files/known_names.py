"""What the names of files and folders say: tables, documents, and what systems leave behind."""

from __future__ import annotations

import posixpath
import re

ARROW_SUFFIXES = (".parquet", ".pq", ".feather", ".arrow", ".arrows", ".ipc")
ARCHIVE_SUFFIXES = (".tar", ".tar.gz", ".tgz")
TABLE_SUFFIXES = (".csv", ".tsv", ".tab", ".jsonl", ".ndjson", *ARROW_SUFFIXES)
DATA_SUFFIXES = (
    *(*TABLE_SUFFIXES, ".json", ".geojson", ".xml", ".txt", ".yaml", ".yml", ".data", ".dat"),
    *(".lst", ".list", ".index", ".labels"),
)
"""Of files that may describe images."""

LEROBOT_INFO_NAME = "meta/info.json"

_IDX = re.compile(r"idx\d$|[-._]ubyte$")
_DOCUMENTS = frozenset(
    (
        *("readme", "license", "licence", "copying", "notice", "authors", "changelog", "changes"),
        *("citation", "contributing", "todo", "version", "requirements", "makefile", "dockerfile"),
        *("copyright", "terms", "about", "read_me", "read me"),
    )
)
_DOCUMENT_SUFFIXES = (
    *(".md", ".rst", ".pdf", ".html", ".htm", ".doc", ".docx", ".py", ".ipynb", ".sh", ".bib"),
    *(".url", ".log", ".m", ".cff", ".toml", ".lock", ".cfg", ".ini", ".bat", ".ps1"),
    *(".md5", ".sha1", ".sha256", ".onnx", ".pth", ".ckpt", ".dvc"),
)
_SYSTEM_NAMES = frozenset(
    (
        *("thumbs.db", "ehthumbs.db", "desktop.ini", "@eadir", "__macosx", "#recycle"),
        *("$recycle.bin", "system volume information", "lost+found", "__pycache__"),
    )
)
HIDDEN_LETTERS = frozenset(
    (".", *(letter for name in _SYSTEM_NAMES for letter in (name[0], name[0].upper())))
)
"""With which hidden names begin: a check of one letter, where there are millions of names."""


def is_hidden(name: str) -> bool:
    """Whether a file or folder is hidden, or is one that systems and not people make."""
    return name[0] == "." or (name[0] in HIDDEN_LETTERS and name.lower() in _SYSTEM_NAMES)


def is_table_name(path: str) -> bool:
    """Whether a file is named like a table, also a compressed one."""
    return path.lower().removesuffix(".gz").endswith(TABLE_SUFFIXES)


def is_submission(path: str) -> bool:
    """Whether a table is the form for predictions of a Kaggle competition."""
    name = posixpath.basename(path).lower()
    return "submission" in name or "submit" in name


def is_document(path: str) -> bool:
    """Whether a file is named like documentation, terms of use, a program or a model."""
    name = posixpath.basename(path).lower()
    stem = name.partition(".")[0].rstrip("0123456789-_ ")
    return name.endswith(_DOCUMENT_SUFFIXES) or stem in _DOCUMENTS


def is_array_name(name: str) -> bool:
    """Whether a file is named like one that contains arrays."""
    last = posixpath.basename(name).lower()
    plain = last.removesuffix(".gz")
    if plain.endswith((".npy", ".npz")):
        return plain == last
    return _IDX.search(plain) is not None
