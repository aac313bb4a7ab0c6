"""Payloads <-> features: tf.train.Example and SequenceExample, without protobuf.

One at a time (`codec`) or a batch as columns (`columns`). Knows neither frames nor files.
tensorflow/core/example/example.proto and feature.proto define the messages.
"""

from recordsmith.format.example.canonical import canonical
from recordsmith.support.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(  # `__init__.pyi` has the same for type checkers
    __name__,
    {
        "codec": (
            "Features FeatureValue RankingList SequenceExample decode_example decode_payload "
            "decode_ranking_list decode_sequence_example encode_example "
            "encode_sequence_example"
        ),
        "columns": (
            "ColumnDecoder ColumnEncoder FeatureRequest FeatureSpec decode_columns "
            "encode_columns valid_rows"
        ),
        "payload": "Kind PayloadKind classify",
        "rewriting": "KeyAction Rewriter",
        "schema": "FeatureSchema Schema SchemaSurvey",
        "spans": (
            "InnerSpans context_as_example delimited field_spans merged step_counts with_features"
        ),
        "values": "BytesArray Column RaggedArray hash_spans",
    },
)
__all__ += ["canonical"]
