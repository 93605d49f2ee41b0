#!/usr/bin/env bash
# Make dist/: a source package, a wheel for each Python, and a bill of materials (CycloneDX) for each wheel.
#
# Each wheel is built from the source package, outside of the checkout and without git. It is installed in a new
# environment, where the commands of README.md must print what the page shows, in a folder without our sources.
# make wheels calls this with the Python of .venv. PYTHONS names the Pythons; those that are missing are left out.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=$1
root=$PWD
PYTHONS=${PYTHONS:-python3.10 python3.11 python3.12 python3.13}
# What builds a package is pinned too.
export PIP_CONSTRAINT=$root/constraints.txt PIP_BUILD_CONSTRAINT=$root/constraints.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf dist
"$tools" -m build --sdist --outdir dist . >"$work/sdist.log" 2>&1 || { tail -n 20 "$work/sdist.log"; exit 1; }
source_package=$(ls "$root"/dist/*.tar.gz)
echo "dist/$(basename "$source_package")"

# The commands of README.md in a folder that holds only what the page reads.
try_readme() {
  local python=$1 folder=$2
  mkdir "$folder"
  ln -s "$root/golden" "$root/docs" "$folder"
  (cd "$folder" && "$python" - "$root" <<'PYTHON'
import sys
from pathlib import Path

root, here = Path(sys.argv[1]), Path.cwd()
sys.path.insert(0, str(root / "tests" / "support"))
from console_pages import ConsolePage

import bertdata
from bertdata import _native

if root in Path(bertdata.__file__).parents:
    sys.exit(f"{bertdata.__file__}: expected the installed wheel")
if not _native.available():
    sys.exit(f"the wheel has no kernels: {_native.why_missing}")
print(f"  {ConsolePage(root / 'README.md', here).run()} commands of README.md print what the page shows")
PYTHON
  )
}

for name in $PYTHONS; do
  if ! python=$(command -v "$name") || ! "$python" -c '' 2>/dev/null; then
    echo "$name is not on this machine: no wheel"
    continue
  fi
  environment=$work/$name
  "$python" -m venv "$environment"
  {
    "$environment/bin/python" -m pip install --quiet --upgrade pip
    "$environment/bin/python" -m pip wheel --quiet --no-deps --wheel-dir "$work/wheels-$name" "$source_package"
    wheel=$(ls "$work/wheels-$name"/*.whl)
    "$environment/bin/python" -m pip install --quiet "$wheel[train,vocab,pictures]"
  } >"$work/$name.log" 2>&1 || { tail -n 20 "$work/$name.log"; exit 1; }
  cp "$wheel" dist
  echo "dist/$(basename "$wheel")"
  try_readme "$environment/bin/python" "$work/try-$name"
  bill=dist/$(basename "$wheel" .whl).cdx.json
  "$tools" -m cyclonedx_py environment "$environment/bin/python" --output-reproducible --output-file "$bill" \
    >"$work/bill.log" 2>&1 || { tail -n 20 "$work/bill.log"; exit 1; }
  echo "$bill"
done
