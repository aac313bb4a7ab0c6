"""Draw datasets, batches and reports as images and HTML pages."""

from recordsmith.drawing.batch import draw_batch
from recordsmith.drawing.report_page import save_html
from recordsmith.drawing.sheet import SheetReport, sheet

__all__ = [
    "SheetReport",
    "draw_batch",
    "save_html",
    "sheet",
]
