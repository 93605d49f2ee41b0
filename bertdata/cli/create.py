"""``bertdata create``: sentence parts to shards."""

from bertdata import storage
from bertdata.assets import find_vocabulary
from bertdata.cli.progress import Progress
from bertdata.jobs import Job, JobResult, run_job
from bertdata.manifest import summary
from bertdata.parser import Parser, add_engine, add_workers
from bertdata.planning import chosen_settings, find_parts, plan_targets
from bertdata.settings_flags import add_settings, given_settings
from bertdata.workers import available_cores, run_all

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
    add_workers(parser)
    add_engine(parser)
    return parser


def run(arguments: list[str]) -> int:
    args = make_parser().parse_args(arguments)
    recipe, settings = chosen_settings(args.recipe, args.phase, given_settings(args))
    parts, vocabulary = find_parts(args.parts), find_vocabulary(args.vocab)
    targets = plan_targets(args.output, recipe, args.phase, settings, parts, vocabulary)
    for target in targets:
        target.dataset.begin()
    jobs = [Job(part=part, vocabulary=vocabulary, targets=targets, engine=args.engine) for part in parts]
    try:
        results = run_jobs(jobs, args.workers or available_cores())
    except BaseException:
        for target in targets:
            target.dataset.give_up()
        raise
    for index, target in enumerate(targets):
        manifest = target.dataset.finish([result.entries[index] for result in results])
        print(summary(target.dataset.directory, manifest.as_json()))
    return 0


def run_jobs(jobs: list[Job], workers: int) -> list[JobResult]:
    """All jobs' results, the largest part first so that no worker is left with it at the end."""
    parts = [job.part for job in jobs]
    sizes = dict(zip(parts, storage.each(parts, storage.size), strict=True))
    results = []
    with Progress("creating shards", sum(sizes.values()), unit="bytes") as progress:
        for result in run_all(run_job, sorted(jobs, key=lambda job: -sizes[job.part]), workers):
            for warning in result.warnings:
                progress.note(f"bertdata: warning: {warning}")
            progress.advance(result.entries[0][0].bytes, _line(result))
            results.append(result)
    return results


def _line(result: JobResult) -> str:
    made = ", ".join(f"{shard.name} ({shard.examples} examples)" for _, shard in result.entries)
    return f"{'kept' if result.kept == len(result.entries) else 'made'} {made}"
