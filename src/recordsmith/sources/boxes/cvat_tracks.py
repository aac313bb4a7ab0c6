"""Makes frames of the tracks in CVAT's export "CVAT for video".

CVAT writes a shape for each frame of a track, up to one that is `outside`. It names neither frames
without a shape nor images: those of a video are called frame_000000.PNG.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from recordsmith.sources.boxes.annotation import AnnotatedImage, AnnotatedObject, to_float
from recordsmith.sources.files.images import stem_of
from recordsmith.support.errors import SourceError

NO_TRACK = -1
_META = re.compile(rb"<(start_frame|stop_frame|frame_filter|width|height)>(?:step=)?([^<]{0,40})<")
_NUMBER = re.compile(r"\d{1,18}")
_FRAME = re.compile(r"frame_(\d{6,18})")
_REMEDY = "Export the video with 'Save images', or a task of images as 'CVAT for images 1.1'."


class Tracks:
    """Collects the shapes of tracks: `begin_track`, then `begin` and `end` for each shape."""

    def __init__(self, file: str, data: bytes) -> None:
        meta = dict(_META.findall(data, 0, max(0, data.find(b"<track"))))
        start, stop, step = (
            int(text)
            if _NUMBER.fullmatch(text := meta.get(key, b"").decode("latin-1"))
            else default
            for key, default in ((b"start_frame", 0), (b"stop_frame", -1), (b"frame_filter", 1))
        )
        self.is_open = self.has_objects = False
        self.shape = ""
        self._file, self._task, self._split = file, "", ""
        self._frames = range(start, stop + 1, step or 1)
        self._size = to_float(meta.get(b"width", 0)), to_float(meta.get(b"height", 0))
        self._objects: dict[int, list[AnnotatedObject]] = defaultdict(list)
        self._notes: dict[int, list[tuple[str, str]]] = defaultdict(list)
        self._gaps: list[tuple[int, int, int, int]] = []  # two frames, track, line

    def begin_track(self, values: Mapping[str, str], line: int) -> None:
        number, task = values.get("id", ""), values.get("task_id", "")
        self._track = int(number) if _NUMBER.fullmatch(number) else line
        self._label, self._split = values.get("label", ""), values.get("subset", "")
        self._last: int | None = None  # frame with a shape that is not outside
        if (self._task or task) != task:
            remedy = "Export each task from CVAT: frames of several videos have equal names."
            raise SourceError("a track of another task", path=self._file, line=line, remedy=remedy)
        self._task, self.is_open = task, True

    def begin(self, shape: str, values: Mapping[str, str], line: int) -> dict[str, str]:
        """Begin the shape of a track in a frame; returns its values with the label."""
        number, last = values.get("frame", ""), self._last
        if not _NUMBER.fullmatch(number):
            problem = f"invalid frame {number!r:.30} of a track; expected a number"
            raise SourceError(problem, path=self._file, line=line)
        self.shape, self._frame = shape, int(number)
        if last is not None and self._frame - last > self._frames.step:
            self._gaps.append((last, self._frame, self._track, line))
        self._last = None if values.get("outside") == "1" else self._frame
        return {**values, "label": self._label}

    def end(self, objects: Sequence[AnnotatedObject], notes: Sequence[tuple[str, str]]) -> None:
        if self._last is None or not (objects or notes):
            self._last = None
            return
        self.has_objects |= bool(objects)
        self._objects[self._frame] += (item._replace(extra=(self._track,)) for item in objects)
        self._notes[self._frame] += notes

    def images(self) -> Iterator[AnnotatedImage]:
        """The frames with a shape."""
        self._gaps.sort()
        self._starts = [gap[0] for gap in self._gaps]
        self._longest = list(
            accumulate(self._gaps, lambda *gaps: max(gaps, key=lambda gap: gap[1]))
        )
        for frame, objects in sorted(self._objects.items()):
            yield self._image(frame)._replace(objects=objects, notes=self._notes[frame])

    def unlisted(self, path: str) -> AnnotatedImage | None:
        """The annotation of a frame without a shape, by the path of its image."""
        match = _FRAME.fullmatch(stem_of(path))
        return self._image(int(match[1])) if match and int(match[1]) in self._frames else None

    def _image(self, frame: int) -> AnnotatedImage:
        before = bisect_left(self._starts, frame)
        first, last, track, line = self._longest[before - 1] if before else (0, 0, 0, 0)
        if last > frame:
            raise SourceError(
                f"track {track} has shapes in frames {first} and {last}, but none in frame {frame}",
                path=self._file,
                line=line,
                remedy="Export it from CVAT, which writes the shape in each frame of a track.",
            )
        name, where = f"{self._split}/frame_{frame:06}".lstrip("/"), f"frame {frame}"
        return AnnotatedImage(where, name, self._size, (), frame, self._split, remedy=_REMEDY)
