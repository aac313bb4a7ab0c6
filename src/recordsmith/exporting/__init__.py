"""Export records to files for other tools: folders, annotations, tables, archives.

There is one module per format.
"""

from recordsmith.exporting.export import FORMATS, ExportReport, export

__all__ = ["FORMATS", "ExportReport", "export"]
