"""What the viewer serves: the page, its JSON, images and reports."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pkgutil import get_data
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from recordsmith.dataset import (
    Dataset,
    FindingsWriter,
    Paths,
    RecordPositions,
    key_text,
    locate_each,
)
from recordsmith.format.example import keys
from recordsmith.image import COLOUR_COUNT, label_colour
from recordsmith.stores import Location, MemoryStore
from recordsmith.support.errors import DataError, OptionError, RecordsmithError
from recordsmith.support.work import processor_count
from recordsmith.viewing.completion import complete
from recordsmith.viewing.lru_cache import LruCache
from recordsmith.viewing.record_details import RecordDetails
from recordsmith.viewing.records import ViewedRecords
from recordsmith.viewing.rows import MAX_COLUMNS, make_row
from recordsmith.viewing.scans import ViewKey
from recordsmith.viewing.selections import Selected
from recordsmith.viewing.tiles import SIZES, TileMaker

if TYPE_CHECKING:
    from recordsmith.viewing.facets import FacetCounts
    from recordsmith.viewing.reports import ReportJobs

_Result = TypeVar("_Result")

_MAX_VIEWS = 12
_MAX_TILES = 400
_MAX_LISTED = 2000  # features, splits, classes of the document of the dataset
_READ_TOGETHER = (8, 16, 32)  # tiles: few at first, for an early first one
_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
_PAGE_NAME = re.compile(rf"[a-z-]{{1,40}}\.({'|'.join(_TYPES)})")
_WAIT_SECONDS = 0.5  # for the first records of a view
_LARGEST = 2**62


class InitialView(NamedTuple):
    """What was opened: paths and a split, as commands have them, or a Dataset without paths; and
    what the page shows first: a condition, the position of a record.
    """

    paths: tuple[str, ...] = ()
    split: str | None = None
    where: str = ""
    at: int | None = None


class ViewerApp:
    """The application: routes, and the state behind them."""

    def __init__(
        self,
        records: ViewedRecords,
        start: InitialView,
        source: tuple[Paths | Dataset, str | None],
    ) -> None:
        """`source`: what was opened, and the split, for reports."""
        self.records = records
        self._source = source
        self._start = start
        self._views: LruCache[ViewKey, Selected] = LruCache(_MAX_VIEWS, drop=Selected.stop)
        self._tiles = TileMaker(records)
        self._details = RecordDetails(records, self._tiles)
        self._decoding = CapacityLimiter(max(2, processor_count()))
        self.app = Starlette(
            routes=[
                Route("/", self._page),
                Route("/page/{name}", self._page),
                Route("/api/dataset", self._dataset),
                Route("/api/view", self._view),
                Route("/api/tiles", self._tile_lines),
                Route("/api/rows", self._row_lines),
                Route("/api/record/{position}", self._record),
                Route("/api/steps/{position}", self._steps),
                Route("/api/images/{position}", self._images),
                Route("/api/values/{position}", self._values),
                Route("/api/hex/{position}", self._hex),
                Route("/api/image/{position}", self._image),
                Route("/api/mask/{position}", self._mask),
                Route("/api/groups", self._groups),
                Route("/api/facets", self._facet_counts),
                Route("/api/complete", self._complete),
                Route("/api/marked", self._marked),
                Route("/api/report/{kind}", self._report_state, methods=["GET", "DELETE"]),
                Route("/report/{kind}", self._report),
                Route("/api/preview", self._preview),
            ],
            exception_handlers={RecordsmithError: _failed, IndexError: _failed},
        )
        self.app.router.redirect_slashes = False  # it knows nothing of the path before its own

    def close(self) -> None:
        self._views.clear()
        if "_facets" in vars(self):
            self._facets.close()
        if "_reports" in vars(self):
            self._reports.close()
        self.records.close()

    async def _run(self, function: Callable[..., _Result], *arguments: Any) -> _Result:
        """Call a function that decodes, in one of few threads."""
        return await to_thread.run_sync(
            partial(function, *arguments), limiter=self._decoding, abandon_on_cancel=True
        )

    async def _run_for(
        self, function: Callable[..., _Result], position: int, *arguments: Any
    ) -> _Result:
        """Call a function that reads a record, when there is memory for it."""

        def call() -> _Result:
            with self.records.memory([position]):
                return function(position, *arguments)

        return await self._run(call)

    # -- the page ------------------------------------------------------------------------------

    async def _page(self, request: Request) -> Response:
        name = request.path_params.get("name", "index.html")
        match = _PAGE_NAME.fullmatch(name)
        data = None
        if match is not None:
            with suppress(FileNotFoundError):
                data = get_data("recordsmith.viewing", f"page/{name}")
        if match is None or data is None:
            return Response("There is no such page.", 404, media_type="text/plain")
        return Response(data, headers={"content-type": _TYPES[match[1]]})

    # -- the dataset and its views -------------------------------------------------------------

    async def _dataset(self, _: Request) -> Response:
        return _json(await to_thread.run_sync(self._describe))

    def _describe(self) -> dict[str, Any]:
        records = self.records
        view, schema, reader = records.view, records.schema, self._tiles.reader
        places = [str(place) for place in view.origin.places[:10]]
        splits = [
            {"name": name, "record_count": len(records.positions(name))}
            for name in view.split_names[:_MAX_LISTED]
        ]
        sections = {"features": schema.features, **schema.sections}
        features = [
            {
                "key": key_text(key),
                "section": section,
                "kind": feature.kind,
                "content": feature.content,
                "shape": None if feature.shape is None else list(feature.shape),
                "share": min(1.0, feature.present / max(1, schema.record_count)),
            }
            for section, known in sections.items()
            for key, feature in sorted(known.items())
        ]
        names = view.class_names
        return {
            "title": places[0].rstrip("/").rpartition("/")[2] if places else "dataset",
            "paths": places,
            "record_count": len(records),
            "is_counting": records.is_counting,
            "splits": splits if len(splits) > 1 or (splits and splits[0]["name"]) else [],
            "shard_count": len(records.shards),
            "size_bytes": _size(records),
            "payload": schema.payload,
            "features": features[:_MAX_LISTED],
            "class_names": None if names is None else list(names[:_MAX_LISTED]),
            "palette": [label_colour(label) for label in range(COLOUR_COUNT)],
            "scene": {
                "image_key": reader.image_key,
                "mask_key": reader.mask_key,
                "label_key": reader.label_key,
                "class_keys": [key for key in (reader.label_key, keys.OBJECT_LABEL) if key],
                "has_boxes": "image/object/bbox/ymin" in schema.features,
                "skeletons": {
                    label: {"names": points.names, "skeleton": points.skeleton}
                    for label, points in view.keypoint_classes.items()
                },
            },
            "series": [
                feature["key"]
                for feature in features
                if feature["kind"] in ("float", "int64") and feature["shape"] != []
            ][:100],
            "start": self._start._asdict(),
            "notices": [str(defect) for defect in records.defects],
        }

    def _key(self, request: Request) -> ViewKey:
        return ViewKey(*(request.query_params.get(name, "")[:4000] for name in ViewKey._fields))

    def _get_view(self, key: ViewKey) -> Selected:
        return self._views.get_or_make(key, lambda: Selected(self.records, key))

    async def _view(self, request: Request) -> Response:
        key = self._key(request)

        def describe() -> dict[str, Any]:
            try:
                view = self._get_view(key)
            except OptionError as error:
                nothing = {"count": 0, "scanned": 0, "total": 0, "is_complete": True}
                return {**nothing, "error": error.to_json()}
            view.wait(lambda: len(view.positions) > 0, _WAIT_SECONDS)
            return view.describe()

        return _json(await to_thread.run_sync(describe))

    async def _groups(self, request: Request) -> Response:
        key = self._key(request)
        feature = key.sort.removeprefix("-")
        groups = [
            {"start": start, "count": count, "text": self._facets.text(feature, value)}
            for start, count, value in await to_thread.run_sync(self._get_view(key).groups)
        ]
        return _json({"groups": groups})

    @cached_property
    def _facets(self) -> FacetCounts:
        from recordsmith.viewing.facets import FacetCounts  # loads the statistics

        return FacetCounts(self.records, self._tiles.reader.label_key)

    async def _facet_counts(self, request: Request) -> Response:
        key = self._key(request)
        return _json(await to_thread.run_sync(self._facets.describe, key))

    async def _complete(self, request: Request) -> Response:
        text = request.query_params.get("text", "")[:4000]
        cursor = _number(request, "cursor", len(text), 0, len(text))
        schema = self.records.schema
        features = schema.features or schema.sections.get("context", {})
        kinds = {key_text(key): feature.kind for key, feature in [*features.items()][:_MAX_LISTED]}
        key = ViewKey(request.query_params.get("split", ""))
        counts = self._facets

        def describe() -> dict[str, Any]:
            facets = counts.describe(key)["facets"]
            values = {facet["key"]: facet["values"] for facet in facets if "values" in facet}
            return complete(text, cursor, kinds, values)

        return _json(await to_thread.run_sync(describe))

    @cached_property
    def _positions(self) -> RecordPositions:
        return RecordPositions(locate_each(self.records.view.origin.places))

    async def _marked(self, request: Request) -> Response:
        """Some records as a file of findings, whose positions count in the whole dataset."""
        listed = request.query_params.get("positions", "").split(",")[:_MAX_LISTED]
        if not all(map(_is_number, listed)) or max(map(int, listed)) >= len(self.records):
            raise OptionError(option="positions", expected="positions of records")

        def write() -> bytes:
            file = Location(MemoryStore(), "marked.jsonl")
            writer = FindingsWriter(file, "view", {}, overwrite=True, positions=self._positions)
            for position in map(int, listed):
                shard, number, _ = self.records.locate(position)
                writer.add_record("marked", "warning", shard.location, number, "marked")
            writer.save()
            return file.read()

        data = await to_thread.run_sync(write)
        return Response(data, media_type="application/x-ndjson")

    # -- reports and batches -------------------------------------------------------------------

    @cached_property
    def _reports(self) -> ReportJobs:
        from recordsmith.viewing.reports import ReportJobs  # loads the checks

        title = ", ".join(map(str, self.records.view.origin.places[:3]))
        return ReportJobs(self.records, *self._source, title)

    async def _report_state(self, request: Request) -> Response:
        kind = request.path_params["kind"]
        if request.method == "DELETE":
            self._reports.cancel(kind)
            return _json({"state": "cancelled"})
        return _json(self._reports.get(kind).describe())

    async def _report(self, request: Request) -> Response:
        job = self._reports.get(request.path_params["kind"])
        if job.state != "done":
            return Response("The report is not complete yet.", 409, media_type="text/plain")
        return Response(
            job.page.encode("utf-8", "backslashreplace"),
            headers={"content-type": "text/html; charset=utf-8"},
        )

    async def _preview(self, request: Request) -> Response:
        from recordsmith.viewing.batch_preview import draw_preview  # the loader only when needed

        data = await self._run(
            partial(draw_preview, flip=request.query_params.get("flip", "") in ("1", "on")),
            self.records,
            self._tiles.reader,
            request.query_params.get("split", ""),
            _number(request, "seed", 0, 0, 2**31),
            _number(request, "size", 224, 16, 512),
            request.query_params.get("crop", ""),
        )
        return Response(data, headers={"content-type": "image/jpeg"})

    # -- tiles ---------------------------------------------------------------------------------

    async def _tile_lines(self, request: Request) -> Response:
        size = _number(request, "size", 160, *SIZES)
        return await self._lines(request, partial(self._make_lines, size=size))

    async def _row_lines(self, request: Request) -> Response:
        try:
            columns = msgspec.json.decode(request.query_params.get("columns", "[]"), type=list[str])
        except msgspec.DecodeError:
            raise OptionError(option="columns", expected="a JSON list of features") from None
        make = partial(self._make_rows, columns=columns[:MAX_COLUMNS])
        return await self._lines(request, make)

    async def _lines(
        self, request: Request, make: Callable[[list[int], int], AsyncIterator[bytes]]
    ) -> Response:
        """Stream what is made of the records at some places of a view, and of the first place."""
        key = self._key(request)
        start = _number(request, "start", 0, 0, _LARGEST)
        count = _number(request, "count", 50, 0, _MAX_TILES)

        def chosen() -> list[int]:
            view = self._get_view(key)
            view.wait(lambda: len(view.positions) >= start + count, _WAIT_SECONDS)
            return list(map(int, view.positions[start : start + count]))

        positions = await to_thread.run_sync(chosen)

        async def urgent() -> AsyncIterator[bytes]:
            with self.records.urgent():
                async for line in make(positions, start):
                    yield line

        return StreamingResponse(urgent(), media_type="application/x-ndjson")

    async def _make_rows(
        self, positions: Sequence[int], start: int, columns: Sequence[str]
    ) -> AsyncIterator[bytes]:
        def read(place: int, chunk: Sequence[int]) -> bytes:
            with self.records.memory(chunk):
                payloads = enumerate(self.records.read(chunk))
                rows = [make_row(place + k, chunk[k], payload, columns) for k, payload in payloads]
            return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)

        place = start
        for chunk in await to_thread.run_sync(self.records.chunks, positions):
            yield await self._run(read, place, chunk)
            place += len(chunk)

    async def _make_lines(
        self, positions: Sequence[int], start: int, size: int
    ) -> AsyncIterator[bytes]:
        chunks = await to_thread.run_sync(self.records.chunks, positions, _READ_TOGETHER)
        reading = [self._begin_reading(chunk, size) for chunk in chunks[:1]]
        making: list[asyncio.Task[bytes]] = []
        place = start
        try:
            for number, chunk in enumerate(chunks):
                payloads = await reading.pop()
                if number + 1 < len(chunks):
                    reading.append(self._begin_reading(chunks[number + 1], size))
                making = [
                    asyncio.create_task(self._run(self._tiles.make, position, payload, size))
                    for position, payload in payloads.items()
                ]
                made = dict(zip(payloads, making, strict=True))
                for position in chunk:
                    line = self._tiles.cached(position, size)
                    if position in made:
                        line = await made[position]
                    elif line is None:  # a large record, or dropped from the cache meanwhile
                        line = await self._run_for(self._make_alone, position, size)
                    yield b'{"place":%d,' % place + line[1:] + b"\n"
                    place += 1
        finally:
            for task in (*reading, *making):
                task.cancel()

    def _begin_reading(self, chunk: Sequence[int], size: int) -> asyncio.Task[dict[int, Any]]:
        needed = [
            position for position in dict.fromkeys(chunk) if not self._tiles.cached(position, size)
        ]
        return asyncio.create_task(to_thread.run_sync(self._read, needed))

    def _read(self, positions: list[int]) -> dict[int, Any]:
        if not positions or self.records.is_large(positions):
            return {}
        return dict(zip(positions, self.records.read(positions), strict=True))

    def _make_alone(self, position: int, size: int) -> bytes:
        return self._tiles.make(position, self.records.read([position])[0], size)

    # -- one record ----------------------------------------------------------------------------

    def _position(self, request: Request) -> int:
        text: str = request.path_params["position"]
        if not _is_number(text) or int(text) >= len(self.records):
            raise IndexError(f"there is no record {text[:100]}")
        return int(text)

    async def _record(self, request: Request) -> Response:
        return _json(await self._run_for(self._details.describe, self._position(request)))

    async def _steps(self, request: Request) -> Response:
        start = _number(request, "start", 0, 0, _LARGEST)
        return _json(await self._run_for(self._details.steps, self._position(request), start))

    async def _images(self, request: Request) -> Response:
        start, key = _number(request, "start", 0, 0, _LARGEST), request.query_params.get("key", "")
        position = self._position(request)
        return _json(await self._run_for(self._details.images, position, key, start))

    async def _values(self, request: Request) -> Response:
        start = _number(request, "start", 0, 0, _LARGEST)
        count = _number(request, "count", 1000, 0, 10_000)
        key, position = request.query_params.get("key", ""), self._position(request)
        return _json(await self._run_for(self._details.values, position, key, start, count))

    async def _hex(self, request: Request) -> Response:
        start = _number(request, "start", 0, 0, _LARGEST)
        text = await self._run_for(self._details.hex, self._position(request), start)
        return Response(text, media_type="text/plain")

    async def _image(self, request: Request) -> Response:
        key, index = request.query_params.get("key", ""), _number(request, "index", 0, 0, _LARGEST)
        position = self._position(request)
        kind, data = await self._run_for(self._details.image, position, key, index)
        return Response(data, headers={"content-type": kind})

    async def _mask(self, request: Request) -> Response:
        data = await self._run_for(self._details.mask, self._position(request))
        return Response(data, headers={"content-type": "image/png"})


def _json(document: Any, status: int = 200) -> Response:
    try:
        data = msgspec.json.encode(document)
    except UnicodeEncodeError:  # names of files that are not text
        data = json.dumps(document, ensure_ascii=False).encode("utf-8", "backslashreplace")
    return Response(data, status, headers={"content-type": "application/json"})


async def _failed(_: Request, error: Exception) -> Response:
    if isinstance(error, RecordsmithError):
        return _json(error.to_json(), 422 if isinstance(error, DataError) else 400)
    return _json({"error": "IndexError", "message": str(error)}, 404)


def _number(request: Request, name: str, default: int, low: int, high: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not _is_number(text):
        raise OptionError(option=name, value=text, expected="a number")
    return max(low, min(high, int(text)))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18


def _size(records: ViewedRecords) -> int | None:
    size = 0
    if len(records.shards) > 1000:  # each may be a request of the file system
        return sum(shard.entry.size_bytes for shard in records.shards if shard.entry) or None
    for file in (file for shard in records.shards for file in (shard, *shard.layers)):
        with suppress(RecordsmithError):
            size += file.entry.size_bytes if file.entry else file.size_bytes
    return size
