"""Draw datasets, batches and reports as images and HTML pages."""

from recordsmith.drawing.batch import draw_batch
from recordsmith.drawing.sheet import SheetReport, sheet
from recordsmith.drawing.statistics_page import draw_statistics
from recordsmith.drawing.verify_page import draw_verify_report

__all__ = [
    "SheetReport",
    "draw_batch",
    "draw_statistics",
    "draw_verify_report",
    "sheet",
]
