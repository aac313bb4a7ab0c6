"""Datasets -> pictures for people to look at. Writes nothing but pictures."""

from recordsmith.drawing.sheet import SheetReport, sheet

__all__ = ["SheetReport", "sheet"]
