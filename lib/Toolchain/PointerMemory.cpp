// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What loads find of the addresses that stores put into shared and local memory
// and into tensor maps, and all other instructions that reach memory. One that
// moves bytes without a register is not followed: it must not touch what may
// hold an address.
//
//===----------------------------------------------------------------------===//

#include "PointerAnalysis.h"

namespace fsr::pointers {

namespace {

int64_t vectorSize(StringRef opcode) {
  return opcode.contains(".v2") ? 2 : opcode.contains(".v4") ? 4 : 1;
}

} // namespace

/// Whether `kept` may share a byte with `bytes` of shared memory at `place`.
/// An index may lead from one variable into another, so only what is known to
/// lie within its variable is apart from the rest.
bool Analysis::meetsShared(const Place &place, int64_t bytes,
                           const Kept &kept) const {
  if (isLocalOnly(place) || isLocalOnly(kept.place))
    return false;
  auto isInside = [&](const Place &at, int64_t size) {
    auto found = module.shared.find(at.root);
    return at.kind == Place::Exact && found != module.shared.end() &&
           at.offset >= 0 && size > 0 && size <= int64_t(1) << 30 &&
           at.offset <= int64_t(1) << 30 &&
           uint64_t(at.offset + size) <= found->second;
  };
  return !isInside(place, bytes) || !isInside(kept.place, kept.bytes) ||
         place.meets(bytes, kept.place, kept.bytes);
}

/// Whether an address may lie in what is copied from `place`.
bool Analysis::holdsAddress(const Value &address, const Place &place,
                            StringRef space, int64_t bytes) const {
  bool isWindow = !address.has(Value::Pointer);
  if (isWindow && space != "local" && space != "global" &&
      llvm::any_of(shared, [&](const Kept &kept) {
        return meetsShared(place, bytes, kept);
      }))
    return true;
  // What is named as global memory may still be an address of another kind.
  if (space != "shared" && address.has(Value::Based) &&
      (!shared.empty() || !local.empty()))
    return true;
  return space != "shared" &&
         (address.has(Value::Holder) || reachesMap(address));
}

void Analysis::keep(std::vector<Kept> &memory, const Kept &kept) {
  for (Kept &old : memory)
    if (old.place == kept.place && old.bytes == kept.bytes) {
      changed |= old.value.add(kept.value);
      return;
    }
  // So many different places are no table of pointers.
  if (memory.size() == 256)
    return refuse("too many buffers' addresses are kept in memory to be "
                  "followed");
  memory.push_back(kept);
  changed = true;
}

void Analysis::visitLoad(Function &in, StringRef opcode,
                         llvm::ArrayRef<Operand> operands) {
  if (operands.size() < 2)
    return;
  StringRef space = spaceOf(opcode, 0);
  checkAddress(in, opcode, operands[1], space);
  for (Operand operand : operands.drop_front(2))
    if (!isPolicy(opcode, operand, operands) ||
        get(in, operand).told() != Value::Policy)
      checkData(in, opcode, operand);
  if (space == "param")
    return put(in, operands[0], loadParameter(in, opcode, operands[1]));
  int64_t bytes = bytesOf(opcode);
  Value loaded =
      unknown(bytes && bytes < 8 ? uint8_t(8 * bytes) : uint8_t(anyWidth));
  loadKept(loaded, opcode, get(in, operands[1]), placeOf(in, operands[1]),
           bytes * vectorSize(opcode), bytes < 8);
  put(in, operands[0], loaded);
}

/// Adds what a read may find of the addresses that were kept in memory.
void Analysis::loadKept(Value &loaded, StringRef opcode, const Value &address,
                        Place place, int64_t bytes, bool isPart) {
  StringRef space = spaceOf(opcode, 0);
  bool isShared = space == "shared", isLocal = space == "local",
       isGeneric = space.empty() && !address.has(Value::Pointer);
  auto load = [&](const Kept &kept) {
    Value value = kept.value;
    if (isPart) {
      value.kinds = Value::Bits;
      value.shift = anyShift;
    }
    loaded.add(value);
  };
  if (address.has(Value::Holder))
    loaded.add(throughHolder(address, !isPart));
  for (const Kept &kept : shared)
    if ((isShared || isGeneric) && meetsShared(place, bytes, kept))
      load(kept);
  for (const Kept &kept : local)
    if ((isLocal || (isGeneric && !isSharedOnly(place))) &&
        place.meets(bytes, kept.place, kept.bytes))
      load(kept);
  if ((space.empty() || space == "global") && reachesMap(address)) {
    Value part = plain(Value::Bits);
    part.shift = anyShift;
    loaded.add(part);
  }
}

void Analysis::visitStore(Function &in, StringRef opcode,
                          llvm::ArrayRef<Operand> operands) {
  if (operands.size() < 2)
    return;
  Value stored = get(in, operands[1]);
  StringRef space = spaceOf(opcode, 0);
  checkAddress(in, opcode, operands[0], space);
  if (space == "param")
    return storeParameter(in, opcode, operands[0], operands[1]);
  checkWrite(in, opcode, operands[0]);
  // The barrier of an asynchronous store, and what a cache is told.
  for (Operand operand : operands.drop_front(2))
    if (!operand.empty() && operand.front() == "[")
      checkAddress(in, opcode, operand, spaceOf(opcode, 1));
    else if (!isPolicy(opcode, operand, operands) ||
             get(in, operand).told() != Value::Policy)
      checkData(in, opcode, operand);
  if (!stored.tells())
    return;
  Value address = get(in, operands[0]);
  bool isShared = space == "shared", isLocal = space == "local",
       isGeneric = space.empty() && address.has(Value::Based) &&
                   !address.has(Value::Pointer);
  bool isKept = bytesOf(opcode) >= 8 && !stored.has(Value::Bits) &&
                !opcode.starts_with("st.async");
  Kept kept{placeOf(in, operands[0]), bytesOf(opcode) * vectorSize(opcode),
            stored};
  kept.value.place = Place();
  if (isKept && (isShared || (isGeneric && !isLocalOnly(kept.place))))
    keep(shared, kept);
  if (isKept && (isLocal || (isGeneric && !isSharedOnly(kept.place))))
    keep(local, kept);
  if (isChecking && (!isKept || !(isShared || isLocal || isGeneric)))
    refuse(called(stored) + " is written as data (`" + opcode +
           "`); where a buffer lies is no result");
}

/// An instruction other than a load and a store that has an address.
void Analysis::visitMemory(Function &in, StringRef opcode,
                           llvm::ArrayRef<Operand> operands) {
  StringRef base = opcode.split('.').first;
  bool copies = base == "cp" || opcode.starts_with("multimem.cp"),
       onlyReads = base == "prefetch" || base == "prefetchu" ||
                   base == "createpolicy" ||
                   opcode.starts_with("cp.async.bulk.prefetch") ||
                   opcode.starts_with("wmma.load"),
       finds = base == "atom" || base == "mbarrier" || base == "ldmatrix" ||
               base == "wmma" || base == "multimem" || base == "tcgen05";
  Value told;
  unsigned addresses = 0;
  for (Operand operand : operands) {
    if (operand.empty())
      continue;
    Value value = get(in, operand);
    if (operand.front() == "[") {
      StringRef space = spaceOf(opcode, addresses);
      bool isSource = copies && addresses == 1;
      if (!onlyReads && !isSource)
        checkWrite(in, opcode, operand);
      checkAddress(in, opcode, operand, space);
      if (isSource)
        checkCopied(in, opcode, operand, space,
                    operands.size() > 2 ? literal(operands[2]).value_or(0) : 0);
      ++addresses;
    } else if (operand.data() == operands[0].data() &&
               (finds || base == "createpolicy")) {
      continue;
    } else if (!(isPolicy(opcode, operand, operands) &&
                 value.told() == Value::Policy) &&
               base != "tensormap") {
      checkData(in, opcode, operand);
    }
    if (value.tells())
      told.add(value);
  }
  if (base == "tensormap")
    holdInMap(in, opcode, operands);
  checkDescriptors(opcode, operands);
  if (operands[0].empty() || operands[0].front() == "[")
    return;
  Value result = unknown();
  if (finds && operands.size() > 1)
    // The rows of a matrix may lie anywhere behind the first.
    loadKept(result, opcode, get(in, operands[1]), placeOf(in, operands[1]),
             base == "wmma" ? 0 : 16, /*isPart=*/true);
  if (!finds && told.tells()) {
    told.kinds = base == "createpolicy" && !told.has(Value::Bits)
                     ? Value::Policy
                     : Value::Bits;
    told.shift = anyShift;
    told.width = anyWidth;
    result.add(told);
    if (base == "createpolicy")
      result.kinds = told.kinds;
  }
  put(in, operands[0], result);
}

/// A tensor map is made to hold an address, and nothing else of one. The memory
/// in which it lies holds it from then on.
void Analysis::holdInMap(Function &in, StringRef opcode,
                         llvm::ArrayRef<Operand> operands) {
  Value held, into = get(in, operands[0]);
  StringRef space = spaceOf(opcode, 0);
  if (opcode.contains(".global_address") && operands.size() == 2) {
    held = get(in, operands[1]);
    if (held.told() != Value::Pointer || !held.variable.empty())
      checkData(in, opcode, operands[1]);
    if (!held.tells())
      return;
  } else {
    for (Operand operand : operands)
      if (!operand.empty() && operand.front() != "[")
        checkData(in, opcode, operand);
    // From shared memory to where it is used.
    if (!opcode.starts_with("tensormap.cp") || operands.size() < 2 ||
        !holdsAddress(get(in, operands[1]), placeOf(in, operands[1]), "shared",
                      literal(operands.back()).value_or(0)))
      return;
  }
  if (space != "shared" && !into.has(Value::Based)) {
    uint64_t now = into.buffers ? into.buffers : ~uint64_t(0);
    changed |= (maps | now) != maps;
    maps |= now;
    return;
  }
  Kept kept{placeOf(in, operands[0]), 128, held};
  kept.value.kinds = Value::Bits;
  kept.value.shift = anyShift;
  kept.value.place = Place();
  keep(shared, kept);
}

} // namespace fsr::pointers
