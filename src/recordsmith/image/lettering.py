r"""In which letters is a text drawn? Pillow's own, the same everywhere, if its font has them.

That font knows little more than English. For other texts a font of the system is taken, if one is
found that has more of their letters; what it lacks is written in plain letters, or as a code such
as \u732b, so that names that differ look different; never as an empty box. No font is ever
fetched.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterable

from PIL import ImageFont

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
"""Each is looked for by its name, only for texts that those before it cannot write whole."""
_PROBED_SIZE = 12
_LETTERS_LOOKED_AT = 2000  # of all texts of a picture that a font is chosen by
_PLAIN = str.maketrans(
    {"ß": "ss", "Æ": "AE", "æ": "ae", "Œ": "OE", "œ": "oe", "Ø": "O", "ø": "o", "Ł": "L",
     "ł": "l", "Đ": "D", "đ": "d", "Þ": "Th", "þ": "th", "ð": "d", "…": "..."}
)  # fmt: skip
"""Letters that Unicode takes apart into no plain ones."""


def font_of(name: str, size: int) -> ImageFont.FreeTypeFont:
    """The font of this name, as `font_name_for` gives it."""
    if not name:
        return ImageFont.load_default(size)  # type: ignore[return-value]
    return ImageFont.truetype(name, size)


def font_name_for(texts: Iterable[str]) -> str:
    """The font that has the most of the letters of all these texts; "" is Pillow's own."""
    letters: set[str] = set()
    for text in texts:
        if len(letters) < _LETTERS_LOOKED_AT:
            letters.update(text[:_LETTERS_LOOKED_AT])
    return _name_for(frozenset(letter for letter in letters if not letter.isascii()))


def drawable(text: str, font: ImageFont.FreeTypeFont) -> str:
    """`text` in letters that the font has."""
    if text.isascii() and text.isprintable():
        return text
    name = font.path if isinstance(font.path, str) else ""  # Pillow's own has none
    # a letter with its marks apart, as macOS has names, becomes the one that fonts have
    return "".join(_drawn(letter, name) for letter in unicodedata.normalize("NFC", text))


@functools.lru_cache(maxsize=256)
def _name_for(letters: frozenset[str]) -> str:
    lacking = {"": sum(not _has("", letter) for letter in letters)}
    for name in _SYSTEM_FONTS:
        if not min(lacking.values()):
            break
        if _probed(name) is not None:
            lacking[name] = sum(not _has(name, letter) for letter in letters)
    return min(lacking, key=lacking.__getitem__)


def _drawn(letter: str, name: str) -> str:
    if _has(name, letter):
        return letter
    apart = unicodedata.normalize("NFKD", letter.translate(_PLAIN))
    plain = "".join(part for part in apart if not unicodedata.combining(part))
    return plain if plain and all(_has(name, part) for part in plain) else _code(letter)


def _code(letter: str) -> str:
    r"""\u732b, \n: as Python and JSON write a letter that cannot be shown."""
    return letter.encode("unicode_escape", "surrogatepass").decode()


@functools.lru_cache(maxsize=4096)
def _has(name: str, letter: str) -> bool:
    """Whether a font has a letter: if not, it draws the box that it draws for no letter at all."""
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
    """The font in a small size; None if this machine has it not."""
    try:
        return font_of(name, _PROBED_SIZE)
    except OSError:
        return None
