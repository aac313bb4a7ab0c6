"""Export records to files for other tools: folders, annotations, tables, archives.

There is one module per format.
"""

from recordsmith.exporting.dataset_card import Card, card
from recordsmith.exporting.export_dataset import ExportReport, export
from recordsmith.exporting.exporter import EXPORTERS

__all__ = ["EXPORTERS", "Card", "ExportReport", "card", "export"]
