# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrites a benchmark module so that the CPU can run it: kernels become functions
of their block and thread, launches become loops, device memory becomes memory.

Works on the text that benchmarks/kernels/generate.py makes, and on nothing else.
"""

import re
import sys

IDS = "%bid_x: index, %bid_y: index, %bdim_x: index, %bdim_y: index, " \
      "%tid_x: index, %tid_y: index"


def launch(found):
    kernel, grid, block, arguments = found.groups()
    grid, block = grid.split(", "), block.split(", ")
    arguments = arguments.split(", %")
    names = ["%" + a.split(" : ")[0].lstrip("%") for a in arguments]
    types = [a.split(" : ")[1] for a in arguments]
    loops = "".join(f"scf.for %i{n} = %c0 to {bound} step %c1 {{\n"
                    for n, bound in enumerate((grid[0], grid[1], block[0], block[1])))
    return (f"{loops}func.call @{kernel}({', '.join(names)}, %i0, %i1, {block[0]}, "
            f"{block[1]}, %i2, %i3) : ({', '.join(types)}{', index' * 6}) -> ()\n"
            + "}\n" * 4)


text = open(sys.argv[1], encoding="utf-8").read()
text = text.replace("attributes {gpu.container_module} ", "")
text = re.sub(r"gpu\.func @(\w+)\(([^)]*)\) kernel\s+"
              r"attributes \{(?:[^{}]|\{[^{}]*\})*\}",
              rf"func.func @\1(\2, {IDS})", text)
for what, name in (("block_id", "bid"), ("block_dim", "bdim"), ("thread_id", "tid")):
    text = re.sub(rf"gpu\.{what} (x|y)", rf"arith.maxui %{name}_\1, %{name}_\1 : index",
                  text)
text = text.replace("gpu.return", "return")
text = re.sub(r"^  gpu\.module @\w+ \{\n(.*?)^  \}\n", r"\1", text, flags=re.M | re.S)
text = re.sub(r"gpu\.launch_func @\w+::@(\w+) blocks in \(([^)]*)\) "
              r"threads in \(([^)]*)\)\s+args\(([^)]*)\)", launch, text)
text = re.sub(r"(%\w+), %\w+ = gpu\.alloc async \[\S+\] \(\) : (\S+)",
              r"\1 = memref.alloc() : \2", text)
text = re.sub(r"%copied = gpu\.memcpy async \[%ready\] (%\w+), (%\w+) : (\S+), \S+",
              r"memref.copy \2, \1 : \3 to \3", text)
text = re.sub(r"^.*gpu\.(wait|dealloc) .*\n", "", text, flags=re.M)
print(text)
