// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One candidate, from its image to its verdict: quick checks, race against the
// original, and the full checks where the race was won. Every step that returns
// `false` has set the verdict and ends the evaluation; an `llvm::Error` is a
// failure of the world, unless it came while the candidate ran: then `run`
// turns it into a verdict too.
//
// No readable copy of the original's output is on the device while the
// candidate runs: stashes are masked with a key that was drawn for this
// evaluation.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_WORKER_EVALUATION_H
#define FSR_LIB_WORKER_EVALUATION_H

#include "Beside.h"
#include "CloneValues.h"
#include "Launch.h"
#include "RaceRule.h"
#include "TrueValues.h"

#include "fsr/Backend/VirtualBackend.h"
#include "fsr/Core/TaskStrength.h"
#include "fsr/Device/Protocol.h"
#include "fsr/Support/Deadline.h"
#include "fsr/Worker/Worker.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <map>
#include <random>
#include <set>

namespace fsr {

struct BesideTold;
struct Dummy;
struct DummyState;
class KnownAnswers;
struct BesideHow;
struct BesideLimits;
struct BesideReport;

/// What the worker says of its device.
DeviceDescription describeDevice(const BackendProperties &facts);

/// A device on which an original differs from itself by more tells nothing.
constexpr double noiseTooLarge = 0.10;

class Evaluation {
public:
  using Emit = llvm::function_ref<llvm::Error(llvm::json::Object)>;

  /// PTX that is not known is empty.
  struct Images {
    llvm::StringRef reference, candidate;
    llvm::StringRef referencePtx, candidatePtx;
    /// Of the original's clone in f64, for this device.
    llvm::StringRef clone;
  };
  Evaluation(Helpers &helpers, const WireEvaluate &request,
             const Images &images, Emit emit,
             const SanitizerSetup *sanitizer = nullptr, bool asGpu = false);
  ~Evaluation();

  llvm::Expected<EvaluateResult> run();
  /// In place of a candidate: every dummy that the task has a use for, through
  /// the checks that a candidate goes through. `full` of the request that this
  /// object refers to is changed on the way.
  llvm::Expected<std::vector<DummyResult>> testStrength(WireEvaluate &mine);
  /// The context is lost; the process must end after it has answered.
  bool contextDead() const { return dead; }

private:
  enum class Who { Original, Candidate };
  /// How a candidate's warps and blocks run, where the device is a virtual one.
  struct RunOrder {
    ptx::Schedule schedule = ptx::Schedule::Lockstep;
    ptx::BlockOrder blocks = ptx::BlockOrder::OfSchedule;
  };

  // Evaluation.cpp
  llvm::Expected<bool> runAll();
  llvm::Error prepareOriginal();
  llvm::Expected<bool> prepare();
  llvm::Error begin(llvm::StringRef phase, double milliseconds);
  llvm::Error beginCandidate(double launches);
  llvm::Error beginOriginal(double launches);
  llvm::Error classify(llvm::Error error);
  llvm::Error launch(Who who);
  bool finish(Verdict verdict, const llvm::Twine &message);
  void addCheck(llvm::StringRef name, bool passed, llvm::StringRef inputs,
                llvm::StringRef rule, llvm::StringRef detail);
  double helperSlackMs() const;

  llvm::Error launchPlain(Who who);

  // Virtual.cpp
  void tellCosts();
  /// An error where the original is known to go past its budget.
  llvm::Error checkSize() const;
  llvm::Error launchVirtual(Who who);
  llvm::Error classifyFault(const BackendError &failure);
  /// What the virtual device saw of the candidate since it was asked last.
  llvm::Expected<bool> checkFindings(llvm::StringRef inputs);
  llvm::Error learnFindings();
  /// There are some; `seenUnder` is the schedule.
  bool refuse(llvm::ArrayRef<ptx::Finding> findings, llvm::StringRef inputs,
              ptx::Schedule seenUnder);
  llvm::Expected<bool> validateSchedules();
  llvm::Expected<bool> model();
  /// Of the candidate; the last ones stay. `covers` goes into requests, which
  /// say nothing of inputs.
  void noteCounters(const ptx::Counters &counters, std::string covers,
                    bool isWhole);

  // BesideChecks.cpp
  /// Where the device is none: the candidate on a virtual one of its own.
  llvm::Expected<bool> validateBeside(bool inFull);
  llvm::Expected<bool> besideOn(const InputSet &set, bool inFull,
                                BesideTold &told);
  llvm::Expected<BesideReport> runBeside(const InputSet &set,
                                         const BesideLimits &limits,
                                         const BesideHow &how);
  llvm::Expected<std::set<ptx::FindingKind>>
  findOriginalKinds(const BesideLimits &limits, const BesideHow &how);
  llvm::Expected<BesideReport> runOriginalBeside(const BesideLimits &limits,
                                                 const BesideHow &how);
  llvm::Expected<ReadWords> takeReads();
  llvm::Error findReads();
  llvm::Expected<bool> validateUnread();
  bool besideDiffers(const BesideHow &how, const InputSet &set);
  llvm::Error fetchBeside(size_t argument, uint64_t offset, void *to,
                          uint64_t bytes);

  // Validate.cpp
  llvm::Expected<bool> validateQuick();
  llvm::Expected<bool> validateFull();
  llvm::Expected<bool> validateSpecial();
  llvm::Expected<bool> validateSparse();
  llvm::Expected<bool> validateDominated();
  bool isFew(const TaskBuffer &buffer) const;
  /// `again`: on the first of the sets. `remark` stands in the check.
  llvm::Expected<bool> validateSets(llvm::StringRef name,
                                    llvm::ArrayRef<InputSet> sets,
                                    llvm::ArrayRef<RunOrder> again,
                                    llvm::StringRef remark = "");
  /// The candidate runs once, then `again` in each of these orders, until other
  /// bits come out; `ranAgain` says how often. All keep to the rule.
  llvm::Expected<bool> validate(const InputSet &set, Poison poison,
                                llvm::ArrayRef<RunOrder> again);
  llvm::Error learnOriginal(const InputSet &set, Poison poison);
  /// On the inputs that come first, before these come.
  llvm::Error learnEarly();
  std::vector<InputSet> exactSets() const;
  /// Into the written buffers, where `set` wants that. False: no memory.
  llvm::Expected<bool> answerEarlier(const InputSet &set, Poison poison);
  std::optional<uint64_t> poisonOf(const TaskBuffer &buffer,
                                   Poison poison) const;
  /// From which value on nothing is compared; 0: everything is.
  double ceilingOf(const TaskBuffer &buffer, const InputSet &set) const;
  llvm::Expected<bool> runCandidateOn(const InputSet &set, Poison poison,
                                      llvm::ArrayRef<uint64_t> before);
  llvm::Expected<bool> checkTouched(llvm::ArrayRef<uint64_t> before,
                                    llvm::StringRef inputs);
  /// Compares every output. The candidate's stand in the buffers, or, with
  /// `candidateInStash`, in the stashes.
  llvm::Expected<bool> compareOutputs(const InputSet &set, Poison poison,
                                      bool candidateInStash);
  /// Of two results on `set`; how is left to the caller.
  FsrCompare comparisonOn(const TaskBuffer &buffer, const InputSet &set,
                          Poison poison, DevicePointer out,
                          DevicePointer original) const;
  llvm::Expected<bool> compareOne(const TaskBuffer &buffer, const InputSet &set,
                                  Poison poison, bool candidateInStash,
                                  std::vector<const TaskBuffer *> &beyond);
  llvm::Expected<bool>
  compareConditioned(llvm::ArrayRef<const TaskBuffer *> beyond,
                     const InputSet &set, Poison poison, bool candidateInStash);
  llvm::Expected<bool> mismatch(const TaskBuffer &buffer, DevicePointer out,
                                DevicePointer reference,
                                const FsrDifference &difference,
                                const InputSet &set);
  FsrMode modeOf(const TaskBuffer &buffer, const InputSet &set) const;
  double factorOf(const TaskBuffer &buffer, const InputSet &set) const;
  /// Whether the original may take denormals as zero.
  bool flushesDenormals() const {
    return task.fastMath || task.work.addsAtomically;
  }
  llvm::StringRef ruleOf(const TaskBuffer &buffer, const InputSet &set) const;
  void describeRules();

  double tinyOf(const TaskBuffer &buffer, const InputSet &set) const;

  // State.cpp
  llvm::Expected<bool> keepVariables();
  llvm::Expected<bool> checkVariables(llvm::StringRef inputs);

  // Repeat.cpp
  llvm::Error keepFirstRun();
  llvm::Error maskFirstRun();
  /// The second run stands in the buffers.
  llvm::Expected<bool> compareRuns(const InputSet &set, Poison poison,
                                   llvm::ArrayRef<uint64_t> second,
                                   const RunOrder &how);

  // TrueValues.cpp
  llvm::Error findTruth();
  llvm::Error runClone();
  /// Whether the clone has to say something where the oracle said that much.
  bool asksClone() const;
  /// What a buffer's clone says: none, where it says nothing.
  llvm::Expected<std::optional<CloneAnswer>>
  askClone(const TaskBuffer &buffer, const InputSet &set, Poison poison,
           DevicePointer out, DevicePointer original);
  llvm::Expected<bool> compareClone(const TaskBuffer &buffer,
                                    const InputSet &set, DevicePointer out,
                                    DevicePointer original,
                                    const CloneAnswer &answer);
  /// Results that are few tell of a narrower type only together.
  llvm::Expected<bool> voteNarrow(const TaskBuffer &buffer, const InputSet &set,
                                  DevicePointer out, DevicePointer original,
                                  double candidateRms, double originalRms);
  llvm::Expected<bool> refuseNarrow(const TaskBuffer &buffer,
                                    const InputSet &set, DevicePointer out,
                                    DevicePointer original, double candidateRms,
                                    double originalRms);
  /// Of elements that were compared, those that the original has and the
  /// candidate lost.
  llvm::Expected<bool> checkLost(const TaskBuffer &buffer, const InputSet &set,
                                 uint64_t lost, uint64_t compared,
                                 double candidateRms);
  llvm::Expected<bool> compareTrue(const TaskBuffer &buffer,
                                   const InputSet &set, DevicePointer out,
                                   DevicePointer original);
  llvm::Expected<uint64_t> excused(const TaskBuffer &buffer,
                                   const FsrCompare &compare);

  // Strength.cpp
  llvm::Error launchOriginal(const InputSet &set, Poison poison);
  bool keepsAnswer(const InputSet &set) const;
  llvm::Error keepOriginal(const InputSet &set, Poison poison);
  llvm::Error playDummy(const InputSet &set, Poison poison);
  llvm::Error playOutput(const TaskBuffer &buffer, DevicePointer other,
                         const TaskBuffer *input,
                         std::optional<uint64_t> poison, uint64_t seed);
  llvm::Error learnOtherAnswer(const InputSet &set, Poison poison);
  llvm::Error keepOther(bool ofStash);
  llvm::Error destroyInput();
  llvm::Expected<DummyResult> tryDummy(const Dummy &one, WireEvaluate &mine);

  /// Nothing is known before the original's first run, nor of a GPU.
  double strengthSecondsLeft() const;

  // Sanitizer.cpp
  llvm::Expected<bool> sanitize();

  // Profiler.cpp
  /// What is said of a candidate beside its verdict; an error is the peer's.
  llvm::Error lookCloser();
  llvm::Error readCounters(Profile &profile);

  // Sample.cpp
  llvm::Error launchTimed(Who who);
  llvm::Expected<RaceSample> sample(Who who);
  llvm::Error warmUp();
  llvm::Error refresh();
  double budgetLeftMs() const;

  // Measure.cpp
  llvm::Expected<bool> measure();
  llvm::Error prepareTiming();
  llvm::Expected<bool> quickTimes(std::vector<double> originals,
                                  std::vector<double> candidates);
  llvm::Expected<bool> checkTimedOutput(bool candidateStashed);
  llvm::Expected<bool> checkHostClock();
  llvm::Expected<bool> checkPhysics();
  void summarise(double confidence);

  // Race.cpp
  llvm::Error chooseBatch();
  llvm::Expected<double> findNoise();
  llvm::Expected<bool> runPairs(RaceRule &rule, Verdict &verdict);
  llvm::Expected<bool> race(double noise);
  void take(RaceRule &rule, double noise);
  void noteConditions();
  void noteConditionsQuickly();
  void addConditionsCheck();

  // Confirm.cpp
  llvm::Expected<bool> confirm();

  /// Set: what is run in the candidate's place.
  std::unique_ptr<DummyState> dummy;
  std::unique_ptr<KnownAnswers> known;
  unsigned dummiesDone = 0, dummiesInAll = 0;
  Deadline::Clock::time_point strengthStart;
  double firstCaseSeconds = 0; ///< Of a test: until the original is known.

  Helpers &helpers;
  const WireEvaluate &request;
  const KernelTask &task;
  Images images;
  Emit emit;
  const SanitizerSetup *sanitizer;

  EvaluateResult result;
  bool dead = false;
  bool candidatePhase = false;
  /// Of the workload's own inputs; empty: not known.
  ReadWords originalReads, candidateReads;
  bool notesReads = false;

  std::unique_ptr<LoadedImage> reference, candidate;
  FunctionHandle referenceFunction = nullptr;
  std::vector<FunctionHandle> candidateFunctions;
  /// The candidate's own variables in device memory, as they were loaded.
  struct KeptVariable {
    std::string name, bytes;
    DevicePointer pointer = 0;
  };
  std::vector<KeptVariable> variables;
  std::unique_ptr<TaskBuffers> buffers;
  std::unique_ptr<InputPlan> inputs;
  std::mt19937_64 random;
  uint64_t maskKey = 0, poisonKey = 0;

  // What is known of the original.
  double originalUs = 0;
  bool originalKnown = false, originalDeterministic = true;
  bool candidateDeterministic = true;
  bool placedShifted = false;

  // Where the device is a virtual one; times of the host's clock.
  VirtualDevice *virtualDevice = nullptr;
  double originalWallMs = 0;
  uint64_t originalInstructions = 0;
  RunOrder order; ///< Of the candidate's next launch.
  size_t ranAgain = 0;
  std::set<ptx::FindingKind> originalKinds; ///< The original's own findings.
  bool proved = true, approximateSteers = false;
  std::string unproved;
  std::map<std::string, uint64_t> approximate;

  /// Where the device is no virtual one, once they were asked for.
  std::unique_ptr<Beside> beside, besideOriginal;
  /// Null where the rules need none.
  std::unique_ptr<TrueValues> trueValues;
  /// Null likewise.
  std::unique_ptr<CloneValues> clone;
  /// Of the filling under way; and of the last that asked: the clone decided.
  bool usesClone = false, cloneDecides = false;
  std::set<size_t> voted; ///< Buffers of this filling.
  /// By argument and kind of inputs: fillings, and those with errors as of a
  /// narrower type.
  std::map<std::pair<size_t, std::string>, std::pair<unsigned, unsigned>>
      narrowVotes;
  bool wantsTruth = true; ///< Not on inputs that were judged by it before.
  /// By the candidate's PTX; nothing where that is not known.
  std::optional<bool> addsFloatsAtomically;
  /// What the first of two runs gave: hashes, and copies by written buffer.
  std::vector<uint64_t> firstHashes;
  std::vector<DevicePointer> firstCopies;
  DevicePointer rowMaxima = 0;
  double worstRatio = 0;
  uint64_t bitsDiffered = 0, beyondType = 0;
  bool conditioned = false, noAnswer = false;

  // Timing.
  Measurement measurement;
  EventHandle startEvent = nullptr, stopEvent = nullptr;
  DevicePointer flushMemory = 0;
  uint64_t flushBytes = 0;
  uint32_t flushValue = 0;
  double holdUs = 100;
  int64_t batch = 1;
  bool inPlace = false;
  bool warmCache = false; ///< The launch before is the same kernel's.
  InputSet timingSet;
  size_t timingCase = 0; ///< Of the workload.
  unsigned timingSets = 0;
  unsigned timedChecks = 0; ///< Pairs whose candidate's output was compared.
  bool steadyClock = true;
  std::string noConditions; ///< Why the device's state is not known.
  Deadline::Clock::time_point timingStart;
  double budgetMs = 0;
};

} // namespace fsr

#endif // FSR_LIB_WORKER_EVALUATION_H
