gpu.module @kernels {
  gpu.func @top_k(%x: memref<${N}xf32>, %top: memref<${K}xf32>) kernel
      attributes {known_block_size = array<i32: 1, 1, 1>,
                  fsr.arg_names = ["x", "top"],
                  fsr.workload = [{x = "uniform(-1, 1)"},
                                  {case = "ties", x = "integers(0, 15)"},
                                  {case = "sorted", x = "sorted(-1, 1)"},
                                  {case = "reversed", x = "reversed(-1, 1)"}]} {
    %lowest = arith.constant 0xFF800000 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %count = arith.constant ${N} : index
    %k = arith.constant ${K} : index
    %last = arith.constant ${LAST} : index
    scf.for %i = %c0 to %k step %c1 {
      memref.store %lowest, %top[%i] : memref<${K}xf32>
    }
    scf.for %i = %c0 to %count step %c1 {
      %v = memref.load %x[%i] : memref<${N}xf32>
      %least = memref.load %top[%last] : memref<${K}xf32>
      %enters = arith.cmpf ogt, %v, %least : f32
      scf.if %enters {
        // What is smaller moves down by one place.
        %place = scf.while (%at = %last) : (index) -> index {
          %inner = arith.cmpi ugt, %at, %c0 : index
          %more = scf.if %inner -> (i1) {
            %above = arith.subi %at, %c1 : index
            %u = memref.load %top[%above] : memref<${K}xf32>
            %smaller = arith.cmpf olt, %u, %v : f32
            scf.yield %smaller : i1
          } else {
            scf.yield %inner : i1
          }
          scf.condition(%more) %at : index
        } do {
        ^bb0(%at: index):
          %above = arith.subi %at, %c1 : index
          %u = memref.load %top[%above] : memref<${K}xf32>
          memref.store %u, %top[%at] : memref<${K}xf32>
          scf.yield %above : index
        }
        memref.store %v, %top[%place] : memref<${K}xf32>
      }
    }
    gpu.return
  }
}
