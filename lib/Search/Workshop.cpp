// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The threads of a workshop. A job runs without the lock of its queue; one that
// is dropped is told so, since somebody may wait for it.
//
//===----------------------------------------------------------------------===//

#include "Workshop.h"

namespace fsr {

JobQueue::~JobQueue() {
  close();
  for (std::thread &thread : threads)
    thread.join();
}

void JobQueue::close() {
  std::deque<Entry> dropped;
  {
    std::lock_guard<std::mutex> lock(mutex);
    ends = true;
    dropped.swap(waiting);
    changed.notify_all();
  }
  for (Entry &entry : dropped)
    entry.job(/*dropped=*/true);
}

void JobQueue::add(int urgency, std::string name, Job job) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!ends) {
      waiting.push_back({urgency, std::move(name), std::move(job)});
      if (threads.size() < most && threads.size() < busy + waiting.size())
        threads.emplace_back([this] { work(); });
      changed.notify_one();
      return;
    }
  }
  job(/*dropped=*/true);
}

void JobQueue::hurry(const std::string &name, int urgency) {
  std::lock_guard<std::mutex> lock(mutex);
  for (Entry &entry : waiting)
    if (entry.name == name)
      entry.urgency = std::max(entry.urgency, urgency);
}

void JobQueue::dropBelow(int urgency) {
  std::vector<Entry> dropped;
  {
    std::lock_guard<std::mutex> lock(mutex);
    std::deque<Entry> kept;
    for (Entry &entry : waiting)
      if (entry.urgency < urgency)
        dropped.push_back(std::move(entry));
      else
        kept.push_back(std::move(entry));
    waiting = std::move(kept);
  }
  for (Entry &entry : dropped)
    entry.job(/*dropped=*/true);
}

bool JobQueue::hasRoom() {
  std::lock_guard<std::mutex> lock(mutex);
  return waiting.empty() && busy < most;
}

void JobQueue::work() {
  std::unique_lock<std::mutex> lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return ends || !waiting.empty(); });
    if (ends)
      return;
    auto next = std::max_element(
        waiting.begin(), waiting.end(),
        [](const Entry &a, const Entry &b) { return a.urgency < b.urgency; });
    Entry entry = std::move(*next);
    waiting.erase(next);
    ++busy;
    lock.unlock();
    entry.job(/*dropped=*/false);
    entry.job = nullptr;
    lock.lock();
    --busy;
  }
}

void Workshop::clear() {
  device.dropBelow(Ahead);
  std::lock_guard<std::mutex> lock(mutex);
  builds.clear();
  results.clear();
}

void Workshop::stop() {
  compilers.close();
  device.close();
}

} // namespace fsr
