#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# check-candidates.sh FOLDER NAME[=KERNEL,...]... extracts the kernels of the benchmark
# modules NAME.t (one of the module's name where none is given), and checks two
# answers to each on the virtual device: a good one (benchmarks/kernels/candidates,
# or test/Transforms/Inputs/KERNEL-answer.md) and one that writes zeros. FOLDER is
# for what is made; FSR_SRC is the repository. Prints `KERNEL: VERDICT, zeros:
# VERDICT`, and after an unexpected one all that fsr-tune said. A good answer that
# is not faster at so small a size is validated to the end without times.

set -eu
here=$(dirname "$0")
out=$1
shift
rm -rf "$out"
mkdir -p "$out"

verdict() { # Of the one set of parameters that an answer is checked with.
  sed -n 's/^[A-Z0-9= -]*: \([a-z-]*\)$/\1/p' "$1" | head -n 1
}

for name in "$@"; do
  case $name in *=*) kernels=${name#*=} ;; *) kernels=$name ;; esac
  name=${name%%=*}
  fsr-opt "$FSR_SRC/benchmarks/kernels/$name.t.mlir" -o /dev/null \
    --fsr-extract="output=$out target=sm_90 only=$kernels quiet=true"
  for kernel in $(echo "$kernels" | tr , ' '); do
    task=$(echo "$out/$kernel"-*.json)
    good=$FSR_SRC/benchmarks/kernels/candidates/$kernel.md
    [ -f "$good" ] || good=$FSR_SRC/test/Transforms/Inputs/$kernel-answer.md
    "${PYTHON:-python3}" "$here/zeros.py" "$task" > "$out/$kernel.zeros.md"
    fsr-tune check "$task" "$good" --device=virtual > "$out/$kernel.good" 2>&1 || true
    fsr-tune check "$task" "$out/$kernel.zeros.md" --device=virtual \
      > "$out/$kernel.wrong" 2>&1 || true
    said=$(verdict "$out/$kernel.good") zeros=$(verdict "$out/$kernel.wrong")
    if [ "$said" = not-faster ] &&
      fsr-tune check "$task" "$good" --device=virtual --no-timing > "$out/$kernel.equal"; then
      said=equal
    fi
    echo "$kernel: $said, zeros: $zeros"
    case $said in accepted | equal) ;; *) cat "$out/$kernel.good" ;; esac
    [ "$zeros" = mismatch ] || cat "$out/$kernel.wrong"
  done
done
