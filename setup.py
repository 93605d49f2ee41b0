"""Packages, extras and the native extension. Build requirements and tool settings are in pyproject.toml."""

import os
import sys
from pathlib import Path

from setuptools import find_packages, setup

EXTRAS = {
    "numpy": ["numpy"],
    "datasets": ["datasets>=2.15", "numpy"],
    "hdf5": ["h5py>=3.10", "numpy"],
    "parquet": ["pyarrow>=17", "numpy"],
    "mds": ["numpy", "cramjam>=2.8", "xxhash>=3"],
    "json": ["orjson>=3.9"],
    "zstd": ["zstandard>=0.19"],
    "pack": ["scipy>=1.11", "numpy"],
    "tf": [
        "tensorflow-cpu>=2.16; platform_machine == 'x86_64'",
        "tensorflow>=2.16; platform_machine != 'x86_64'",
    ],
    "wiki": ["wikiextractor==3.1.0"],
    "beam": ["apache-beam>=2.60"],
    "dask": ["apache-beam[dask]>=2.60"],
    "gcp": ["apache-beam[gcp]>=2.60", "gcsfs>=2023.6"],
    "train": ["torch>=2.6", "numpy", "safetensors>=0.4", "cramjam>=2.8"],  # cramjam: Snappy
    # trainer/model/fp8.py calls a function that is not part of torchao's public interface, so a new version
    # must be tested before it is allowed here.
    "fp8": ["torchao>=0.18,<0.19"],
    "pictures": ["matplotlib>=3.8"],
    "report": ["jinja2>=3.1", "matplotlib>=3.8"],
    "tensorboard": ["tensorboard>=2.15"],
    "wandb": ["wandb>=0.17"],
    "mllog": ["mlperf-logging>=4"],
    "vocab": ["tokenizers>=0.20,<0.24", "sentencepiece>=0.2,<0.3"],
    "chinese": ["jieba==0.42.1"],
    # model-signing imports OpenSSL, which its own requirements do not name.
    "trust": ["model-signing>=1.1", "pyopenssl>=24", "mlcroissant>=1.1", "in-toto-attestation>=0.9.3"],
    "gcs": ["gcsfs>=2023.6"],
    "s3": ["s3fs>=2023.6"],
}
EXTRAS["all"] = sorted({requirement for extra in EXTRAS.values() for requirement in extra})
EXTRAS["docs"] = ["mkdocs-material>=9.6", "mkdocstrings[python]>=1"]
EXTRAS["dev"] = [
    *EXTRAS["docs"],
    *EXTRAS["datasets"],
    *EXTRAS["hdf5"],
    *EXTRAS["json"],
    *EXTRAS["parquet"],
    *EXTRAS["tf"],
    *EXTRAS["beam"],
    *EXTRAS["chinese"],
    *EXTRAS["dask"],
    *EXTRAS["fp8"],
    *EXTRAS["gcp"],
    *EXTRAS["mds"],
    *EXTRAS["mllog"],
    *EXTRAS["pack"],
    *EXTRAS["report"],
    *EXTRAS["tensorboard"],
    *EXTRAS["train"],
    *EXTRAS["trust"],
    *EXTRAS["vocab"],
    *EXTRAS["wandb"],
    *EXTRAS["wiki"],
    *EXTRAS["zstd"],
    *EXTRAS["gcs"],
    *EXTRAS["s3"],
    "accelerate",
    "axe-core-python",
    "gcp-storage-emulator",
    "hypothesis",
    "jsonschema>=4.17",
    "moto[server]>=5",
    "mypy",
    "pytest",
    "pytest-xdist",
    "nltk==3.10.*",
    "pybind11>=2.12",
    "setuptools",
    "ruff",
    "selenium>=4.20",
    "transformers",
]


def extensions():
    """The kernels; none without pybind11. Where their build fails, the package installs without them."""
    try:
        from pybind11.setup_helpers import ParallelCompile, Pybind11Extension
    except ImportError:
        print("pybind11 not found: the kernels are not built", file=sys.stderr)
        return []
    # A file per core at a time; the variable sets another number.
    ParallelCompile("BERTDATA_BUILD_JOBS").install()
    # -g0: Python's own flags ask for debugging information, which takes a third of the compile time.
    flags = [] if sys.platform == "win32" else ["-O3", "-g0", "-fvisibility=hidden"]
    # The kernels that tests.soak.sanitized_kernels tries, with the sanitizers that the variable names.
    sanitizers = os.environ.get("BERTDATA_SANITIZE")
    if sanitizers:
        flags = ["-O1", "-g1", "-fvisibility=hidden", "-fno-sanitize-recover", f"-fsanitize={sanitizers}"]
    kernels = Pybind11Extension(
        "bertdata._native._kernels",
        sorted(str(path) for path in Path("bertdata/_native").rglob("*.cpp")),
        include_dirs=["bertdata/_native"],
        depends=[str(path) for path in sorted(Path("bertdata/_native").rglob("*.h"))],
        cxx_std=17,
        extra_compile_args=flags,
        extra_link_args=[f"-fsanitize={sanitizers}"] if sanitizers else [],
        optional=True,
    )
    return [kernels]


setup(
    name="bertdata-toolkit",
    version="0.1.0",
    description="Deterministic, verifiable, fast preparation of BERT pre-training data, and a trainer for it",
    long_description=Path("README.md").read_text(encoding="utf-8") if Path("README.md").exists() else "",
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.10",
    # Said outright, so that an editable install is a line in a .pth file; else setuptools installs a finder,
    # which costs every start of Python 10 ms.
    package_dir={"": "."},
    packages=find_packages(
        include=[
            "bertdata",
            "bertdata.*",
            "beam_pipelines",
            "beam_pipelines.*",
            "trainer",
            "trainer.*",
            "schemas",
        ]
    ),
    package_data={
        "bertdata": ["py.typed"],
        "bertdata.cli": ["programs/*/*.toml"],
        "schemas": ["*.json"],
        "trainer.config": ["shipped/*.json"],
        "trainer.programs": ["*/*.toml", "*/shared/*.toml"],
        "trainer.programs.graphcore": ["configs/*.json"],
        "bertdata.dataset.published": ["*.tsv", "*.tsv.xz"],
        "bertdata.reports.page": ["templates/*"],
        "bertdata.unicode": ["*.json"],
        "bertdata._native": ["**/*.h", "**/*.cpp"],
    },
    ext_modules=extensions(),
    install_requires=["fsspec>=2023.6", "rich>=13", "tomli>=2; python_version < '3.11'"],
    extras_require=EXTRAS,
    entry_points={
        "console_scripts": [
            "bertdata = bertdata.__main__:run",
            "bertdata-beam = beam_pipelines.prepare:main",
            "bertdata-train = trainer.__main__:run",
        ]
    },
)
