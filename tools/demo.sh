#!/usr/bin/env bash
# From a sample dump to verified shards of both phases; the same bytes on Apache Beam; then two workers
# train a tiny model. Horovod, which starts the workers, is built in the background meanwhile; where it cannot
# be built, torchrun starts them.
#
# make demo calls this with BIN (the environment's programs), CONSTRAINTS (options of pip install) and
# STARTED (the time at which make started).
set -euo pipefail
OUT=demo-output
LOG=$OUT/horovod.log
rm -rf "$OUT" && mkdir "$OUT"

title() { printf '\n\033[1m%s\033[0m\n' "$*"; }
show() { printf '\n$ %s\n' "${*/#$BIN\//}"; "$@"; }
elapsed() { local seconds=$(($(date +%s) - STARTED)); echo "$((seconds / 60)) min $((seconds % 60)) s"; }

install_horovod() {
  # shellcheck disable=SC2086  # CONSTRAINTS: options, split on purpose
  nice "$BIN/python" tools/install_extras.py $CONSTRAINTS train pictures && touch $OUT/torch-is-installed &&
    nice "$BIN/python" tools/install_horovod.py $CONSTRAINTS
}

# In a process group of its own, which ends with this script however that ends.
set -m
install_horovod >"$LOG" 2>&1 </dev/null &
horovod=$!
set +m
stop_horovod() {
  disown $horovod 2>/dev/null || return 0 # else bash tells of its end
  for signal in INT KILL; do
    kill -$signal -- -$horovod 2>/dev/null || return 0
    for _ in 1 2 3 4 5 6 7 8 9 10; do
      kill -0 -- -$horovod 2>/dev/null || return 0
      sleep 0.5
    done
  done
}
trap stop_horovod EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
echo "In the background: installing PyTorch and building Horovod, for the training at the end (log: $LOG)"
echo "PyTorch is a download of 0.2 GB as its CPU build, 3 GB as its CUDA build (docs/running.md)"

title "A Wikipedia dump to text: articles, then sentences, then a vocabulary"
show "$BIN/bertdata" extract golden/dump/allerwiki-20200101-pages-articles.xml --output $OUT/extracted --recipe habana
show "$BIN/bertdata" segment $OUT/extracted --output $OUT/text --eval-articles 12 --block-size 0.2
show "$BIN/bertdata" train-vocab "golden/corpus/part-*" "$OUT/text/part-*" --output $OUT/vocab.txt --size 4000

title "Text to shards of both phases (128 and 512 tokens), in two containers, each verified"
for format in tfrecord hdf5; do
  show "$BIN/bertdata" create "$OUT/text/part-*" --output $OUT/$format --vocab $OUT/vocab.txt --recipe habana --format $format
  show "$BIN/bertdata" verify-md5 $OUT/$format
done
title "Shards of both phases, made and verified: $(elapsed) after the start"
show "$BIN/bertdata" show $OUT/hdf5/phase1/part-00000-of-00500.hdf5 --vocab $OUT/vocab.txt

title "The same from the dump by one Apache Beam command"
echo "Installing Beam, after PyTorch (log: $OUT/beam.log) ..."
while ! [ -e $OUT/torch-is-installed ] && kill -0 $horovod 2>/dev/null; do sleep 1; done
# shellcheck disable=SC2086
"$BIN/python" tools/install_extras.py $CONSTRAINTS beam >$OUT/beam.log 2>&1 || {
  tail -n 20 $OUT/beam.log
  exit 1
}
show "$BIN/python" -m beam_pipelines.prepare --recipe habana --format tfrecord --text-recipe mlperf \
  --input-kind dump --input golden/dump/allerwiki-20200101-pages-articles.xml --eval-articles 12 --block-size 0.2 \
  --output $OUT/beam --text $OUT/beam-text --vocab $OUT/vocab.txt
for phase in phase1 phase2; do
  diff -r $OUT/tfrecord/$phase $OUT/beam/$phase
done
echo "Step by step and by one Beam command: the same bytes"

title "Training a tiny model with two workers, on more text; evaluated on articles that were withheld"
for set in "corpus=golden/corpus/part-*" eval=$OUT/text/eval.txt; do
  show "$BIN/bertdata" create "${set#*=}" --output $OUT/${set%%=*} --vocab $OUT/vocab.txt --recipe habana --format hdf5
done
if kill -0 $horovod 2>/dev/null; then
  printf '\nWaiting for Horovod to be built: a few minutes, once for this user (log: %s) ...\n' $LOG
fi
launcher=("$BIN/horovodrun" --gloo -np 2 -H localhost:2 "$BIN/python")
if ! wait $horovod; then
  if ! [ -e $OUT/torch-is-installed ]; then
    printf '\nPyTorch could not be installed. The end of %s:\n\n' $LOG
    tail -n 20 $LOG
    printf '\nThe shards in %s are complete; only the training is left out (after %s).\n' $OUT "$(elapsed)"
    exit 1
  fi
  printf '\nHorovod could not be built (%s says why): torchrun starts the workers instead\n' $LOG
  launcher=("$BIN/torchrun" --standalone --nproc-per-node 2)
fi
export OMP_NUM_THREADS=1 # two workers on two cores
# horovodrun writes [RANK]<stdout>: or [RANK]<stderr>: before each line. Ctrl-C must leave sed to the last line.
without_prefixes() { (trap '' INT && exec sed -u -E 's/^\[[0-9]+\]<std(out|err)>://'); }
train() {
  show "${launcher[@]}" -m trainer pretrain --config tiny \
    --train-data $OUT/hdf5/$1+$OUT/corpus/$1 --eval-data $OUT/eval/$1 --curves --output-dir $OUT/run "${@:2}" 2>&1 |
    without_prefixes
}
train phase1 --batch-size 8 --steps 400 --eval-every 80
cp $OUT/run/curves.svg $OUT/phase1.svg
train phase2 --batch-size 4 --steps 50 --phase2 --eval-every 10 --log-every 5

title "Done: $(elapsed) after the start"
echo "Accuracy after phase 2 on withheld articles (most_frequent: always guessing one token):"
grep -E '(masked_lm|most_frequent)_accuracy' $OUT/run/eval_results.txt
echo "Loss and accuracy as pictures: $OUT/phase1.svg, $OUT/run/curves.svg; everything else is in $OUT too"
