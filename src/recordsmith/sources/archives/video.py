"""Reads frames of a video in one pass, and encodes each as JPEG."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from recordsmith.errors import CorruptDataError, Defect, RecordsmithError
from recordsmith.image.storing.encode import encode_jpeg
from recordsmith.stores import Location

MAX_PIXELS = 1 << 24
"""The maximum number of pixels of a frame. Decoders keep up to 16 frames."""

_MAX_FRAMES = 1 << 40


def read_frames(
    location: Location,
    times: npt.NDArray[np.float64],
    fps: float,
    quality: int,
    where: str,
    feature: str,
) -> list[bytes]:
    """Read the frames nearest to some times: one seek to the first, then forward.

    Args:
        times: float64, (frames,): seconds, ascending. A frame is at most half a frame away.
        fps: frames per second.
        quality: of JPEG.
        where, feature: for errors.

    Raises:
        CorruptDataError: the file is not an MP4 or damaged, or lacks a frame.
    """
    from recordsmith.libraries import av

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
        # only this demuxer: others open the files and URLs that a playlist names
        with location.open_read() as file, av.open(file, "r", format="mp4") as container:
            stream = container.streams.video[0]
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
            else:
                return frames
    except RecordsmithError:
        raise
    except StopIteration:
        last = -1
    except IndexError:
        raise wrong("the file has no video") from None
    except (av.FFmpegError, OSError, ValueError, TypeError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise wrong(f"the video cannot be decoded: {reason}") from None
    found = "the end of the video" if last < 0 else f"a frame at {last / fps:g} s"
    raise wrong(f"the video lacks step {len(frames):,}", found, f"a frame at {number / fps:g} s")
