"""Write the pages of the documentation site to `build/docs`; `make docs` builds the site of them.

    python docs/site/pages.py           before the build
    python docs/site/pages.py finish    after it: no page may load anything from another host

These are the pages of `docs`, the reference from the docstrings and from the command line, and the
files elsewhere in the repository that a page links to, such as example programs: so the site is
complete offline. `llms.txt`, the index for language models, is written to the root as well.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from os.path import normpath, relpath
from pathlib import Path, PurePosixPath
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import recordsmith
from recordsmith.cli import COMMANDS, load_command

REPOSITORY = Path(__file__).parent.parent.parent
OUT = REPOSITORY / "build" / "docs"
SITE = REPOSITORY / "build" / "site"
CONFIG = REPOSITORY / "build" / "mkdocs.yml"
GENERATED = "      # and the generated pages\n"
LINK = re.compile(r"(!?\[[^\]]*\])\(([^)\s#:]+)(#[^)\s]*)?\)")
EXTERNAL = re.compile(r'<script src="https?://[^>]*></script>')
IMAGES = {".jpg", ".png", ".svg"}
LANGUAGES = {".py": "python", ".pyx": "cython", ".yml": "yaml", ".toml": "toml", ".json": "json"}

PYTHON = {
    "Read and write records": (
        "read_records open Dataset ShardWriter index encode_example decode_example "
        "encode_sequence_example decode_sequence_example classify SequenceExample BytesArray "
        "RaggedArray Schema FeatureSchema remote"
    ),
    "Pack": (
        "detect pack ImageOptions Detection lint forecast plan run finish PackPlan ImageFolder "
        "ImageFiles CaptionedImages ImagePairs Voc Coco Yolo Cvat Dota LabelMe LabelStudio "
        "CsvBoxes CreateML ImageLabels Kitti Via SegmentAnything Table Rows HuggingFace Arrays "
        "Tfds LeRobot WebDataset Shards"
    ),
    "Train": (
        "Loader BlockShuffle BucketBySize ByClass Episodes Mix Packed Weighted Image Mask "
        "Boxes Keypoints Patches ColorJitter Cutmix Mixup RandomErasing tile_image untile Scalar "
        "Tensor Stack Normalise Label OneHot MultiHot Ragged Padded Bytes Text Raw "
        "Serialized Steps Examples Position Present FeatureSpec bench"
    ),
    "Check and preview": (
        "inspect stats normalisation verify schema diff sheet view draw_batch save_html reader_code"
    ),
    "Change and export": (
        "salvage reshard edit Edits edit_in_place add_layer remove_layer append "
        "recover history export card"
    ),
    "Errors": (
        "RecordsmithError DataError CorruptDataError NotAnExampleError Defect FileAccessError "
        "FunctionError MissingExtraError OptionError SourceError"
    ),
    "Engines": "engines",
}
"""Page of the reference -> names of `recordsmith`."""

WITH_MEMBERS = (
    "Dataset ShardWriter Loader Examples Schema FeatureSchema RaggedArray BytesArray "
    "SequenceExample PackPlan Detection Defect FeatureSpec"
)
"""Classes whose members users call."""

MODULES = "torch lightning jax tensorflow keras grain polars duckdb ray spark beam"
"""Modules for other libraries, each a page of the reference."""

FACTS = """\
# recordsmith

> TFRecord datasets without TensorFlow: pack images, masks, boxes and tables into TFRecord files,
> verify and repair any TFRecord file, query and change it, and train from it in PyTorch, JAX,
> TensorFlow or Keras.

- Install it from a checkout of this repository: `pip install '.[standard]'`; it is not on PyPI.
  What needs another extra (`torch`, `jax`, `duckdb`, `remote`, …) prints the line that installs it.
- In Python: `import recordsmith as rs`. The main functions are `rs.pack`, `rs.open`, `rs.Loader`,
  `rs.verify`, `rs.reshard` and `rs.export`.
- On the command line: `recordsmith detect`, `lint`, `pack`, `verify`, `inspect`, `head`, `reshard`,
  `edit`, `export`. With `--json` most print one document. They exit with 0 for success, 1 if the
  data has defects or is not as expected, 2 if the command is wrong.
- The reference is in the program: `recordsmith COMMAND --help` and `help(rs.Loader)`; most options
  have the same name in both.
- Copy commands for the usual tasks from [the skill](skills/recordsmith/SKILL.md), or start with
  [the README](README.md) and [the index of all pages](docs/README.md).
"""
"""What a reader of the index alone needs first."""


def main() -> None:
    """Write all pages, and the configuration with the navigation."""
    shutil.rmtree(OUT, ignore_errors=True)
    reference = dict(reference_pages())
    for path, text in reference.items():
        write(path, text)
    files = [f"docs/{path.relative_to(REPOSITORY / 'docs')}" for path in pages_of_docs()]
    known = set(files)
    while files:  # breadth first through the links
        for target in copy(files.pop()):
            if target not in known:
                known.add(target)
                files.append(target)
    sections = ""
    for section in ("python", "commands"):
        pages = [path for path in reference if f"/{section}/" in path]
        sections += f"      - {section.capitalize()}:\n"
        sections += "".join(f"          - {path}\n" for path in pages)
    config = (REPOSITORY / "docs" / "site" / "mkdocs.yml").read_text("utf-8")
    CONFIG.write_text(config.replace(GENERATED, sections), "utf-8")
    for name in ("site.css", "worker.js"):
        write(f"assets/{name}", (REPOSITORY / "docs" / "site" / name).read_bytes())
    write("llms.txt", llms(of_site=True))
    (REPOSITORY / "llms.txt").write_text(llms(), "utf-8")
    archive_corpus()


def finish() -> None:
    """Complete the site: nothing from other hosts, and no two hits of search look the same."""
    index = json.loads((SITE / "search.json").read_text("utf-8"))
    name_hits(index["items"])
    text = json.dumps(index, ensure_ascii=False, separators=(",", ":"))
    (SITE / "search.json").write_text(text, "utf-8")
    (SITE / "search.js").write_text(f"var __index = {text}", "utf-8")
    for path in SITE.rglob("*.html"):
        own = relpath(SITE / "assets" / "worker.js", path.parent)
        text = EXTERNAL.sub(f'<script src="{own}"></script>', path.read_text("utf-8"))
        assert not re.search(r'(src|data-src)="https?://|<link[^>]*href="https?://', text), path
        path.write_text(text, "utf-8")


def name_hits(items: list[dict[str, Any]]) -> None:
    """Add to titles that several hits have the class or page that they belong to."""
    pages = {item["location"]: item["title"] for item in items if "#" not in item["location"]}
    for owner_of in (_class_of, lambda item: pages[item["location"].partition("#")[0]], _path_of):
        counts = Counter(item["title"] for item in items)
        for item in items:
            owner = owner_of(item)
            if counts[item["title"]] > 1 and owner and owner != item["title"]:
                item["title"] = f"{owner}: {item['title']}"
    repeated = [
        title for title, count in Counter(item["title"] for item in items).items() if count > 1
    ]
    assert not repeated, repeated


def _class_of(item: dict[str, Any]) -> str:
    """The class or module of a public name: `Loader` of `recordsmith.loading.Loader.close`."""
    return item["location"].partition("#")[2].rpartition(".")[0].rpartition(".")[2]


def _path_of(item: dict[str, Any]) -> str:
    """The section of a page in the navigation, or its folder."""
    return " ".join(item.get("path", ())) or str(PurePosixPath(item["location"]).parent)


def llms(*, of_site: bool = False) -> str:
    """The index of the documentation for language models, as https://llmstxt.org describes it.

    In the repository, links lead to Markdown; commands and names have pages only in the site.
    """

    def link(name: str) -> str:
        return site_path(name).removesuffix(".md") + ".html" if of_site else name

    def generated(title: str, path: str, text: str) -> str:
        path = f"reference/{path.lower().replace(' ', '-')}.html"
        return f"- {f'[{title}]({path})' if of_site else title}: {text}\n"

    text = re.sub(LINK, lambda match: f"{match[1]}({link(match[2])})", FACTS)
    known = set()
    sections = (REPOSITORY / "docs" / "README.md").read_text("utf-8").split("\n## ")[1:]
    for section in sections:
        text += f"\n## {section.partition(chr(10))[0]}\n\n"
        for target in re.findall(r"\]\(([^)#:]+\.md)\)", section):
            name = normpath(PurePosixPath("docs", target))
            if name not in known:
                known.add(name)
                title, sentence = title_and_summary((REPOSITORY / name).read_text("utf-8"))
                text += f"- [{title}]({link(name)}): {sentence}\n"
    text += "\n## Commands\n\n"
    for name, summary in COMMANDS.items():
        text += generated(f"`recordsmith {name}`", f"commands/{name}", summary)
    text += "\n## Names in Python\n\n"
    for title, names in PYTHON.items():
        listed = ", ".join(f"`rs.{name}`" for name in names.split())
        text += generated(title, f"python/{title}", listed)
    for name in MODULES.split():
        module = find_spec(f"recordsmith.{name}")  # not imported, as it needs its framework
        assert module is not None
        assert module.origin is not None
        docstring = ast.get_docstring(ast.parse(Path(module.origin).read_text("utf-8")))
        summary = (docstring or "").partition("\n\n")[0].replace("\n", " ")
        text += generated(f"`recordsmith.{name}`", f"python/{name}", summary)
    return text


def title_and_summary(page: str) -> tuple[str, str]:
    """The heading of a page, and the sentence after it without its links."""
    title, _, text = page.removeprefix("# ").partition("\n")
    paragraph = text.strip().partition("\n\n")[0].replace("\n", " ")
    sentence = re.split(r"(?<=\.) (?=[A-Z`\[])", paragraph)[0]
    return title, re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", sentence)


def archive_corpus() -> None:
    """Archive the conformance corpus, with equal bytes at each build."""
    folder = REPOSITORY / "tests" / "conformance"
    names = ["README.md", "cases.json", "datasets.json", "make_corpus.py"]
    files = [*(folder / name for name in names), *sorted((folder / "files").iterdir())]
    with ZipFile(OUT / "conformance.zip", "w", ZIP_DEFLATED) as archive:
        for file in files:
            info = ZipInfo(f"conformance/{file.relative_to(folder).as_posix()}")
            archive.writestr(info, file.read_bytes(), ZIP_DEFLATED)


def pages_of_docs() -> Iterator[Path]:
    """The pages that are written by hand."""
    for path in sorted((REPOSITORY / "docs").rglob("*.md")):
        if "site" not in path.relative_to(REPOSITORY / "docs").parts:
            yield path


def copy(name: str) -> list[str]:
    """Copy a file of the repository into the site; return the files that it links to."""
    source = REPOSITORY / name
    if source.suffix in IMAGES:
        write(site_path(name), source.read_bytes())
        return []
    text = source.read_text("utf-8")
    if source.suffix != ".md":
        language = LANGUAGES.get(source.suffix, "")
        write(site_path(name), f"# `{name}`\n\n````{language}\n{text}````\n")
        return []
    folder = PurePosixPath(name).parent
    targets = []

    def lead(match: re.Match[str]) -> str:
        target = normpath(folder / match[2])
        if not (REPOSITORY / target).is_file():
            return match[0]
        targets.append(target)
        path = relpath(site_path(target), PurePosixPath(site_path(name)).parent)
        return f"{match[1]}({path}{match[3] or ''})"

    write(site_path(name), LINK.sub(lead, text))
    return targets


def site_path(name: str) -> str:
    """Where a file of the repository is in the site."""
    path = PurePosixPath(name)
    if path.parts[0] == "docs":
        path = path.relative_to("docs")
        return "index.md" if str(path) == "README.md" else str(path)
    path = PurePosixPath("project") / path
    if path.suffix == ".md":
        is_index = path.stem == "README" and len(path.parts) > 2
        return str(path.with_name("index.md" if is_index else path.name.lower()))
    return str(path) if path.suffix in IMAGES else f"{path}.md"


def write(path: str, content: str | bytes) -> None:
    """Write a file of the site."""
    target = OUT / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content.encode() if isinstance(content, str) else content)


# -- the reference ---------------------------------------------------------------------------------


def reference_pages() -> Iterator[tuple[str, str]]:
    """Yield the pages of the reference: of names of the package, of its modules, of commands."""
    for title, names in PYTHON.items():
        path = f"reference/python/{title.lower().replace(' ', '-')}.md"
        yield path, f"# {title}\n\n" + "".join(map(name_block, names.split()))
    for name in MODULES.split():
        yield f"reference/python/{name}.md", f"# recordsmith.{name}\n\n::: recordsmith.{name}\n"
    for name in COMMANDS:
        yield f"reference/commands/{name}.md", command_page(name)


def name_block(name: str) -> str:
    """The part of a page for a public name; of most classes only what creates them."""
    value = getattr(recordsmith, name)
    path = f"recordsmith.{name}"
    if hasattr(value, "__qualname__"):
        path = f"{value.__module__}.{value.__qualname__}"
    block = f"::: {path}\n"
    if isinstance(value, type) and name not in WITH_MEMBERS.split():
        block += "    options:\n      members: false\n"
    return block + "\n"


def command_page(name: str) -> str:
    """The help of a command as a page."""
    command = load_command(name)
    panels: dict[str, list[Any]] = {}
    usage = []
    for param in command.params:
        is_argument = param.param_type_name == "argument"
        if is_argument:
            usage.append(f"{param.metavar}{'...' * (param.nargs != 1)}")
        title = param.rich_help_panel or ("Arguments" if is_argument else "Options")
        panels.setdefault(title, []).append(param)
    lines = [f"# {name}", "", command.help, ""]
    lines += ["```", " ".join(["recordsmith", name, "[OPTIONS]", *usage]), "```", ""]
    for title, params in panels.items():
        kind = "argument" if title == "Arguments" else "option"
        lines += [f"## {title}", "", f"| {kind} | what it does |", "| --- | --- |"]
        for param in params:
            is_argument = param.param_type_name == "argument"
            names = [param.metavar] if is_argument else [*param.opts, *param.secondary_opts]
            value = "" if is_argument or not param.metavar else f" {param.metavar}"
            shown = ", ".join(f"`{option}{value}`" for option in names)
            text = (param.help or "").replace("|", r"\|").replace("<", "&lt;")
            lines.append(f"| {shown} | {text} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    finish() if sys.argv[1:] == ["finish"] else main()
