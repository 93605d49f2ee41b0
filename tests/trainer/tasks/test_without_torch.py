"""The data side of fine-tuning imports NumPy and no torch, so its commands start at once."""

import subprocess
import sys

from tests.support.paths import ROOT


def test_labelled_data_needs_no_torch():
    tasks, commands = ROOT / "trainer" / "tasks", ROOT / "trainer" / "commands"
    folders = [tasks / name for name in ("squad", "classification")]
    paths = [path for folder in folders for path in sorted(folder.glob("*.py")) if path.stem != "task"]
    paths += [tasks / "feature_set.py", tasks / "task_data.py"]
    paths += [commands / "features.py", commands / "score.py"]
    assert len(paths) > 12
    modules = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]
    code = f"import importlib, sys\nfor name in {modules!r}: importlib.import_module(name)\n"
    code += "print('torch' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "False True"
