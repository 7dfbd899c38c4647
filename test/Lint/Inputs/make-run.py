# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Prints what a benchmark module prints whose elements all are argv[1].
import struct
import sys

value = float(sys.argv[1])
print(100)
for v in [100 * value, abs(100 * value)] + 16 * [value]:
    print(f"{struct.unpack('<q', struct.pack('<d', v))[0]}, {v:g}")
