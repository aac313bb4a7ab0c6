"""Export records to files for other tools: folders, annotations, tables, archives.

There is one module per format.
"""

from recordsmith.support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "dataset_card": "card",
        "export_dataset": "ExportReport export",
        "export_writer": "ExportWriter",
        "exporter": "EXPORTERS RecordFiles",
        "readers": "reader_code",
    },
)
