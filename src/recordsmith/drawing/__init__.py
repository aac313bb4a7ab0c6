"""Datasets and batches -> pictures for people to look at. Writes nothing but pictures."""

from recordsmith.drawing.batch import draw_batch
from recordsmith.drawing.sheet import SheetReport, sheet

__all__ = ["SheetReport", "draw_batch", "sheet"]
