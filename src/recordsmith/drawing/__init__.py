"""Draw datasets, batches and reports as images and HTML pages."""

from recordsmith.drawing.batch import draw_batch
from recordsmith.drawing.sheet import SheetReport, sheet
from recordsmith.drawing.stats_page import draw_stats
from recordsmith.drawing.verify_page import draw_verify_report

__all__ = [
    "SheetReport",
    "draw_batch",
    "draw_stats",
    "draw_verify_report",
    "sheet",
]
