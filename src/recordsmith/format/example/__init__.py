"""Payloads <-> features: tf.train.Example and SequenceExample, without protobuf.

One at a time (`codec`) or a batch as columns (`columns`). Knows neither frames nor files.
tensorflow/core/example/example.proto and feature.proto define the messages.
"""

from recordsmith.format.example.canonical import canonical
from recordsmith.format.example.codec import (
    Features,
    FeatureValue,
    RankingList,
    SequenceExample,
    decode_example,
    decode_payload,
    decode_ranking_list,
    decode_sequence_example,
    encode_example,
    encode_sequence_example,
)
from recordsmith.format.example.columns import (
    ColumnDecoder,
    ColumnEncoder,
    FeatureRequest,
    FeatureSpec,
    decode_columns,
    encode_columns,
    valid_rows,
)
from recordsmith.format.example.payload import Kind, PayloadKind, classify
from recordsmith.format.example.rewriting import KeyAction, Rewriter
from recordsmith.format.example.schema import FeatureSchema, Schema, SchemaSurvey
from recordsmith.format.example.spans import (
    InnerSpans,
    context_as_example,
    contexts_as_examples,
    delimited,
    field_spans,
    step_counts,
)
from recordsmith.format.example.values import BytesArray, Column, RaggedArray, hash_spans

__all__ = [
    "BytesArray",
    "Column",
    "ColumnDecoder",
    "ColumnEncoder",
    "FeatureRequest",
    "FeatureSchema",
    "FeatureSpec",
    "FeatureValue",
    "Features",
    "InnerSpans",
    "KeyAction",
    "Kind",
    "PayloadKind",
    "RaggedArray",
    "RankingList",
    "Rewriter",
    "Schema",
    "SchemaSurvey",
    "SequenceExample",
    "canonical",
    "classify",
    "context_as_example",
    "contexts_as_examples",
    "decode_columns",
    "decode_example",
    "decode_payload",
    "decode_ranking_list",
    "decode_sequence_example",
    "delimited",
    "encode_columns",
    "encode_example",
    "encode_sequence_example",
    "field_spans",
    "hash_spans",
    "step_counts",
    "valid_rows",
]
