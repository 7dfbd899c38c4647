// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Recording, reading and comparing golden files; see Golden.h. A module that a
// device refuses is tried again kernel by kernel, so that one form does not
// take others with it.
//
//===----------------------------------------------------------------------===//

#include "Golden.h"

#include "Programs.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"

#include <map>

namespace fsr::golden {

namespace {

constexpr size_t formsPerModule = 32;
constexpr llvm::StringLiteral magic("fsr golden 1\n");

std::string firstLines(llvm::Error error) {
  std::string text = llvm::toString(std::move(error));
  return text.substr(0, 300);
}

std::string nameOfKernel(size_t index) { return "f" + std::to_string(index); }

/// Calls `use` for each form with its kept bytes, or with an error. An error of
/// `use` ends it.
template <typename Use>
llvm::Error runForms(Runner &runner, llvm::ArrayRef<const Form *> forms,
                     Use use) {
  auto load = [&](llvm::ArrayRef<const Form *> some) {
    std::string text = moduleHeader;
    for (size_t i = 0; i < some.size(); ++i)
      text += some[i]->kernel(nameOfKernel(i));
    return runner.load(text, 3);
  };
  auto run = [&](const Form &form, size_t index) -> llvm::Error {
    std::vector<uint8_t> inputs = form.inputs();
    llvm::Expected<std::vector<uint8_t>> output =
        runner.run(nameOfKernel(index), form.threads / formBlock, formBlock,
                   inputs, form.outputBytes());
    if (!output)
      return use(form, output.takeError());
    return use(form, form.kept(*output));
  };
  while (!forms.empty()) {
    auto some = forms.take_front(formsPerModule);
    forms = forms.drop_front(some.size());
    if (llvm::Error error = load(some)) {
      llvm::consumeError(std::move(error));
      for (const Form *form : some) {
        llvm::Error failure = load(form);
        failure = failure ? use(*form, std::move(failure)) : run(*form, 0);
        if (failure)
          return failure;
      }
      continue;
    }
    for (size_t i = 0; i < some.size(); ++i)
      if (llvm::Error error = run(*some[i], i))
        return error;
  }
  return llvm::Error::success();
}

llvm::Expected<std::string> runProgram(Runner &runner, uint64_t seed,
                                       unsigned optLevel) {
  if (llvm::Error error = runner.load(makeProgram(seed), optLevel))
    return error;
  llvm::Expected<std::vector<uint8_t>> output =
      runner.run("k", programThreads / programBlock, programBlock,
                 programInput(seed), programThreads * programOutputs * 8);
  if (!output)
    return output.takeError();
  return keptOfProgram(*output);
}

std::string programName(uint64_t seed, unsigned optLevel) {
  return "program " + std::to_string(seed) + " " + std::to_string(optLevel);
}

/// The first word that differs.
std::string programDifference(llvm::StringRef expected, llvm::StringRef got) {
  for (unsigned word = 0; word < programOutputs; ++word)
    if (expected.substr(word * 8, 8) != got.substr(word * 8, 8)) {
      static const char *const names = "rrrrrrrrxxxxffffffvvvggg";
      unsigned first = llvm::StringRef(names).find(names[word]);
      std::string text;
      llvm::raw_string_ostream os(text);
      os << "%" << names[word] << word - first << " differs";
      return text;
    }
  return expected == got ? "" : "thread 0 differs";
}

} // namespace

std::string writeGolden(const GoldenFile &file) {
  std::string text = magic.str() + file.device + "\n";
  auto put = [&](const std::string &name, const std::string &kept) {
    text += name + "\n" + std::to_string(kept.size()) + "\n" + kept;
  };
  for (const GoldenForm &one : file.forms)
    put("form " + one.form.line, one.kept);
  for (const GoldenProgram &one : file.programs)
    put(programName(one.seed, one.optLevel), one.kept);
  return text;
}

llvm::Expected<GoldenFile> readGolden(llvm::StringRef bytes) {
  auto bad = [](const llvm::Twine &why) {
    return makeError(ErrorKind::Corrupt, "golden file: " + why);
  };
  GoldenFile file;
  if (!bytes.consume_front(magic))
    return bad("it does not begin as one");
  llvm::StringRef line;
  std::tie(line, bytes) = bytes.split('\n');
  file.device = line.str();
  while (!bytes.empty()) {
    llvm::StringRef size;
    std::tie(line, bytes) = bytes.split('\n');
    std::tie(size, bytes) = bytes.split('\n');
    size_t count = 0;
    if (size.getAsInteger(10, count) || count > bytes.size())
      return bad("it ends within `" + line + "`");
    std::string kept = bytes.take_front(count).str();
    bytes = bytes.drop_front(count);
    if (line.consume_front("form ")) {
      llvm::Expected<Form> form = parseForm(line);
      if (!form)
        return form.takeError();
      file.forms.push_back({std::move(*form), std::move(kept)});
      continue;
    }
    GoldenProgram program;
    llvm::StringRef seed, level;
    if (!line.consume_front("program "))
      return bad("`" + line + "` is neither a form nor a program");
    std::tie(seed, level) = line.split(' ');
    if (seed.getAsInteger(10, program.seed) ||
        level.getAsInteger(10, program.optLevel))
      return bad("`" + line + "` has no numbers");
    program.kept = std::move(kept);
    file.programs.push_back(std::move(program));
  }
  return file;
}

llvm::Expected<GoldenFile> loadGolden(const llvm::Twine &path) {
  constexpr uint64_t most = uint64_t(64) << 20;
  std::string whole = path.str(), bytes;
  auto pieceAt = [&](unsigned i) { return whole + "." + std::to_string(i); };
  bool isInPieces =
      !llvm::sys::fs::exists(whole) && llvm::sys::fs::exists(pieceAt(1));
  for (unsigned i = 1; i == 1 || llvm::sys::fs::exists(pieceAt(i)); ++i) {
    llvm::Expected<std::string> piece =
        readFile(isInPieces ? pieceAt(i) : whole, most);
    if (!piece)
      return piece.takeError();
    bytes += *piece;
    if (!isInPieces)
      break;
  }
  return readGolden(bytes);
}

llvm::Expected<GoldenFile>
record(Runner &runner, const std::vector<Form> &forms, unsigned programs,
       llvm::ArrayRef<unsigned> optLevels, std::vector<Refusal> &refused) {
  GoldenFile file;
  file.device = runner.describe();
  std::vector<const Form *> all;
  for (const Form &form : forms)
    all.push_back(&form);
  llvm::Error error = runForms(
      runner, all,
      [&](const Form &form, llvm::Expected<std::string> kept) -> llvm::Error {
        if (kept)
          file.forms.push_back({form, std::move(*kept)});
        else
          refused.push_back({form.line, firstLines(kept.takeError())});
        return llvm::Error::success();
      });
  if (error)
    return error;
  for (uint64_t seed = 1; seed <= programs; ++seed)
    for (unsigned level : optLevels) {
      llvm::Expected<std::string> kept = runProgram(runner, seed, level);
      if (kept)
        file.programs.push_back({seed, level, std::move(*kept)});
      else
        refused.push_back(
            {programName(seed, level), firstLines(kept.takeError())});
    }
  return file;
}

/// Where levels do not agree, the lowest is the truth: it is the kernel as it
/// is written, instruction by instruction.
static std::map<uint64_t, const GoldenProgram *>
truePrograms(const GoldenFile &file, CheckResult &result) {
  std::map<uint64_t, const GoldenProgram *> programs;
  for (const GoldenProgram &one : file.programs) {
    auto [at, isNew] = programs.emplace(one.seed, &one);
    if (isNew)
      continue;
    if (at->second->kept != one.kept &&
        !llvm::is_contained(result.unstable, one.seed))
      result.unstable.push_back(one.seed);
    if (one.optLevel < at->second->optLevel)
      at->second = &one;
  }
  return programs;
}

llvm::Expected<CheckResult> checkVirtual(const GoldenFile &file) {
  CheckResult result;
  std::vector<const Form *> forms;
  std::map<std::string, const std::string *> kept;
  for (const GoldenForm &one : file.forms) {
    forms.push_back(&one.form);
    kept[one.form.line] = &one.kept;
  }
  auto fail = [&](std::string name, llvm::Error error) {
    bool isUnsupported = kindOf(error) == ErrorKind::Unsupported;
    (isUnsupported ? result.unsupported : result.wrong)
        .push_back({std::move(name), firstLines(std::move(error))});
  };
  std::unique_ptr<Runner> runner = makeVirtualRunner();
  llvm::Error error = runForms(
      *runner, forms,
      [&](const Form &form, llvm::Expected<std::string> got) -> llvm::Error {
        ++result.forms;
        if (!got) {
          fail(form.line, got.takeError());
          return llvm::Error::success();
        }
        std::string difference = form.difference(*kept[form.line], *got);
        if (!difference.empty())
          result.wrong.push_back({form.line, std::move(difference)});
        return llvm::Error::success();
      });
  if (error)
    return error;

  std::map<uint64_t, const GoldenProgram *> programs =
      truePrograms(file, result);
  for (ptx::Schedule schedule :
       {ptx::Schedule::Lockstep, ptx::Schedule::SplitLanes,
        ptx::Schedule::RandomWarps}) {
    std::unique_ptr<Runner> one = makeVirtualRunner(schedule);
    for (const auto &[seed, expected] : programs) {
      std::string name = "program " + std::to_string(seed) + " (" +
                         nameOf(schedule).str() + ")";
      ++result.programs;
      llvm::Expected<std::string> got = runProgram(*one, seed, 0);
      if (!got) {
        fail(name, got.takeError());
        continue;
      }
      std::string difference = programDifference(expected->kept, *got);
      if (!difference.empty())
        result.wrong.push_back({name, difference});
    }
  }
  return result;
}

CheckResult compareFiles(const GoldenFile &file, const GoldenFile &other) {
  CheckResult result;
  std::map<std::string, const std::string *> forms, programs;
  for (const GoldenForm &one : other.forms)
    forms[one.form.line] = &one.kept;
  for (const GoldenProgram &one : other.programs)
    programs[programName(one.seed, one.optLevel)] = &one.kept;
  for (const GoldenForm &one : file.forms) {
    ++result.forms;
    auto found = forms.find(one.form.line);
    if (found == forms.end()) {
      result.unsupported.push_back({one.form.line, "not recorded again"});
      continue;
    }
    Form exact = one.form;
    exact.bounds.clear();
    std::string difference = exact.difference(one.kept, *found->second);
    if (!difference.empty())
      result.wrong.push_back({one.form.line, std::move(difference)});
  }
  for (const GoldenProgram &one : file.programs) {
    ++result.programs;
    std::string name = programName(one.seed, one.optLevel);
    auto found = programs.find(name);
    if (found == programs.end())
      result.unsupported.push_back({name, "not recorded again"});
    else if (*found->second != one.kept)
      result.wrong.push_back(
          {name, programDifference(one.kept, *found->second)});
  }
  return result;
}

} // namespace fsr::golden
