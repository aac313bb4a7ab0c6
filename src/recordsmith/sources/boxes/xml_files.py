"""Parses XML from others: nothing is expanded, no other file is opened, and no text is endless."""

from __future__ import annotations

from xml.parsers import expat

from recordsmith.errors import SourceError

MAX_TOKEN_BYTES = 1 << 22
"""Of a tag or text, such as a polygon of CVAT."""


def parse_xml(parser: expat.XMLParserType, data: bytes, name: str) -> None:
    """Parse a file, called `name` in messages, with the handlers of a parser."""
    for start in range(0, len(data), MAX_TOKEN_BYTES):  # before the parser copies it
        stop = start + MAX_TOKEN_BYTES
        if stop < len(data) and data.find(b"<", start, stop) < 0:
            raise SourceError(
                f"a tag or text is longer than {MAX_TOKEN_BYTES:,} bytes",
                path=name,
                line=data.count(b"\n", 0, start) + 1,
                remedy="Remove it, or simplify its polygon.",
            )

    def entity(*_: object) -> None:
        raise SourceError(
            "the file declares XML entities, which are refused for security",
            path=name,
            line=parser.CurrentLineNumber,
            remedy="Remove its DOCTYPE.",
        )

    parser.EntityDeclHandler = entity
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise SourceError(f"not valid XML: {reason}", path=name, line=error.lineno) from None
    except SourceError:
        raise
    except (ValueError, LookupError) as error:  # an encoding that expat does not know
        raise SourceError(str(error), path=name, remedy="Save the file as UTF-8.") from None
