// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// From source to machine code. LLM text is compiled in a disposable, limited
// child (`fsr-worker compile`) with NVRTC; the trusted reference PTX goes
// through ptxas. What a compiler says of a source is a result; a compiler that
// cannot be run is an error.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TOOLCHAIN_TOOLCHAIN_H
#define FSR_TOOLCHAIN_TOOLCHAIN_H

#include "fsr/Core/Trial.h"

#include <chrono>
#include <map>
#include <memory>

namespace fsr {

/// A CUDA toolkit as found on this machine.
struct Toolkit {
  std::string root;
  std::string ptxas, fatbinary; ///< Paths; empty where not there.
  std::string disassembler;     ///< nvdisasm, of the toolkit or on PATH.
  std::string nvrtcLibrary;     ///< Path; empty where not there.
  std::string includeFolder;
};

/// $CUDA_PATH is final where it is set. Else the usual places: $CUDA_HOME,
/// $CUDA_ROOT, the folder above a ptxas on PATH, /usr/local/cuda. An error
/// (Unavailable) lists where it looked.
llvm::Expected<Toolkit> findToolkit();

/// What a launch passes for one parameter. The driver reads as many bytes as
/// the kernel takes, whatever is given.
struct PassedArgument {
  enum Kind { Buffer, Integer, Float };
  std::string name; ///< As the plan calls it.
  Kind kind = Integer;
  unsigned bytes = 0;
};

struct KernelLaunch {
  std::string kernel;
  LaunchShape shape;
  std::vector<PassedArgument> args;
};

struct CompileRequest {
  std::string source;
  Parameters parameters;            ///< Become -DNAME=value.
  std::string chip;                 ///< "sm_90a".
  std::vector<std::string> entries; ///< Kernels that must be there.
  /// What the plan does with them, and what the device allows: the code is
  /// checked against both.
  std::vector<KernelLaunch> launches;
  LaunchLimits limits;
};

struct CompileOutcome {
  /// Set where it compiled and has exactly such entries as it may have.
  std::optional<Build> build;
  Verdict verdict = Verdict::CompileFailed; ///< Else CompileFailed or Rejected.
  std::string message; ///< Compiler log, scrubbed and capped, or the reason.
};

class Compiler {
public:
  virtual ~Compiler();

  /// Safe to call from several threads at once.
  virtual llvm::Expected<CompileOutcome>
  compile(const CompileRequest &request) = 0;
};

struct CompilerOptions {
  std::string worker; ///< Path of fsr-worker; empty: beside this code, FSR_BIN.
  std::chrono::milliseconds wall{60000};
  /// Compile LLM text where the kernel has neither seccomp nor Landlock.
  bool allowUnsandboxed = false;
};

/// A compiler for LLM text: one child a compile. Errors: no toolkit, no NVRTC,
/// no fsr-worker.
llvm::Expected<std::unique_ptr<Compiler>>
makeCudaCompiler(const CompilerOptions &options);

/// PTX that we made ourselves → cubin, by ptxas at `optLevel`.
llvm::Expected<Build> assemblePtx(const Toolkit &toolkit, llvm::StringRef ptx,
                                  llvm::StringRef chip, unsigned optLevel = 3);

/// One fat binary with the cubin and its PTX.
llvm::Expected<std::string> makeFatbin(const Toolkit &toolkit,
                                       const Build &build);

/// What the machine code of each of a build's kernels consists of, by nvdisasm;
/// it is held as what compiles an LLM's text is. An error says in one line why
/// that is not known: no nvdisasm, or it does not read this code.
llvm::Expected<std::vector<InstructionMix>>
readInstructions(const Toolkit &toolkit, const Build &build);

/// Parses what `nvdisasm -c` prints; one entry a function, in the order of the
/// text. Any text is taken.
std::vector<InstructionMix> parseSass(llvm::StringRef text);

/// PTX without comments, debug information and the names that its author
/// chose.
struct PlainPtx {
  std::string text;
  /// What each name of a function, variable or parameter became.
  std::map<std::string, std::string> names;
};
/// Any text is taken. Texts that become equal are the same code.
PlainPtx plainPtx(llvm::StringRef ptx);

/// Parses `ptxas -v` output (also found in NVRTC's log).
std::vector<KernelResources> parseResourceReport(llvm::StringRef log);

/// The body of `fsr-worker compile`: one request frame on standard input, one
/// answer frame on standard output. Returns the exit status.
int compileWorkerMain(int argc, char **argv);

/// The body of `fsr-worker tool ROOT FOLDER PROGRAM ARGUMENT…`: gives up what
/// a program of the toolkit under ROOT does not need, and becomes PROGRAM.
int toolWorkerMain(int argc, char **argv);

} // namespace fsr

#endif // FSR_TOOLCHAIN_TOOLCHAIN_H
