// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// See Interrupt.h. A signal handler could do none of this safely; a thread that
// waits for the signal may.
//
//===----------------------------------------------------------------------===//

#include "Interrupt.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"

#include <csignal>
#include <fcntl.h>
#include <string>
#include <thread>
#include <unistd.h>

using namespace fsr;

/// Kills each child's process group. The kernel lists children by the thread
/// that started them.
static void killChildren() {
  std::error_code code;
  llvm::sys::fs::directory_iterator thread("/proc/self/task", code), end;
  for (; !code && thread != end; thread.increment(code)) {
    std::string path = thread->path() + "/children";
    int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
      continue;
    std::string text;
    char buffer[4096];
    for (ssize_t got; (got = ::read(fd, buffer, sizeof(buffer))) > 0;)
      text.append(buffer, got);
    ::close(fd);
    llvm::StringRef rest = text;
    while (!rest.empty()) {
      auto [word, more] = rest.split(' ');
      rest = more;
      pid_t pid = 0;
      if (word.getAsInteger(10, pid) || pid <= 1)
        continue;
      if (::getpgid(pid) == pid)
        ::kill(-pid, SIGKILL);
      ::kill(pid, SIGKILL);
    }
  }
}

void fsr::endOnInterrupt(std::mutex &storeLock,
                         std::function<void()> beforeEnd) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread([signals, &storeLock, beforeEnd = std::move(beforeEnd)] {
    int signal = 0;
    while (sigwait(&signals, &signal) != 0) {
    }
    storeLock.lock(); // For good: nothing is written from here on.
    killChildren();
    beforeEnd();
    _exit(128 + signal);
  }).detach();
}

namespace {

class LockedStore final : public SearchStore {
public:
  LockedStore(std::unique_ptr<SearchStore> store, std::mutex &lock)
      : store(std::move(store)), lock(lock) {}

  llvm::Expected<LookUp> best(llvm::StringRef taskKey, llvm::StringRef target,
                              EvidenceLevel level) override {
    return store->best(taskKey, target, level);
  }
  llvm::Expected<std::optional<Trial>>
  findTrial(llvm::StringRef taskKey, llvm::StringRef trialKey) override {
    return store->findTrial(taskKey, trialKey);
  }
  llvm::Expected<std::optional<Talk>>
  findTalk(llvm::StringRef taskKey, int64_t round, int64_t slot) override {
    return store->findTalk(taskKey, round, slot);
  }
  llvm::Error addRecord(Record &record) override {
    std::lock_guard<std::mutex> held(lock);
    return store->addRecord(record);
  }
  llvm::Error addTrial(const Trial &trial) override {
    std::lock_guard<std::mutex> held(lock);
    return store->addTrial(trial);
  }
  llvm::Error addTalk(const Talk &talk) override {
    std::lock_guard<std::mutex> held(lock);
    return store->addTalk(talk);
  }
  llvm::Error addTask(const KernelTask &task) override {
    std::lock_guard<std::mutex> held(lock);
    return store->addTask(task);
  }
  llvm::Expected<std::vector<Record>>
  findRecords(llvm::StringRef taskKey, llvm::StringRef target) override {
    return store->findRecords(taskKey, target);
  }
  llvm::Error markUnfinished(llvm::StringRef taskKey,
                             llvm::StringRef kernelName) override {
    std::lock_guard<std::mutex> held(lock);
    return store->markUnfinished(taskKey, kernelName);
  }
  llvm::Error clearUnfinished(llvm::StringRef taskKey) override {
    std::lock_guard<std::mutex> held(lock);
    return store->clearUnfinished(taskKey);
  }
  bool isUnfinished(llvm::StringRef taskKey) override {
    return store->isUnfinished(taskKey);
  }

private:
  std::unique_ptr<SearchStore> store;
  std::mutex &lock;
};

} // namespace

std::unique_ptr<SearchStore>
fsr::lockedStore(std::unique_ptr<SearchStore> store, std::mutex &lock) {
  return std::make_unique<LockedStore>(std::move(store), lock);
}
