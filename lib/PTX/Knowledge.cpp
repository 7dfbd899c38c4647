// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What threads may pass on to one another: which blocks and threads are known
// up to which tick, and what was released at places of memory. Beyond a size
// knowledge becomes that of all, so that what may be in order is never
// reported.
//
//===----------------------------------------------------------------------===//

#include "Ordering.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <tuple>

namespace fsr::ptx {

namespace {

/// More runs of blocks than this are not kept apart.
constexpr size_t mostEntries = 4096;
/// Of threads of a block that are known for longer than the rest.
constexpr size_t mostExceptions = 64;

using Entry = Knowledge::Entry;
using Exception = Knowledge::Exception;

bool isAlike(const Entry &a, const Entry &b) {
  return a.floor == b.floor && a.exceptions == b.exceptions;
}

} // namespace

void addException(Entry &entry, Exception one) {
  if (one.tick <= entry.floor)
    return;
  for (Exception &have : entry.exceptions)
    if (have.first <= one.first && one.last <= have.last) {
      if (have.tick >= one.tick)
        return;
      if (have.first == one.first && have.last == one.last) {
        have.tick = one.tick;
        return;
      }
    }
  if (entry.exceptions.size() == mostExceptions) {
    // Rather know too much than report what is in order.
    for (const Exception &have : entry.exceptions)
      one.tick = std::max(one.tick, have.tick);
    entry.exceptions.clear();
    entry.floor = one.tick;
    return;
  }
  entry.exceptions.push_back(one);
  llvm::sort(entry.exceptions, [](const Exception &a, const Exception &b) {
    return std::tuple(a.first, a.last) < std::tuple(b.first, b.last);
  });
}

namespace {

void joinInto(Entry &entry, const Entry &other) {
  if (isAlike(entry, other))
    return;
  entry.floor = std::max(entry.floor, other.floor);
  llvm::SmallVector<Exception, 2> own;
  own.swap(entry.exceptions);
  for (const Exception &one : own)
    addException(entry, one);
  for (const Exception &one : other.exceptions)
    addException(entry, one);
}

void append(std::vector<Entry> &entries, Entry entry) {
  if (!entries.empty() && entries.back().last + 1 == entry.first &&
      isAlike(entries.back(), entry))
    entries.back().last = entry.last;
  else
    entries.push_back(std::move(entry));
}

} // namespace

bool Knowledge::covers(uint32_t block, unsigned firstThread,
                       unsigned lastThread, uint32_t tick) const {
  if (knowsAll)
    return true;
  auto after = std::upper_bound(
      entries.begin(), entries.end(), block,
      [](uint32_t value, const Entry &entry) { return value < entry.first; });
  if (after == entries.begin())
    return false;
  const Entry &entry = *std::prev(after);
  if (block > entry.last)
    return false;
  if (entry.floor >= tick)
    return true;
  for (const Exception &one : entry.exceptions)
    if (one.tick >= tick && one.first <= firstThread && lastThread <= one.last)
      return true;
  return false;
}

bool Knowledge::tellsOf(uint32_t block) const {
  return knowsAll || llvm::any_of(entries, [&](const Entry &entry) {
           return entry.first <= block && block <= entry.last;
         });
}

KnowledgePtr join(const KnowledgePtr &a, const KnowledgePtr &b) {
  if (!a || a == b)
    return b;
  if (!b || a->knowsAll)
    return a;
  if (b->knowsAll)
    return b;
  auto joined = std::make_shared<Knowledge>();
  std::vector<Entry> &entries = joined->entries;
  // Both are sorted runs: cut them where either begins or ends.
  auto left = a->entries.begin(), right = b->entries.begin();
  auto leftEnd = a->entries.end(), rightEnd = b->entries.end();
  uint64_t at = 0;
  while (left != leftEnd || right != rightEnd) {
    uint64_t leftFirst =
        left == leftEnd ? ~0ull : std::max<uint64_t>(left->first, at);
    uint64_t rightFirst =
        right == rightEnd ? ~0ull : std::max<uint64_t>(right->first, at);
    uint64_t first = std::min(leftFirst, rightFirst);
    bool inLeft = leftFirst == first, inRight = rightFirst == first;
    uint64_t last = ~0ull;
    if (left != leftEnd)
      last = std::min(last, inLeft ? uint64_t(left->last) : leftFirst - 1);
    if (right != rightEnd)
      last = std::min(last, inRight ? uint64_t(right->last) : rightFirst - 1);
    Entry entry = inLeft ? *left : *right;
    if (inLeft && inRight)
      joinInto(entry, *right);
    entry.first = uint32_t(first);
    entry.last = uint32_t(last);
    append(entries, std::move(entry));
    at = last + 1;
    if (left != leftEnd && left->last < at)
      ++left;
    if (right != rightEnd && right->last < at)
      ++right;
  }
  if (entries.size() > mostEntries) {
    entries.clear();
    joined->knowsAll = true;
  }
  return joined;
}

// Messages. -------------------------------------------------------------------

std::optional<MessageTable::Record> MessageTable::find(uint64_t location) {
  Stripe &in = stripe(location);
  std::lock_guard<std::mutex> guard(in.lock);
  auto found = in.records.find(location);
  if (found == in.records.end())
    return std::nullopt;
  return found->second;
}

void MessageTable::put(uint64_t location, Record record, bool isUpdate) {
  Stripe &in = stripe(location);
  std::lock_guard<std::mutex> guard(in.lock);
  if (!record.forAll && !record.forBlock) {
    if (!isUpdate)
      in.records.erase(location);
    return;
  }
  any.store(true, std::memory_order_relaxed);
  Record &have = in.records[location];
  if (isUpdate) {
    record.forAll = join(have.forAll, record.forAll);
    if (!record.forBlock) {
      record.forBlock = have.forBlock;
      record.block = have.block;
    } else if (have.forBlock && have.block == record.block) {
      record.forBlock = join(have.forBlock, record.forBlock);
    }
  }
  have = std::move(record);
}

void MessageTable::clear() {
  if (isEmpty())
    return;
  for (Stripe &one : stripes)
    one.records.clear();
  any.store(false, std::memory_order_relaxed);
}

} // namespace fsr::ptx
