"""Libraries of some extras: an import that fails names the extra to install.

    from recordsmith.support.libraries import cv2

They are imported on first use. Adapters for frameworks import theirs in `errors.needs_extra`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from recordsmith.support.errors import needs_extra

# ruff: noqa: PLC0414 - exported
if TYPE_CHECKING:
    import av as av
    import cv2 as cv2
    import jinja2 as jinja2
    import markupsafe as markupsafe
    import PIL as PIL
    import simplejpeg as simplejpeg
    import yaml as yaml
    from PIL import Image as Image
    from PIL import ImageDraw as ImageDraw
    from PIL import ImageFilter as ImageFilter
    from PIL import ImageFont as ImageFont

_LIBRARIES = {
    "cv2": ("cv2", "images"),
    "simplejpeg": ("simplejpeg", "images"),
    "PIL": ("PIL", "images"),
    "Image": ("PIL.Image", "images"),
    "ImageDraw": ("PIL.ImageDraw", "images"),
    "ImageFilter": ("PIL.ImageFilter", "images"),
    "ImageFont": ("PIL.ImageFont", "images"),
    "yaml": ("yaml", "images"),
    "av": ("av", "video"),
    "jinja2": ("jinja2", "cli"),
    "markupsafe": ("markupsafe", "cli"),
}
"""Name -> module, and the extra that installs it."""


def __getattr__(name: str) -> Any:
    if name not in _LIBRARIES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, extra = _LIBRARIES[name]
    with needs_extra(extra, module.partition(".")[0]):
        value = globals()[name] = import_module(module)
    return value
