// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How fast the virtual device runs, with its checks on: warp instructions a
// second on one host thread, how that grows with host threads, a softmax of
// 4096 by 4096, and what a thousand kernels leave behind. What is wanted stands
// beside each figure; the exit status says whether all of it was reached.
//
//===----------------------------------------------------------------------===//

#include "Mixes.h"
#include "Sampler.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

using namespace fsr::bench;
using namespace fsr::ptx;
using llvm::format;
using llvm::outs;
using llvm::StringRef;

namespace {

constexpr const char usage[] =
    R"(ptx-speed [MIX | mixes | scaling | softmax | leak]... [options]

Measures the virtual device, with its checks on. Without a name: everything.

  mixes     each mix on one host thread: warp instructions a second, and what
            bounds it
  scaling   four of the mixes on 1, 2, ... all cores
  softmax   4096 by 4096 floats on all cores, a block a row, and a thread a row
  leak      1,000 different kernels, loaded, run and unloaded

  --repeats N     the best of N runs counts (5)
  --plain         leaves out taint and the search for races
  --kernels FILE  another kernels.ptx
  --list          names the mixes
  --help          this text

`nice -n -5 ptx-speed` where permitted: other work on the machine counts else.
)";

struct Settings {
  unsigned repeats = 5;
  bool isPlain = false;
  std::string kernels;
};

bool isGood = true;

/// Says whether a figure is what is wanted.
const char *verdict(bool isReached) {
  isGood &= isReached;
  return isReached ? "reached" : "MISSED";
}

void printFindings(const LaunchResult &result) {
  for (const Finding &finding : result.findings) {
    llvm::errs() << finding.text() << "\n";
    isGood = false;
  }
}

LaunchOptions optionsOf(const Settings &settings, unsigned threads) {
  LaunchOptions options;
  options.hostThreads = threads;
  options.checkRaces = options.trackTaint = !settings.isPlain;
  return options;
}

/// The least of several runs. Time of the processor where other work on the
/// machine must not count.
struct Times {
  double seconds = 0, processor = 0;
  uint64_t count = 0; ///< Of warp instructions.
};
Times best(Bench &bench, const LaunchOptions &options, unsigned repeats) {
  Times times;
  for (unsigned i = 0; i < repeats; ++i) {
    Run run = bench.run(options);
    if (!i)
      printFindings(run.result);
    times.count = run.result.counters.warpInstructions;
    if (!i || run.seconds < times.seconds)
      times.seconds = run.seconds;
    if (!i || run.processor < times.processor)
      times.processor = run.processor;
  }
  return times;
}

void measureMix(const Mix &mix, const Settings &settings) {
  Bench bench(mix, settings.kernels);
  LaunchOptions options = optionsOf(settings, 1);
  Times whole = best(bench, options, settings.repeats);
  double seconds = whole.processor, count = double(whole.count);
  double rate = count / seconds / 1e6;
  outs() << format("%-17s %6.1f M/s, %5.1f ns each", mix.name, rate,
                   seconds * 1e9 / count);
  if (mix.floor && !settings.isPlain)
    outs() << format("; wanted %2.0f: %s", mix.floor,
                     verdict(rate >= mix.floor));
  outs() << "\n";
  outs().flush();

  // What the checks cost: without them.
  if (!settings.isPlain) {
    auto without = [&](bool races, bool taint) {
      LaunchOptions less = options;
      less.checkRaces &= races;
      less.trackTaint &= taint;
      return best(bench, less, std::max(1u, settings.repeats / 2)).processor;
    };
    double noRaces = without(false, true), noTaint = without(true, false),
           neither = without(false, false);
    outs() << format("    checks: races %4.1f %%, taint %4.1f %%, together "
                     "%4.1f %%; without %6.1f M/s\n",
                     100 * std::max(0.0, 1 - noRaces / seconds),
                     100 * std::max(0.0, 1 - noTaint / seconds),
                     100 * std::max(0.0, 1 - neither / seconds),
                     count / neither / 1e6);
  }
  // A system's clock may tick no more than 100 times a second.
  startSampling();
  double sampled = 0;
  do
    sampled += bench.run(options).processor;
  while (sampled < 1);
  Shares shares = stopSampling();
  if (!shares.total)
    return;
  outs() << "    time:   ";
  unsigned most = 0;
  for (unsigned i = 0; i < numParts; ++i) {
    if (shares.samples[i] > shares.samples[most])
      most = i;
    outs() << format("%s%s %.0f %%", i ? ", " : "", nameOf(Part(i)),
                     100.0 * shares.samples[i] / shares.total);
  }
  outs() << "\n    bound by " << nameOf(Part(most)) << "\n";
}

const Mix *findMix(StringRef name) {
  for (const Mix &mix : mixes())
    if (name == mix.name)
      return &mix;
  return nullptr;
}

double loadOfMachine() {
  double loads[1] = {0};
  return getloadavg(loads, 1) == 1 ? loads[0] : 0;
}

/// By the wall clock on a machine that has nothing else to do. Else by what all
/// threads together need of the processor, which is the same for any number of
/// them where they do not hinder one another.
void measureScaling(const Settings &settings) {
  unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  bool isBusy = loadOfMachine() > 0.5 * cores;
  if (isBusy)
    outs() << format("scaling by processor time, since the machine is busy "
                     "(load %.1f)\n",
                     loadOfMachine());
  for (const char *name :
       {"arithmetic", "memory", "matmul16", "histogram_shared"}) {
    Bench bench(*findMix(name), settings.kernels);
    Times one;
    for (unsigned threads = 1;; threads = std::min(threads * 2, cores)) {
      Times times = best(bench, optionsOf(settings, threads), settings.repeats);
      if (threads == 1)
        one = times;
      double byWall = one.seconds / times.seconds;
      double byProcessor = threads * one.processor / times.processor;
      double ratio = isBusy ? byProcessor : byWall;
      outs() << format("%-17s %2u of %u cores: %6.1f M/s by the wall clock; "
                       "%.2f times one (wall clock %.2f, processor %.2f)",
                       name, threads, cores, times.count / times.seconds / 1e6,
                       ratio, byWall, byProcessor);
      if (threads > 1)
        outs() << format("; wanted %.1f: %s", 0.8 * threads,
                         verdict(ratio >= 0.8 * threads));
      outs() << "\n";
      outs().flush();
      if (threads == cores)
        break;
    }
  }
}

void measureSoftmax(const Settings &settings) {
  constexpr uint64_t side = 4096;
  static const Mix whole[] = {
      {"softmax_block", nullptr, 0, side, 1, 256, 1, "fz", side * side, side},
      {"softmax_rows", nullptr, 0, side / 128, 1, 128, 1, "fz", side * side,
       side},
  };
  for (const Mix &mix : whole) {
    Bench bench(mix, settings.kernels);
    Times times =
        best(bench, optionsOf(settings, 0), std::min(3u, settings.repeats));
    double seconds = times.seconds;
    outs() << format("%-17s %.2f s for 4096 x 4096 on %u cores, %6.1f M/s",
                     mix.name, seconds, std::thread::hardware_concurrency(),
                     times.count / seconds / 1e6);
    if (&mix == whole)
      outs() << "; wanted 3 s: " << verdict(seconds < 3);
    outs() << "\n";
  }
}

/// Of this process; 0 where the system does not say.
uint64_t residentBytes() {
  std::ifstream in("/proc/self/statm");
  uint64_t all = 0, resident = 0;
  in >> all >> resident;
  return resident * 4096;
}

void measureLeak(const Settings &settings) {
  llvm::ExitOnError check("ptx-speed: ");
  std::unique_ptr<VirtualGpu> gpu = makeVirtualGpu(VirtualGpuOptions());
  auto cycle = [&](unsigned number) {
    const Mix &mix = mixes()[number % 3];
    unsigned module = check(gpu->loadModule(moduleOf(mix.body, number)));
    uint64_t address = check(gpu->allocate(64 << 10));
    check(gpu->fill(address, 0, 4, 16 << 10));
    uint8_t params[8];
    std::memcpy(params, &address, 8);
    LaunchShapeOf shape;
    shape.grid = {2, 1, 1};
    shape.block = {256, 1, 1};
    printFindings(
        check(gpu->launch(module, "k", shape, params, optionsOf(settings, 0))));
    check(gpu->release(address));
    check(gpu->unloadModule(module));
  };
  unsigned number = 0;
  while (number < 100)
    cycle(number++);
  uint64_t before = residentBytes();
  while (number < 1100)
    cycle(number++);
  uint64_t after = residentBytes();
  if (!before) {
    outs() << "leak: this system does not say what a process holds\n";
    return;
  }
  int64_t grown = int64_t(after) - int64_t(before);
  outs() << format("leak: %.1f MiB after 100 kernels, %.1f MiB after 1,000 "
                   "more: %+.0f KiB; wanted below 1024: %s\n",
                   before / 1048576.0, after / 1048576.0, grown / 1024.0,
                   verdict(grown < 1 << 20));
}

void printMachine() {
  double loads[3] = {0, 0, 0};
  getloadavg(loads, 3);
  outs() << format("%u cores, load %.2f %.2f %.2f\n",
                   std::thread::hardware_concurrency(), loads[0], loads[1],
                   loads[2]);
}

} // namespace

int main(int argc, char **argv) {
  Settings settings;
  std::vector<StringRef> wanted;
  std::string file = FSR_PTX_SPEED_KERNELS;
  for (int i = 1; i < argc; ++i) {
    StringRef argument = argv[i];
    bool hasMore = i + 1 < argc;
    if (argument == "--help" || argument == "-h") {
      outs() << usage;
      return 0;
    }
    if (argument == "--list") {
      for (const Mix &mix : mixes())
        outs() << mix.name << "\n";
      return 0;
    }
    if (argument == "--plain") {
      settings.isPlain = true;
    } else if (argument == "--repeats" && hasMore) {
      if (StringRef(argv[++i]).getAsInteger(10, settings.repeats) ||
          !settings.repeats) {
        llvm::errs() << "ptx-speed: --repeats wants a number from 1\n";
        return 2;
      }
    } else if (argument == "--kernels" && hasMore) {
      file = argv[++i];
    } else if (argument.starts_with("-")) {
      llvm::errs() << "ptx-speed: unknown option " << argument << "\n" << usage;
      return 2;
    } else {
      wanted.push_back(argument);
    }
  }
  auto text = llvm::MemoryBuffer::getFile(file);
  if (!text) {
    llvm::errs() << "ptx-speed: cannot read " << file << ": "
                 << text.getError().message() << "\n";
    return 1;
  }
  settings.kernels = (*text)->getBuffer().str();
  if (wanted.empty())
    wanted = {"mixes", "scaling", "softmax", "leak"};
  printMachine();
  for (StringRef name : wanted) {
    const Mix *mix = findMix(name);
    // The name of a section and of a mix: the section.
    if (name == "mixes")
      for (const Mix &one : mixes())
        measureMix(one, settings);
    else if (name == "scaling")
      measureScaling(settings);
    else if (name == "softmax")
      measureSoftmax(settings);
    else if (name == "leak")
      measureLeak(settings);
    else if (mix)
      measureMix(*mix, settings);
    else {
      llvm::errs() << "ptx-speed: no mix or section \"" << name << "\"\n";
      return 2;
    }
  }
  printMachine();
  return isGood ? 0 : 1;
}
