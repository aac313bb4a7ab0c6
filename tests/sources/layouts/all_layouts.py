"""All layouts, by family."""

from __future__ import annotations

from . import archives, arrays, boxes, class_folders, nothing, pairs, tables
from .layout import LAYOUTS

__all__ = ["LAYOUTS", "archives", "arrays", "boxes", "class_folders", "nothing", "pairs", "tables"]
