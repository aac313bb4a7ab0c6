"""JSON Lines: one object per line; any line can be read on its own.

One pass finds the lines and the kinds of all keys. A line that is no object is a sample that
cannot be read, so that it is reported with all others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recordsmith.dataset.documents import json_fault
from recordsmith.errors import OptionError, SourceError
from recordsmith.example import Kind
from recordsmith.sources.json_values import KindSurvey, json_features
from recordsmith.sources.lines import TextRows, TextTable
from recordsmith.sources.row_columns import ColumnSink, category_text
from recordsmith.sources.source import Note


class JsonRows(TextTable["_JsonFile"]):
    """The rows of some files. Safe to read from several threads.

    kinds: of each key, by its name.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        marks: Sequence[tuple[str, ColumnSink]],
        kinds: Mapping[str, Kind],
        *,
        encoding: str,
    ) -> None:
        """Look through all files; `marks` hear of the keys that they are named with.

        Raises:
            OptionError: no row has a key of a name that was asked for.
            SourceError: a file has no rows; a key holds numbers and texts, or lists of lists.
            FileAccessError: a file cannot be read.
        """
        self.notices: list[str] = []
        survey = KindSurvey(kinds)
        self.files = []
        for number, path in enumerate(paths):
            file = _JsonFile(path, encoding)
            file.survey_rows(number, survey, marks)
            self.files.append(file)
        self.kinds, self._as_text = survey.finish(lambda where: self.place(*where), self.notices)
        for name in (*(name for name, _ in marks), *kinds):
            if name not in survey.keys:
                raise OptionError(
                    f"no row of {paths[0]} has the key {name!r}",
                    value=name,
                    expected=f"one of {', '.join(survey.keys)}",
                )

    def read(self, number: int, row: int, note: Note) -> dict[str, Any]:
        """The features of one row of one file.

        Raises:
            SourceError: the line is no object, or a value does not fit its kind.
        """
        place = self.place(number, row)
        try:
            found = _parse(self.files[number].text(row))
        except ValueError as error:
            file = self.files[number]
            raise SourceError(str(error), path=file.path, line=file.line(row)) from None
        return json_features(found, self.kinds, self._as_text, note, place)


class _JsonFile(TextRows):
    """One file, and where its rows are."""

    def survey_rows(
        self, number: int, survey: KindSurvey, marks: Sequence[tuple[str, ColumnSink]]
    ) -> None:
        """Find the rows and what they hold."""
        good_count = 0
        error = None
        lines = self.file.lines()
        offset = lines.offset
        for text in lines:
            start, offset = offset, lines.offset
            if text.isspace():
                continue
            row: dict[str, Any] = {}
            try:
                row = _parse(text)
                good_count += 1
            except ValueError as failure:
                error = error or failure
            self.add(start, lines.number - 1)
            survey.update(row, (number, len(self) - 1))
            for name, mark in marks:
                mark.append(category_text(row.get(name)), number)
        self.end(offset)
        if not good_count:
            raise SourceError(
                str(error) if len(self) else "no rows: all lines are blank",
                path=self.path,
                line=self.line(0) if len(self) else None,
                remedy='Write one object such as {"x": 1} on each line.',
            )


def _parse(text: str) -> dict[str, Any]:
    """Parse the object on one line.

    Raises:
        ValueError: the line is not a JSON object.
    """
    try:
        row = json.loads(text.rstrip())
    except json.JSONDecodeError as error:
        found = text.strip()
        if found in ("[", "{") or found.startswith("[{"):
            raise ValueError(
                f"not JSON Lines: found {found[:20]!r}, expected one object per line without "
                "commas between them"
            ) from None
        raise ValueError(f"not valid JSON: {error.msg} (column {error.colno})") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not valid JSON: {json_fault(error)}") from None
    if not isinstance(row, dict):
        raise ValueError(  # noqa: TRY004 - the line is wrong, not an argument
            f'expected an object such as {{"x": 1}}, found {type(row).__name__} {row!r:.40}'
        )
    return row
