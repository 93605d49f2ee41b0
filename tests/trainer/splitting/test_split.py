"""The command split: what it prints, draws and keeps, and how it refuses."""

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import pytest

from bertdata.errors import SettingsError
from tests.support.plans import make_plan, make_stage
from trainer.__main__ import main
from trainer.config.model import ModelConfig
from trainer.devices.device import Device
from trainer.splitting.plan.costs import Costs, compute_analytic_costs
from trainer.splitting.plan.plan import Plan, read_plan, write_plan
from trainer.splitting.plan.rates import DeviceRate
from trainer.splitting.plan.request import PlanRequest
from trainer.splitting.show.picture import draw_schedule
from trainer.splitting.show.table import format_plan_lines
from trainer.tasks.heads import BertForQuestionAnswering
from trainer.workers.collective import Collective

SVG = "{http://www.w3.org/2000/svg}"
SHAPE = {
    "vocab_size": 64,
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("split") / "small.json"
    path.write_text(json.dumps({**SHAPE, "global_batch_size": 16}), encoding="utf-8")
    return str(path)


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line of a command that ends with status 2."""
    capsys.readouterr()
    assert main(["split", *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("trainer: error: ")
    assert printed.err.count("\n") == 1
    return printed.err


def test_the_objective_says_what_the_model_learns(capsys, config):
    words = ["split", f"--config={config}", "--devices=4", "--memory=1", "--batch-size=4", "--json"]
    found = {}
    for objective in ("bert", "mlm"):
        assert main([*words, f"--objective={objective}"]) == 0
        found[objective] = json.loads(capsys.readouterr().out)
    assert found["bert"]["parameters"] - found["mlm"]["parameters"] == 32 * 32 + 3 * 32 + 2
    heads = {name: one["plan"]["head"] for name, one in found.items()}
    assert heads == {"bert": "masked words and next sentence", "mlm": "masked words"}


def test_a_fine_tuned_task_has_a_small_head(capsys, config):
    words = ["split", f"--config={config}", "--devices=4", "--memory=1", "--batch-size=4", "--json"]
    assert main([*words, "--task=squad"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["plan"]["head"] == "a small layer"
    assert found["parameters"] == BertForQuestionAnswering(ModelConfig(**SHAPE)).count_weights()


def test_the_plan_is_for_the_task_of_the_training_data(capsys, config, block_set, training_set, tmp_path):
    words = [f"--config={config}", "--devices=4", "--memory=1", "--batch-size=4"]
    heads = {block_set: "masked words", training_set: "masked words and next sentence"}
    for data, head in heads.items():
        assert kept([*words, f"--train-data={data}"], tmp_path / "plan.json").head == head
    of_data = [*words, f"--train-data={block_set}"]
    assert kept([*of_data, "--objective=mlm"], tmp_path / "plan.json").head == "masked words"
    found = f"{block_set}: has the objective mlm, objective is bert; leave out --objective"
    assert found in refusal(capsys, *of_data, "--objective=bert")


def test_a_plan_can_be_made_where_the_data_are_not(capsys, config, tmp_path):
    words = [f"--config={config}", "--devices=4", "--memory=1", f"--train-data={tmp_path / 'none'}"]
    assert "give --objective NAME to plan without the data" in refusal(capsys, *words)
    assert kept([*words, "--objective=mlm"], tmp_path / "plan.json").head == "masked words"


def test_a_shown_plan_fits_the_task_that_is_given(capsys, config, tmp_path):
    path = tmp_path / "plan.json"
    words = [f"--config={config}", "--devices=4", "--memory=1", "--batch-size=4"]
    kept([*words, "--objective=mlm"], path)
    assert main(["split", f"--plan={path}"]) == 0
    assert main(["split", f"--plan={path}", "--objective=mlm"]) == 0
    said = refusal(capsys, f"--plan={path}", "--objective=bert")
    assert "is a plan for another task: its head is masked words, this run's masked words and" in said


def test_an_objective_that_no_pretraining_learns_is_refused(capsys, config):
    words = [f"--config={config}", "--devices=4", "--memory=1"]
    said = refusal(capsys, *words, "--objective=squad")
    assert "objective is squad: that is learned by python -m trainer finetune" in said
    own = "tests.support.plain_objective:PLAIN"
    assert f"objective is {own}, which no task" in refusal(capsys, *words, f"--objective={own}")


def test_a_stage_is_a_line_of_the_table():
    plan = make_plan([make_stage(0, transfer=0.002), make_stage(1)], copies=4)
    lines = format_plan_lines(plan, 20_000_000, 0.1, "computed by hand")
    assert lines[0].endswith("parameters (4 layers, hidden size 32), 8 devices: pipelined")
    assert lines[2:7] == [
        "                                recom-                                 all-"
        "                  gradi-           activa-",
        "stage  layers  copies  devices   putes  forward  backward  transfer  reduce   step"
        "  weights    ents  moments    tions  total",
        "                                             ms        ms        ms      ms     ms"
        "       MB      MB       MB       MB     MB",
        "    0     0-1       4      0-3     yes    250.0     500.0      2.00   500.0  125.0"
        "     4.00    4.00     8.00     1.00   17.0",
        "    1     2-3       4      4-7      no    250.0     500.0      0.00   500.0  125.0"
        "     4.00    4.00     8.00     1.00   17.0",
    ]


def test_what_follows_for_an_update_is_below_the_table():
    lines = format_plan_lines(make_plan(), 20_000_000, 0.1, "computed by hand")
    assert lines[-7:] == [
        "devices    8 = 4 (stages) x 2 (copies)",
        "an update  64 sequences of 128 ids = 2 (copies) x 8 (micro-batches) x 4",
        "update by  lamb-nvidia, products in bf16",
        "memory     17 MB of 18 MB on the fullest device (stage 0); 20 MB less a margin of 10%",
        "bubble     27.3% of the time of the passes is spent waiting",
        "forecast   7.211 sequences/s, 923 tokens/s",
        "           8.875 s an update; computed by hand",
    ]


def boxes(document: str) -> list[ElementTree.Element]:
    """The boxes of the passes, which have tooltips."""
    return [
        box
        for box in ElementTree.fromstring(document).iter(f"{SVG}rect")
        if box.find(f"{SVG}title") is not None
    ]


@pytest.mark.parametrize(("stages", "micro_batches"), [(1, 1), (2, 4), (4, 8), (16, 32)])
def test_every_pass_has_its_box_in_its_stages_row(stages, micro_batches):
    made = [make_stage(number, transfer=0.01 * (number < stages - 1)) for number in range(stages)]
    document = draw_schedule(make_plan(made, micro_batches=micro_batches))
    rows: dict[str, set[str]] = {}
    for box in boxes(document):
        title = box.findtext(f"{SVG}title")
        match = re.match(r"stage (\d+), (.*?)(?: of micro-batch \d+)?: ", title or "")
        rows.setdefault(match[1], set()).add(str(box.get("y")))
    assert {len(places) for places in rows.values()} == {1}
    assert len(set.union(*rows.values())) == stages
    passes = [box for box in boxes(document) if "ward of micro-batch" in str(box.findtext(f"{SVG}title"))]
    assert len(passes) == 2 * stages * micro_batches
    transfers = [
        box for box in boxes(document) if re.search("send|receive", str(box.findtext(f"{SVG}title")))
    ]
    assert len(transfers) == 2 * (stages - 1) * micro_batches


@pytest.mark.parametrize(("stages", "micro_batches"), [(1, 1), (4, 8), (16, 32), (4, 1000)])
def test_boxes_lie_on_the_picture_and_numbers_can_be_read(stages, micro_batches):
    document = draw_schedule(make_plan(stages, micro_batches=micro_batches))
    width, height = (float(ElementTree.fromstring(document).get(name)) for name in ("width", "height"))
    assert width <= 2300
    for box in boxes(document):
        assert 0 <= float(box.get("x")) <= float(box.get("x")) + float(box.get("width")) <= width
        assert float(box.get("y")) + float(box.get("height")) <= height
    sizes = [float(text.get("font-size")) for text in ElementTree.fromstring(document).iter(f"{SVG}text")]
    assert min(sizes) >= 6


def test_of_many_micro_batches_those_in_the_middle_are_left_out():
    document = draw_schedule(make_plan(4, micro_batches=1000))
    words = [text.text for text in ElementTree.fromstring(document).iter(f"{SVG}text")]
    assert "980 micro-batches" in words
    assert {"1", "10", "991", "1000"} <= set(words)
    assert "500" not in words


def test_the_axis_is_in_ms_and_the_legend_names_what_is_drawn():
    words = [text.text for text in ElementTree.fromstring(draw_schedule(make_plan())).iter(f"{SVG}text")]
    assert {"0", "1,000", "8,000", "ms from the start of the update"} <= set(words)
    assert {"forward", "backward", "all-reduce of the gradients", "optimiser's step", "idle"} <= set(words)
    assert "transfer" not in words  # nothing is transferred
    assert {"stage 3", "layers 6-7", "devices 6-7"} <= set(words)


def test_a_plan_is_printed_kept_and_drawn(config, tmp_path, capsys):
    output, picture = str(tmp_path / "plan.json"), tmp_path / "plan.svg"
    words = ["--config", config, "--devices=4", "--memory=1", "--strategy=pipelined", "--stages=2"]
    assert main(["split", *words, "--output", output, f"--picture={picture}"]) == 0
    printed = capsys.readouterr().out
    assert "4 devices: pipelined" in printed
    assert "computed for a100 at 50% of its data sheet, 150 GB/s between devices" in printed
    plan = read_plan(output)
    assert (len(plan.stages), plan.copies, plan.examples, plan.sequence_length) == (2, 2, 16, 64)
    assert len(boxes(picture.read_text(encoding="utf-8"))) > 4
    assert main(["split", *words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["plan"] == json.loads(Path(output).read_text(encoding="utf-8"))
    assert (found["strategy"], found["devices"], found["examples"]) == ("pipelined", 4, 16)
    assert found["seconds"] == plan.seconds
    assert found["sequences_per_second"] == pytest.approx(16 / plan.seconds)


def test_a_plan_of_a_file_is_shown_and_not_made(tmp_path, capsys):
    path = str(tmp_path / "plan.json")
    write_plan(path, plan := make_plan())
    assert main(["split", "--plan", path, "--memory", "0.02"]) == 0
    lines = format_plan_lines(plan, 20_000_000, 0.1, f"read from {path}")
    assert capsys.readouterr().out.splitlines() == lines


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("forward", 1e308, "stages.0.forward is 1e+308, expected at most 1000000000.0"),
        ("forward", 5e-324, "stages.0.forward is 5e-324, expected 1e-12 or more"),
        ("last", 10**20, "stages.0.last is 100000000000000000000, expected at most 2147483647"),
    ],
)
def test_a_plan_of_no_run_is_refused_in_one_line(tmp_path, capsys, name, value, told):
    plan = make_plan().as_json()
    plan["stages"] = [{**plan["stages"][0], name: value}, *plan["stages"][1:]]
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    assert told in refusal(capsys, "--plan", str(tmp_path / "plan.json"))


def test_a_timeline_of_too_many_passes_is_refused(tmp_path, capsys):
    plan = replace(make_plan(), micro_batches=1 << 30)
    write_plan(str(tmp_path / "plan.json"), plan)
    words = ("--plan", str(tmp_path / "plan.json"), "--picture", str(tmp_path / "plan.svg"))
    assert "1,073,741,824 micro-batches" in refusal(capsys, *words)


def kept(words: list[str], path: Path) -> Plan:
    assert main(["split", *words, "--output", str(path)]) == 0
    return read_plan(str(path))


def test_a_plan_has_as_many_micro_batches_as_is_allowed(config, tmp_path):
    words = ["--config", config, "--devices=4", "--memory=1", "--strategy=pipelined"]
    assert kept([*words, "--max-micro-batches=2"], tmp_path / "few.json").micro_batches <= 2
    assert kept([*words, "--min-micro-batches=4"], tmp_path / "many.json").micro_batches >= 4


def test_keys_of_the_section_reach_the_plan(config, tmp_path):
    words = ["--config", config, "--devices=4", "--memory=1", "--strategy=pipelined"]
    plan = kept([*words, "--copies=1", "--recompute=always"], tmp_path / "a.json")
    assert (len(plan.stages), plan.copies) == (4, 1)
    assert all(stage.recomputes for stage in plan.stages)
    plan = kept([*words, "--max-seq-length=32", "--precision=bf16", "--batch-size=2"], tmp_path / "b.json")
    assert (plan.sequence_length, plan.precision, plan.batch_size) == (32, "bf16", 2)
    slow = kept([*words, "--stages=2", "--bandwidth=0.001"], tmp_path / "c.json")
    fast = kept([*words, "--stages=2", "--bandwidth=1000"], tmp_path / "d.json")
    assert slow.seconds > fast.seconds


def test_hardware_is_a_name_or_a_rate(config, tmp_path):
    words = ["--config", config, "--devices=2", "--strategy=pipelined", "--precision=bf16"]
    quick = kept([*words, "--hardware=h100"], tmp_path / "a.json")  # has a memory of its own
    slow = kept([*words, "--hardware=1", "--memory=1"], tmp_path / "b.json")
    assert slow.seconds > quick.seconds


def test_layers_are_measured_where_that_is_asked_for(config, tmp_path, capsys, monkeypatch):
    asked = []

    def costs(request: PlanRequest, device: Device, workers: Collective) -> Costs:
        asked.append((request.attention, device.name, workers.size))
        slow = DeviceRate(flops=1e6, bytes=1e6)
        return compute_analytic_costs(replace(request, rate=slow))

    monkeypatch.setattr("trainer.splitting.plan.profile.measure_costs", costs)
    words = ["--config", config, "--devices=2", "--memory=1", "--strategy=pipelined", "--profile-layers"]
    plan = kept(words, tmp_path / "a.json")
    printed = capsys.readouterr()
    assert "timing the model's layers on device cpu" in printed.err
    assert "layers measured on device cpu, 150 GB/s between devices" in printed.out
    assert plan.stages[0].forward > 1
    kept([*words, "--rows"], tmp_path / "b.json")
    assert asked == [("flat", "cpu", 1), ("scores", "cpu", 1)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--devices=2"], "the memory of a device is missing: give --memory GB"),
        (["--memory=1"], "the number of devices is missing: give --devices N"),
        (["--devices=2", "--memory=1", "--bandwidth=0"], "bandwidth is 0, expected more than 0"),
        (
            ["--devices=2", "--memory=1", "--hardware=abacus"],
            "--hardware is 'abacus', expected one of v100, a100",
        ),
        (["--devices=2", "--memory=1", "--hardware=0"], "--hardware is '0', expected one of"),
        (["--devices=8", "--memory=1", "--stages=8"], "stages is 8, expected at most num_hidden_layers (4)"),
        (
            ["--devices=8", "--memory=1", "--stages=3"],
            "stages is 3, expected a divisor of the number of devices (8)",
        ),
        (
            ["--devices=8", "--memory=1", "--copies=5"],
            "copies is 5, expected a divisor of the number of devices (8)",
        ),
        (
            ["--devices=8", "--memory=1", "--stages=2", "--copies=2"],
            "stages x copies is 2 x 2, expected 8 (devices)",
        ),
        (["--devices=7", "--memory=1"], "7 devices cannot share 16 examples of an update"),
        (["--devices=2", "--memory=0.00001"], "a device needs at least"),
        (["--devices=2", "--memory=1", "--max-seq-length=65"], "max_position_embeddings"),
        (["--devices=2", "--memory=1", "--picture=plan.bmp"], "plan.bmp: expected a name that ends in .svg"),
        (["--devices=2", "--memory=1", "--stagess=2"], "the nearest known is --stages"),
        (["--plan=nowhere.json"], "nowhere.json"),
    ],
)
def test_wrong_words_are_refused_in_one_line(config, capsys, words, message):
    assert message in refusal(capsys, "--config", config, *words)


def test_what_does_not_fit_says_how_much_would_do(config, tmp_path, capsys):
    wide = ["--config", config, "--hidden-size=1024", "--num-hidden-layers=8", "--devices=2"]
    message = refusal(capsys, *wide, "--memory=0.3")
    enough = re.search(r"it would fit into ([\d.]+) GB a device", message)[1]
    assert kept([*wide, f"--memory={enough}"], tmp_path / "a.json").devices == 2
    refusal(capsys, *wide, f"--memory={float(enough) - 0.02}")


def test_a_model_must_be_given(capsys):
    assert "the model is missing: give --config" in refusal(capsys, "--devices=2", "--memory=1")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("--memory=0", "device_memory is 0, expected more than 0"),
        ("--memory=much", "--device-memory is 'much', expected the type number"),
    ],
)
def test_memory_of_nothing_is_refused_in_one_line(capsys, word, message):
    assert message in refusal(capsys, "--devices=2", word)


def test_no_devices_are_refused_by_the_parser(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["split", "--devices=0"])
    assert caught.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_plan_of_another_run_is_refused(config, tmp_path, capsys):
    path = str(tmp_path / "plan.json")
    write_plan(path, make_plan(2))
    assert "is a plan for 4 devices" in refusal(capsys, "--plan", path, "--devices=8")
    words = ["--plan", path, "--config", config]
    assert "its max_position_embeddings is 128, this run's 64" in refusal(capsys, *words)
    words += ["--max-position-embeddings=128"]
    assert "is a plan for precision bf16, this run's is fp32" in refusal(capsys, *words)
    assert main(["split", *words, "--precision=bf16"]) == 0


def test_a_plan_of_a_hundred_million_micro_batches_is_not_drawn():
    with pytest.raises(SettingsError, match="100,000,000 micro-batches in 4 stages, at most 200,000"):
        draw_schedule(make_plan(4, micro_batches=100_000_000))
