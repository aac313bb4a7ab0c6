"""Shows the plain code of `Example:` in docstrings as code."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^Example:\n((?:    .*\n?|\n)+)", re.MULTILINE)


class Examples(griffe.Extension):
    """Puts examples into code blocks, unless they are sessions of the interpreter."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(_fenced, obj.docstring.value)


def _fenced(match: re.Match[str]) -> str:
    code = textwrap.dedent(match[1]).strip("\n")
    language = "pycon" if code.startswith(">>>") else "python"
    return f"**Example**\n\n```{language}\n{code}\n```\n"
