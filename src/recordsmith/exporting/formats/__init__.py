"""The export formats, one in each module; `exporter.EXPORTERS` has their names."""
