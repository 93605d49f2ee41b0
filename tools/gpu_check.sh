#!/usr/bin/env bash
# Prove the trainer on this machine's GPU and measure it: tools/gpu_check.sh [--device cpu] [STAGE ...]
# Installs nothing and needs no network. PYTHON: the Python with torch; OUT: the folder for figures and logs.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
out=${OUT:-gpu-output}
export PYTHONPATH=$PWD
mkdir -p "$out/logs"

if ! "$python" -c 'import sys, bertdata._native as native; sys.exit(not native.available())' 2>"$out/logs/kernels.err"; then
    echo "building the kernels; log: $out/logs/kernels.out" >&2
    timeout 300 "$python" setup.py -q build_ext --inplace >"$out/logs/kernels.out" 2>&1 ||
        echo "the kernels were not built, so bertdata's commands are slower; the stages go on" >&2
fi
exec "$python" -m benchmarks.gpu --output "$out" "$@"
