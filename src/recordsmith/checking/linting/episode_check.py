"""Checks what episodes contain: actions, cameras, times, instructions, and copies of episodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from recordsmith.checking.linting.lint_report import Findings, LintExample
from recordsmith.checking.linting.sample_images import place_of
from recordsmith.dataset import find_count_key, step_prefix
from recordsmith.format.example import SequenceExample, hash_spans
from recordsmith.format.example.keys import is_mask_key
from recordsmith.image import find_image_header
from recordsmith.sources import LintCheck, Sample, SampleReader, Severity
from recordsmith.support.buffers import BytesLike, Int64Array
from recordsmith.support.words import count as format_count

SAMPLED_FRAMES = 4
"""How many frames of each camera of an episode are decoded: the first, the last, and between."""

MIN_STEPS = 10
"""Shorter episodes have too few steps to tell what stands still: half a second to two."""

FROZEN_STEPS = 20
"""A shorter run of the same action is common: a controller that holds a speed for a second."""

_FROZEN_SHARE = 0.25  # of the episode: a run of the same action, and what the state moves in it
_MISSED_CHANGES = 4  # of the image: a slow robot moves by less than a pixel in many steps
_CLIPPED_SHARE = 0.2  # of the steps: smooth actions are at their maximum in a few
_CLIPPED_VISITS = 3  # a target that is reached and held is one; a repeated one is another
_CLIPPED_DISTINCT = 1 / 3  # of the steps: switches and grippers have few values
_FLAT_LEVELS = 2.0  # of 255: sensors have more noise in the dark; JPEG adds up to 1 to a flat image
_MIN_EPISODES = 8  # to compare colours with
_MIN_SPREAD = 0.01  # of colours relative to their mean: JPEG adds as much
_MIN_TINT = 6.0  # times the spread: less cannot be told from other light
_MAX_APART = 3.0  # times the spread: how far exchanged colours are from the usual ones
_MAX_SWAPPED = 0.25  # of the episodes: more are another scene, which others do not fit
_MAX_CAMERAS = 16
_GRID = 4  # colours are compared in so many rows and columns of an image
_SAMPLED_PIXELS = 64  # rows and columns, at least, where an image has as many
_TIMES = frozenset(("time", "time_s", "time_sec", "time_ms", "time_us", "time_ns"))
_NOT_STATE = ("action", "reward", "discount", "is_first", "is_last", "is_terminal")

Numbers: TypeAlias = npt.NDArray[Any]
"""(steps, values)"""


class EpisodeCheck(LintCheck):
    """What is checked about episodes."""

    NOT_FINITE = (
        "not-finite",
        "error",
        "A step has NaN or infinite numbers: a loss that reads them becomes NaN.",
        "Fix the program that wrote them, or drop the episode.",
    )
    ONE_STEP = (
        "one-step-episode",
        "warning",
        "An episode has one step: most likely its recording failed.",
        "Drop it.",
    )
    FROZEN_ACTIONS = (
        "frozen-actions",
        "warning",
        "The action stays the same in all steps, or in many while the state moves.",
        "Compare it with the recording; drop the steps or the episode.",
    )
    CLIPPED_ACTIONS = (
        "clipped-actions",
        "note",
        "A dimension of the action is often exactly at its minimum or maximum.",
        "Check the limits of the recording; nothing, if the robot has these limits.",
    )
    CONSTANT_CAMERA = (
        "constant-camera",
        "warning",
        "The images of a camera are black or of one colour.",
        "Drop the feature or the episode, or mask the camera in training.",
    )
    FROZEN_CAMERA = (
        "frozen-camera",
        "warning",
        "A camera has the same image in many steps while the state moves.",
        "Compare it with the recording; drop the steps or the episode.",
    )
    SWAPPED_CHANNELS = (
        "swapped-channels",
        "warning",
        "Red and blue are exchanged, compared with the same camera in other episodes.",
        "Preview the images; exchange the channels and encode them again.",
    )
    TIME_GOES_BACK = (
        "time-goes-back",
        "warning",
        "A time is earlier than that of the step before.",
        "Sort the steps, or fix the clock.",
    )
    NO_INSTRUCTION = (
        "no-instruction",
        "warning",
        "An episode has no instruction, or an empty one.",
        "Add the instruction, or leave the episode out of training on language.",
    )
    DUPLICATE_EPISODE = (
        "duplicate-episode",
        "warning",
        "Two episodes have the same actions and images. Across splits, evaluation is optimistic.",
        "Remove one of them.",
    )


FRAME_CHECKS = frozenset(
    (EpisodeCheck.CONSTANT_CAMERA, EpisodeCheck.FROZEN_CAMERA, EpisodeCheck.SWAPPED_CHANNELS)
)
"""Those that need decoded frames. A constant camera is not reported as a frozen one."""


class Episode(NamedTuple):
    """The steps of an episode.

    step_count: number of steps.
    numbers: features with equally many numbers in each step, by their keys in the record.
    texts: features with one bytes value for each step.
    instruction: the texts of all instructions; None if no feature has one.
    """

    step_count: int
    numbers: Mapping[str, Numbers]
    texts: Mapping[str, Sequence[bytes]]
    instruction: bytes | None


@dataclass
class EpisodeFacts:
    """What is compared between episodes.

    digest: of actions and images; 0 without these.
    has_instruction: whether its instructions have text; None if no feature has one.
    colours: of each camera, float32, (_GRID * _GRID, 3): relative to their mean.
    """

    digest: int
    has_instruction: bool | None
    colours: dict[str, npt.NDArray[np.float32]] = field(default_factory=dict)


Add: TypeAlias = Callable[[LintCheck, str, "int | None"], None]
"""Adds a finding about a step of an episode, or about all of it."""


DecodeFrame: TypeAlias = Callable[[str, int, bytes], "npt.NDArray[np.uint8 | np.uint16] | None"]
"""Decodes a frame of a feature and a step to (height, width, channels); None if it is damaged."""


def episode_of(content: object) -> Episode | None:
    """Return the steps of the content of a sample; None if it is not an episode."""
    if isinstance(content, SequenceExample):
        features, whole = content.feature_lists, {**content.context, **content.feature_lists}
    elif isinstance(content, Mapping):
        features = whole = content  # type: ignore[assignment]
    else:
        return None
    is_sequence = isinstance(content, SequenceExample)
    prefix = step_prefix(features, is_sequence=is_sequence)
    if prefix is None:
        return None
    steps: dict[str, Any] = {
        key: values
        for key, values in features.items()
        if key.startswith(prefix) and isinstance(values, (list, np.ndarray))
    }
    lengths = {key: len(values) for key, values in steps.items()}
    step_count = lengths.get(find_count_key(lengths, prefix), 0)
    numbers: dict[str, Numbers] = {}
    texts: dict[str, Sequence[bytes]] = {}
    for key, values in steps.items():
        flat = _flat(values) if is_sequence else values
        if not step_count or not len(flat) or len(flat) % step_count:
            continue  # a defect, which verify reports, or values of various numbers
        if isinstance(flat, np.ndarray):
            numbers[key] = flat.reshape(step_count, -1)
        elif len(flat) == step_count and all(isinstance(value, bytes) for value in flat):
            texts[key] = flat
    instructions = [
        value
        for key, value in whole.items()
        if "instruction" in key.rpartition("/")[2] and not isinstance(value, np.ndarray)
    ]
    instruction = b"".join(_texts(instructions)).strip() if instructions else None
    return Episode(step_count, numbers, texts, instruction)


def _flat(steps: Sequence[Any]) -> Any:
    """Return the values of the steps of a feature list end to end; none if their numbers differ."""
    if len({*map(len, steps)}) != 1:
        return []
    is_numbers = all(isinstance(values, np.ndarray) for values in steps)
    return np.concatenate(steps) if is_numbers else [value for values in steps for value in values]


def _texts(value: Any) -> Iterator[bytes]:
    if isinstance(value, bytes):
        yield value
    elif isinstance(value, str):
        yield value.encode()
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def check_episode(
    episode: Episode, add: Add, decode: DecodeFrame | None
) -> tuple[EpisodeFacts, int]:
    """Check an episode; return what is compared between episodes, and how many frames it decoded.

    Args:
        decode: decodes a frame; None to decode none.
    """
    if episode.step_count == 1:
        add(EpisodeCheck.ONE_STEP, "1 step", None)
    numbers = episode.numbers
    for key, values in numbers.items():
        _check_numbers(key, values, add)
    floats = {key: values for key, values in numbers.items() if values.dtype.kind == "f"}
    state = _joined(values for key, values in floats.items() if _is_state(key))
    if episode.step_count >= MIN_STEPS:
        actions = _joined(values for key, values in floats.items() if _has_part(key, "action"))
        _check_actions(actions, state, add)
    digests = [
        hash_of(np.ascontiguousarray(values).reshape(-1).view(np.uint8))
        for key, values in sorted(numbers.items())
        if _has_part(key, "action")
    ]
    facts = EpisodeFacts(0, None if episode.instruction is None else bool(episode.instruction))
    frame_count = 0
    for key, frames in _cameras(episode):
        hashes = np.array([hash_of(frame) for frame in frames], np.uint64)
        digests += hashes.tolist()
        sampled = [] if decode is None else _decode_frames(key, frames, decode)
        frame_count += len(sampled)
        flat = [step for step, pixels in sampled if _contrast(pixels) < _FLAT_LEVELS]
        if 2 * len(flat) > len(sampled):
            text = f"{key}: {len(flat)} of {len(sampled)} decoded frames have one colour"
            add(EpisodeCheck.CONSTANT_CAMERA, text, flat[0])
            continue  # and frozen, too
        if (colours := _colours([pixels for _, pixels in sampled])) is not None:
            facts.colours[key] = colours
        start, stop = _longest_run(hashes[1:] == hashes[:-1])
        if stop - start >= FROZEN_STEPS and _shows(state, hashes, start, stop):
            text = f"{key}: the same image in {stop - start} of {len(frames)} steps"
            add(EpisodeCheck.FROZEN_CAMERA, text, start)
    if digests:
        facts.digest = hash_of(np.array(digests, np.uint64).view(np.uint8))
    return facts, frame_count


def hash_of(data: BytesLike) -> int:
    """Return the hash of some bytes, which is never 0."""
    span = np.array([0, len(data)], np.int64)
    return int(hash_spans(data, span[:1], span[1:])[0]) or 1


def _check_numbers(key: str, values: Numbers, add: Add) -> None:
    last = key.rpartition("/")[2].lower()
    if values.dtype.kind == "f" and not (is_finite := np.isfinite(values)).all():
        count = int(np.count_nonzero(~is_finite))
        step = int(np.flatnonzero(~is_finite.all(axis=1))[0])
        add(EpisodeCheck.NOT_FINITE, f"{key}: {format_count(count, 'number')} not finite", step)
    if values.shape[1] == 1 and ("timestamp" in last or last in _TIMES):
        times = values[:, 0]
        back = np.flatnonzero(times[1:] < times[:-1])
        if len(back):
            step = int(back[0]) + 1
            add(EpisodeCheck.TIME_GOES_BACK, f"{key}: {times[step]} after {times[step - 1]}", step)


def _check_actions(actions: Numbers | None, state: Numbers | None, add: Add) -> None:
    """Check actions of floats, (steps, dimensions): an action of integers is a choice."""
    if actions is None or actions.shape[1] < 2:
        return
    count = len(actions)
    is_same = (actions[1:] == actions[:-1]).all(axis=1)
    start, stop = _longest_run(is_same)
    if stop - start == count:
        add(EpisodeCheck.FROZEN_ACTIONS, f"the same action in all {count} steps", 0)
        return
    if stop - start >= max(FROZEN_STEPS, _FROZEN_SHARE * count) and _moves(state, start, stop):
        text = f"the same action in {stop - start} of {count} steps, while the state moves"
        add(EpisodeCheck.FROZEN_ACTIONS, text, start)
    moving = actions[np.append(True, ~is_same)]  # waiting at a limit is not clipped
    if len(moving) < FROZEN_STEPS:
        return
    for dimension, values in enumerate(moving.T):
        for limit in (values.min(), values.max()):
            is_at = values == limit
            visits = np.count_nonzero(is_at[1:] & ~is_at[:-1]) + is_at[0]
            if (
                limit != 0  # rest
                and is_at.mean() >= _CLIPPED_SHARE
                and visits >= _CLIPPED_VISITS
                and len(np.unique(values)) >= _CLIPPED_DISTINCT * len(values)
            ):
                text = f"dimension {dimension} is {limit:.4g} in {is_at.sum()} of {count} steps"
                add(EpisodeCheck.CLIPPED_ACTIONS, text, int(np.flatnonzero(is_at)[0]))


def _has_part(key: str, name: str) -> bool:
    return any(part.startswith(name) for part in key.split("/"))


def _is_state(key: str) -> bool:
    last = key.rpartition("/")[2].lower()
    is_time = "timestamp" in last or last in _TIMES
    return not (is_time or any(_has_part(key, name) for name in _NOT_STATE))


def _joined(values: Iterable[Numbers]) -> Numbers | None:
    return np.concatenate(columns, axis=1) if (columns := [*values]) else None


def _longest_run(is_same: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Return the first and the end of the longest run of steps; `is_same` as the step before."""
    borders = np.flatnonzero(np.concatenate([[True], ~is_same, [True]]))
    lengths = np.diff(borders)
    longest = int(lengths.argmax())
    return int(borders[longest]), int(borders[longest + 1])


def _moves(state: Numbers | None, start: int, stop: int) -> bool:
    """Whether the state covers much of its range in some steps: noise alone covers little."""
    if state is None:
        return False
    with np.errstate(all="ignore"):  # NaN and infinite numbers
        whole, part = np.ptp(state, axis=0).sum(), np.ptp(state[start:stop], axis=0).sum()
        return bool(part >= _FROZEN_SHARE * whole > 0)


def _shows(state: Numbers | None, hashes: npt.NDArray[np.uint64], start: int, stop: int) -> bool:
    """Whether images change in other steps as the state moves as much as in some steps."""
    if state is None or not _moves(state, start, stop):
        return False
    change_count = np.count_nonzero(hashes[1:] != hashes[:-1])
    with np.errstate(all="ignore"):  # NaN and infinite numbers
        moved = np.abs(np.diff(state, axis=0)).sum(axis=1)
        inside = moved[start : stop - 1].sum()
        return bool(change_count * inside >= _MISSED_CHANGES * (moved.sum() - inside))


def _cameras(episode: Episode) -> list[tuple[str, Sequence[bytes]]]:
    """Return the features that hold images, with the image of each step."""
    cameras = [
        (key, values)
        for key, values in sorted(episode.texts.items())
        if not is_mask_key(key)
        and any(find_image_header(values[step]) is not None for step in _sampled(len(values)))
    ]
    return cameras[:_MAX_CAMERAS]


def _sampled(step_count: int) -> list[int]:
    steps: list[int] = np.unique(np.linspace(0, step_count - 1, SAMPLED_FRAMES, dtype=int)).tolist()
    return steps


def _decode_frames(
    key: str, frames: Sequence[bytes], decode: DecodeFrame
) -> list[tuple[int, npt.NDArray[np.float32]]]:
    """Decode some frames; return their steps and some of their pixels, from 0 to 255."""
    sampled = []
    for step in _sampled(len(frames)):
        pixels = decode(key, step, frames[step])
        if pixels is not None:
            by_row, by_column = (max(1, side // _SAMPLED_PIXELS) for side in pixels.shape[:2])
            scale = np.float32(255 / np.iinfo(pixels.dtype).max)
            sampled.append((step, pixels[::by_row, ::by_column].astype(np.float32) * scale))
    return sampled


def _contrast(pixels: npt.NDArray[np.float32]) -> float:
    """Return the standard deviation of the pixels, of the channel with the largest one."""
    return float(pixels.reshape(-1, pixels.shape[2]).std(axis=0).max())


def _colours(frames: Sequence[npt.NDArray[np.float32]]) -> npt.NDArray[np.float32] | None:
    """Return the mean colours of parts of an image; None if it has no colours."""
    if not frames or any(min(f.shape[:2]) < _GRID or f.shape[2] != 3 for f in frames):
        return None
    parts = [
        part.mean(axis=(0, 1))
        for frame in frames
        for rows in np.array_split(frame, _GRID)
        for part in np.array_split(rows, _GRID, axis=1)
    ]
    colours: npt.NDArray[np.float32] = np.mean(np.reshape(parts, (len(frames), -1, 3)), axis=0)
    return colours / max(1.0, float(colours.mean()))


# -- between episodes ----------------------------------------------------------------------------


def compare_episodes(
    facts: Mapping[int, EpisodeFacts],
    splits: Int64Array,
    samples: Sequence[Sample],
    reader: SampleReader,
    findings: Findings,
) -> None:
    """Add what shows only next to the other episodes; `facts` has the numbers of their samples."""

    def add(check: LintCheck, number: int, found: str, **about: Any) -> None:
        file, place = place_of(reader, samples[number])
        severity = about.pop("severity", None)
        findings.number = None if "other" in about else number  # copies are places of groups
        findings.add(check, LintExample(file, found, place, **about), severity=severity)

    first: dict[int, int] = {}
    for number, fact in facts.items():
        other = first.setdefault(fact.digest, number) if fact.digest else number
        if other != number:
            name, _ = place_of(reader, samples[other])
            is_leak = bool(splits[other] != splits[number])
            severity = Severity.ERROR if is_leak else Severity.WARNING
            text = f"the same actions and images as {name}" + (" in another split" * is_leak)
            add(EpisodeCheck.DUPLICATE_EPISODE, number, text, other=name, severity=severity)
    instructions = [fact.has_instruction for fact in facts.values()]
    if any(instructions):
        for number, fact in facts.items():
            if not fact.has_instruction:
                is_missing = fact.has_instruction is None
                text = f"the instruction is {'missing' if is_missing else 'empty'}"
                add(EpisodeCheck.NO_INSTRUCTION, number, text)
    elif False in instructions:  # a property of the dataset: one note
        example = LintExample("", "the instructions of all episodes are empty")
        findings.add(EpisodeCheck.NO_INSTRUCTION, example, severity=Severity.NOTE)
    for camera in sorted({key for fact in facts.values() for key in fact.colours}):
        numbers = [number for number, fact in facts.items() if camera in fact.colours]
        for row in _swapped(np.stack([facts[number].colours[camera] for number in numbers])):
            text = f"{camera}: red and blue are exchanged, compared with other episodes"
            add(EpisodeCheck.SWAPPED_CHANNELS, numbers[row], text)


def _swapped(colours: npt.NDArray[np.float32]) -> Iterator[int]:
    """Yield the episodes whose colours, (episodes, parts, 3), fit the others only if exchanged.

    The parts of an image show the scene: another scene does not fit, exchanged or not. Where the
    scenes of the episodes differ by more than exchanged colours do, nothing is found.
    """
    usual = np.median(colours, axis=0)
    apart = np.abs(colours - usual).mean(axis=(1, 2))
    apart_exchanged = np.abs(colours[:, :, ::-1] - usual).mean(axis=(1, 2))
    spread = max(float(np.median(apart)), _MIN_SPREAD)
    tint = float(np.median(np.abs(usual[:, 0] - usual[:, 2]))) * 2 / 3  # in the unit of `apart`
    if len(colours) < _MIN_EPISODES or tint < _MIN_TINT * spread:
        return
    is_swapped = (apart_exchanged <= _MAX_APART * spread) & (apart > _MAX_APART * spread)
    if is_swapped.mean() <= _MAX_SWAPPED:
        yield from np.flatnonzero(is_swapped).tolist()
