"""Records -> files that other tools read: folders, annotations, tables, archives.

One file a format. Knows nothing of where the records came from, nor of packing.
"""

from recordsmith.exporting.export import FORMATS, ExportReport, export

__all__ = ["FORMATS", "ExportReport", "export"]
