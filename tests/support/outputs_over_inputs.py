"""Command lines of every command that writes a file, in which the output is also an input.

In a command line, ``{file}`` stands for a file that is both input and output, and ``{folder}`` for such a
directory. The test's folder contains a directory ``data`` with two text files, and other files that the
commands need.
"""

from dataclasses import dataclass
from pathlib import Path

TEXT = "One sentence of so many words that an evaluation set may well hold it as a whole.\n\nAnother.\n"


@dataclass(frozen=True)
class Writing:
    """A command line whose output is an input.

    shown: its name in test reports.
    ending: ending of the output's file name.
    """

    shown: str
    words: str
    ending: str = ".txt"

    @property
    def of_directory(self) -> bool:
        return "{folder}" in self.words

    def line(self, given: str, written: str | None = None) -> list[str]:
        """Return the arguments, with ``given`` for the first placeholder and ``written`` for the others."""
        mark = "{folder}" if self.of_directory else "{file}"
        return self.words.replace(mark, given, 1).replace(mark, given if written is None else written).split()


COMMANDS = [
    Writing("extract DUMP", "extract {folder} --output {folder}"),
    Writing("segment SOURCE", "segment {folder} --output {folder}"),
    Writing("segment, records", "segment {folder} --input-kind blocks --output {folder}"),
    Writing("segment, plain text", "segment {folder} --input-kind text --output {folder}"),
    Writing("segment --books", "segment other.txt --input-kind text --books {folder} --output {folder}"),
    Writing(
        "segment --exclude", "segment other.txt --input-kind blocks --exclude {folder} --output {folder}"
    ),
    Writing("segment --dry-run", "segment {folder} --input-kind blocks --dry-run --output {folder}"),
    Writing("create PART", "create {folder} --output {folder} --vocab vocab.txt"),
    Writing("create, records", "create {folder} --input-kind blocks --output {folder} --vocab vocab.txt"),
    Writing("create --vocab", "create other.txt --vocab {folder} --output {folder}"),
    Writing("create --tokenizer", "create other.txt --objective mlm --tokenizer {folder} --output {folder}"),
    Writing("create --dry-run", "create {folder} --dry-run --output {folder} --vocab vocab.txt"),
    Writing("pack DIR", "pack {folder} --output {folder}"),
    Writing(
        "create-pretraining-data",
        "create-pretraining-data --input_file={file} --output_file={file} --vocab_file=vocab.txt",
    ),
    Writing(
        "create-pretraining-data, the vocabulary",
        "create-pretraining-data --input_file=data/a.txt --vocab_file={file} --output_file={file}",
    ),
    Writing(
        "like graphcore/create_pretraining_data.py",
        "like graphcore/create_pretraining_data.py --input-file {file} --output-file {file} "
        "--vocab-file vocab.txt",
    ),
    Writing("pick-eval", "pick-eval {file} {file}", ".tfrecord"),
    Writing("stats --picture", "stats {file} --picture {file}", ".svg"),
    Writing("report", "report {file} --output {file}", ".html"),
    Writing("convert, a shard", "convert {file} {file}", ".tfrecord"),
    Writing("convert --to nvidia-mlperf, a shard", "convert {file} {file} --to nvidia-mlperf", ".hdf5"),
    Writing("convert --to mds", "convert {folder} {folder} --to mds"),
    Writing("convert --to lddl", "convert {folder} {folder} --to lddl"),
    Writing("convert --to arrow", "convert {folder} {folder} --to arrow"),
    Writing("convert --to nvidia-mlperf", "convert {folder} {folder} --to nvidia-mlperf --num-shards 2"),
    Writing(
        "convert --to fairseq, text", "convert {folder} {folder} --to fairseq --tokenizer tokenizer.json"
    ),
    Writing("train-vocab, vocab.txt", "train-vocab {file} --output {file} --size 100"),
    Writing(
        "train-vocab, tokenizer.json", "train-vocab {file} --output {file} --size 300 --kind bpe", ".json"
    ),
    Writing(
        "train-vocab, records", "train-vocab {file} --input-kind jsonl --output {file} --size 100", ".jsonl"
    ),
    Writing("rebuild", "rebuild {folder} --from other.txt --output {folder}"),
    Writing("rebuild --from", "rebuild data --from {folder} --output {folder}"),
    Writing("sign --private-key", "sign data --private-key {file} --signature {file} --overwrite", ".pem"),
]
"""Commands of ``bertdata``."""

WITHOUT_OUTPUT = {"lineage", "md5", "verify-md5", "show", "recipes"}
"""Commands of ``bertdata`` that write no file."""

WITHOUT_INPUT = {"fetch"}
"""Commands of ``bertdata`` that read no file of the user's."""

PIPELINES = [
    Writing("prepare, parts", "prepare --input {folder} --output {folder} --vocab vocab.txt"),
    Writing(
        "prepare, records",
        "prepare --input {folder} --input-kind blocks --output {folder} --vocab vocab.txt",
    ),
    Writing(
        "prepare, articles",
        "prepare --input {folder} --input-kind articles --output {folder} --vocab vocab.txt",
    ),
    Writing(
        "prepare --text",
        "prepare --input {folder} --input-kind blocks --text {folder} --output made --vocab vocab.txt",
    ),
    Writing(
        "prepare, a dump",
        "prepare --input {file} --input-kind dump --output {file} --vocab vocab.txt",
        ".xml",
    ),
    Writing("pack", "pack {folder} --output {folder}"),
]
"""Programs of ``beam_pipelines``."""

_RUN = "--config tiny --steps 1 --device cpu"
TRAINER = [
    Writing("pretrain --train-data", f"pretrain {_RUN} --train-data {{folder}} --output-dir {{folder}}"),
    Writing(
        "pretrain --eval-data",
        f"pretrain {_RUN} --train-data data --eval-data {{folder}} --output-dir {{folder}}",
    ),
    Writing(
        "pretrain --start-from-ckpt",
        f"pretrain {_RUN} --train-data data --start-from-ckpt {{folder}} --output-dir {{folder}}",
    ),
    Writing(
        "pretrain --json-summary",
        f"pretrain {_RUN} --train-data {{file}} --output-dir run --json-summary {{file}}",
        ".json",
    ),
    Writing(
        "pretrain --save-plan",
        f"pretrain {_RUN} --train-data data --plan {{file}} --output-dir run --save-plan {{file}}",
        ".json",
    ),
    Writing(
        "finetune --data-dir", f"finetune --task mrpc {_RUN} --data-dir {{folder}} --output-dir {{folder}}"
    ),
    Writing(
        "finetune --train-file",
        f"finetune --task mrpc {_RUN} --train-file {{folder}} --output-dir {{folder}}",
    ),
    Writing("evaluate --eval-data", "evaluate --eval-data {folder} --output-dir {folder}"),
    Writing(
        "like nvidia/run_pretraining.py",
        "like nvidia/run_pretraining.py --input_dir {folder} --config_file bert_config.json "
        "--output_dir {folder} --do_train -- --device cpu",
    ),
    Writing("convert", "convert {folder} {folder}"),
    Writing(
        "features --output",
        "features --task mrpc {file} --vocab vocab.txt --output {file}",
        ".tsv",
    ),
    Writing("features --dataset", "features --task mrpc {folder} --vocab vocab.txt --dataset {folder}"),
    Writing("split --output", "split --plan {file} --output {file}", ".json"),
    Writing("split --picture", "split --plan {file} --picture {file}", ".svg"),
    Writing("report", "report {file} --output {file}", ".html"),
]
"""Commands of ``python -m trainer``."""

TRAINER_WITHOUT_OUTPUT = {"score", "predict", "doctor"}


def lay_out(folder: Path) -> None:
    """Write the files that the command lines name."""
    (folder / "data").mkdir()
    for name in ("data/a.txt", "data/b.txt", "other.txt"):
        (folder / name).write_text(TEXT, encoding="utf-8")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "one", "sentence", "."]
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    (folder / "bert_config.json").write_text("{}", encoding="utf-8")


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of all files below the folder, by relative name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
