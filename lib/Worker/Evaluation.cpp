// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The frame of an evaluation: order of the steps, phases with deadlines, and
// whose fault an error is.
//
//===----------------------------------------------------------------------===//

#include "Strength.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Hash.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <algorithm>
#include <cmath>

namespace fsr {

namespace {

/// f32 FMA lanes of a multiprocessor, by compute capability.
int64_t lanesOf(llvm::StringRef chip) {
  return llvm::StringSwitch<int64_t>(chip)
      .Cases({"sm_60", "sm_70", "sm_72", "sm_75", "sm_80"}, 64)
      .Default(128);
}

/// Errors of the device by which a kernel touched what it must not.
bool isAddressFault(llvm::StringRef name) {
  return name == "CUDA_ERROR_ILLEGAL_ADDRESS" ||
         name == "CUDA_ERROR_MISALIGNED_ADDRESS" ||
         name == "CUDA_ERROR_INVALID_ADDRESS_SPACE";
}

} // namespace

DeviceDescription describeDevice(const BackendProperties &facts) {
  DeviceDescription device;
  device.name = facts.name;
  device.driver = facts.driver;
  device.chip = facts.chip;
  device.uuid = facts.uuid;
  device.multiprocessors = facts.multiprocessors;
  device.coresPerMultiprocessor = lanesOf(facts.chip);
  device.clockKhz = facts.clockKhz;
  device.memoryClockKhz = facts.memoryClockKhz;
  device.memoryBusBits = facts.memoryBusBits;
  device.l2Bytes = facts.l2Bytes;
  device.memoryBytes = facts.memoryBytes;
  device.sharedBytesPerMultiprocessor = facts.sharedBytesPerMultiprocessor;
  device.registersPerMultiprocessor = facts.registersPerMultiprocessor;
  device.threadsPerMultiprocessor = facts.threadsPerMultiprocessor;
  device.isVirtual = facts.isVirtual;
  device.limits.threadsPerBlock = facts.threadsPerBlock;
  device.limits.block = facts.maxBlock;
  device.limits.grid = facts.maxGrid;
  device.limits.sharedBytesPerBlock = facts.sharedBytesPerBlock;
  device.limits.registersPerBlock = facts.registersPerBlock;
  return device;
}

Evaluation::Evaluation(Helpers &helpers, const WireEvaluate &request,
                       const Images &images, Emit emit,
                       const SanitizerSetup *sanitizer, bool asGpu)
    : helpers(helpers), request(request), task(request.task), images(images),
      emit(emit), sanitizer(sanitizer) {
  // Not from the run's seed: order of pairs and key are nobody's to know.
  std::random_device entropy;
  std::seed_seq sequence{entropy(), entropy(), entropy(), entropy()};
  random.seed(sequence);
  maskKey = random();
  poisonKey = random();
  if (!asGpu)
    virtualDevice = helpers.backend().virtualDevice();
  if (virtualDevice)
    known = std::make_unique<KnownAnswers>(KnownAnswers::mostOfCandidate);
}

Evaluation::~Evaluation() {
  for (EventHandle event : {startEvent, stopEvent})
    if (event)
      llvm::consumeError(helpers.backend().destroyEvent(event));
}

double Evaluation::helperSlackMs() const {
  // On the CPU, with every load and store looked at.
  if (virtualDevice) {
    if (!buffers)
      return 30e3;
    // Scratch is only poisoned, cleared and looked at.
    double scratch = double(buffers->ofScratch());
    return 30e3 + (double(buffers->totalBytes()) - scratch) / 1e3 +
           scratch / 1e4;
  }
  // Fills, hashes and compares pass over all memory a few times; 10 GB/s is far
  // below what any GPU does. For a dummy the host may read an output.
  if (dummy)
    return 3000 + (buffers ? double(buffers->totalBytes()) / 1e6 : 0);
  return 3000 + (buffers ? double(buffers->totalBytes()) / 1e7 : 0);
}

llvm::Error Evaluation::begin(llvm::StringRef phase, double milliseconds) {
  candidatePhase = phase.starts_with(fsr::candidatePhase);
  if (candidatePhase && dummy) {
    // Nothing of a candidate runs.
    candidatePhase = false;
    phase = "original-dummy";
  }
  llvm::json::Object event{
      {"event", "started"},
      {"phase", phase},
      {"deadline_ms",
       std::clamp<int64_t>(int64_t(std::ceil(std::min(milliseconds, 1e12))), 1,
                           maxWireDeadlineMs)}};
  if (dummiesInAll) {
    event["done"] = int64_t(dummiesDone);
    event["of"] = int64_t(dummiesInAll);
    event["seconds_left"] = strengthSecondsLeft();
  }
  return emit(std::move(event));
}

llvm::Error Evaluation::beginCandidate(double launches) {
  if (virtualDevice)
    return begin("candidate-run",
                 launches * (20 * originalWallMs + 10e3) + helperSlackMs());
  double limit = std::max(10 * originalUs / 1000, 1000.0) +
                 2 * (launches - 1) * originalUs / 1000 * 10;
  return begin("candidate-run", limit + helperSlackMs());
}

llvm::Error Evaluation::beginOriginal(double launches) {
  // The original is trusted, and its time may hang on its data: a list that is
  // sorted already is the worst case of an insertion.
  double limit = 120 * 1000;
  if (originalKnown)
    limit +=
        launches * 10 * (virtualDevice ? originalWallMs : originalUs / 1000);
  return begin("original-run", limit + helperSlackMs());
}

bool Evaluation::finish(Verdict verdict, const llvm::Twine &message) {
  result.verdict = verdict;
  result.message = message.str();
  return false;
}

void Evaluation::addCheck(llvm::StringRef name, bool passed,
                          llvm::StringRef inputs, llvm::StringRef rule,
                          llvm::StringRef detail) {
  Check check;
  check.name = name.str();
  check.passed = passed;
  check.inputs = inputs.str();
  check.rule = rule.str();
  check.detail = detail.str();
  result.evidence.checks.push_back(std::move(check));
}

llvm::Error Evaluation::launch(Who who) {
  if (virtualDevice)
    return launchVirtual(who);
  return launchPlain(who);
}

llvm::Error Evaluation::launchPlain(Who who) {
  if (who == Who::Original)
    return launchReference(helpers, *buffers, task, referenceFunction);
  return launchCandidate(helpers, *buffers, task, request.plan,
                         candidateFunctions);
}

/// A failure while the candidate ran is its verdict; success then. Anything
/// else stays an error.
llvm::Error Evaluation::classify(llvm::Error error) {
  return llvm::handleErrors(
      std::move(error),
      [&](const BackendError &failure) -> llvm::Error {
        dead = dead || failure.isSticky();
        if (virtualDevice && failure.isSticky())
          return classifyFault(failure);
        if (!candidatePhase && virtualDevice &&
            failure.name == "CUDA_ERROR_NOT_SUPPORTED")
          return makeError(ErrorKind::Unsupported,
                           "the virtual device cannot run the original "
                           "kernel: " +
                               failure.message());
        if (!candidatePhase)
          return makeError(ErrorKind::Unavailable,
                           "the device failed while the candidate was not "
                           "running: " +
                               failure.message());
        // Memory that does not hold its bits, and calls of the worker's own.
        if (failure.isHardware() ||
            (!failure.isSticky() && !failure.isLaunchRefusal()))
          return makeError(ErrorKind::Unavailable,
                           "the device failed, and not by the candidate's "
                           "doing: " +
                               failure.message());
        if (failure.isSticky())
          finish(isAddressFault(failure.name) ? Verdict::Unsafe
                                              : Verdict::Crashed,
                 "the kernel ended with " + failure.name);
        else
          finish(Verdict::LaunchFailed,
                 "the launch was refused: " + failure.message());
        return llvm::Error::success();
      },
      [&](std::unique_ptr<FsrError> failure) -> llvm::Error {
        if (candidatePhase && failure->kind == ErrorKind::BadInput) {
          finish(Verdict::Rejected, failure->message);
          return llvm::Error::success();
        }
        return llvm::Error(std::move(failure));
      });
}

llvm::Expected<EvaluateResult> Evaluation::run() {
  const BackendProperties &facts = helpers.properties();
  result.evidence.device = facts.name;
  result.evidence.driver = facts.driver;
  auto outcome = runAll();
  if (!outcome)
    if (llvm::Error error = classify(outcome.takeError()))
      return std::move(error);
  if (!dead)
    if (llvm::Error error = lookCloser())
      return std::move(error);
  return std::move(result);
}

llvm::Error Evaluation::prepareOriginal() {
  if (llvm::Error error = begin("original-load", 60 * 1000))
    return error;
  if (llvm::Error error = dummy ? checkReferenceArguments(task)
                                : checkArguments(task, request.plan))
    return error;
  if (virtualDevice)
    if (llvm::Error error = checkSize())
      return error;
  auto image = LoadedImage::load(helpers.backend(), images.reference);
  if (!image)
    return image.takeError();
  reference = std::move(*image);
  auto entry = reference->function(task.reference.entry);
  if (!entry)
    return entry.takeError();
  referenceFunction = *entry;
  auto memory = TaskBuffers::create(helpers, task);
  if (!memory)
    return memory.takeError();
  buffers = std::move(*memory);
  buffers->drawPoison(random());
  uint64_t rows = 0;
  for (const TaskBuffer &buffer : buffers->buffers()) {
    inPlace = inPlace || buffer.argument->access == Access::ReadWrite;
    if (buffer.written() && isFloat(buffer.argument->element))
      rows = std::max<uint64_t>(rows,
                                buffer.argument->numElements() / buffer.row());
  }
  if (rows) {
    auto maxima = buffers->extra(rows * 8);
    if (!maxima)
      return maxima.takeError();
    rowMaxima = *maxima;
  }
  if (llvm::Error error = helpers.synchronize())
    return error;
  inputs = std::make_unique<InputPlan>(task, request.options.seed,
                                       sha256(images.candidate));
  return llvm::Error::success();
}

llvm::Expected<bool> Evaluation::prepare() {
  if (llvm::Error error = prepareOriginal())
    return std::move(error);
  if (llvm::Error error = begin("candidate-load", 60 * 1000))
    return std::move(error);
  if (llvm::Error error = buffers->addScratch(request.plan)) {
    std::string tooMuch;
    error = llvm::handleErrors(
        std::move(error),
        [&](std::unique_ptr<FsrError> failure) -> llvm::Error {
          if (failure->kind != ErrorKind::BadInput)
            return llvm::Error(std::move(failure));
          tooMuch = failure->message;
          return llvm::Error::success();
        });
    if (!error)
      return finish(Verdict::Rejected, tooMuch);
    // What the task itself needs is there already.
    if (kindOf(error) != ErrorKind::Unavailable || !error.isA<FsrError>())
      return std::move(error);
    return finish(Verdict::LaunchFailed,
                  "the scratch buffers of the plan do not fit beside the "
                  "task's: " +
                      llvm::toString(std::move(error)));
  }
  // What the driver does not load is the candidate's fault. A broken device is
  // not.
  auto refuseImage = [&](llvm::Error error) -> llvm::Expected<bool> {
    std::string why;
    error = llvm::handleErrors(
        std::move(error),
        [&](std::unique_ptr<BackendError> failure) -> llvm::Error {
          if (!failure->isImageRefusal())
            return llvm::Error(std::move(failure));
          why = failure->message();
          return llvm::Error::success();
        });
    if (error)
      return std::move(error);
    return finish(Verdict::LaunchFailed, "the image does not load: " + why);
  };
  auto loaded = LoadedImage::load(helpers.backend(), images.candidate);
  if (!loaded)
    return refuseImage(loaded.takeError());
  candidate = std::move(*loaded);
  for (const ResolvedLaunch &launch : request.plan.launches) {
    auto function = candidate->function(launch.kernel);
    if (!function) {
      bool missing = false;
      llvm::Error rest = llvm::handleErrors(
          function.takeError(),
          [&](std::unique_ptr<BackendError> error) -> llvm::Error {
            if (!error->isNotFound())
              return llvm::Error(std::move(error));
            missing = true;
            return llvm::Error::success();
          });
      if (!missing)
        return refuseImage(std::move(rest));
      llvm::consumeError(std::move(rest));
      return finish(Verdict::Rejected,
                    "the image has no kernel named " + launch.kernel);
    }
    candidateFunctions.push_back(*function);
  }
  auto goesOn = keepVariables();
  if (!goesOn || !*goesOn)
    return goesOn;
  if (virtualDevice)
    tellCosts();
  bool anyFloat = llvm::any_of(buffers->buffers(), [](const TaskBuffer &one) {
    return one.written() && isFloat(one.argument->element);
  });
  if (anyFloat) {
    trueValues = std::make_unique<TrueValues>(helpers, task,
                                              images.referencePtx, random());
    clone = std::make_unique<CloneValues>(helpers, task, images.clone,
                                          task.reference.noTruePtx);
  }
  if (!images.candidatePtx.empty()) {
    // What cannot be read says nothing; the device has loaded its image.
    auto facts = readPtxFacts(images.candidatePtx);
    if (facts)
      addsFloatsAtomically = facts->addsFloatsAtomically;
    else
      llvm::consumeError(facts.takeError());
  }
  return true;
}

llvm::Expected<bool> Evaluation::runAll() {
  auto goesOn = prepare();
  if (!goesOn || !*goesOn)
    return goesOn;
  goesOn = validateQuick();
  if (!goesOn || !*goesOn)
    return goesOn;
  if (request.options.measure) {
    goesOn = virtualDevice             ? model()
             : request.options.confirm ? confirm()
                                       : measure();
    if (!goesOn || !*goesOn)
      return goesOn;
    // Of timed launches few are looked at one by one.
    if (!variables.empty()) {
      if (llvm::Error error = begin("original-check", 2 * helperSlackMs()))
        return std::move(error);
      goesOn = checkVariables("timing");
      if (!goesOn || !*goesOn)
        return goesOn;
    }
    if (result.verdict != Verdict::Accepted || request.options.raceOnly ||
        (request.options.confirm && !virtualDevice))
      return true;
  }
  if (!request.options.full)
    return finish(Verdict::Undecided,
                  "equal to the original on the quick checks; not measured");
  Verdict verdict = result.verdict;
  std::string message = result.message;
  goesOn = validateFull();
  if (!goesOn || !*goesOn)
    return goesOn;
  if (!request.options.measure)
    return finish(Verdict::Undecided,
                  "equal to the original on all inputs tried; not measured");
  goesOn = sanitize();
  if (!goesOn || !*goesOn)
    return goesOn;
  result.evidence.level =
      virtualDevice ? EvidenceLevel::Modelled : EvidenceLevel::Measured;
  return finish(verdict, message);
}

} // namespace fsr
