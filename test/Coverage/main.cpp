// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How much of what compilers make of CUDA C++ the virtual device runs. Each
// kernel of kernels.txt is run whole, under each schedule where asked; its
// answer is checked on the host. A finding or a wrong answer counts as not run;
// fails below --least percent of what a compiler accepts, and where the proof
// of a kernel that ran whole holds or is broken against what proof.txt says.
//
//===----------------------------------------------------------------------===//

#include "Compilers.h"
#include "Table.h"

#include "fsr/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <cstdlib>
#include <cstring>

namespace fsr::ptx {
namespace {

namespace cl = llvm::cl;

cl::opt<std::string> folder(cl::Positional, cl::Required,
                            cl::desc("folder of kernels.txt"));
cl::list<std::string> compilerNames(
    "compiler", cl::CommaSeparated,
    cl::desc("nvrtc, nvcc, clang; all where FSR_COVERAGE=all, else nvrtc"));
cl::opt<std::string> cacheFolder("cache", cl::desc("folder that keeps PTX"));
cl::list<std::string>
    moreArguments("argument",
                  cl::desc("another one for the compilers, such as -G"));
cl::list<std::string> only("only", cl::CommaSeparated,
                           cl::desc("files or kernels to run"));
cl::opt<double> least("least", cl::init(98),
                      cl::desc("percentage that must run whole"));
cl::opt<bool> allSchedules("schedules", cl::desc("run under each schedule"));
cl::opt<bool> spoil("spoil", cl::desc("change an element of each answer, which "
                                      "the checks have to see"));
cl::opt<bool> verbose("verbose", cl::desc("print each kernel and its time"));

struct Loaded {
  std::unique_ptr<VirtualGpu> gpu;
  unsigned module = 0;
  std::string refused; ///< By the virtual device.
};

/// Changes the first element that differs from what it was before, or was not
/// written before.
void spoilAnswer(Argument &argument) {
  size_t width = bitWidth(argument.type) / 8;
  for (size_t i = 0; i < argument.after.size(); ++i)
    if (argument.after[i] != argument.before[i] || !argument.isInitialized) {
      argument.after[i / width * width + width - 1] ^= 0x40;
      return;
    }
}

llvm::Error runOnce(Loaded &in, Case &one, const LaunchOptions &options,
                    std::string &wrong, Proof &proof) {
  VirtualGpu &gpu = *in.gpu;
  auto parameters = gpu.parameters(in.module, one.kernel);
  if (!parameters)
    return parameters.takeError();
  if (parameters->size() != one.arguments.size())
    return makeError(ErrorKind::BadInput,
                     "takes " + llvm::Twine(parameters->size()) +
                         " parameters, the table gives " +
                         llvm::Twine(one.arguments.size()));
  std::vector<uint8_t> block;
  std::vector<uint64_t> addresses;
  for (auto [parameter, argument] : llvm::zip(*parameters, one.arguments)) {
    const void *from = argument.before.data();
    uint64_t address = 0, bytes = argument.before.size();
    if (argument.isBuffer) {
      auto got = gpu.allocate(bytes);
      if (!got)
        return got.takeError();
      address = *got;
      addresses.push_back(address);
      if (argument.isInitialized)
        if (llvm::Error error =
                gpu.write(address, argument.before.data(), bytes))
          return error;
      if (argument.isInitialized)
        if (llvm::Error error = gpu.setTainted(address, bytes, true))
          return error;
      from = &address;
      bytes = sizeof(address);
    }
    if (bytes != parameter.bytes)
      return makeError(ErrorKind::BadInput, "an argument of " +
                                                llvm::Twine(bytes) +
                                                " bytes for a parameter of " +
                                                llvm::Twine(parameter.bytes));
    block.resize(std::max<size_t>(block.size(), parameter.offset + bytes));
    std::memcpy(block.data() + parameter.offset, from, bytes);
  }
  auto result = gpu.launch(in.module, one.kernel, one.shape, block, options);
  if (!result)
    return result.takeError();
  proof = result->proof;
  for (const Finding &finding : result->findings)
    if (wrong.empty())
      wrong = "finding: " + finding.text();
  if (!result->completed && wrong.empty())
    wrong = "did not complete";
  size_t next = 0;
  for (Argument &argument : one.arguments)
    if (argument.isBuffer) {
      argument.after.resize(argument.before.size());
      if (llvm::Error error = gpu.read(argument.after.data(), addresses[next],
                                       argument.after.size()))
        return error;
      if (llvm::Error error = gpu.release(addresses[next++]))
        return error;
    }
  const Check *check = findCheck(one.check);
  if (!wrong.empty() || !check)
    return llvm::Error::success();
  if (spoil)
    for (Argument &argument : one.arguments)
      spoilAnswer(argument);
  std::string said = (*check)(one);
  if (spoil)
    wrong = said.empty() ? "its check sees no wrong answer" : "";
  else if (!said.empty())
    wrong = "wrong answer: " + said;
  return llvm::Error::success();
}

struct ProofScore {
  unsigned proved = 0, broken = 0, disagree = 0;
};

/// Prints what the device says of the proof, and where the list says otherwise.
void compareProof(const Case &one, Schedule schedule, const Proof &proof,
                  ProofScore &score) {
  bool isFirst = schedule == Schedule::Lockstep;
  if (isFirst)
    ++(proof.holds ? score.proved : score.broken);
  bool isRight = one.proof == ProofClass::Choice ||
                 proof.holds == (one.proof == ProofClass::Dense);
  if (isRight && !isFirst)
    return;
  llvm::outs() << "  " << one.file << ": " << one.kernel << ": "
               << (proof.holds ? "proved" : "not proved: " + proof.broken);
  if (!isRight) {
    ++score.disagree;
    llvm::outs() << " (" << nameOf(schedule) << "; proof.txt says "
                 << (one.proof == ProofClass::Dense
                         ? "dense"
                         : "data: " + one.proofReason)
                 << ')';
  }
  llvm::outs() << '\n';
}

/// Empty: ran whole.
std::string runCase(Loaded &in, Case &one, ProofScore &proofs) {
  std::vector<Schedule> schedules{Schedule::Lockstep};
  if (allSchedules)
    schedules.insert(schedules.end(),
                     {Schedule::SplitLanes, Schedule::RandomWarps});
  for (Schedule schedule : schedules) {
    LaunchOptions options;
    options.schedule = schedule;
    options.instructionBudget = 200'000'000;
    std::string wrong;
    Proof proof;
    if (llvm::Error error = runOnce(in, one, options, wrong, proof))
      wrong = toString(std::move(error));
    if (wrong.empty() && !spoil)
      compareProof(one, schedule, proof, proofs);
    if (!wrong.empty())
      return (schedule == Schedule::Lockstep
                  ? ""
                  : (nameOf(schedule) + ": ").str()) +
             wrong;
  }
  return "";
}

struct Score {
  unsigned accepted = 0, whole = 0, all = 0;
  ProofScore proofs;
  double percent() const { return accepted ? 100.0 * whole / accepted : 0; }
};

bool isWanted(const Case &one) {
  return only.empty() || llvm::is_contained(only, one.file) ||
         llvm::is_contained(only, one.kernel);
}

llvm::Expected<Score> runAll(PtxCompiler &compiler, std::vector<Case> &cases) {
  Score score;
  llvm::StringMap<Loaded> files;
  for (Case &one : cases) {
    if (!isWanted(one))
      continue;
    ++score.all;
    auto [place, isNew] = files.try_emplace(one.file);
    Loaded &file = place->second;
    if (isNew) {
      std::string log;
      auto start = std::chrono::steady_clock::now();
      auto ptx =
          compiler.compile(folder + "/" + one.file + ".cu", cacheFolder, log);
      if (!ptx)
        return ptx.takeError();
      if (verbose)
        llvm::outs() << llvm::format(
                            "%7.2f s ",
                            std::chrono::duration<double>(
                                std::chrono::steady_clock::now() - start)
                                .count())
                     << "compiled " << one.file << '\n';
      if (ptx->empty()) {
        // The first line that says error.
        llvm::SmallVector<llvm::StringRef, 0> lines;
        llvm::StringRef(log).split(lines, '\n');
        auto error = llvm::find_if(
            lines, [](llvm::StringRef line) { return line.contains("error"); });
        llvm::outs() << "  " << one.file << ": not accepted: "
                     << (error == lines.end() ? "no reason given" : *error)
                     << '\n';
      } else {
        file.gpu = makeVirtualGpu(VirtualGpuOptions());
        auto module = file.gpu->loadModule(*ptx);
        if (module)
          file.module = *module;
        else
          file.refused = toString(module.takeError());
      }
    }
    if (!file.gpu)
      continue;
    ++score.accepted;
    auto start = std::chrono::steady_clock::now();
    std::string wrong =
        file.refused.empty() ? runCase(file, one, score.proofs) : file.refused;
    if (verbose)
      llvm::outs() << llvm::format("%7.2f s ",
                                   std::chrono::duration<double>(
                                       std::chrono::steady_clock::now() - start)
                                       .count())
                   << one.kernel << '\n';
    if (wrong.empty())
      ++score.whole;
    else
      llvm::outs() << "  " << one.file << ": " << one.kernel << ": " << wrong
                   << '\n';
    llvm::outs().flush();
  }
  return score;
}

int run() {
  auto cases = readTable(folder + "/kernels.txt");
  if (!cases) {
    llvm::errs() << "error: " << toString(cases.takeError()) << '\n';
    return 2;
  }
  if (llvm::Error error = readProofs(folder + "/proof.txt", *cases)) {
    llvm::errs() << "error: " << toString(std::move(error)) << '\n';
    return 2;
  }
  const char *wanted = std::getenv("FSR_COVERAGE");
  bool all = wanted && llvm::StringRef(wanted) == "all";
  if (all)
    allSchedules = true;
  bool failed = false, any = false;
  for (auto &compiler : findCompilers()) {
    if (compilerNames.empty()
            ? !all && compiler->name != "nvrtc"
            : !llvm::is_contained(compilerNames, compiler->name))
      continue;
    any = true;
    compiler->arguments.insert(compiler->arguments.end(), moreArguments.begin(),
                               moreArguments.end());
    llvm::outs() << compiler->name << ' ' << compiler->version << ":\n";
    auto score = runAll(*compiler, *cases);
    if (!score) {
      llvm::errs() << "error: " << toString(score.takeError()) << '\n';
      return 2;
    }
    llvm::outs() << compiler->name << ": accepted " << score->accepted << " of "
                 << score->all << ", run whole " << score->whole << " of "
                 << score->accepted
                 << llvm::format(" (%.1f %%)\n", score->percent());
    const ProofScore &proofs = score->proofs;
    if (!spoil)
      llvm::outs() << compiler->name << ": proved " << proofs.proved
                   << ", not proved " << proofs.broken << ", against proof.txt "
                   << proofs.disagree << '\n';
    failed |= score->percent() < least || proofs.disagree;
  }
  if (!any) {
    llvm::errs() << "error: no such compiler is installed\n";
    return 2;
  }
  return failed;
}

} // namespace
} // namespace fsr::ptx

int main(int argc, char **argv) {
  llvm::cl::ParseCommandLineOptions(
      argc, argv, "Runs CUDA kernels on the virtual device\n");
  return fsr::ptx::run();
}
