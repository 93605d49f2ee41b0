"""A phase of long sequences is evaluated on data that were made shorter; it is not trained on them."""

from pathlib import Path

import pytest

import bertdata
from tests.support.fine_tuning import evaluations
from tests.support.training_runs import Trainer, refuse, words

pytestmark = pytest.mark.usefixtures("one_thread")

DYNAMIC = ("--masking=dynamic", "--max-seq-length=96", "--masked-lm-prob=0.3", "--eval-masked-lm-prob=0.15")
SHORT = ("--steps=2", "--warmup=0", "--eval-every=1")


@pytest.fixture(scope="module")
def sets(corpus: list[Path], small_vocabulary_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Blocks of 96 and of 48 ids without masks, of other articles."""
    place = tmp_path_factory.mktemp("sets")
    for length, parts in ((96, corpus[:1]), (48, corpus[1:2])):
        sizes = {"objective": "mlm", "max_seq_length": length, "dupe_factor": 1, "workers": 1}
        vocabulary = {"vocab": str(small_vocabulary_file)}
        bertdata.create(parts, place / str(length), **vocabulary, **sizes, masks=False)
    return place


@pytest.mark.parametrize("form", [(), ("--rows",)], ids=["flat", "rows"])
def test_shorter_data_are_evaluated_as_they_are(
    form: tuple[str, ...], sets: Path, trainer: Trainer, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    more = (*DYNAMIC, *SHORT, *form, "--model-type=modernbert", f"--eval-data={sets / '48'}")
    done = trainer(*words(sets / "96", run, *more))
    assert done.status == 0, done.err
    assert f"evaluates on {sets / '48'}: " in done.err
    assert " examples of 48 ids" in done.err
    found = evaluations(run)[-1]
    alone = tmp_path / "alone"
    given = (f"--eval-data={sets / '48'}", "--masking=dynamic", "--masked-lm-prob=0.15")
    assert trainer("convert", run, tmp_path / "form").status == 0
    done = trainer("evaluate", *given, f"--output-dir={alone}", f"--start-from-ckpt={tmp_path / 'form'}")
    assert done.status == 0, done.err
    lines = (alone / "eval_results.txt").read_text(encoding="utf-8").splitlines()
    expected = {key: float(value) for key, value in (line.split(" = ") for line in lines)}
    for name in ("masked_lm_loss", "masked_lm_accuracy"):
        assert found[name] == pytest.approx(expected[name], rel=1e-5)


def test_longer_data_and_shorter_training_data_are_refused(
    sets: Path, trainer: Trainer, tmp_path: Path
) -> None:
    said = "was made with max_seq_length 48, the configuration says 96"
    refuse(trainer(*words(sets / "48", tmp_path / "a", *DYNAMIC, *SHORT)), 2, said)
    shorter = (*DYNAMIC, *SHORT, "--max-seq-length=48", f"--eval-data={sets / '96'}")
    said = "was made with max_seq_length 96, the configuration says 48"
    refuse(trainer(*words(sets / "48", tmp_path / "b", *shorter)), 2, said)
