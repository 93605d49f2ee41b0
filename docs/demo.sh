#!/usr/bin/env bash
# The whole route on the sample dump: articles, sentences, shards of both phases in two containers,
# the same by one Beam command, verification, a look at one example.
set -eu
OUT=demo-output
rm -rf "$OUT" && mkdir "$OUT"
say() { printf '\n\033[1m$ %s\033[0m\n' "${*/#$BIN\//}"; "$@"; }

say "$BIN/bertdata" extract golden/dump/allerwiki-20200101-pages-articles.xml --output $OUT/extracted
say "$BIN/bertdata" segment $OUT/extracted --output $OUT/text --eval-articles 3 --block-size 0.2
say "$BIN/bertdata" train-vocab golden/corpus/part-* $OUT/text/part-* --output $OUT/vocab.txt --size 4000
for format in tfrecord hdf5; do
  say "$BIN/bertdata" create $OUT/text/part-* --output $OUT/$format --vocab $OUT/vocab.txt --recipe habana --format $format
  say "$BIN/bertdata" verify-md5 $OUT/$format
done
say "$BIN/python" -m beam_pipelines.prepare --recipe habana --format tfrecord --text-recipe mlperf \
  --input-kind dump --input golden/dump/allerwiki-20200101-pages-articles.xml --eval-articles 3 --block-size 0.2 \
  --output $OUT/beam --text $OUT/beam-text --vocab $OUT/vocab.txt
for phase in phase1 phase2; do
  diff -r $OUT/tfrecord/$phase $OUT/beam/$phase
done
echo "step by step and by one Beam command: the same bytes"
say "$BIN/bertdata" show $OUT/hdf5/phase1/part-00000-of-00500.hdf5 --vocab $OUT/vocab.txt
printf '\nMade in %s:\n' $OUT
find $OUT -type f | sort | xargs wc -c
