# The only ways to make a library, a tool or a unit test of FSR.
#
# Libraries are static archives that do not name LLVM: what LLVM they get is
# decided where a program is linked, so that the same archive serves the tools
# that carry LLVMSupport inside them (one file to copy to a GPU host) and the
# plugin, which must share libLLVM and libMLIR with its host.

set(FSR_WARNINGS -Wall -Wextra -Wno-unused-command-line-argument)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  list(APPEND FSR_WARNINGS -Wimplicit-fallthrough)
endif()
if(FSR_ENABLE_WERROR)
  list(APPEND FSR_WARNINGS -Werror)
endif()

set(FSR_SYSTEM_INCLUDES ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
separate_arguments(FSR_LLVM_DEFINITIONS NATIVE_COMMAND ${LLVM_DEFINITIONS})

function(fsr_target_options target)
  cmake_parse_arguments(A "EXCEPTIONS" "" "" ${ARGN})
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR}/include)
  target_include_directories(${target} SYSTEM PUBLIC ${CMAKE_BINARY_DIR}/include
                                                     ${FSR_SYSTEM_INCLUDES})
  target_compile_options(${target} PRIVATE ${FSR_LLVM_DEFINITIONS} ${FSR_WARNINGS}
                                           -fno-rtti -ffunction-sections)
  if(NOT A_EXCEPTIONS)
    target_compile_options(${target} PRIVATE -fno-exceptions)
  endif()
  if(FSR_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${FSR_SANITIZE}
                           -fno-sanitize-recover=all -fno-omit-frame-pointer)
    # The packaged LLVM is not instrumented, and RTTI is off here.
    target_compile_options(${target} PRIVATE -fno-sanitize=vptr)
    target_link_options(${target} PUBLIC -fsanitize=${FSR_SANITIZE})
  endif()
endfunction()

# fsr_add_library(Name SOURCES a.cpp… [DEPENDS FSRCore…] [EXCEPTIONS])
function(fsr_add_library name)
  cmake_parse_arguments(A "EXCEPTIONS" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${A_SOURCES})
  if(A_EXCEPTIONS)
    fsr_target_options(${name} EXCEPTIONS)
  else()
    fsr_target_options(${name})
  endif()
  target_link_libraries(${name} PUBLIC ${A_DEPENDS})
endfunction()

# fsr_link_llvm(target STATIC|SHARED)
# STATIC: LLVMSupport inside the program. SHARED: libMLIR and libLLVM by name,
# so that a process holds one copy of each.
function(fsr_link_llvm target how)
  if(how STREQUAL "SHARED")
    target_link_libraries(${target} PRIVATE MLIR LLVM)
  else()
    # By path: the imported target would also ask for zlib and zstd, which
    # nothing that is used here needs.
    target_link_libraries(${target} PRIVATE
      ${LLVM_LIBRARY_DIRS}/libLLVMSupport.a ${LLVM_LIBRARY_DIRS}/libLLVMDemangle.a
      pthread ${CMAKE_DL_LIBS})
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc
                        -Wl,--gc-sections)
  endif()
endfunction()

# fsr_add_tool(name SOURCES … DEPENDS … LLVM STATIC|SHARED)
function(fsr_add_tool name)
  cmake_parse_arguments(A "" "LLVM" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  fsr_target_options(${name})
  target_link_libraries(${name} PRIVATE ${A_DEPENDS})
  fsr_link_llvm(${name} ${A_LLVM})
endfunction()

# fsr_add_unittest(FSRCoreTests SOURCES … DEPENDS … LLVM STATIC|SHARED)
function(fsr_add_unittest name)
  cmake_parse_arguments(A "" "LLVM" "SOURCES;DEPENDS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  fsr_target_options(${name})
  target_link_libraries(${name} PRIVATE ${A_DEPENDS} GTest::gtest_main GTest::gtest)
  fsr_link_llvm(${name} ${A_LLVM})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                        ${CMAKE_BINARY_DIR}/test/Unit)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS quick TIMEOUT 300)
endfunction()
