"""TensorFlow itself reads the checkpoints that are written, by name and into objects."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.made_checkpoints import CONFIG, made
from trainer.checkpoints.formats.kinds import WRITERS

pytestmark = pytest.mark.thorough  # importing TensorFlow takes 10 seconds

LAYERS, HEADS, WIDTH, INNER, WORDS = 3, 4, 32, 64, 101


@pytest.fixture(scope="module")
def tensorflow() -> Any:
    import tensorflow

    return tensorflow


def test_tensorflow_1s_variables_are_read_by_name(tensorflow, tmp_path):
    checkpoint = made()
    prefix = WRITERS["tf1"](checkpoint, str(tmp_path / "there"))
    assert tensorflow.train.latest_checkpoint(str(tmp_path / "there")) == prefix
    found = tensorflow.train.load_checkpoint(prefix)
    names = found.get_variable_to_shape_map()
    assert len(names) == 3 * len(checkpoint.weights) + 3
    kernel = "bert/encoder/layer_1/intermediate/dense/kernel"
    wanted = checkpoint.weights["bert.encoder.layer.1.intermediate.dense.weight"].read().numpy()
    assert (found.get_tensor(kernel) == wanted.T).all()
    square = checkpoint.moments["exp_avg_sq/bert.encoder.layer.1.intermediate.dense.weight"].read().numpy()
    assert (found.get_tensor(f"{kernel}/LAMB_1") == square.T).all()
    pairs = checkpoint.weights["cls.seq_relationship.weight"].read().numpy()
    assert (found.get_tensor("cls/seq_relationship/output_weights") == pairs).all()
    words = checkpoint.weights["bert.embeddings.word_embeddings.weight"].read().numpy()[:WORDS]
    assert (found.get_tensor("bert/embeddings/word_embeddings") == words).all()
    assert found.get_tensor("global_step") == 7
    assert found.get_tensor("beta2_power") == pytest.approx(0.999**8)


def objects(tensorflow: Any, **children: Any) -> Any:
    """An object with these children; a tuple of sizes stands for a variable of zeros."""
    module = tensorflow.Module()
    for name, child in children.items():
        is_shape = isinstance(child, tuple)
        setattr(module, name, tensorflow.Variable(np.zeros(child, np.float32)) if is_shape else child)
    return module


def dense(tensorflow: Any, kernel: tuple[int, ...], bias: tuple[int, ...]) -> Any:
    return objects(tensorflow, kernel=kernel, bias=bias)


def model_gardens_encoder(tensorflow: Any) -> Any:
    """Objects as those of the model garden's encoder of versions 2.4 and 2.5."""
    head = WIDTH // HEADS
    encoder = tensorflow.Module()

    def norm() -> Any:
        return objects(tensorflow, gamma=(WIDTH,), beta=(WIDTH,))

    def layer() -> Any:
        inward = {
            f"_{name}_dense": dense(tensorflow, (WIDTH, HEADS, head), (HEADS, head))
            for name in ("query", "key", "value")
        }
        outward = dense(tensorflow, (HEADS, head, WIDTH), (WIDTH,))
        return objects(
            tensorflow,
            _attention_layer=objects(tensorflow, **inward, _output_dense=outward),
            _attention_layer_norm=norm(),
            _intermediate_dense=dense(tensorflow, (WIDTH, INNER), (INNER,)),
            _output_dense=dense(tensorflow, (INNER, WIDTH), (WIDTH,)),
            _output_layer_norm=norm(),
        )

    parts = [objects(tensorflow, embeddings=(rows, WIDTH)) for rows in (WORDS, 64, 2)]
    parts += [norm(), *(layer() for _ in range(LAYERS)), dense(tensorflow, (WIDTH, WIDTH), (WIDTH,))]
    for number, part in enumerate(parts):
        setattr(encoder, f"layer_with_weights-{number}", part)
    return encoder


def variable(encoder: Any, number: int, *names: str) -> np.ndarray:
    found = getattr(encoder, f"layer_with_weights-{number}")
    for name in names:
        found = getattr(found, name)
    return found.numpy()


def check_encoder(encoder: Any, weights: dict[str, np.ndarray]) -> None:
    words = weights["bert.embeddings.word_embeddings.weight"][:WORDS]
    assert (variable(encoder, 0, "embeddings") == words).all()
    query = weights["bert.encoder.layer.2.attention.self.query.weight"]
    found = variable(encoder, 6, "_attention_layer", "_query_dense", "kernel")
    assert (found.reshape(WIDTH, WIDTH) == query.T).all()
    out = weights["bert.encoder.layer.0.attention.output.dense.weight"]
    found = variable(encoder, 4, "_attention_layer", "_output_dense", "kernel")
    assert (found.reshape(WIDTH, WIDTH) == out.T).all()
    assert (variable(encoder, 7, "kernel") == weights["bert.pooler.dense.weight"].T).all()


@pytest.mark.parametrize("root", ["model", "encoder"])
def test_tensorflow_2_restores_an_encoder(tensorflow, tmp_path, root):
    checkpoint = made()
    prefix = WRITERS["tf2"](checkpoint, str(tmp_path / "there"))
    encoder = model_gardens_encoder(tensorflow)
    status = tensorflow.train.Checkpoint(**{root: encoder}).restore(prefix)
    status.assert_existing_objects_matched().expect_partial()
    check_encoder(encoder, {name: item.read().numpy() for name, item in checkpoint.weights.items()})


def test_tensorflow_2_restores_a_pretrainer_and_the_moments(tensorflow, tmp_path):
    checkpoint = made()
    weights = {name: item.read().numpy() for name, item in checkpoint.weights.items()}
    prefix = WRITERS["tf2"](checkpoint, str(tmp_path / "there"))
    encoder = model_gardens_encoder(tensorflow)
    masked = objects(
        tensorflow,
        dense=dense(tensorflow, (WIDTH, WIDTH), (WIDTH,)),
        layer_norm=objects(tensorflow, gamma=(WIDTH,), beta=(WIDTH,)),
        embedding_table=getattr(encoder, "layer_with_weights-0").embeddings,
        bias=(WORDS,),
    )
    pairs = objects(tensorflow, out_proj=dense(tensorflow, (WIDTH, 2), (2,)))
    model = objects(tensorflow, encoder_network=encoder, masked_lm=masked, classification_heads=[pairs])
    status = tensorflow.train.Checkpoint(model=model, encoder=encoder, masked_lm=masked).restore(prefix)
    status.assert_existing_objects_matched().expect_partial()
    check_encoder(encoder, weights)
    assert (masked.bias.numpy() == weights["cls.predictions.bias"][:WORDS]).all()
    assert (masked.dense.kernel.numpy() == weights["cls.predictions.transform.dense.weight"].T).all()
    assert (pairs.out_proj.kernel.numpy() == weights["cls.seq_relationship.weight"].T).all()
    found = tensorflow.train.load_checkpoint(prefix)
    slots = [name for name in found.get_variable_to_shape_map() if "/.OPTIMIZER_SLOT/optimizer/" in name]
    assert len(slots) == len(checkpoint.moments)
    assert found.get_tensor("optimizer/iter/.ATTRIBUTES/VARIABLE_VALUE") == 7


def test_tensorflows_own_writing_of_these_objects_is_read(tensorflow, tmp_path):
    """Objects of other names and order, as a program of its own would save them."""
    from trainer.checkpoints.formats.kinds import read_checkpoint

    encoder = model_gardens_encoder(tensorflow)
    variables = encoder.trainable_variables
    for number, one in enumerate(variables):
        one.assign(np.random.default_rng(number).standard_normal(one.shape).astype(np.float32))
    path = tensorflow.train.Checkpoint(inner=objects(tensorflow, bert=encoder)).save(str(tmp_path / "saved"))
    read = read_checkpoint(path)
    assert len(read.weights) == len(variables) == 5 + 16 * LAYERS + 2
    check_encoder(encoder, {name: item.read().numpy() for name, item in read.weights.items()})
    assert Path(f"{path}.index").is_file()
    assert CONFIG["num_hidden_layers"] == LAYERS
