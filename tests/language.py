"""Check the language of the source, the docs and the tests: `python tests/language.py`.

Two rules. Text uses plain, standard English: the patterns below are idioms that readers stumble
over. And one name means one thing: no two public classes share a name.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "docs", "examples", "benchmarks", "skills", "tests")

INSTEAD = {
    r"pictures?": "image",
    r"mend(?:s|ed)?": "fix",
    r"shall": "should, must, or the plain verb",
    r"beside": "next to",
    r"nobody|whoever": "no one, or the subject's name",
    r"anew": "again",
    r"at hand": "available, current",
    r"heed(?:s|ed)?": "use, respect",
    r"fellows": "the others",
    r"by halves": "partial",
    r"is dear": "is expensive",
}
"""Pattern of an idiom -> what to write instead. Whole words, in any case."""

_FORBIDDEN = re.compile(
    r"\b(?:" + "|".join(f"({pattern})" for pattern in INSTEAD) + r")\b", re.IGNORECASE
)
_ALLOWED = re.compile(r'"[^"\s]*"')  # names that users' folders and features have
_STARTS_TEXT = {tokenize.STRING, tokenize.COMMENT}


def main() -> int:
    found = [*_idioms(), *_shared_names()]
    for line in found:
        print(line)
    return 1 if found else 0


def _idioms() -> Iterator[str]:
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    for path in [*ROOT.glob("*.md"), *files]:
        if path.name in ("CHANGELOG.md", "language.py") or path.suffix not in (
            ".py",
            ".pyx",
            ".pxd",
            ".h",
            ".md",
        ):
            continue
        for number, text in _texts(path):
            for match in _FORBIDDEN.finditer(_ALLOWED.sub("", text)):
                instead = [*INSTEAD.values()][match.lastindex - 1] if match.lastindex else ""
                yield f"{path.relative_to(ROOT)}:{number}: {match[0]!r}: write {instead}"


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """Strings and comments of a Python file, all lines of another, with the numbers of lines."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from enumerate(text.splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in _STARTS_TEXT:
            yield from enumerate(token.string.splitlines(), token.start[0])


def _shared_names() -> Iterator[str]:
    homes = defaultdict(list)
    for path in sorted((ROOT / "src").rglob("*.py")):
        for statement in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.ClassDef) and not statement.name.startswith("_"):
                homes[statement.name].append(str(path.relative_to(ROOT)))
    for name, paths in homes.items():
        if len(paths) > 1:
            yield f"{name} is a class in {' and '.join(paths)}: give one of them another name"


if __name__ == "__main__":
    sys.exit(main())
