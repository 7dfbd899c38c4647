# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints a wrong answer to a task: one kernel that fills everything that the
original writes with zeros, whatever the inputs."""

import json
import math
import sys

TYPES = {"f32": "float", "i32": "int"}

task = json.load(open(sys.argv[1], encoding="utf-8"))
parameters, stores = [], []
for argument in task["arguments"]:
    written = argument["access"] in ("write", "read_write")
    parameters.append(f"{'' if written else 'const '}{TYPES[argument['element']]} "
                      f"*{argument['name']}")
    if written:
        stores.append(f"  for (int i = first; i < {math.prod(argument['sizes'])}; i += 1024)\n"
                      f"    {argument['name']}[i] = 0;\n")
print(f"""Zeros.

```cuda
extern "C" __global__ void zeros({', '.join(parameters)}) {{
  int first = blockIdx.x * blockDim.x + threadIdx.x;
{''.join(stores)}}}
```

```json
{{ "launch": [{{ "kernel": "zeros", "grid": [4], "block": [256], "args": "same" }}] }}
```""")
