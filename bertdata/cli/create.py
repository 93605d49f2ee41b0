"""``bertdata create``: sentence parts to shards."""

from collections.abc import Sequence

from bertdata.build.dry_run import preview, show_previews
from bertdata.build.plan import chosen_settings, find_parts, plan_targets
from bertdata.build.task import ShardTask, TaskPlan, TaskResult, run_task
from bertdata.cli.common.example_flags import add_settings, given_settings
from bertdata.cli.common.parser import Parser, add_dry_run, add_engine, add_skip_bad_inputs, add_workers
from bertdata.cli.common.progress import Progress, ShardRate
from bertdata.dataset.manifest import Manifest, summary
from bertdata.dataset.sources import Sources, find_sources
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


def make_parser(arguments: Sequence[str] = ()) -> Parser:
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
    add_settings(parser, arguments)
    add_skip_bad_inputs(parser)
    add_dry_run(parser)
    add_workers(parser)
    add_engine(parser)
    return parser


def run(arguments: list[str]) -> int:
    args = make_parser(arguments).parse_args(arguments)
    recipe, settings = chosen_settings(args.recipe, args.phase, given_settings(args))
    parts, vocabulary = find_parts(args.parts), find_vocabulary(args.vocab)
    targets = plan_targets(args.output, recipe, args.phase, settings, parts, vocabulary)
    plan = TaskPlan(vocabulary=vocabulary, targets=targets, engine=args.engine, skip_bad=args.skip_bad_inputs)
    if args.dry_run:
        show_previews(preview(plan, parts))
        return 0
    sources = find_sources(parts)
    for target in targets:
        target.dataset.begin()
    try:
        results = run_tasks([plan.part(part) for part in parts], args.workers or available_cores())
        manifests = finish(plan, results, sources)
    except BaseException:
        for target in targets:
            target.dataset.give_up()
        raise
    for target, manifest in zip(targets, manifests, strict=True):
        print(summary(target.dataset.directory, manifest.as_json()))
    return 0


def finish(plan: TaskPlan, results: list[TaskResult], sources: Sources) -> list[Manifest]:
    """The manifests of the datasets, finished."""
    skipped = [result.skipped for result in results if result.skipped is not None]
    manifests = []
    for index, target in enumerate(plan.targets):
        entries = [result.entries[index] for result in results if result.skipped is None]
        inputs, shards = [entry for entry, _ in entries], [shard for _, shard in entries]
        manifests.append(
            target.dataset.finish(inputs, shards, skipped, vocabulary=plan.vocabulary, sources=sources)
        )
    return manifests


def run_tasks(tasks: list[ShardTask], workers: int) -> list[TaskResult]:
    """All tasks' results, the largest part first so that no worker is left with it at the end."""
    parts = [task.inputs[0] for task in tasks]
    sizes = dict(zip(parts, storage.each(parts, storage.size), strict=True))
    results = []
    rate = ShardRate(sum(len(task.plan.targets) for task in tasks))
    with Progress("creating shards", sum(sizes.values()), unit="bytes") as progress:
        largest_first = sorted(tasks, key=lambda task: -sizes[task.inputs[0]])
        for result in run_all(run_task, largest_first, workers):
            for warning in result.warnings:
                progress.note(f"bertdata: warning: {warning}")
            read = result.skipped or result.entries[0][0]
            made = sum(shard.tokens for _, shard in result.entries) if not result.kept else 0
            rate.count(len(result.entries), made)
            progress.advance(read.bytes, _line(result), rate.text())
            results.append(result)
    return results


def _line(result: TaskResult) -> str:
    if result.skipped is not None:
        return f"skipped {result.skipped.name}"
    made = ", ".join(f"{shard.name} ({shard.examples} examples)" for _, shard in result.entries)
    return f"{'kept' if result.kept == len(result.entries) else 'made'} {made}"
