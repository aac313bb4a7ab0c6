"""Reads frames of a video in one pass, and encodes each as JPEG.

FFmpeg allocates an index of all frames that an MP4 lists before it reads one of them. So their
number is compared with the size of the file first.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.image import encode_jpeg
from recordsmith.sources.archives.memory_limit import MemoryLimit
from recordsmith.stores import Location, ObjectReader
from recordsmith.support.errors import CorruptDataError, Defect, RecordsmithError

MAX_PIXELS = 1 << 24
"""The maximum number of pixels of a frame. Decoders keep up to 16 frames."""

MAX_HEADER_BYTES = 1 << 26
"""The maximum size of a box of an MP4 that is not media data."""

_MAX_FRAMES = 1 << 40
_COUNTING_BOXES = re.compile(rb"stsz|stz2|trun|elst|cmov")


def read_frames(
    location: Location,
    times: npt.NDArray[np.float64],
    fps: float,
    quality: int,
    where: str,
    feature: str,
    memory: MemoryLimit,
) -> list[bytes]:
    """Read the frames nearest to some times: one seek to the first, then forward.

    Args:
        times: float64, (frames,): seconds, ascending. A frame is at most half a frame away.
        fps: frames per second.
        quality: of JPEG.
        where, feature: for errors.
        memory: counts the bytes of the frames.

    Raises:
        CorruptDataError: the file is not an MP4 or damaged, its codec is unsupported, it lacks a
            frame, or the frames take too much memory.
    """
    from recordsmith.support.libraries import av

    def wrong(problem: str, found: str = "", expected: str = "") -> CorruptDataError:
        return CorruptDataError(
            Defect.UNREADABLE_IMAGE,
            f"{where}: {problem}",
            found=found,
            expected=expected,
            remedy="Fetch the dataset again.",
            feature=feature,
        )

    def check_size(of: Any) -> None:
        if of.width * of.height > MAX_PIXELS:
            found, expected = f"{of.width:,} x {of.height:,}", f"at most {MAX_PIXELS:,}"
            raise wrong("the frames have too many pixels", found, expected)

    numbers = np.rint(times * fps)
    if not (np.diff(numbers) > 0).all() or not 0 <= numbers[0] <= numbers[-1] < _MAX_FRAMES:
        raise wrong(f"the timestamps do not ascend by 1/{fps:g} s")
    frames: list[bytes] = []
    number = last = -1
    try:
        with location.open_read() as file:
            memory.add_file(file.size_bytes)
            count = _listed_frames(file)
            if count > file.size_bytes:
                expected = f"at most one for each of its {file.size_bytes:,} bytes"
                raise wrong("the file lists too many frames", f"{count:,}", expected)
            file.seek(0)
            # only this demuxer: others open the files and URLs that a playlist names
            with av.open(file, "r", format="mp4") as container:
                stream = container.streams.video[0]
                if stream.codec_context is None:
                    error = wrong("FFmpeg has no decoder for the video", _codec_tag(file))
                    error.advise("Or convert the video to H.264, VP9 or AV1.")
                    raise error
                check_size(stream.codec_context)
                container.seek(int(times[0] / stream.time_base), stream=stream)
                decoded = container.decode(stream)
                for number in numbers.astype(np.int64).tolist():
                    frame = next(f for f in decoded if round(f.time * fps) >= number)
                    last = round(frame.time * fps)
                    if last != number:
                        break
                    check_size(frame)
                    pixels: Any = frame.to_ndarray(format="rgb24")
                    frames.append(encode_jpeg(pixels, quality=quality))
                    memory.take(len(frames[-1]), f"{where}: {feature!r:.80}", feature)
                else:
                    return frames
    except RecordsmithError:
        raise
    except StopIteration:
        last = -1
    except IndexError:
        raise wrong("the file has no video") from None
    except (av.FFmpegError, OSError, ValueError, TypeError, ArithmeticError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise wrong(f"the video cannot be decoded: {reason}") from None
    found = "the end of the video" if last < 0 else f"a frame at {last / fps:g} s"
    raise wrong(f"the video lacks step {len(frames):,}", found, f"a frame at {number / fps:g} s")


def _boxes(file: ObjectReader) -> Iterator[bytes]:
    """Yield the boxes of an MP4 that are not media data, with everything in them."""
    start = 0
    while start + 8 <= file.size_bytes:
        file.seek(start)
        length, kind = struct.unpack(">I4s", _read(file, 8))
        if length == 1:
            (length,) = struct.unpack(">Q", _read(file, 8).ljust(8, b"\0"))
        left = file.size_bytes - start
        length = min(length, left) if length else left
        if length < 8:  # FFmpeg reads no further
            return
        if kind != b"mdat":
            if length > MAX_HEADER_BYTES:
                raise ValueError(f"a box {kind!r} of {length:,} bytes is too large")
            yield _read(file, length - (file.tell() - start))
        start += length


def _read(file: ObjectReader, size_bytes: int) -> bytes:
    return file.read(size_bytes) or b""


def _listed_frames(file: ObjectReader) -> int:
    """The frames that FFmpeg would list: all of them for each entry of the longest edit list."""
    count, edits = 0, 1
    for content in _boxes(file):
        for match in _COUNTING_BOXES.finditer(content):
            numbers = content[match.end() + 4 : match.end() + 12].ljust(8, b"\0")
            first, second = struct.unpack(">2I", numbers)
            if match[0] == b"cmov":
                raise ValueError("its headers are compressed")
            if match[0] == b"elst":
                edits = max(edits, first)
            else:
                count += first if match[0] == b"trun" else second
    return count * edits


def _codec_tag(file: ObjectReader) -> str:
    """The characters that name the first codec in an MP4, for errors."""
    for content in _boxes(file):
        _, _, description = content.partition(b"stsd")
        if description:
            return f"codec {description[12:16].decode('latin-1')!r}"
    return "no codec"
