#!/usr/bin/env bash
# Build the Dockerfile without Docker and without Beam's image, and make shards in the image.
#
# The base is made here: Debian 12 with its Python 3.11, the pinned Beam, and a start of Beam's worker, under the name
# of Beam's image. So this tries every step of the Dockerfile, but not Beam's own files. It needs root and Debian's
# packages buildah and debootstrap. MIRROR replaces debootstrap's own mirror. The first argument is a Python that has
# bertdata; its shards must have the same md5s.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
base=$(sed -n 's/^FROM \(apache\S*\) AS build$/\1/p' Dockerfile)
certificates=/etc/ssl/certs/ca-certificates.crt
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

debootstrap --variant=minbase --include=python3-dev,python3-pip,python3-venv,g++,ca-certificates \
  bookworm "$work/root" ${MIRROR:+"$MIRROR"} >"$work/base.log" || { tail -n 20 "$work/base.log"; exit 1; }
cp /etc/resolv.conf "$work/root/etc"
cp "$certificates" "$work/root$certificates"
ln -s /usr/bin/python3 "$work/root/usr/local/bin/python"
mkdir -p "$work/root/opt/apache/beam"
printf '#!/bin/sh\nexec python -m apache_beam.runners.worker.sdk_worker_main "$@"\n' >"$work/root/opt/apache/beam/boot"
chmod +x "$work/root/opt/apache/beam/boot"
cp constraints.txt "$work"
cat >"$work/Dockerfile" <<BASE
FROM scratch
COPY root /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin PIP_BREAK_SYSTEM_PACKAGES=1 PIP_CERT=$certificates
COPY constraints.txt /tmp/base.txt
RUN pip install --quiet --no-cache-dir --constraint /tmp/base.txt apache-beam
ENTRYPOINT ["/opt/apache/beam/boot"]
BASE
buildah bud --network host --tag "$base" "$work" >"$work/base.log" 2>&1 || { tail -n 20 "$work/base.log"; exit 1; }
echo "a stand-in of $base"

buildah bud --network host --pull-never --tag bertdata-worker . >"$work/image.log" 2>&1 || { tail -n 20 "$work/image.log"; exit 1; }
container=$(buildah from --pull-never localhost/bertdata-worker)
trap 'buildah rm "$container" >"$work/rm.log"; rm -rf "$work"' EXIT
inside() { buildah run --volume "$PWD/golden:/golden:ro" "$container" -- "$@"; }
echo "the image, whose processes run as $(inside id --user --name)"
inside python -c 'import json; print(len(json.load(open("/usr/share/bertdata.cdx.json"))["components"]), "packages listed")'

flags=(--max-seq-length 64 --max-predictions-per-seq 10 --dupe-factor 2)
inside python -m beam_pipelines.prepare --input /golden/corpus/'part-*' --vocab /golden/vocab.txt --output /tmp/shards \
  --engine native "${flags[@]}"
inside cat /tmp/shards/MD5SUMS >"$work/inside"
"$python" -m bertdata create golden/corpus/part-* --vocab golden/vocab.txt --output "$work/shards" --engine native \
  "${flags[@]}"
grep -v manifest "$work/inside" | diff - <(grep -v manifest "$work/shards/MD5SUMS")
echo "the shards of the image have the md5s of $python"
