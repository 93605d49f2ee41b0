#!/usr/bin/env bash
# The whole way on the sample dump: articles, sentences, shards of both phases in two containers, verified;
# the same by one Beam command; one example printed; then two workers train a tiny model.
set -eu
OUT=demo-output
rm -rf "$OUT" && mkdir "$OUT"
say() { printf '\n\033[1m$ %s\033[0m\n' "${*/#$BIN\//}"; "$@"; }

say "$BIN/bertdata" extract golden/dump/allerwiki-20200101-pages-articles.xml --output $OUT/extracted
say "$BIN/bertdata" segment $OUT/extracted --output $OUT/text --eval-articles 12 --block-size 0.2
say "$BIN/bertdata" train-vocab golden/corpus/part-* $OUT/text/part-* --output $OUT/vocab.txt --size 4000
for format in tfrecord hdf5; do
  say "$BIN/bertdata" create $OUT/text/part-* --output $OUT/$format --vocab $OUT/vocab.txt --recipe habana --format $format
  say "$BIN/bertdata" verify-md5 $OUT/$format
done
say "$BIN/python" -m beam_pipelines.prepare --recipe habana --format tfrecord --text-recipe mlperf \
  --input-kind dump --input golden/dump/allerwiki-20200101-pages-articles.xml --eval-articles 12 --block-size 0.2 \
  --output $OUT/beam --text $OUT/beam-text --vocab $OUT/vocab.txt
for phase in phase1 phase2; do
  diff -r $OUT/tfrecord/$phase $OUT/beam/$phase
done
echo "step by step and by one Beam command: the same bytes"
say "$BIN/bertdata" show $OUT/hdf5/phase1/part-00000-of-00500.hdf5 --vocab $OUT/vocab.txt

# Two workers on two cores: one thread each. The model is evaluated on the withheld articles.
export OMP_NUM_THREADS=1
for set in corpus=golden/corpus/part-\* eval=$OUT/text/eval.txt; do
  say "$BIN/bertdata" create ${set#*=} --output $OUT/${set%%=*} --vocab $OUT/vocab.txt --recipe habana --format hdf5
done
train() {
  say "$BIN/horovodrun" --gloo -np 2 -H localhost:2 "$BIN/python" -m trainer pretrain --config tiny \
    --train-data $OUT/hdf5/$1,$OUT/corpus/$1 --eval-data $OUT/eval/$1 --output-dir $OUT/run "${@:2}"
}
train phase1 --batch-size 8 --steps 400 --eval-every 80
cp $OUT/run/curves.svg $OUT/phase1.svg
train phase2 --batch-size 4 --steps 50 --phase2 --eval-every 10 --log-every 5
printf '\nMade in %s:\n' $OUT
find $OUT -type f | sort | xargs wc -c
printf '\nAfter phase 2, on articles that were withheld (most_frequent: always guessing one token):\n'
grep -E '(masked_lm|most_frequent)_accuracy' $OUT/run/eval_results.txt
echo "loss and accuracy, drawn: $OUT/phase1.svg, $OUT/run/curves.svg"
