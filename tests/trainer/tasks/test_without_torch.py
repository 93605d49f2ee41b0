"""The data side of fine-tuning imports NumPy and no torch, so its commands start at once."""

import subprocess
import sys

from tests.support.paths import ROOT


def test_labelled_data_needs_no_torch():
    finetuning = ROOT / "trainer" / "extensions" / "finetuning"
    folders = [finetuning / name for name in ("squad", "classification")]
    paths = [path for folder in folders for path in sorted(folder.glob("*.py")) if path.stem != "task"]
    paths += [finetuning / f"{name}.py" for name in ("feature_set", "features", "score", "task_data")]
    assert len(paths) > 12
    modules = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]
    code = f"import importlib, sys\nfor name in {modules!r}: importlib.import_module(name)\n"
    code += "print('torch' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "False True"
