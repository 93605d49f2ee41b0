"""``bertdata create``: sentence parts to shards."""

from bertdata.build.dry_run import preview, show_previews
from bertdata.build.plan import chosen_settings, find_parts, plan_targets
from bertdata.build.task import Job, JobResult, Target, run_job
from bertdata.cli.common.example_flags import add_settings, given_settings
from bertdata.cli.common.parser import Parser, add_dry_run, add_engine, add_skip_bad_inputs, add_workers
from bertdata.cli.common.progress import Progress, ShardRate
from bertdata.dataset.manifest import Manifest, summary
from bertdata.io import storage
from bertdata.io.assets import find_vocabulary
from bertdata.io.process_pool import available_cores, run_all

EXAMPLE = """\
  bertdata create results/part-* --output shards --vocab vocab.txt --recipe mlperf
  bertdata create results/part-* --output shards --vocab vocab.txt --recipe nvidia --phase 2"""

SUMMARY = """\
One shard for each part (a text file with one sentence a line and a blank line between documents),
then manifest.json and MD5SUMS. A recipe of two phases writes DIR/phase1 and DIR/phase2. Run again
after a crash, it makes only what is missing, and ends with the same bytes."""


def make_parser() -> Parser:
    parser = Parser("bertdata create", EXAMPLE, SUMMARY)
    parser.add_argument(
        "parts", nargs="+", metavar="PART", help="text file, pattern or URL; sorted before use"
    )
    parser.add_argument("--output", required=True, metavar="DIR", help="directory of the dataset, or its URL")
    parser.add_argument(
        "--vocab",
        required=True,
        metavar="FILE|NAME",
        help="WordPiece vocabulary, one token a line; or a name: bert-base-uncased",
    )
    add_settings(parser)
    add_skip_bad_inputs(parser)
    add_dry_run(parser)
    add_workers(parser)
    add_engine(parser)
    return parser


def run(arguments: list[str]) -> int:
    args = make_parser().parse_args(arguments)
    recipe, settings = chosen_settings(args.recipe, args.phase, given_settings(args))
    parts, vocabulary = find_parts(args.parts), find_vocabulary(args.vocab)
    targets = plan_targets(args.output, recipe, args.phase, settings, parts, vocabulary)
    if args.dry_run:
        show_previews(preview(targets, parts))
        return 0
    for target in targets:
        target.dataset.begin()
    jobs = [
        Job(
            part=part,
            vocabulary=vocabulary,
            targets=targets,
            engine=args.engine,
            skip_bad=args.skip_bad_inputs,
        )
        for part in parts
    ]
    try:
        results = run_jobs(jobs, args.workers or available_cores())
        manifests = finish(targets, results)
    except BaseException:
        for target in targets:
            target.dataset.give_up()
        raise
    for target, manifest in zip(targets, manifests, strict=True):
        print(summary(target.dataset.directory, manifest.as_json()))
    return 0


def finish(targets: tuple[Target, ...], results: list[JobResult]) -> list[Manifest]:
    """The manifests of the datasets, finished."""
    skipped = [result.skipped for result in results if result.skipped is not None]
    manifests = []
    for index, target in enumerate(targets):
        entries = [result.entries[index] for result in results if result.skipped is None]
        inputs, shards = [entry for entry, _ in entries], [shard for _, shard in entries]
        manifests.append(target.dataset.finish(inputs, shards, skipped))
    return manifests


def run_jobs(jobs: list[Job], workers: int) -> list[JobResult]:
    """All jobs' results, the largest part first so that no worker is left with it at the end."""
    parts = [job.part for job in jobs]
    sizes = dict(zip(parts, storage.each(parts, storage.size), strict=True))
    results = []
    rate = ShardRate(sum(len(job.targets) for job in jobs))
    with Progress("creating shards", sum(sizes.values()), unit="bytes") as progress:
        for result in run_all(run_job, sorted(jobs, key=lambda job: -sizes[job.part]), workers):
            for warning in result.warnings:
                progress.note(f"bertdata: warning: {warning}")
            read = result.skipped or result.entries[0][0]
            made = sum(shard.tokens for _, shard in result.entries) if not result.kept else 0
            rate.count(len(result.entries), made)
            progress.advance(read.bytes, _line(result), rate.text())
            results.append(result)
    return results


def _line(result: JobResult) -> str:
    if result.skipped is not None:
        return f"skipped {result.skipped.name}"
    made = ", ".join(f"{shard.name} ({shard.examples} examples)" for _, shard in result.entries)
    return f"{'kept' if result.kept == len(result.entries) else 'made'} {made}"
