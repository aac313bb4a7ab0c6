from recordsmith.exporting.dataset_card import card as card
from recordsmith.exporting.export_dataset import ExportReport as ExportReport
from recordsmith.exporting.export_dataset import export as export
from recordsmith.exporting.export_writer import ExportWriter as ExportWriter
from recordsmith.exporting.exporter import EXPORTERS as EXPORTERS
from recordsmith.exporting.exporter import RecordFiles as RecordFiles
from recordsmith.exporting.readers import reader_code as reader_code
