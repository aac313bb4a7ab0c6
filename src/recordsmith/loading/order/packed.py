"""Packs documents of tokens into rows of equal length, for language models.

A row is a record that is made of others: an Example with the tokens of several documents. Which
documents make up which row is computed once from their lengths, the same for all epochs; so rows
are shuffled, shared among ranks and resumed as the records of any dataset.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from recordsmith.dataset import Dataset, Faults, RecordLocation, readable_counts, records_of
from recordsmith.format.example import (
    BytesArray,
    ColumnDecoder,
    ColumnEncoder,
    FeatureSchema,
    FeatureSpec,
    Schema,
)
from recordsmith.loading.order.inputs import (
    LoaderInput,
    MadePayloads,
    bytes_read,
    check_random_access,
)
from recordsmith.loading.order.row_layout import BestFitLayout, Documents, RowLayout, StreamLayout
from recordsmith.loading.order.shuffle import BlockShuffle, DatasetOrder
from recordsmith.loading.preview import Preview
from recordsmith.loading.record_cache import RecordCache
from recordsmith.support.buffers import AllocateBytes, Int64Array, empty_bytes, offsets_from_lengths
from recordsmith.support.errors import (
    CorruptDataError,
    DataError,
    Defect,
    NotAnExampleError,
    OptionError,
    option,
)
from recordsmith.support.number_options import record_count_number, seed_number, whole_number
from recordsmith.support.permutation import Permutations
from recordsmith.support.words import suggest_names

_FEATURES = ("tokens", "document_ids", "positions", "loss_mask")
_LONGEST_ROW = 1 << 24
_LONG_ROWS = 4  # of which a document is kept for its next ones
_KEPT_BYTES = 64 << 20


class Packed(LoaderInput):
    """Documents of a dataset, packed into rows of `length` tokens, for a Loader.

    A document is a record with a list of int64 tokens; records without tokens are skipped. A row
    has four features, all int64, (length,):

    - `tokens`: of several documents, one after the other; 0 for padding;
    - `document_ids`: 1 for the tokens of the first document of the row, 2 for the second, …; 0 for
      padding;
    - `positions`: the place of each token in the part of its document that is in the row, from 0;
    - `loss_mask`: 1 for each token that follows another one of its document in the row, so that it
      can be predicted; 0 for the first token of each part of a document, and for padding.

    The lengths of the documents are read once, which takes a pass over the records, and kept next
    to the indexes. Each document's tokens are in the rows exactly once. A damaged document counts
    as one token, and the row that has it is an error, which `skip_errors` of a loader skips.

    Attributes:
        length: tokens in a row.
        token_count: of all documents, with their `eos`.
        fill: which part of all rows is tokens; the rest is padding.

    Example:
        with rs.ShardWriter("text.tfrecord") as writer:
            for length in (5, 20, 9, 30):
                writer.write_example({"tokens": np.arange(length)})
        packed = rs.Packed(rs.open("text.tfrecord"), "tokens", length=16)
        for batch in rs.Loader(packed, batch_size=2, shuffle=True):
            print(batch["tokens"])  # int64, (2, 16)
    """

    def __init__(
        self,
        dataset: Dataset,
        tokens: str,
        *,
        length: int,
        eos: int | None = None,
        split_documents: bool = True,
        long_documents: Literal["cut", "error"] = "cut",
        seed: int | None = 0,
        window: int = 65_536,
    ) -> None:
        """Read the lengths of the documents and lay out the rows.

        Args:
            dataset: its records are the documents.
            tokens: the key of the feature with the tokens, int64.
            length: how many tokens a row has.
            eos: a token that is appended to each document.
            split_documents: True puts the documents end to end and cuts them wherever a row is
                full, so that only the last row has padding. False keeps each document in one row:
                best fit, the longest ones first, within windows; rows are padded.
            long_documents: without `split_documents`, whether a document that is longer than a row
                is cut into pieces, or an error.
            seed: for the order in which documents are packed; None for that of the dataset.
            window: without `split_documents`, how many documents are packed together; more of them
                need less padding.

        Raises:
            OptionError: the tokens are not int64, or no record has any; a document is too long.
        """
        check_random_access(dataset)
        self.datasets = (dataset,)
        self.records = self
        self.length = whole_number("length", length, 1, _LONGEST_ROW)
        self._key = tokens
        self._eos = None if eos is None else whole_number("eos", eos, -(2**63), 2**63 - 1)
        if long_documents not in ("cut", "error"):
            raise OptionError(
                option="long_documents", value=long_documents, expected="'cut' or 'error'"
            )
        window = record_count_number("window", window)
        seed = None if seed is None else seed_number(seed)
        _check_tokens(dataset, tokens)
        order = None if seed is None else Permutations(len(dataset), seed, "packed")
        self._documents = documents = Documents(
            readable_counts(dataset, tokens), eos is not None, order
        )
        if not split_documents and long_documents == "error":
            self._check_lengths()
        layout: RowLayout
        if split_documents:
            layout = StreamLayout(documents, self.length)
        else:
            layout = BestFitLayout(documents, self.length, window)
        if not layout.row_count:
            raise OptionError(f"no record has {tokens!r}", option="tokens", value=tokens)
        self._layout = layout
        self._cache = RecordCache(_KEPT_BYTES)
        self._described = {
            "tokens": tokens,
            "length": self.length,
            "eos": self._eos,
            "window": None if split_documents else window,
            "seed": seed,
            "token_count": layout.token_count,
        }
        self.record_count = layout.row_count
        self.token_count = layout.token_count
        self.fill = layout.token_count / (layout.row_count * self.length)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.record_count

    def __repr__(self) -> str:
        rows = f"{len(self)} rows of {self.length} tokens"
        return f"Packed({rows} from {len(self.datasets[0])} records, fill {self.fill:.4f})"

    def order(self, *, shuffle: bool | BlockShuffle, seed: int) -> DatasetOrder:
        """Return the order of an epoch."""
        return _PackedOrder(len(self), self._described, shuffle=shuffle, seed=seed)

    def previews(self) -> list[Preview]:
        """Return the schema of the rows."""
        size, count = self.length, len(self)
        features = dict.fromkeys(_FEATURES, FeatureSchema("int64", size, size, count, (size,)))
        return [Preview(Schema("Example", count, {"features": features}), True, features, True)]

    def first_payloads(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield nothing: rows have no images."""
        return iter(())

    # -- rows as records ---------------------------------------------------------------------------

    def read_records(
        self,
        positions: Int64Array,
        allocate: AllocateBytes = empty_bytes,
        faults: Faults | None = None,  # noqa: ARG002
    ) -> BytesArray:
        """Return the payloads of some rows; the first damaged document is raised."""
        rows, documents, starts, stops = self._layout.pieces(positions)
        documents, members = np.unique(documents, return_inverse=True)
        values, begins, read = self._read_documents(documents, members, starts, stops)
        # padding is one more piece of each row, of document 0
        counts = np.bincount(rows, minlength=len(positions))
        row_ends = np.cumsum(counts)
        lengths = stops - starts
        paddings = self.length - np.diff(offsets_from_lengths(lengths)[row_ends], prepend=0)
        ids = np.arange(1, len(rows) + 1) - np.repeat(row_ends - counts, counts)
        lengths, ids = np.insert(lengths, row_ends, paddings), np.insert(ids, row_ends, 0)
        sources = np.insert(begins[members] + starts, row_ends, 0)

        document_ids = np.repeat(ids, lengths)
        within = np.arange(len(document_ids)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        within[document_ids == 0] = 0
        tokens = values[within + np.repeat(sources, lengths)]
        tokens[document_ids == 0] = 0
        loss_mask = (within > 0).astype(np.int64)
        shape = (len(positions), self.length)
        features = zip(_FEATURES, (tokens, document_ids, within, loss_mask), strict=True)
        encoder = ColumnEncoder({name: values.reshape(shape) for name, values in features})
        data, offsets = encoder.encode(0, len(positions))
        payloads = allocate(len(data))
        payloads[:] = data
        return MadePayloads(BytesArray(payloads, offsets), read)

    def record_sizes(self, positions: Int64Array) -> Int64Array:
        """Return how many bytes of documents are read for each row: int64, (count,)."""
        rows, documents, _, _ = self._layout.pieces(positions)
        sizes = records_of(self.datasets[0]).record_sizes(documents)
        totals = np.zeros(len(positions), np.int64)
        np.add.at(totals, rows, sizes)
        return totals

    def locate_record(self, position: int) -> RecordLocation:
        """Return the file, number and offset of the first document of a row."""
        first = self._layout.pieces(np.array([position])).documents[0]
        return records_of(self.datasets[0]).locate_record(int(first))

    # -- documents ---------------------------------------------------------------------------------

    def _check_lengths(self) -> None:
        longest = int(self._documents.token_counts.argmax())
        token_count = int(self._documents.lengths(np.array([longest]))[0])
        if token_count > self.length:
            raise OptionError(
                f"record {longest} has {token_count} tokens, more than a row of {self.length}",
                option="length",
                value=self.length,
                expected=f"at least {token_count}",
                remedy=f"Cut long documents with {option('long_documents', 'cut')}.",
            )

    def _read_documents(
        self, documents: Int64Array, members: Int64Array, starts: Int64Array, stops: Int64Array
    ) -> tuple[Int64Array, Int64Array, int]:
        """Return the tokens of documents end to end, where token 0 of each would be, and how many
        bytes were read.

        Args:
            documents: int64, (documents,).
            members, starts, stops: int64, (pieces,): the index of the document of each piece and
                which of its tokens are used. Of long documents, only these are returned.
        """
        counts = self._documents.lengths(documents)
        is_long = counts > _LONG_ROWS * self.length
        long_rows = np.flatnonzero(is_long).tolist()
        kept = {
            row: self._cache.get(int(documents[row]), 8 * int(counts[row])) for row in long_rows
        }
        is_read = np.array([kept.get(row) is None for row in range(len(documents))], np.bool_)
        read = documents[is_read]
        payloads = records_of(self.datasets[0]).read_records(read)
        values = [self._decode(read, payloads, np.flatnonzero(~is_long[is_read]))]
        begins = offsets_from_lengths(np.where(is_long, 0, counts))[:-1]
        end = len(values[0])
        for row in long_rows:
            tokens = kept[row]
            if tokens is None:
                tokens = self._decode(read, payloads, np.array([is_read[:row].sum()]))
                self._cache.keep(int(documents[row]), tokens)
            low, high = starts[members == row].min(), stops[members == row].max()
            values.append(tokens[low:high])
            begins[row] = end - low
            end += len(values[-1])
        tokens = np.concatenate(values) if long_rows else values[0]
        return tokens, begins, bytes_read(payloads)

    def _decode(self, documents: Int64Array, payloads: BytesArray, rows: Int64Array) -> Int64Array:
        """Return the tokens of some rows of documents end to end, each with its eos."""
        key = self._key
        decoder = ColumnDecoder({key: FeatureSpec("int64", "ragged")})
        try:
            decoder.append(payloads.buffer, payloads.offsets[rows], payloads.lengths[rows])
            column: Any = decoder.finish()[key]
            expected = self._documents.token_counts[documents[rows]]
            changed = np.flatnonzero(column.lengths != expected)
            if changed.size:
                raise CorruptDataError(
                    Defect.FEATURE_SHAPE,
                    f"feature {key!r} has another number of values than when it was packed",
                    found=str(column.lengths[changed[0]]),
                    expected=str(expected[changed[0]]),
                    record=int(changed[0]),
                    feature=key,
                )
        except DataError as error:
            document = int(documents[rows[error.record or 0]])
            raise records_of(self.datasets[0]).locate_record(document).located(error) from None
        if self._eos is None:
            return np.asarray(column.values)
        return np.insert(column.values, column.row_splits[1:], self._eos)


class _PackedOrder(DatasetOrder):
    """An order of rows; its description has what they are made of."""

    def __init__(self, count: int, packed: dict[str, Any], **options: Any) -> None:
        super().__init__(count, **options)
        self._packed = packed

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "packed": self._packed}


def _check_tokens(dataset: Dataset, key: str) -> None:
    """Raise OptionError if the schema shows that a feature has no int64 tokens."""
    schema, _ = dataset.view.preview_schema()
    if schema.payload == "SequenceExample":
        raise NotAnExampleError(schema.payload, "Examples")
    known = schema.features.get(key)
    if known is None:
        hint = suggest_names(key, schema.features, "they have no features")
        raise OptionError(
            f"the records have no feature {key!r}; {hint}", option="tokens", value=key
        )
    if known.kind != "int64":
        raise OptionError(
            f"feature {key!r} is of kind {known.kind}",
            option="tokens",
            value=key,
            expected="the key of a feature of kind int64",
        )
