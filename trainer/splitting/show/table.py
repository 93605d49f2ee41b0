"""Text about a plan: a table with a row per stage, followed by a summary of an update."""

from collections.abc import Iterator, Sequence

from trainer.config.model_kinds import read_model_config
from trainer.splitting.plan.plan import Plan, StagePlan

_BYTES = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def format_plan_lines(plan: Plan, memory: int | None, margin: float, source: str) -> list[str]:
    """Return a table and a summary of a plan, as lines of text.

    memory: bytes of a device. None if unknown.
    margin: share of the memory that must stay free.
    source: text that says where the forecast times come from.
    """
    rows = list(_list_summary_rows(plan, memory, margin, source))
    width = max(len(label) for label, _ in rows)
    summary = [f"{label:<{width}}  {value}" for label, value in rows]
    return [_format_heading(plan), "", *_format_table(plan), "", *summary]


def _format_heading(plan: Plan) -> str:
    """Return the first line, with the size of the model, the number of devices, and the strategy."""
    # imported here because it imports torch, which is slow
    from trainer.splitting.plan.parts import count_weights

    model = read_model_config(plan.model)
    return (
        f"{count_weights(plan):,} parameters ({model.num_hidden_layers} layers, "
        f"hidden size {model.hidden_size}), {plan.devices} device{'s' * (plan.devices > 1)}: {plan.strategy}"
    )


_HEADS = {
    "recomputes": ("recom-", "putes"),
    "all_reduce": ("all-", "reduce"),
    "gradients": ("gradi-", "ents"),
    "activations": ("activa-", "tions"),
}
"""Headings of columns that are written on two lines."""

_Column = tuple[str, str, list[str]]


def _format_table(plan: Plan) -> list[str]:
    """Return the lines of the table: headings, then a row per stage, aligned to the right."""
    columns = list(_list_columns(plan))
    cells = [(*_HEADS.get(name, ("", name)), unit, *values) for name, unit, values in columns]
    widths = [max(map(len, column)) for column in cells]
    rows = zip(*cells, strict=True)
    lines = ("  ".join(map(str.rjust, row, widths)) for row in rows)
    return [line.rstrip() for line in lines]


def _list_columns(plan: Plan) -> Iterator[_Column]:
    """Yield the name, the unit and the values of each column."""
    stages = plan.stages
    yield "stage", "", [str(number) for number in range(len(stages))]
    yield "layers", "", [format_layers(stage) for stage in stages]
    yield "copies", "", [str(plan.copies) for _ in stages]
    yield "devices", "", [format_devices(plan, number) for number in range(len(stages))]
    for name in ("recomputes", "sharded"):
        if name == "recomputes" or any(stage.sharded for stage in stages):
            yield name, "", ["yes" if getattr(stage, name) else "no" for stage in stages]
    for name in ("forward", "backward", "transfer", "all_reduce", "step"):
        yield name, "ms", _format_numbers([getattr(stage, name) * 1e3 for stage in stages])
    size, unit = _choose_byte_unit(max(stage.memory.total for stage in stages))
    for name in ("weights", "gradients", "moments", "activations", "total"):
        yield name, unit, _format_numbers([getattr(stage.memory, name) / size for stage in stages])


def _format_numbers(values: Sequence[float]) -> list[str]:
    """Return the values as text, all with the same number of decimals.

    The number is chosen so that the largest value has three or four digits.
    """
    largest = max(values)
    decimals = next((count for limit, count in ((1000, 0), (10, 1), (1, 2)) if largest >= limit), 3)
    return [f"{value:,.{decimals}f}" for value in values]


def _list_summary_rows(
    plan: Plan, memory: int | None, margin: float, source: str
) -> Iterator[tuple[str, str]]:
    """Yield the label and the text of each line of the summary.

    memory: bytes of a device. None if unknown.
    margin: share of the memory that must stay free.
    source: text that says where the forecast times come from.
    """
    yield "devices", f"{plan.devices} = {len(plan.stages)} (stages) x {plan.copies} (copies)"
    yield (
        "an update",
        f"{plan.examples:,} sequences of {plan.sequence_length} ids = {plan.copies} (copies) x "
        f"{plan.micro_batches:,} (micro-batches) x {plan.batch_size:,}",
    )
    yield "update by", f"{plan.optimiser}, products in {plan.precision}"
    yield "memory", _describe_fullest_device(plan, memory, margin)
    yield "bubble", f"{plan.bubble:.1%} of the time of the passes is spent waiting"
    rate = plan.examples / plan.seconds
    yield (
        "forecast",
        f"{format_four_digits(rate)} sequences/s, {format_four_digits(rate * plan.sequence_length)} tokens/s",
    )
    time = (
        f"{format_four_digits(plan.seconds)} s"
        if plan.seconds >= 1
        else f"{format_four_digits(plan.seconds * 1e3)} ms"
    )
    yield "", f"{time} an update; {source}"


def _describe_fullest_device(plan: Plan, memory: int | None, margin: float) -> str:
    """Return text about the memory of the device that needs most, compared with the limit.

    memory: bytes of a device. None if unknown.
    margin: share of the memory that must stay free.
    """
    most = plan.stages[plan.fullest_stage].memory.total
    size, unit = _choose_byte_unit(most)
    needed, where = f"{most / size:,.4g} {unit}", f"on the fullest device (stage {plan.fullest_stage})"
    if memory is None:
        return f"{needed} {where}"
    limit, there = (f"{number / size:,.4g} {unit}" for number in (memory * (1 - margin), memory))
    return f"{needed} of {limit} {where}; {there} less a margin of {margin * 100:.4g}%"


def _choose_byte_unit(number: float) -> tuple[float, str]:
    """Return the largest unit in which a number of bytes is 1 or more, as its size in bytes and its name."""
    return next(((size, unit) for size, unit in _BYTES if number >= size), _BYTES[-1])


def format_layers(stage: StagePlan) -> str:
    """Return the numbers of the stage's layers, from 0, as text: "4" or "4-7"."""
    return _format_range(stage.layers)


def format_devices(plan: Plan, stage: int) -> str:
    """Return the ranks of the devices that have a copy of the stage, as text: "4" or "4-5"."""
    return _format_range(range(stage * plan.copies, (stage + 1) * plan.copies))


def format_four_digits(value: float) -> str:
    """Return the value as text with four digits, such as "0.05375", or with all digits of the whole
    part, as in "12,345".
    """
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _format_range(numbers: range) -> str:
    """Return the first and the last number of a range as text, or its only number."""
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}"
