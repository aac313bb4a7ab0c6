"""Pictures with masks: two folders with the same names, a list of pairs, or PASCAL VOC's folders.

A mask's pixels are class numbers, stored as they are. What names a pair, and what a mask may be,
is decided by `pairing`, `pair_folders`, `pair_lists` and `masks`; this puts them together. A name
in a list that has no file is a sample that cannot be read: packing reports it with its line.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from recordsmith.errors import OptionError, SourceError
from recordsmith.example import Kind
from recordsmith.files import PathLike, as_path
from recordsmith.sources.contract import Listing, Note, Sample, look_up, unheard
from recordsmith.sources.folders import check_folder
from recordsmith.sources.masks import ColoursOption, check_colours, read_mask
from recordsmith.sources.pair_folders import (
    FolderPair,
    beside,
    find_folders,
    pairs_of_folders,
)
from recordsmith.sources.pair_lists import pairs_of_list, pairs_of_paths
from recordsmith.sources.pairing import Pair, Pairing
from recordsmith.sources.pictures import read_picture
from recordsmith.sources.splits import in_split_order

Pairs: TypeAlias = PathLike | Iterable[tuple[PathLike, PathLike]]


class ImagePairs:
    """Pictures and their masks for segmentation.

    Each sample has the keys of a picture, as ImageFolder has them, and
    `image/segmentation/class/encoded` and `image/segmentation/class/format`: a PNG whose pixels
    are class numbers. The file of such a mask is stored as it is, with its palette or its 16 bits;
    read palettes and masks of 1, 2 or 4 bits by a reader that gives numbers (TensorFlow's
    decode_png gives colours of a palette, and spreads few bits over 0 to 255).
    """

    def __init__(
        self,
        root: PathLike | None = None,
        *,
        pictures: PathLike | None = None,
        masks: PathLike | None = None,
        pairs: Pairs | None = None,
        colours: ColoursOption | None = None,
    ) -> None:
        """Name a folder in which both are found, or both folders, or the pairs.

        Args:
            root: the folder of the dataset; other paths may be relative to it.
            pictures, masks: a folder each, with the same names below.
            pairs: a file with `picture mask` or `picture,mask` a line, relative to the root or to
                the file's own folder; or an iterable of pairs of paths.
            colours: for masks drawn in colours: the class number of each (red, green, blue);
                "voc" for PASCAL VOC's table; "grey" for numbers that were saved as RGB.

        Raises:
            OptionError: these contradict each other.
        """
        if (pictures is None) != (masks is None):
            raise OptionError("give pictures and masks, both or none")
        if pairs is not None and pictures is not None:
            raise OptionError("give pictures and masks, or pairs; not both")
        if root is None and pictures is None and pairs is None:
            raise OptionError("give a root, or pictures and masks, or pairs")
        self.root = None if root is None else as_path(root)
        self._pictures = None if pictures is None else as_path(pictures)
        self._masks = None if masks is None else as_path(masks)
        self._list = as_path(pairs) if isinstance(pairs, (str, os.PathLike)) else None
        self._given = None if pairs is None or self._list is not None else _checked(pairs)
        self._colours = colours
        self._table = check_colours(colours)
        self._pairs: dict[str, Pair] = {}

    def __repr__(self) -> str:
        words = ", ".join(f"{name}={value!r}" for name, value in self.describe().items())
        return f"ImagePairs({words.partition(', ')[2]})"

    def list_samples(self) -> Listing:
        """Find all pairs, by name; none of the files is opened that is named like a picture.

        Raises:
            SourceError: there are no pairs; says what was found and what was expected.
            FileAccessError: a folder or a list cannot be read.
        """
        found = self._find()
        found.pairs.sort(key=lambda pair: pair.name)
        self._pairs = {pair.name: pair for pair in found.pairs}
        samples = tuple(
            Sample(pair.name, pair.size_bytes, split=pair.split, version=pair.version)
            for pair in found.pairs
        )
        splits = in_split_order(pair.split for pair in found.pairs if pair.split is not None)
        return Listing(samples, notices=tuple(found.notices), splits=splits)

    def read_sample(self, sample: Sample, note: Note = unheard) -> Mapping[str, Any]:
        """Read one picture and its mask."""
        pair = look_up(self._pairs, sample)
        if pair.problem is not None:
            raise SourceError(pair.problem)
        features = read_picture(pair.picture, pair.name)
        return features | read_mask(pair.mask, features, self._table, note)

    def describe(self) -> Mapping[str, Any]:
        described: dict[str, Any] = {"kind": "ImagePairs"}
        if self.root is not None:
            described["folder"] = self.root.resolve().name
        if self._pictures is not None and self._masks is not None:
            described |= {"pictures": self._pictures.name, "masks": self._masks.name}
        if self._list is not None:
            described["pairs"] = self._list.name
        elif self._given is not None:
            described["pairs"] = len(self._given)
        if isinstance(self._colours, str):
            described["colours"] = self._colours
        elif self._table is not None:
            described["colours"] = sorted([*rgb, number] for rgb, number in self._table.items())
        return described

    def kinds(self) -> Mapping[str, Kind]:
        return {}

    def _find(self) -> Pairing:
        if self._given is not None:
            return pairs_of_paths(self._given, self.root)
        if self._list is not None:
            path = self._list
            if self.root is not None and not path.exists():
                path = self.root / path
            root = self.root or path.parent
            check_folder(root, "a folder")
            return pairs_of_list(path, root)
        if self._pictures is not None and self._masks is not None:
            folder = self.root or Path()
            pair = FolderPair(folder / self._pictures, folder / self._masks)
            for path in (pair.pictures, pair.masks):
                check_folder(path, "a folder")
            is_below = self.root is not None and pair.pictures.is_relative_to(self.root)
            return pairs_of_folders(folder if is_below else pair.pictures, [pair])
        assert self.root is not None
        check_folder(self.root, "a folder")
        base, folders = find_folders(self.root)
        found = pairs_of_folders(base, folders)
        found.notice("beside the pictures and masks", beside(base, folders))
        return found


def _checked(pairs: Any) -> list[tuple[Path, Path]]:
    """Pairs of paths that a caller gave."""
    checked = []
    for pair in pairs:
        if isinstance(pair, (str, bytes)) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise OptionError(f"pairs has {pair!r}; expected a pair of paths, picture and mask")
        checked.append((as_path(pair[0]), as_path(pair[1])))
    if not checked:
        raise OptionError("pairs is empty; expected pairs of paths, a picture and its mask")
    return checked
