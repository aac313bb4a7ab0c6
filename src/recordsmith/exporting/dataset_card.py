"""A dataset card: `README.md` for the Hugging Face Hub, and Croissant metadata.

The Hub reads the YAML header of `README.md`. Croissant is the JSON-LD format of MLCommons for
datasets (version 1.0, docs.mlcommons.org/croissant); search engines read it, too.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from recordsmith.checking import Inspection, inspect
from recordsmith.dataset import Dataset, Paths, Shard, dataset_of, read_manifest
from recordsmith.format.example import FeatureSchema
from recordsmith.format.example.keys import CLASS_LABEL
from recordsmith.stores import Location, PlaceLike, as_folder, write_document
from recordsmith.support.errors import accessing
from recordsmith.support.serialization import fields_to_json
from recordsmith.support.words import count as format_count
from recordsmith.support.words import printable
from recordsmith.support.words import size as format_size
from recordsmith.support.work import Progress

README_NAME = "README.md"
CROISSANT_NAME = "croissant.json"

_MARKUP = re.compile(r"[\\`*_\[\]|~$#<>&]|^(?:[-+=:]|\d+(?=[.)]))")
_NOT_IN_CODE = re.compile(r"[`|<>\\]|^\s|\s$")
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
_URL = re.compile(r"https?://[^\s<>\\`|\x00-\x1f\x7f]+")
_NOT_IN_YAML = re.compile("[\x7f-\xa0\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_BLOCK_BYTES = 8 << 20
_HUB_SIZES = (10**3, 10**4, 10**5, 10**6, 10**7, 10**8, 10**9)
_SIZE_NAMES = ("1K", "10K", "100K", "1M", "10M", "100M", "1B")
_TYPES = {"int64": "sc:Integer", "float": "sc:Float", "text": "sc:Text", "image": "sc:ImageObject"}
"""Types of Croissant by kind or content of a feature; others are text."""

_TERMS = (
    "citeAs column conformsTo cr rai data dataType dct examples extract field fileProperty "
    "fileObject fileSet format includes isLiveDataset jsonPath key md5 parentField path recordSet "
    "references regex repeated replace sc separator source subField transform"
)
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    **{term: f"cr:{term}" for term in _TERMS.split()},
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "sc": "https://schema.org/",
}
"""The context that the specification prescribes, in its order."""


@dataclass(frozen=True)
class Card:
    """What a dataset contains, for people and catalogues.

    Attributes:
        readme: the content of `README.md`, with the header of the Hugging Face Hub.
        croissant: the Croissant document, as JSON-able values.
    """

    readme: str
    croissant: Mapping[str, Any]

    def save(self, folder: PlaceLike, *, overwrite: bool = False) -> tuple[Location, Location]:
        """Write `README.md` and `croissant.json`; return where they are.

        Args:
            folder: usually that of the dataset.
            overwrite: replace existing files.

        Raises:
            OptionError: one of them exists.
            FileAccessError: they cannot be written.
        """
        out = as_folder(folder)
        out.make_folder()
        places = out / README_NAME, out / CROISSANT_NAME
        for location in places:
            location.check_target(overwrite=overwrite)
        texts = self.readme, json.dumps(self.croissant, indent=1) + "\n"
        for location, text in zip(places, texts, strict=True):
            write_document(location, text.encode("utf-8", "backslashreplace"), overwrite=overwrite)
        return places

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able dict with the attributes."""
        return fields_to_json(self)


def card(
    paths_or_dataset: Paths | Dataset,
    *,
    name: str | None = None,
    description: str | None = None,
    license: str | None = None,
    citation: str | None = None,
    url: str | None = None,
    progress: Progress | None = None,
) -> Card:
    """Describe a dataset for the Hugging Face Hub and for catalogues that read Croissant.

    Reads all shards once, for their SHA-256.

    Args:
        paths_or_dataset: as in `inspect`.
        name: what the dataset is called; by default as its folder.
        description: one or two sentences, plain text.
        license: an SPDX identifier such as `cc-by-4.0`, or a URL. The default of `license` and
            `citation` is what the dataset was packed with.
        citation: how to cite the dataset, such as a BibTeX entry.
        url: the page of the dataset.
        progress: called as `progress(done_bytes, total_bytes)`.

    Raises:
        CorruptDataError, FileAccessError, OptionError: as in `inspect`.

    Example:
        card = rs.card("out", license="cc-by-4.0")
        card.save("out")
    """
    dataset = dataset_of(paths_or_dataset)
    summary = inspect(dataset)
    terms = stated_terms(dataset)
    path = PurePath(summary.shards[0].path if summary.shards else "dataset")
    names = {
        "name": name or path.parent.name or path.stem,
        "description": description or _sentence(summary),
        "license": license or terms.get("license"),
        "citeAs": citation or terms.get("citation"),
        "url": url,
    }
    words = {key: text for key, text in names.items() if text}
    described = {shard.path for shard in summary.shards}
    shards = [shard for shard in dataset.shards if str(shard.location) in described]
    hashes = _hashes([file for shard in shards for file in (shard, *shard.layers)], progress)
    layers = [layer for shard in shards for layer in shard.layers]
    readme = _readme(summary, words, layers)
    return Card(readme, _croissant(summary, words, hashes, layers))


def stated_terms(dataset: Dataset) -> Mapping[str, str]:
    """Return the licence and the citation with which a dataset, or its source, was packed."""
    terms: dict[str, str] = {}
    for step in steps_of(dataset):
        options = step.get("options")
        if isinstance(options, Mapping):
            stated = {key: options.get(key) for key in ("license", "citation")}
            terms |= {key: text for key, text in stated.items() if isinstance(text, str)}
    return terms


def steps_of(dataset: Dataset) -> list[Mapping[str, Any]]:
    """Return the provenance of each job that the records came from, the newest last."""
    folders = {shard.location.parent for shard in dataset.shards}
    manifest = read_manifest(folders.pop()) if len(folders) == 1 else None
    if manifest is None:
        return []
    source = manifest.provenance.get("source")
    steps = source.get("provenance", []) if isinstance(source, Mapping) else []
    return [step for step in (*steps, manifest.provenance) if isinstance(step, Mapping)]


def _sentence(summary: Inspection) -> str:
    records = format_count(summary.record_count, "record")
    size = format_size(summary.size_bytes)
    return f"{records} in TFRecord files, {size}, in the splits {', '.join(summary.splits)}."


def _hashes(shards: Sequence[Shard], progress: Progress | None) -> dict[str, str]:
    """Return the SHA-256 of each shard, by its path."""
    total = sum(shard.size_bytes for shard in shards)
    hashes, done = {}, 0
    for shard in shards:
        digest = hashlib.sha256()
        with accessing(shard.location), shard.location.open_read() as stream:
            while block := stream.read(_BLOCK_BYTES):
                digest.update(block)
                done += len(block)
                if progress is not None:
                    progress(done, total)
        hashes[str(shard.location)] = digest.hexdigest()
    return hashes


def _readme(summary: Inspection, words: Mapping[str, str], layers: Sequence[Shard]) -> str:
    """Return the page: a header in YAML, of which JSON is a part, and text."""
    totals = summary.split_totals()
    size_bytes = summary.size_bytes + sum(layer.size_bytes for layer in layers)
    header: dict[str, Any] = {"pretty_name": words["name"]}
    if "license" in words:
        header["license"] = words["license"]
    header["size_categories"] = [_size_category(summary.record_count)]
    header["tags"] = ["tfrecord"]
    header["dataset_info"] = {
        "features": [
            {"name": key} | _hub_type(feature, summary.class_names if key == CLASS_LABEL else None)
            for key, feature in _features(summary)
        ],
        "splits": [
            {"name": split, "num_bytes": total["size_bytes"], "num_examples": total["records"]}
            for split, total in totals.items()
        ],
        "download_size": size_bytes,
        "dataset_size": size_bytes,
    }
    lines = ["---", *(f"{key}: {to_yaml(value)}" for key, value in header.items()), "---", ""]
    lines += [f"# {_markdown(words['name'])}", "", _markdown(words["description"]), ""]
    if "url" in words:
        is_url = _URL.fullmatch(words["url"])
        lines += [f"<{words['url']}>" if is_url else _markdown(words["url"]), ""]
    lines += ["| split | records | shards | size |", "| --- | ---: | ---: | ---: |"]
    for split, total in totals.items():
        name, size = _markdown(split), format_size(total["size_bytes"])
        lines.append(f"| {name} | {total['records']:,} | {total['shards']:,} | {size} |")
    lines += ["", "| feature | kind | values |", "| --- | --- | --- |"]
    for key, feature in _features(summary):
        values = "1" if feature.shape == () else str(feature.shape or "any number")
        lines.append(f"| {_code_cell(key)} | {feature.content_text or feature.kind} | {values} |")
    of_layers = sorted({key for layer in layers for key in layer.features})
    if of_layers:
        keys = ", ".join(map(_code_cell, of_layers))
        lines += ["", f"In the files of `layers/`, read together with the shards: {keys}"]
    for label, known in summary.keypoint_classes.items():
        joined = ", ".join(f"{one}-{other}" for one, other in known.skeleton)
        names = ", ".join(map(_code_cell, known.names))
        lines += ["", f"Keypoints of class {label}, from 0: {names}; joined: {joined or 'none'}"]
    lines += ["", "```python", "import recordsmith as rs", ""]
    lines.append(f"dataset = rs.open({words['name']!r})")
    lines += ["print(dataset[0])", "```", ""]
    return "\n".join([*lines, *citation_lines(words.get("citeAs"))])


def _markdown(text: str) -> str:
    """Return a text in one line that Markdown and HTML show as it is."""
    line = printable(" ".join(text.split()))
    return _MARKUP.sub(_escape, line)


def _escape(match: re.Match[str]) -> str:
    text = match[0]
    if text.isdecimal():  # the number of a list
        return f"&#{ord(text[0])};{text[1:]}"
    return _ENTITIES.get(text, f"\\{text}")


def _code_cell(text: str) -> str:
    line = printable(text)
    return f"<code>{_markdown(line)}</code>" if _NOT_IN_CODE.search(line) else f"`{line}`"


def citation_lines(citation: str | None) -> list[str]:
    """Return the part of a page with a citation, whose text cannot end its block."""
    if citation is None:
        return []
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", citation)), default=0))
    return ["## Citation", "", fence, citation, fence, ""]


def to_yaml(value: Any) -> str:
    """JSON as YAML reads it: without escaped halves of characters, and breaks of lines escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return _NOT_IN_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _features(summary: Inspection) -> Iterator[tuple[str, FeatureSchema]]:
    """Yield the features of all sections of the schema that have a kind."""
    for section in summary.schema.sections.values():
        for key, feature in section.items():
            if feature.kind in ("int64", "float", "bytes"):
                yield key, feature


def _hub_type(feature: FeatureSchema, class_names: Any) -> dict[str, Any]:
    """Return the type of a feature as `datasets` writes it in a card."""
    dtype: Any = {"float": "float32", "int64": "int64"}.get(feature.kind)
    if dtype is None:
        dtype = {"image": "image", "text": "string"}.get(feature.content or "", "binary")
    elif class_names and feature.kind == "int64":
        names = {str(label): name or str(label) for label, name in enumerate(class_names)}
        dtype = {"class_label": {"names": names}}
    shape, is_list = feature.shape_if_present, feature.min_steps is not None
    if shape == ():
        return {"list" if is_list else "dtype": dtype}
    values = {"list": dtype} | ({} if shape is None else {"length": shape[0]})
    return {"list": values} if is_list else values


def _size_category(count: int) -> str:
    for limit, low, high in zip(_HUB_SIZES, ("", *_SIZE_NAMES), _SIZE_NAMES, strict=False):
        if count < limit:
            return f"{low}<n<{high}" if low else f"n<{high}"
    return "n>1B"


def _croissant(
    summary: Inspection,
    words: Mapping[str, str],
    hashes: Mapping[str, str],
    layers: Sequence[Shard],
) -> dict[str, Any]:
    """Return the document: a file for each shard, a set of files and its records."""
    sets, records = [], []
    totals = summary.split_totals()
    sizes = [(PurePath(shard.path).name, shard.path, shard.size_bytes) for shard in summary.shards]
    for layer in layers:
        path = str(layer.location)
        sizes.append(("/".join(PurePath(path).parts[-3:]), path, layer.size_bytes))
    files = [
        {
            "@type": "cr:FileObject",
            "@id": file,
            "name": file,
            "contentUrl": file,
            "contentSize": f"{size_bytes} B",
            "encodingFormat": "application/x-tfrecord",
            "sha256": hashes[path],
        }
        for file, path, size_bytes in sizes
    ]
    for split, shards in summary.splits.items():
        own = [PurePath(shard.path).name for shard in shards]
        sets.append(
            {
                "@type": "cr:FileSet",
                "@id": f"{split}-files",
                "name": f"{split}-files",
                "containedIn": [{"@id": file} for file in own],
                "encodingFormat": "application/x-tfrecord",
                "includes": f"{split}*",
            }
        )
        records.append(
            {
                "@type": "cr:RecordSet",
                "@id": split,
                "name": split,
                "description": format_count(totals[split]["records"], "record"),
                "field": [
                    {
                        "@type": "cr:Field",
                        "@id": f"{split}/{key}",
                        "name": key,
                        "dataType": _TYPES.get(feature.content or feature.kind, "sc:Text"),
                        **({} if feature.shape == () else {"repeated": True}),
                        "source": {
                            "fileSet": {"@id": f"{split}-files"},
                            "extract": {"column": key},
                        },
                    }
                    for key, feature in _features(summary)
                ],
            }
        )
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        **words,
        "distribution": [*files, *sets],
        "recordSet": records,
    }
