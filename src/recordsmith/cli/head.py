"""`recordsmith head`."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

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
)
from recordsmith.cli.parsing import parse_numbers
from recordsmith.errors import DataError, OptionError, option

_COUNT = 5  # records that are printed without options


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
    """Records that are not Examples are printed as numbered fields, or, with --descriptors and
    --message, with the names of your .proto file.

    Example: `recordsmith head out -n 3`

    Selected records: `recordsmith head out --at 143,9`

    Filter: `recordsmith head out --where 'image/class/label == 3'`

    Own messages: `recordsmith head a.tfrecord --descriptors my.pb --message my.Box`
    """
    from recordsmith.cli import record_text
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
    chosen = chosen_records(one_or_all(paths), split, at, where)
    records: Any = zip(chosen.positions, records_of(chosen.dataset).located_records(), strict=False)
    if at is not None:  # in the order as typed
        order = {number: rank for rank, number in enumerate(dict.fromkeys(parse_numbers(at, "at")))}
        if [*order] != sorted(order):
            records = sorted(records, key=lambda numbered: order[numbered[0]])
    elif count is None:
        count = _COUNT
    documents = []
    is_empty = True
    for position, (shard, number, record) in islice(records, count):
        is_empty = False
        fields = None
        if decoder is not None:
            try:
                fields = decoder.decode(record)
            except DataError as error:
                error.path, error.record = str(shard.location), number
                raise
        if json and fields is None:
            documents.append({"position": position, **record_text.to_document(record)})
        elif json:
            named = {"payload": message, "message": record_text.json_value(fields)}
            documents.append({"position": position, "size_bytes": len(record), **named})
        else:
            print(console.bold(f"record {position}") + f"  {console.size(len(record))}")
            for line in (
                record_text.describe(record)
                if fields is None
                else record_text.describe_message(fields)
            ):
                print(f"  {line}")
    if json:
        console.print_json({"records": documents})
    elif count != 0 and is_empty:
        print("no records" if where is None else "no record matches")
