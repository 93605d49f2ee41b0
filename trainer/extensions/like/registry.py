"""The programs by name. A program's module is imported when it is asked for."""

from difflib import get_close_matches
from importlib import import_module

from bertdata.errors import UsageError
from trainer.extensions.like.program import Program

PROGRAMS = {
    "habana/demo_bert.py": "Habana, PyTorch: both phases, SQuAD, MRPC on Gaudi (0.15.4; @1.0.0 to @1.4.1)",
    "habana/run_pretraining.py": "Habana, PyTorch: one phase on Gaudi (0.15.4; @1.23)",
    "habana-tf/demo_bert.py": "Habana, TensorFlow: both phases, SQuAD and MRPC on Gaudi",
    "habana-tf/run_pretraining.py": "Habana, TensorFlow: one phase on Gaudi",
    "nvidia/run_pretraining.py": "NVIDIA, PyTorch: one phase on GPUs",
    "nvidia/run_squad.py": "NVIDIA, PyTorch: SQuAD",
    "nvidia/run_glue.py": "NVIDIA, PyTorch: MRPC and other tasks of GLUE",
    "nvidia-tf/run_pretraining.py": "NVIDIA, TensorFlow: one phase on GPUs",
    "mlperf/run_pretraining.py": "MLPerf: training and evaluation on GPUs and TPUs",
    "mlperf/tf2_encoder_checkpoint_converter.py": "MLPerf: a TensorFlow 1 checkpoint as TensorFlow 2's",
    "mlperf/checkpoint_add_gradacc.py": "MLPerf: a checkpoint with slots for accumulated gradients",
    "graphcore/run_pretraining.py": "Graphcore, TensorFlow: one phase on IPUs",
    "graphcore/run_squad.py": "Graphcore, TensorFlow: SQuAD on IPUs",
    "rannc/run_pretraining_rannc.sh": "RaNNC: both phases of a model that outgrows one GPU",
    "google/run_squad.py": "Google: SQuAD",
    "google/run_classifier.py": "Google: MRPC and other tasks of GLUE",
    "huggingface/run_qa.py": "Hugging Face: SQuAD",
    "huggingface/run_glue.py": "Hugging Face: MRPC and other tasks of GLUE",
}
"""Name and purpose; the vendor and the file in a name say the module too, but for those below."""

_MODULES = {
    "nvidia/run_squad.py": "nvidia.fine_tuning",
    "nvidia/run_glue.py": "nvidia.fine_tuning",
    "nvidia-tf/run_pretraining.py": "nvidia_tf",
    "mlperf/tf2_encoder_checkpoint_converter.py": "mlperf.converters",
    "mlperf/checkpoint_add_gradacc.py": "mlperf.converters",
    "rannc/run_pretraining_rannc.sh": "rannc",
    "google/run_squad.py": "google",
    "google/run_classifier.py": "google",
    "huggingface/run_qa.py": "huggingface.fine_tuning",
    "huggingface/run_glue.py": "huggingface.fine_tuning",
}
"""Modules of small programs and of those that share theirs."""


def find_program(name: str) -> Program:
    """The program of that name. UsageError names the nearest."""
    if name not in PROGRAMS:
        last = [known for known in PROGRAMS if known.rpartition("/")[2] == name.rpartition("/")[2]]
        near = last or get_close_matches(name, PROGRAMS, n=1)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(PROGRAMS)}"
        raise UsageError(f"{name!r} is no known program; {hint}")
    path = _MODULES.get(name, name.rpartition(".")[0].replace("-", "_").replace("/", "."))
    found = vars(import_module(f"trainer.extensions.like.{path}")).values()
    return next(one for one in found if isinstance(one, Program) and one.name == name)


def programs_with(name: str) -> list[str]:
    """The programs that have a flag or a key of that name, with hyphens or underscores."""
    plain = name.lstrip("-").replace("-", "_")
    return [
        program
        for program in PROGRAMS
        if any(plain == flag.name for table in find_program(program).commands.values() for flag in table)
    ]
