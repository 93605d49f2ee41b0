#!/usr/bin/env bash
# The main job on the sample corpus: vocabulary, shards of three recipes, Beam, verification, a look.
set -eu
OUT=demo-output
rm -rf "$OUT" && mkdir "$OUT"
say() { printf '\n\033[1m%s\033[0m\n' "$*"; "$@"; }

say "$BIN/bertdata" train-vocab golden/corpus/part-* --output $OUT/vocab.txt --size 4000
say "$BIN/bertdata" create golden/corpus/part-* --output $OUT/mlperf --vocab $OUT/vocab.txt --recipe mlperf
say "$BIN/bertdata" create golden/corpus/part-* --output $OUT/habana --vocab $OUT/vocab.txt --recipe habana
say "$BIN/python" -m beam_pipelines.prepare --recipe mlperf --input 'golden/corpus/part-*' --input-kind parts \
  --output $OUT/mlperf-by-beam --vocab $OUT/vocab.txt
say diff -r $OUT/mlperf $OUT/mlperf-by-beam && echo "the same bytes from the command line and from Beam"
say "$BIN/bertdata" verify-md5 $OUT/mlperf
say "$BIN/bertdata" verify-md5 $OUT/habana
say "$BIN/bertdata" show $OUT/habana/phase1/part-00000-of-00003.hdf5 --vocab $OUT/vocab.txt
