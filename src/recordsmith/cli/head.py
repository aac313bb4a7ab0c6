"""`recordsmith head`."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recordsmith.cli import console
from recordsmith.cli.options import (
    WHICH,
    At,
    Json,
    Paths,
    Split,
    Where,
    chosen_records,
    one_or_all,
    parse_numbers,
)
from recordsmith.errors import DataError, OptionError, option

_COUNT = 5  # records that are printed without options

if TYPE_CHECKING:
    from recordsmith.example import MessageDecoder


def head(
    paths: Paths,
    count: Annotated[
        int | None,
        typer.Option(
            "-n",
            "--count",
            help="The first N records. [default: 5; all with --at]",
            min=0,
            metavar="N",
            rich_help_panel=WHICH,
        ),
    ] = None,
    at: At = None,
    where: Where = None,
    descriptors: Annotated[
        str | None,
        typer.Option(
            help="Your own message types, written by "
            "`protoc --include_imports --descriptor_set_out=FILE`.",
            metavar="FILE",
        ),
    ] = None,
    message: Annotated[
        str | None,
        typer.Option(help="The message type of the records, such as my.Box.", metavar="NAME"),
    ] = None,
    split: Split = None,
    json: Json = False,
) -> None:
    """Print the first records, or those that you choose.

    Records that are not Examples are printed as numbered fields, or, with --descriptors and
    --message, with the names of your .proto file.

    Example: `recordsmith head out -n 3`

    Selected records: `recordsmith head out --at 143,9`

    Filter: `recordsmith head out --where 'image/class/label == 3'`

    Own messages: `recordsmith head a.tfrecord --descriptors my.pb --message my.Box`
    """
    from recordsmith.cli.examples import describe, to_document  # needs NumPy: not for --help
    from recordsmith.cli.other_payloads import describe_message, message_document
    from recordsmith.dataset import records_of

    if (descriptors is None) != (message is None):
        raise OptionError(
            f"{option('descriptors')} and {option('message')} need each other",
            option="descriptors",
            remedy="Pass both of them, or neither.",
        )

    decoder = None
    if descriptors is not None and message is not None:
        from recordsmith.example import MessageDecoder

        decoder = MessageDecoder(descriptors, message)
    documents = []
    shown = 0
    places: dict[int, int] = {}  # by position, as typed
    if at is not None:
        places = {
            number: place for place, number in enumerate(dict.fromkeys(parse_numbers(at, "at")))
        }
    chosen = chosen_records(one_or_all(paths), split, at, where)
    if count is None and at is None:
        count = _COUNT
    records: Any = zip(chosen.positions, records_of(chosen.dataset).located_records(), strict=False)
    if [*places] != sorted(places):
        records = sorted(records, key=lambda found: places[found[0]])
    for position, (shard, number, record) in islice(records, count):
        fields = None if decoder is None else _decoded(decoder, record, str(shard.location), number)
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
    elif count != 0 and not shown:
        print("no records" if where is None else "no record matches")


def _decoded(decoder: MessageDecoder, record: bytes, path: str, number: int) -> dict[str, Any]:
    try:
        return decoder.decode(record)
    except DataError as error:
        error.path, error.record = path, number
        raise
