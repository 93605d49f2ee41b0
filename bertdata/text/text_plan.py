"""Plan of a run of ``segment``: names of the output files, and the part that each input file goes into."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from bertdata.config.held_out_names import EVAL_MD5, EVAL_TEXT, make_mlperf_part_name
from bertdata.errors import InputError, MissingInputError
from bertdata.io import storage
from bertdata.io.file_identity import FileIdentity, identify_file
from bertdata.io.manifest_file import MANIFEST_NAME, parse_json
from bertdata.sources.kinds import is_articles_kind
from bertdata.text.escaped_articles import mark_escaped_articles
from bertdata.text.input_kinds import ARTICLES, describe_kinds
from bertdata.text.mlperf_parts import plan_parts
from bertdata.text.nvidia_sharding import distribute_articles
from bertdata.text.reading import measure_articles
from bertdata.text.settings import SegmentSettings
from bertdata.wiki.articles.manifest import ARTICLES_KIND, parse_articles_manifest

NumberedFile = tuple[int, str, str]
"""Input file: its number among all input files, its path and its kind."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TextPlan:
    """Facts about a run that are known before it starts, from the names and sizes of its input files.

    names: names of the parts, or of the training shards followed by the test shards.
    part_of: index of each file's part in ``names``. Empty for the recipe nvidia, which distributes single
        articles.
    inputs: names of the input files for the manifest.
    kinds: kind of each input file, a key of ``input_kinds.KINDS``.
    identities: size and time of each input file when it was listed, to detect later changes.
    articles: content of the manifest that lists the extracted articles, or None.
    """

    settings: SegmentSettings
    names: list[str]
    part_of: list[int]
    inputs: list[str]
    kinds: list[str]
    identities: Sequence[FileIdentity]
    articles: bytes | None

    def lines(self, files: Sequence[str], directory: str) -> list[str]:
        """Return lines that tell the user what the run would read and write."""
        given = ", ".join(f"{name} {value}" for name, value in self.settings.as_dict().items())
        written = [*self.names, *((EVAL_TEXT, EVAL_MD5) if self.part_of else ())]
        there = set(storage.list_files(directory))
        told = "" if describe_kinds(self.kinds) is None else f", input kinds {describe_kinds(self.kinds)}"
        return [
            f"{directory}: text: {given}{told}",
            *(f"  read  {path} ({storage.read_size(path)} bytes)" for path in files),
            f"{directory}: {len(written)} text files to write, {len(there & set(written))} of them in place "
            "of one that is there",
            *(f"  make  {name}" for name in written),
        ]


def plan_text(files: Sequence[str], settings: SegmentSettings, kinds: Sequence[str] = ()) -> TextPlan:
    """Return the plan for segmenting these files.

    Raises InputError if the first file is larger than a part may be (mlperf), and for a file whose size
    differs from the size in its directory's manifest.

    kinds: kind of each file. Empty: all files are extracted articles. Whether articles contain escapes is
        determined from their manifest or the settings (``mark_escaped_articles``).
    """
    identities = storage.map_paths(files, identify_file)
    kinds = mark_escaped_articles(files, list(kinds) or [ARTICLES] * len(files), settings.escaped_articles)
    inputs, articles = _name_inputs(files, kinds)
    if settings.recipe == "nvidia":
        names, part_of = list_nvidia_shard_names(settings), []
    else:
        part_of = plan_parts(_measure_texts(identities, kinds), settings.block_size, files)
        names = [make_mlperf_part_name(number) for number in range(max(part_of) + 1)]
    return TextPlan(
        settings=settings,
        names=names,
        part_of=part_of,
        inputs=inputs,
        kinds=kinds,
        identities=identities,
        articles=articles,
    )


def _measure_texts(identities: Sequence[FileIdentity], kinds: Sequence[str]) -> list[int]:
    """Return the size of each file's text in bytes, unpacked if the file is compressed."""
    sizes = {one.path: one.state.bytes for one in identities}
    articles = {one.path for one, kind in zip(identities, kinds, strict=True) if is_articles_kind(kind)}
    return storage.map_paths(
        list(sizes), lambda path: measure_articles(path) if path in articles else sizes[path]
    )


def _name_inputs(files: Sequence[str], kinds: Sequence[str]) -> tuple[list[str], bytes | None]:
    """Return the input files' names for the manifest, and the content of the articles' manifest.

    The content is None if no input file is listed in a manifest of articles.
    """
    # Articles are named relative to their manifest, other files relative to their common directory. So the
    # files of each kind are named separately. The names are then put back into the order of the files.
    names: dict[int, str] = {}
    manifest = None
    of_articles = [ARTICLES if is_articles_kind(kind) else kind for kind in kinds]
    for kind in dict.fromkeys(of_articles):
        numbers = [number for number, one in enumerate(of_articles) if one == kind]
        paths = [files[number] for number in numbers]
        if kind == ARTICLES:
            named, manifest = find_articles(paths)
        else:
            named = make_relative_names(paths)
        names.update(zip(numbers, named, strict=True))
    return [names[number] for number in range(len(files))], manifest


def make_relative_names(files: Sequence[str]) -> list[str]:
    """Return the names of the files relative to the deepest directory that contains them all."""
    split = [path.split("/") for path in files]
    depth = len(_find_common_directory(split))
    return ["/".join(components[depth:]) for components in split]


def _find_common_directory(split: Sequence[list[str]]) -> list[str]:
    """Return the components of the deepest directory that contains all paths."""
    return list(os.path.commonprefix([components[:-1] for components in split]))  # noqa: RUF071 - of lists


def find_articles(files: Sequence[str]) -> tuple[list[str], bytes | None]:
    """Find the manifest that lists these extracted files, and name the files relative to it.

    Returns the names, and the content of the manifest, or None if there is no such manifest.

    A manifest is looked for in the deepest directory that contains all files, and in its parent. Names are
    relative to the manifest's directory. If there is no manifest, they are relative to the deepest common
    directory. So the names never depend on where the articles are stored.
    """
    # For example, "out/AA/wiki_00" and "out/AB/wiki_00" have the common directory "out", which may hold the
    # manifest. "out/AA/wiki_00" and "out/AA/wiki_01" have the common directory "out/AA", whose parent may
    # hold it.
    split = [path.split("/") for path in files]
    common = _find_common_directory(split)
    for depth in (len(common), len(common) - 1):
        if depth < 0:
            continue
        root = "/".join(common[:depth]) or ("/" if common[:1] == [""] else ".")
        names = ["/".join(components[depth:]) for components in split]
        articles = _read_listing_manifest(root, files, names)
        if articles is not None:
            return names, articles
    return make_relative_names(files), None


def _read_listing_manifest(root: str, files: Sequence[str], names: list[str]) -> bytes | None:
    """Return the content of the directory's manifest if it lists all these articles. Otherwise return None.

    Raises InputError if a file has another size than the manifest lists.
    """
    path = storage.join(root, MANIFEST_NAME)
    try:
        data = storage.read_bytes(path)
    except MissingInputError:
        return None
    if parse_json(data, path).get("kind") != ARTICLES_KIND:
        return None
    listed = {entry.name: entry.bytes for entry in parse_articles_manifest(data, path).files}
    if not listed.keys() >= set(names):
        return None
    for file, name, size in zip(files, names, storage.map_paths(files, storage.read_size), strict=True):
        if size != listed[name]:
            raise InputError(
                f"{file}: found {size} bytes, expected {listed[name]} as {path} lists it; extract the "
                f"articles again, or remove that {MANIFEST_NAME} if they were changed on purpose"
            )
    return data


def list_nvidia_shard_names(settings: SegmentSettings) -> list[str]:
    """Return the names of NVIDIA's text shards: the training shards, then the test shards."""
    kinds = {"training": settings.training_shards, "test": settings.test_shards}
    return [
        f"{settings.prefix}_{kind}_{index}.txt" for kind, shards in kinds.items() for index in range(shards)
    ]


def assign_articles_to_shards(sentences: Sequence[int], settings: SegmentSettings) -> list[list[int]]:
    """Distribute articles over NVIDIA's shards, and return the numbers of each shard's articles.

    The shards are in the order of ``list_nvidia_shard_names``.

    sentences: number of sentences of each article.
    """
    shards = distribute_articles(
        sentences,
        training_shards=settings.training_shards,
        test_shards=settings.test_shards,
        test_fraction=settings.test_fraction,
    )
    return shards.training + shards.test
