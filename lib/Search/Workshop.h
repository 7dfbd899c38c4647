// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Where candidates are compiled and evaluated: a few compilers beside each
// other, and as many evaluations as the device takes. Everything that is done
// has a name and is done once, whoever asks for it; so a search may have work
// done ahead of the place where it is needed, and what it decides there does
// not depend on what was done when.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_SEARCH_WORKSHOP_H
#define FSR_LIB_SEARCH_WORKSHOP_H

#include "fsr/Search/Search.h"
#include "fsr/Support/Error.h"

#include "llvm/ADT/STLExtras.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

namespace fsr {

/// How a piece of work ended: a value, or why there is none.
template <typename T>
struct Done {
  std::optional<T> value;
  ErrorKind kind = ErrorKind::Unavailable;
  std::string trouble;

  static Done of(llvm::Expected<T> result) {
    Done done;
    if (result) {
      done.value = std::move(*result);
    } else {
      llvm::Error error = result.takeError();
      done.kind = kindOf(error);
      done.trouble = llvm::toString(std::move(error));
    }
    return done;
  }
  llvm::Error error() const { return makeError(kind, trouble); }
};

/// A result that may be still to come.
template <typename T>
class Later {
public:
  void set(Done<T> result) {
    std::lock_guard<std::mutex> lock(mutex);
    done = std::move(result);
    came.notify_all();
  }
  const Done<T> &wait() {
    std::unique_lock<std::mutex> lock(mutex);
    came.wait(lock, [&] { return done.has_value(); });
    return *done;
  }

private:
  std::mutex mutex;
  std::condition_variable came;
  std::optional<Done<T>> done;
};
template <typename T>
using Promised = std::shared_ptr<Later<T>>;

/// Jobs for a fixed number of threads, the most urgent first and of these the
/// oldest. The threads start when there is work.
class JobQueue {
public:
  /// Called once: to do the work, or because it will not be done.
  using Job = std::function<void(bool dropped)>;

  explicit JobQueue(unsigned threads) : most(std::max(1u, threads)) {}
  /// Waits for what runs and drops the rest.
  ~JobQueue();
  void add(int urgency, std::string name, Job job);
  /// Moves it up where it has not begun.
  void hurry(const std::string &name, int urgency);
  /// Drops what has not begun and is not as urgent as that.
  void dropBelow(int urgency);
  /// Nothing begins any more.
  void close();
  /// A thread would begin at once with what is added.
  bool hasRoom();

private:
  struct Entry {
    int urgency;
    std::string name;
    Job job;
  };
  void work();

  const unsigned most;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Entry> waiting;
  std::vector<std::thread> threads;
  unsigned busy = 0;
  bool ends = false;
};

class Workshop {
public:
  /// In case nobody needs it, in its turn, and with somebody waiting.
  enum Urgency { Spare, Ahead, Needed };

  Workshop(unsigned compileJobs, unsigned deviceSlots)
      : compilers(compileJobs), device(deviceSlots) {}

  /// A build with the digest of its code.
  struct Built {
    CandidateBuild build;
    std::string code;
  };
  Promised<Built> build(const std::string &name, Urgency urgency,
                        std::function<llvm::Expected<Built>()> how) {
    return get(builds, compilers, name, urgency, std::move(how));
  }
  Promised<EvaluateResult>
  evaluate(const std::string &name, Urgency urgency,
           std::function<llvm::Expected<EvaluateResult>()> how) {
    return get(results, device, name, urgency, std::move(how));
  }
  bool deviceHasRoom() { return device.hasRoom(); }
  /// Drops spare work that has not begun, and forgets what is done. Promises
  /// that were given stay good.
  void clear();
  /// Nothing begins any more: who waits is told so.
  void stop();

private:
  template <typename T>
  using Kept = std::map<std::string, Promised<T>>;
  template <typename T>
  Promised<T> get(Kept<T> &kept, JobQueue &queue, const std::string &name,
                  Urgency urgency, std::function<llvm::Expected<T>()> how);

  std::mutex mutex;
  Kept<Built> builds;
  Kept<EvaluateResult> results;
  JobQueue compilers, device; ///< Last: their jobs set the above.
};

template <typename T>
Promised<T> Workshop::get(Kept<T> &kept, JobQueue &queue,
                          const std::string &name, Urgency urgency,
                          std::function<llvm::Expected<T>()> how) {
  std::lock_guard<std::mutex> lock(mutex);
  Promised<T> &promised = kept[name];
  if (promised) {
    queue.hurry(name, urgency);
    return promised;
  }
  promised = std::make_shared<Later<T>>();
  queue.add(urgency, name,
            [promised = promised, how = std::move(how)](bool dropped) {
              if (dropped)
                return promised->set(Done<T>::of(
                    makeError(ErrorKind::Unavailable, "the search has ended")));
              promised->set(Done<T>::of(how()));
            });
  return promised;
}

} // namespace fsr

#endif // FSR_LIB_SEARCH_WORKSHOP_H
