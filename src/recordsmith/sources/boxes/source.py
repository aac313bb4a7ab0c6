"""What the sources of annotated images share: options and the listing.

A listing parses each annotation file once and keeps the objects of each image as JSON, of which
`reader` makes features; label files of YOLO are parsed when their image is read.
A sample whose image is missing stays in the listing and fails when it is read, so that packing
reports it like any other bad sample.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypedDict, get_args

import numpy as np

from recordsmith.dataset import background_notices
from recordsmith.sources.boxes.annotation import AnnotationFile, BoxFormat, Contents, Entry
from recordsmith.sources.boxes.placing import BoxPolicy, Drawn
from recordsmith.sources.boxes.reader import AnnotatedReader, Masks
from recordsmith.sources.classes import Classes, make_classes
from recordsmith.sources.files.account import Account, Reason, Role
from recordsmith.sources.files.file_index import FileIndex, Found, LeftOut, Match, not_found
from recordsmith.sources.files.file_tree import MAX_OPENED, FileTree, TreeSource
from recordsmith.sources.files.images import (
    LIST_KINDS,
    has_image_name,
    list_reference,
    rarest_labels,
)
from recordsmith.sources.files.namesakes import without_namesakes
from recordsmith.sources.files.paths import common_version
from recordsmith.sources.flaws import Check
from recordsmith.sources.layouts import Confidence, LayoutCandidate
from recordsmith.sources.numbered import SampleTable
from recordsmith.sources.problems import Fault, count_notice, join_names
from recordsmith.sources.source import Listing
from recordsmith.sources.splits import find_split, only_split, sort_splits
from recordsmith.stores import PlaceLike, as_location, as_place
from recordsmith.support.errors import OptionError, SourceError, option
from recordsmith.support.explaining import check_word
from recordsmith.support.words import count

_WITHOUT_CLASS = (
    "Give it one, or several to another image if images may have any number; or pass "
    f"{option('skip_errors')} to leave such images out."
)


class BoxOptions(TypedDict, total=False):
    """The options of all sources of annotated images; see `AnnotatedSource`."""

    label_map: PlaceLike | None
    boxes: BoxPolicy
    drawn: Drawn | None
    object_masks: Masks | None
    class_from: str | None


@dataclass
class ListedImages:
    """The images of a source.

    entries: by sample name.
    options: other fields of `AnnotatedReader`.
    categories: as in `Listing`.
    contents: what their annotations have together.
    """

    entries: Mapping[str, Entry]
    classes: Classes
    notices: list[str]
    options: Mapping[str, Any] = field(default_factory=dict)
    categories: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    contents: Contents = field(default_factory=Contents)


class AnnotatedSource(TreeSource):
    """What the sources of annotated images share. Subclasses name their format and find images."""

    box_format: ClassVar[BoxFormat]

    def __init_subclass__(cls, box_format: BoxFormat | None = None) -> None:
        super().__init_subclass__()
        if box_format is not None:
            cls.box_format = box_format

    def __init__(
        self,
        root: PlaceLike,
        *,
        label_map: PlaceLike | None = None,
        boxes: BoxPolicy = "stop",
        drawn: Drawn | None = None,
        object_masks: Masks | None = None,
        class_from: str | None = None,
    ) -> None:
        """
        Args:
            root: the folder of images and annotations.
            label_map: path of a `label_map.pbtxt`, which defines the labels.
            boxes: what to do with an invalid box: fail its sample (`stop`), clip and reorder it
                (`clip`), or drop the object (`drop`).
            drawn: the image that boxes were drawn on: the `stored` pixels, or the `upright` image
                that viewers show by the EXIF orientation. For annotations whose size does not show
                it: relative coordinates, half turns, squares. None for that of the format.
            object_masks: `instance` adds `image/object/mask`, a PNG of 0 and 1 for each object;
                `class` adds `image/segmentation/class/encoded`, one PNG of labels with smaller
                objects on top. Polygons are rasterized like in pycocotools. Only for formats with
                outlines. With masks, an object with an invalid segmentation fails its sample, gets
                an empty mask (`clip`), or is dropped (`drop`).
            class_from: the attribute that is the class of each object, instead of its class. Only
                for formats with attributes.
        """
        self.root = as_place(root)
        self._label_map = None if label_map is None else as_location(label_map)
        check_word("boxes", boxes, get_args(BoxPolicy))
        self._policy = boxes
        if drawn is not None:
            check_word("drawn", drawn, get_args(Drawn))
        self._drawn = drawn
        self._masks = object_masks
        self._class_from = class_from or ""
        if class_from and not self.box_format.has_attributes:
            raise OptionError(option="class_from", value=class_from, expected="None: no attributes")
        known = (None, "instance", "class") if self.box_format.has_outlines else (None,)
        if object_masks not in known:
            expected = "'instance', 'class' or None" if len(known) > 1 else "None: no outlines"
            raise OptionError(option="object_masks", value=object_masks, expected=expected)

    def describe(self) -> Mapping[str, Any]:
        return {
            **super().describe(),
            "label_map": None if self._label_map is None else self._label_map.name,
            "boxes": self._policy,
            **({} if self._drawn is None else {"drawn": self._drawn}),
            **({} if self._masks is None else {"object_masks": self._masks}),
            **({"class_from": self._class_from} if self._class_from else {}),
        }

    def list_samples(self) -> Listing:
        """Find annotation files and their images, sorted by path."""
        index = FileIndex(self._take_tree(self.root))
        listed = self._with_labels(self._list_images(index))
        contents = listed.contents
        keypoints = contents.known_keypoints()
        if self._class_from and self._class_from not in contents.attributes:
            raise OptionError(
                f"no object has the attribute {self._class_from!r:.60}",
                option="class_from",
                value=self._class_from,
                expected=join_names(contents.attributes, "or") or "None: no object has attributes",
            )
        reader = AnnotatedReader(
            self.root,
            self.box_format.name,
            listed.classes.labels(),
            listed.classes.origin,
            self._policy,
            self._masks,
            drawn=self._drawn,
            point_names=tuple((name, known.names) for name, known in keypoints.items()),
            has_corners=contents.has_corners,
            attributes=contents.attribute_kinds(),
            has_captions=contents.has_captions,
            **{"features": tuple(self.box_format.features), **listed.options},
        )
        entries = listed.entries
        names = sorted(entries)
        splits = sort_splits(filter(None, (entry.split for entry in entries.values())))
        only = only_split(splits[:1], index.root)
        splits = splits if len(splits) > 1 else ()
        numbers = {split: number for number, split in enumerate(splits)}
        of_split = np.array([numbers.get(entries[name].split, -1) for name in names], np.int32)
        sizes, versions = np.empty(len(names), np.int64), np.empty(len(names), np.int64)
        for number, name in enumerate(names):
            sizes[number], image = index.size_and_version(entries[name].image)
            versions[number] = common_version((image, entries[name].version))
        classes = listed.classes
        rarest = None
        if listed.contents.label_names:
            rarest = rarest_labels(entries[name].labels for name in names)
        samples = SampleTable(
            names,
            sizes,
            labels=None if listed.options.get("list_keys") else rarest,
            rarest=rarest,
            splits=(splits, of_split) if splits else None,
            version=versions,
            references=lambda number: entries[names[number]].reference(),
        )
        bare = [n for n in names if not entries[n].annotation and entries[n].fault is None]
        what, check = "without annotations packed without boxes", Check.IMAGE_WITHOUT_ANNOTATION
        notices = [*listed.notices, *count_notice(bare, "image", what, check=check)]
        names_of_classes = classes.names() or (None if contents.has_captions else ())
        labelled = {
            label: known
            for name, known in keypoints.items()
            if (label := classes.label_of(name)) is not None
        }
        if self._label_map is not None:
            notices += background_notices(names_of_classes)
        return Listing(
            samples,
            reader,
            names_of_classes,
            notices,
            splits,
            only,
            has_label_map=names_of_classes is not None and 0 not in dict(classes.labels()).values(),
            keypoint_classes=dict(sorted(labelled.items())),
            categories=listed.categories,
        ).with_account(self._account(index, entries))

    def _with_labels(self, listed: ListedImages) -> ListedImages:
        """The same with the classes of whole images: one of each, or lists if any has several."""
        if not listed.contents.label_names:
            return listed
        are_alone, classes = not listed.contents.has_objects, listed.classes
        if are_alone and self._label_map is None:  # without a background
            names = dict(classes.labels())
            classes = Classes({name: label for label, name in enumerate(names)}, classes.origin)
        labels_of = {
            name: entry.annotated.labels
            for name, entry in listed.entries.items()
            if entry.fault is None and entry.annotated.labels is not None
        }
        has_confidence = any({*labels.values()} - {1} for labels in labels_of.values())
        are_lists = self.box_format.has_lists or not are_alone or has_confidence
        are_lists = are_lists or max(map(len, labels_of.values()), default=0) > 1
        known = dict(classes.labels())
        for name, labels in labels_of.items():
            entry, unknown = listed.entries[name], [of for of in labels if of not in known]
            place = ", ".join(filter(None, (entry.image, entry.annotated.where)))
            entry.annotated = entry.annotated._replace(labels=None, where="")
            if unknown:
                problem = f"{place}: {classes.unknown(unknown[0])}"
                entry.fault = Fault(problem, entry.annotation)
            elif labels or are_lists:
                shares = {known[of]: share for of, share in labels.items()}
                entry.labels = list_reference(shares, has_confidence=has_confidence)
            else:
                problem = f"{place}: no class; other images have one"
                entry.fault = Fault(problem, entry.annotation, remedy=_WITHOUT_CLASS)
        keys = tuple(LIST_KINDS)[: 2 + has_confidence] if are_lists else ()
        options = {**listed.options, "is_labelled": are_alone, "list_keys": keys}
        return replace(listed, classes=classes, options=options)

    def _account(self, index: FileIndex, entries: Mapping[str, Entry]) -> Account:
        """Complete the account, to which the format has added what it leaves out."""
        account = index.account
        images = {
            name: entry
            for name, entry in entries.items()
            if name in index and (entry.fault is None or has_image_name(name))
        }
        account.read(Role.IMAGE, images)
        files = {entry.annotation for entry in entries.values() if entry.annotation in index}
        account.read(Role.ANNOTATION, dict.fromkeys(account.others(files)))
        if self._label_map is not None:
            label_map = self._label_map.relative_to(self.root)
            account.read(Role.CLASS_NAMES, {label_map} if label_map and label_map in index else ())
        for path in account.others(index.paths):
            account.leave_other(path)
        return index.tree.finish(account)

    def _leave_unannotated(
        self, index: FileIndex, paths: Iterable[str], images: Collection[str], what: str
    ) -> None:
        """Leave out images that are not in `images`: test images, or others without annotation."""
        splits = {find_split(path) for path in images}
        left: dict[Reason, list[str]] = {Reason.UNLABELLED_SPLIT: [], Reason.NO_ANNOTATION: []}
        for path in paths:
            if has_image_name(path) and path not in images:
                is_test = find_split(path) not in (None, *splits)
                left[Reason.UNLABELLED_SPLIT if is_test else Reason.NO_ANNOTATION].append(path)
        for reason, others in left.items():
            index.account.leave(reason, others, "image", what, Check.IMAGE_WITHOUT_ANNOTATION)

    @classmethod
    def find_candidates(cls, tree: FileTree) -> Iterator[LayoutCandidate]:
        known = cls.box_format
        if paths := cls._matching(tree):
            files = sum(folder.suffixes[known.suffix] for folder in tree.folders.values())
            is_weak = 2 * files < tree.image_counts[""]  # as most images have no file
            confidence = Confidence.STRUCTURE if is_weak else Confidence.ANNOTATED
            yield LayoutCandidate(known.name, known.what.format(paths[0]), confidence)

    def _all_classes(
        self, index: FileIndex, files: Collection[AnnotationFile], contents: Contents
    ) -> tuple[Classes, list[str]]:
        """The classes, or those that an attribute has instead, and notices."""
        classes, notices = self._classes(index, files, contents.all_names())
        if self._class_from:
            classes = make_classes(contents.all_names(), self._label_map)
        return classes, notices

    def _classes(
        self, index: FileIndex, files: Collection[AnnotationFile], used: Collection[str]
    ) -> tuple[Classes, list[str]]:
        """The classes of all files together, and notices; `used` are the names of objects."""
        return make_classes(used, self._label_map), []

    @abstractmethod
    def _list_images(self, index: FileIndex) -> ListedImages:
        """Find the annotation files and their images."""

    @classmethod
    def _matching(cls, tree: FileTree) -> list[str]:
        known = cls.box_format
        paths = itertools.islice(tree.files(*(known.file_suffixes or (known.suffix,))), MAX_OPENED)
        return [path for path in paths if known.is_format_of(path, tree.head(path))]


def path_notes(match: Found, name: str, place: str) -> tuple[tuple[str, str], ...]:
    """The notes for an image that was not found under the exact name in its annotation."""
    if match.change is None:
        return ()
    return ((match.change, f"{place}: {name!r}, used {match.path}"),)


def left_out_notice(number: int, noun: str, others: Collection[str], index: FileIndex) -> list[str]:
    """The notice of annotated or listed images that are left out; an error without others."""
    if number and not others:
        raise SourceError(f"all {number:,} {noun}s are left out", path=index.root)
    return [f"{count(number, noun)} left out"] if number else []


def listed_entries(
    index: FileIndex,
    lines: Sequence[tuple[int, str]],
    folders: Sequence[str],
    path: str,
    others: Sequence[tuple[str, Match]] = (),
) -> dict[int, Entry | None]:
    """The entries of the images that some lines of a list name; None for one that is left out.

    Args:
        folders: where to look for the images, best first.
        path: of the list.
        others: other names in the list, with their images.
    """
    found = [(name, index.find_image(name, folders, path)) for _, name in lines]
    matches = without_namesakes(index, [*found, *others], folders)
    entries: dict[int, Entry | None] = {}
    for (line, name), match in zip(lines, matches, strict=False):
        if isinstance(match, LeftOut):
            entries[line] = None
        elif isinstance(match, Found) and has_image_name(match.path):
            entries[line] = Entry(match.path, notes=path_notes(match, name, f"{path}, line {line}"))
        else:
            fault = Fault(not_found(match, name), path, line, check=Check.ANNOTATION_WITHOUT_IMAGE)
            entries[line] = Entry(f"{path}/{line}", fault=fault)
    return entries
