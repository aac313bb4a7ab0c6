"""`recordsmith head`."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

import typer

import recordsmith as rs
from recordsmith.cli import console
from recordsmith.cli.options import Json, Paths, Split, one_or_all
from recordsmith.errors import CorruptDataError, OptionError


def head(
    paths: Paths,
    count: Annotated[
        int, typer.Option("-n", "--count", help="How many examples.", min=0, metavar="N")
    ] = 5,
    descriptors: Annotated[
        str | None,
        typer.Option(
            help="What protoc --include_imports --descriptor_set_out=FILE wrote, for records that "
            "are messages of your own.",
            metavar="FILE",
        ),
    ] = None,
    message: Annotated[
        str | None,
        typer.Option(help="Which message of the descriptors the records are.", metavar="NAME"),
    ] = None,
    split: Split = None,
    json: Json = False,
) -> None:
    """Show the first examples of a dataset, readable.

    Records that are no Examples are shown as the fields of a message of unknown type; with
    --descriptors and --message by the names in its .proto file.

    Example: `recordsmith head out -n 3`

    Of messages: `recordsmith head a.tfrecord --descriptors my.pb --message my.package.Detection`
    """
    from recordsmith.cli.examples import describe, to_document  # NumPy: not for --help
    from recordsmith.cli.messages import describe_message, message_document

    if (descriptors is None) != (message is None):
        raise OptionError("--descriptors and --message go together; expected both, or none")
    decoder = None
    if descriptors is not None and message is not None:
        decoder = rs.MessageDecoder(descriptors, message)
    documents = []
    shown = 0
    records = rs.open(one_or_all(paths), split).located_records()
    for position, (shard, number, record) in enumerate(islice(records, count)):
        fields = None if decoder is None else _decoded(decoder, record, str(shard.path), number)
        if json:
            document = (
                to_document(record)
                if fields is None
                else {
                    "size_bytes": len(record),
                    "payload": message,
                    "message": message_document(fields),
                }
            )
            documents.append({"position": position, **document})
        else:
            print(console.bold(f"record {position}") + f"  {console.size(len(record))}")
            for line in describe(record) if fields is None else describe_message(fields):
                print(f"  {line}")
        shown += 1
    if json:
        console.print_json({"records": documents})
    elif count and not shown:
        print("there are no records")


def _decoded(decoder: rs.MessageDecoder, record: bytes, path: str, number: int) -> dict[str, Any]:
    try:
        return decoder.decode(record)
    except CorruptDataError as error:
        error.path, error.position = path, number
        raise
