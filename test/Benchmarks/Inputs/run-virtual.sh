#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# run-virtual.sh FOLDER LIBRARIES BOUND NAME... runs the benchmark modules NAME whole
# on the virtual device, as the stock pipeline lowers them, and compares what they
# print with reference.py. FOLDER is for what is made; FSR_KERNELS and FSR_COMPARE
# say where the modules and compare-runs are. One line a module; the first that
# fails ends it.

set -eu
here=$(dirname "$0")
out=$1 libraries=$2 bound=$3
shift 3
mkdir -p "$out"
for name in "$@"; do
  mlir-opt "$FSR_KERNELS/$name.mlir" -o "$out/$name.mlir" \
    --gpu-lower-to-nvvm-pipeline="cubin-format=isa cubin-features=+ptx80 cubin-chip=sm_90"
  FSR_DEVICE=virtual mlir-runner "$out/$name.mlir" -e main \
    --entry-point-result=void --shared-libs="$libraries" > "$out/$name.run"
  "${PYTHON:-python3}" "$here/reference.py" "$name" > "$out/$name.ref"
  same=0
  said=$("$FSR_COMPARE" "$out/$name.run" "$out/$name.ref" --bound "$bound") || same=$?
  echo "$name $said"
  [ $same = 0 ] || exit 1
done
