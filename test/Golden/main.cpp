// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Records what a GPU gives for each form of an instruction, and holds the
// virtual device to it.
//
//   fsr-ptx-golden record FORMS OUT [--device=virtual] [--programs=N]
//   fsr-ptx-golden check FILE        runs it on the virtual device
//   fsr-ptx-golden compare FILE NEW  two files, bit for bit
//   fsr-ptx-golden show FILE BEGIN   the results of forms that begin so
//   fsr-ptx-golden ptx FORMS FOLDER  writes the modules, for a compiler's check
//   fsr-ptx-golden program SEED      prints a random kernel
//
// FORMS is forms.txt. Exit status 1 where something differs, 2 where a command
// could not be done.
//
//===----------------------------------------------------------------------===//

#include "Golden.h"
#include "Programs.h"

#include "fsr/Support/Files.h"

using namespace fsr;
using namespace fsr::golden;

static int report(const CheckResult &result, const char *what) {
  for (const Refusal &one : result.unsupported)
    llvm::outs() << "unsupported: " << one.line << ": " << one.why << "\n";
  for (uint64_t seed : result.unstable)
    llvm::outs() << "unstable: program " << seed
                 << " differs between levels of optimisation\n";
  for (const Refusal &one : result.wrong)
    llvm::outs() << "wrong: " << one.line << ": " << one.why << "\n";
  llvm::outs() << what << ": " << result.forms << " forms, " << result.programs
               << " runs of random kernels; " << result.unsupported.size()
               << " unsupported, " << result.wrong.size() << " wrong, "
               << result.unstable.size() << " kernels unstable\n";
  return result.wrong.empty() ? 0 : 1;
}

/// A form or a kernel that was not recorded again is a difference too.
static int reportComparison(const CheckResult &result) {
  int status = report(result, "compare");
  return result.unsupported.empty() ? status : 1;
}

int main(int argc, char **argv) {
  llvm::ExitOnError check("fsr-ptx-golden: ", 2);
  std::vector<llvm::StringRef> words;
  bool isVirtual = false;
  unsigned programs = 256;
  for (int i = 1; i < argc; ++i) {
    llvm::StringRef word = argv[i];
    if (word == "--device=virtual")
      isVirtual = true;
    else if (word.consume_front("--programs=")) {
      if (word.getAsInteger(10, programs)) {
        llvm::errs() << "fsr-ptx-golden: --programs wants a number\n";
        return 2;
      }
    } else
      words.push_back(word);
  }
  llvm::StringRef command = words.empty() ? "" : words[0];
  auto golden = [&](size_t which) { return check(loadGolden(words[which])); };
  if (command == "record" && words.size() == 3) {
    std::vector<Form> forms = check(parseForms(check(readFile(words[1]))));
    std::unique_ptr<Runner> runner =
        isVirtual ? makeVirtualRunner() : check(makeCudaRunner());
    std::vector<Refusal> refused;
    GoldenFile file = check(record(*runner, forms, programs,
                                   isVirtual ? llvm::ArrayRef<unsigned>{3}
                                             : llvm::ArrayRef<unsigned>{0, 3},
                                   refused));
    for (const Refusal &one : refused)
      llvm::outs() << "refused: " << one.line << ": " << one.why << "\n";
    std::string bytes = writeGolden(file);
    check(writeOutput(words[2], bytes));
    llvm::outs() << "recorded on " << file.device << ": " << file.forms.size()
                 << " forms of " << forms.size() << ", " << file.programs.size()
                 << " runs of random kernels, " << refused.size()
                 << " refused, " << bytes.size() << " bytes\n";
    return 0;
  }
  if (command == "check" && words.size() == 2)
    return report(check(checkVirtual(golden(1))), "check");
  if (command == "compare" && words.size() == 3)
    return reportComparison(compareFiles(golden(1), golden(2)));
  if (command == "show" && words.size() == 3) {
    for (const GoldenForm &one : golden(1).forms)
      if (llvm::StringRef(one.form.line).starts_with(words[2]))
        llvm::outs() << one.form.table(one.kept);
    return 0;
  }
  if (command == "ptx" && words.size() == 3) {
    std::vector<Form> forms = check(parseForms(check(readFile(words[1]))));
    for (size_t i = 0; i < forms.size(); i += 32) {
      std::string text = moduleHeader;
      for (size_t k = i; k < std::min(i + 32, forms.size()); ++k)
        text += "// " + forms[k].line + "\n" +
                forms[k].kernel("f" + std::to_string(k));
      check(
          writeOutput((words[2] + "/" + llvm::Twine(i) + ".ptx").str(), text));
    }
    return 0;
  }
  uint64_t seed = 0;
  if (command == "program" && words.size() == 2 &&
      !words[1].getAsInteger(10, seed)) {
    llvm::outs() << makeProgram(seed);
    return 0;
  }
  bool isHelp = command == "--help" || command == "-h";
  (isHelp ? llvm::outs() : llvm::errs())
      << "usage: fsr-ptx-golden record FORMS OUT [--device=virtual] "
         "[--programs=N] | check FILE | compare FILE NEW | show FILE "
         "BEGIN | ptx FORMS FOLDER | program SEED\n";
  return isHelp ? 0 : 2;
}
