// Kernels whose replacement could not be judged from the kernel alone are not
// taken, each with its sentence.
//
// RUN: fsr-opt %s --split-input-file --fsr-explain="target=sm_90" -o /dev/null 2>&1 | FileCheck %s

// CHECK: kernel overlap: not taken: its arguments a0 and a1 may overlap, and one of them is written
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @overlap(%x: memref<64xf32>, %y: memref<64xf32>) kernel {
      %t = gpu.thread_id x
      %v = memref.load %x[%t] : memref<64xf32>
      memref.store %v, %y[%t] : memref<64xf32>
      gpu.return
    }
  }
  func.func @main(%x: memref<64xf32>) {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    gpu.launch_func @kernels::@overlap blocks in (%c1, %c1, %c1)
        threads in (%c64, %c1, %c1) args(%x : memref<64xf32>, %x : memref<64xf32>)
    return
  }
}

// -----

// CHECK: kernel resource: not taken: it uses a dense_resource, whose bytes are outside the IR
module attributes {gpu.container_module} {
  gpu.module @kernels {
    memref.global "private" constant @table : memref<4xf32> = dense_resource<blob>
    gpu.func @resource(%x: memref<4xf32>) kernel {
      %t = gpu.thread_id x
      %g = memref.get_global @table : memref<4xf32>
      %v = memref.load %g[%t] : memref<4xf32>
      memref.store %v, %x[%t] : memref<4xf32>
      gpu.return
    }
  }
  func.func @main(%x: memref<4xf32>) {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    gpu.launch_func @kernels::@resource blocks in (%c1, %c1, %c1)
        threads in (%c4, %c1, %c1) args(%x : memref<4xf32>)
    return
  }
}

{-#
  dialect_resources: {
    builtin: {
      blob: "0x040000000000803F000000400000404000008040"
    }
  }
#-}

// -----

// CHECK: kernel narrow: not taken: its module gives index another width than 64 bits
module attributes {gpu.container_module, dlti.dl_spec = #dlti.dl_spec<index = 32 : i64>} {
  gpu.module @kernels {
    gpu.func @narrow(%x: memref<4xi64>) kernel {
      %t = gpu.thread_id x
      %v = arith.index_cast %t : index to i64
      memref.store %v, %x[%t] : memref<4xi64>
      gpu.return
    }
  }
  func.func @main(%x: memref<4xi64>) {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    gpu.launch_func @kernels::@narrow blocks in (%c1, %c1, %c1)
        threads in (%c4, %c1, %c1) args(%x : memref<4xi64>)
    return
  }
}

// -----

// CHECK: kernel far: not taken: its argument a0 is too large
// CHECK: kernel scalar: not taken: its argument a1 is a scalar that is no constant at the launch
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @far(%x: memref<2xf32, strided<[4611686018427387904]>>) kernel {
      gpu.return
    }
    gpu.func @scalar(%x: memref<4xf32>, %s: f32) kernel {
      %t = gpu.thread_id x
      memref.store %s, %x[%t] : memref<4xf32>
      gpu.return
    }
  }
  func.func @main(%x: memref<2xf32, strided<[4611686018427387904]>>, %y: memref<4xf32>, %s: f32) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@far blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%x : memref<2xf32, strided<[4611686018427387904]>>)
    gpu.launch_func @kernels::@scalar blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%y : memref<4xf32>, %s : f32)
    return
  }
}

// -----

// CHECK: kernel wide: not taken: its launch has more threads a block than any GPU runs
// CHECK: kernel long: not taken: its launch is larger than any GPU's limits
// CHECK: kernel huge: not taken: its argument a0 is too large
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @wide(%x: memref<4xf32>) kernel {
      gpu.return
    }
    gpu.func @long(%x: memref<4xf32>) kernel {
      gpu.return
    }
    gpu.func @huge(%x: memref<4294967296x4294967296xf32>) kernel {
      gpu.return
    }
  }
  func.func @main(%x: memref<4xf32>, %h: memref<4294967296x4294967296xf32>) {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %many = arith.constant 9223372036854775807 : index
    gpu.launch_func @kernels::@wide blocks in (%c1, %c1, %c1)
        threads in (%c64, %c64, %c1) args(%x : memref<4xf32>)
    gpu.launch_func @kernels::@long blocks in (%many, %c1, %c1)
        threads in (%c64, %c1, %c1) args(%x : memref<4xf32>)
    gpu.launch_func @kernels::@huge blocks in (%c1, %c1, %c1)
        threads in (%c64, %c1, %c1) args(%h : memref<4294967296x4294967296xf32>)
    return
  }
}

// -----

// Memory attributions stand behind the arguments and are none.
// CHECK: kernel shared: taken
// CHECK:   a0: 64 f32, read_write
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @shared(%x: memref<64xf32>) workgroup(%tile: memref<64xf32, #gpu.address_space<workgroup>>) kernel {
      %t = gpu.thread_id x
      %v = memref.load %x[%t] : memref<64xf32>
      memref.store %v, %tile[%t] : memref<64xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %w = memref.load %tile[%t] : memref<64xf32, #gpu.address_space<workgroup>>
      memref.store %w, %x[%t] : memref<64xf32>
      gpu.return
    }
  }
  func.func @main(%x: memref<64xf32>) {
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    gpu.launch_func @kernels::@shared blocks in (%c1, %c1, %c1)
        threads in (%c64, %c1, %c1) args(%x : memref<64xf32>)
    return
  }
}
