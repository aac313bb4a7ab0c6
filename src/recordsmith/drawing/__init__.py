"""Datasets and batches -> pictures for people to look at. Writes nothing but pictures
and pages.
"""

from recordsmith.drawing.batch import draw_batch
from recordsmith.drawing.sheet import SheetReport, sheet
from recordsmith.drawing.statistics_page import draw_statistics

__all__ = ["SheetReport", "draw_batch", "draw_statistics", "sheet"]
