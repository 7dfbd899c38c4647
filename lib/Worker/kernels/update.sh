#!/bin/sh
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Builds helpers.ptx from helpers.cu and peaks.ptx from peaks.cu; run after every
# change of a source.
# The PTX is for compute_75 and every later GPU. Its version is set to the oldest
# that knows that target, so that older drivers take it too: nothing newer is
# used, and ptxas says so if that changes. Usage: update.sh [nvcc]

set -eu
here=$(dirname "$0")
nvcc=${1:-nvcc}
out=$(mktemp)
trap 'rm -f "$out" "$out.cubin"' EXIT
for name in helpers peaks; do
  "$nvcc" -ptx -arch=compute_75 -O3 -o "$out" "$here/$name.cu"
  sed -e '/^\/\//d' -e '/^[[:space:]]*\.file/d' -e '/^[[:space:]]*\.loc/d' -e '/used_bytes_mask/d' \
      -e 's/^\.version .*/.version 6.3/' -e '/^[[:space:]]*\/\//d' \
      -e 's,[[:space:]]*//.*$,,' -e '/^[[:space:]]*$/d' "$out" > "$out.cubin"
  cp "$out.cubin" "$here/$name.ptx"
  "$(dirname "$(command -v "$nvcc")")/ptxas" -arch=sm_75 -o "$out.cubin" \
      "$here/$name.ptx"
done
