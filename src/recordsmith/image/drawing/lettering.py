r"""Choose a font for a text and replace the letters that the font lacks.

Pillow's own font, the same on every machine, covers little more than English. Other texts use the
system font that has most of their letters. Missing letters are replaced by plain ones or by a code
such as \u732b, so that different names look different. Fonts are never downloaded.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterable

from recordsmith.support.libraries import ImageFont

_SYSTEM_FONTS = (
    "DejaVuSans.ttf",
    "NotoSansCJK-Regular.ttc",
    "NotoSans-Regular.ttf",
    "LiberationSans-Regular.ttf",
    "DroidSansFallbackFull.ttf",
    "DroidSansFallback.ttf",
    "wqy-zenhei.ttc",
    "wqy-microhei.ttc",
    "NotoSansArabic-Regular.ttf",
    "NotoSansHebrew-Regular.ttf",
    "NotoSansDevanagari-Regular.ttf",
    "NotoSansThai-Regular.ttf",
    "Arial Unicode.ttf",  # from here on macOS
    "Hiragino Sans GB.ttc",
    "AppleSDGothicNeo.ttc",
    "Arial.ttf",
    "arial.ttf",  # from here on Windows
    "msyh.ttc",
    "msgothic.ttc",
    "malgun.ttf",
    "Nirmala.ttf",
    "LeelawUI.ttf",
)
"""Tried in this order, until a font has all letters of the text."""
_PROBED_SIZE = 12
_LETTERS_CHECKED = 2000  # of the texts of an image, to choose a font by
_PLAIN = str.maketrans(
    {"ß": "ss", "Æ": "AE", "æ": "ae", "Œ": "OE", "œ": "oe", "Ø": "O", "ø": "o", "Ł": "L",
     "ł": "l", "Đ": "D", "đ": "d", "Þ": "Th", "þ": "th", "ð": "d", "…": "..."}
)  # fmt: skip
"""Letters that Unicode does not decompose into plain ones."""


def load_font(name: str, size: int) -> ImageFont.FreeTypeFont:
    """Load the font with a name that `find_font` returned."""
    if not name:
        return ImageFont.load_default(size)  # type: ignore[return-value]
    return ImageFont.truetype(name, size)


def find_font(texts: Iterable[str]) -> str:
    """The name of the font that has most letters of these texts; "" for Pillow's own."""
    letters: set[str] = set()
    for text in texts:
        if len(letters) < _LETTERS_CHECKED:
            letters.update(text[:_LETTERS_CHECKED])
    return _name_for(frozenset(letter for letter in letters if not letter.isascii()))


def drawable(text: str, font: ImageFont.FreeTypeFont) -> str:
    """`text` with the letters that the font lacks replaced."""
    if text.isascii() and text.isprintable():
        return text
    name = font.path if isinstance(font.path, str) else ""  # Pillow's own font has no path
    # macOS decomposes letters in file names; fonts have the composed ones
    return "".join(_replacement(letter, name) for letter in unicodedata.normalize("NFC", text))


@functools.lru_cache(maxsize=256)
def _name_for(letters: frozenset[str]) -> str:
    lacking = {"": sum(not _has("", letter) for letter in letters)}
    for name in _SYSTEM_FONTS:
        if not min(lacking.values()):
            break
        if _probed(name) is not None:
            lacking[name] = sum(not _has(name, letter) for letter in letters)
    return min(lacking, key=lacking.__getitem__)


def _replacement(letter: str, name: str) -> str:
    if _has(name, letter):
        return letter
    apart = unicodedata.normalize("NFKD", letter.translate(_PLAIN))
    plain = "".join(part for part in apart if not unicodedata.combining(part))
    if plain and all(_has(name, part) for part in plain):
        return plain
    return letter.encode("unicode_escape", "surrogatepass").decode()  # such as \u732b or \n


@functools.lru_cache(maxsize=4096)
def _has(name: str, letter: str) -> bool:
    """Whether a font has a letter. For a missing one it draws the same box as for U+FFFF."""
    if letter == " ":
        return True
    if not letter.isprintable():
        return False
    font = _probed(name)
    return font is not None and _shape(font, letter) != _shape(font, "\uffff")


def _shape(font: ImageFont.FreeTypeFont, letter: str) -> tuple[tuple[int, int], bytes]:
    mask = font.getmask(letter)
    return mask.size, bytes(mask)


@functools.lru_cache(maxsize=16)
def _probed(name: str) -> ImageFont.FreeTypeFont | None:
    """The font in a small size; None if it is not installed."""
    try:
        return load_font(name, _PROBED_SIZE)
    except OSError:
        return None
