from recordsmith.dataset.arrow.arrays import ArrowDecoder as ArrowDecoder
from recordsmith.dataset.arrow.columns import ArrowColumns as ArrowColumns
from recordsmith.dataset.arrow.columns import feature_kinds as feature_kinds
from recordsmith.dataset.arrow.columns import read_stream as read_stream
from recordsmith.dataset.arrow.library import ArrowStream as ArrowStream
from recordsmith.dataset.arrow.restoring import schema_as_text as schema_as_text
from recordsmith.dataset.arrow.restoring import schema_from_text as schema_from_text
from recordsmith.dataset.arrow.schema import arrow_schema as arrow_schema
