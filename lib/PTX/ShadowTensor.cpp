// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Products of matrices and moves of their fragments. PTX leaves open in what
// order and width a product is summed, "at least single precision": the bound
// allows for a chain of that length, truncated at each step.
//
//===----------------------------------------------------------------------===//

#include "MemoryOps.h"
#include "Shadow.h"
#include "Tensor.h"

#include <cmath>

namespace fsr::ptx {

namespace {

const ShadowInfo &infoOf(const Op &op) {
  return *static_cast<const ShadowInfo *>(op.shadowInfo);
}

/// A factor; what tf32 does not hold is cut off.
ShadowNumber factor(Warp &warp, const ShadowInfo &info, Slot slot,
                    unsigned lane, unsigned part) {
  ShadowNumber of =
      readShadowNumber(warp, slot, lane, part, info.from, info.isWideSource);
  if (info.precision && (of.bits & 0x1fff))
    of.bound +=
        double(std::ldexp(std::fabs(of.value) + of.bound, 1 - info.precision));
  return of;
}

struct Sum {
  Truth value = 0, spread = 0, size = 0;
};

void addProduct(Sum &sum, ShadowNumber a, ShadowNumber b) {
  Truth product = a.value * b.value;
  sum.value += product;
  sum.size += std::fabs(product);
  if (a.bound || b.bound)
    sum.spread += std::fabs(a.value) * b.bound + std::fabs(b.value) * a.bound +
                  Truth(a.bound) * b.bound;
}

/// What the result `d` of `terms` products and `c` is known by.
bool finish(Sum sum, ShadowNumber c, unsigned terms, Format format,
            ShadowEntry &to) {
  sum.value += c.value;
  sum.size += std::fabs(c.value);
  if (!std::isfinite(sum.value))
    return false;
  const FormatTraits &traits = traitsOf(format);
  bool isWide = format == Format::F64;
  Truth bound = sum.spread + c.bound, size = sum.size + bound;
  // Of what is zero throughout nothing is rounded.
  if (size != 0) {
    Truth step = isWide ? traits.unit : std::ldexp(Truth(1), -23);
    bound += (terms + 1) * step * size + traits.smallest;
    if (!isWide)
      bound += traits.unit * (std::fabs(sum.value) + bound);
  }
  if (std::fabs(sum.value) + bound > traits.largest)
    bound = INFINITY;
  to = ShadowEntry();
  to.truth = sum.value;
  to.bound = double(bound);
  to.format = format;
  return true;
}

/// Where a number of a fragment lies.
struct Cell {
  unsigned r = 0, lane = 0, part = 0;
};

/// As PTX documents for `mma`: 8 columns, groups of four lanes to a row.
Cell placeInMma(char which, const ShadowInfo &info, unsigned row,
                unsigned column) {
  unsigned perCell = info.parts, perRow = 4 * perCell, tiles = info.m / 8;
  switch (which) {
  case 'a':
    return {column / perRow * tiles + row / 8,
            row % 8 * 4 + column % perRow / perCell, column % perCell};
  case 'b':
    return {row / perRow, column * 4 + row % perRow / perCell, row % perCell};
  default: {
    bool isHalf = (which == 'c' ? info.formatC : info.format) == Format::F16;
    unsigned lane = row % 8 * 4 + column / 2;
    if (isHalf)
      return {row / 8, lane, column % 2};
    return {row / 8 * 2 + column % 2, lane, 0};
  }
  }
}

/// As Tensor.h lays out those of `wmma`: `width` numbers a row, rows in turn.
Cell placeInWmma(unsigned row, unsigned column, unsigned width,
                 unsigned perCell) {
  unsigned at = row * width + column;
  return {at / (warpLanes * perCell), at / perCell % warpLanes, at % perCell};
}

Cell placeOf(char which, const ShadowInfo &info, unsigned row,
             unsigned column) {
  if (!info.isWmma)
    return placeInMma(which, info, row, column);
  Format format = which == 'c'   ? info.formatC
                  : which == 'd' ? info.format
                                 : info.from;
  return placeInWmma(row, column, which == 'a' ? info.k : info.n,
                     bitsOf(format) == 16 ? 2 : 1);
}

void multiply(Warp &warp, const Op &op, LaneMask active) {
  const ShadowInfo &info = infoOf(op);
  const auto &of = *static_cast<const MultiplyInfo *>(op.info);
  if (active != allLanes)
    return;
  const unsigned m = info.m, n = info.n, k = info.k;
  std::vector<ShadowNumber> a(m * k), b(k * n);
  for (unsigned i = 0; i < m; ++i)
    for (unsigned j = 0; j < k; ++j) {
      Cell at = placeOf('a', info, i, j);
      a[i * k + j] = factor(warp, info, op.operand(at.r), at.lane, at.part);
    }
  for (unsigned i = 0; i < k; ++i)
    for (unsigned j = 0; j < n; ++j) {
      Cell at = placeOf('b', info, i, j);
      b[i * n + j] = factor(warp, info, op.operand(of.registersA + at.r),
                            at.lane, at.part);
    }
  std::vector<std::pair<bool, ShadowEntry>> results(m * n);
  for (unsigned i = 0; i < m; ++i)
    for (unsigned j = 0; j < n; ++j) {
      Sum sum;
      for (unsigned l = 0; l < k; ++l)
        addProduct(sum, a[i * k + l], b[l * n + j]);
      Cell at = placeOf('c', info, i, j);
      ShadowNumber c = readShadowNumber(
          warp, op.operand(of.registersA + of.registersB + at.r), at.lane,
          at.part, info.formatC, info.formatC == Format::F64);
      auto &[isKnown, entry] = results[i * n + j];
      isKnown = finish(sum, c, k, info.format, entry);
    }
  for (Slot slot : op.results())
    warp.shadow->clear(warp, slot, active);
  for (unsigned i = 0; i < m; ++i)
    for (unsigned j = 0; j < n; ++j) {
      Cell at = placeOf('d', info, i, j);
      const auto &[isKnown, entry] = results[i * n + j];
      if (isKnown)
        warp.shadow->set(warp, op.result(at.r), at.part, at.lane, entry);
    }
}

//===----------------------------------------------------------------------===//
// Moves
//===----------------------------------------------------------------------===//

/// 16 bytes, by granules.
using Row = std::array<ShadowEntry, 8>;

/// ldmatrix, stmatrix, movmatrix: the 8 rows of a matrix and its register.
void rowsToRegister(Warp &warp, const Row *rows, Slot slot, bool isTransposed) {
  warp.shadow->clear(warp, slot, allLanes);
  for (unsigned lane = 0; lane < warpLanes; ++lane)
    for (unsigned part = 0; part < 2; ++part) {
      unsigned row = lane / 4, column = lane % 4 * 2 + part;
      const ShadowEntry &entry =
          isTransposed ? rows[column][row] : rows[row][column];
      bool isWhole = !isTransposed || bitsOf(entry.format) == 16;
      if (entry.format != Format::None && isWhole)
        warp.shadow->set(warp, slot, part, lane, entry);
    }
}
void registerToRows(Warp &warp, Slot slot, bool isTransposed, Row *rows,
                    uint16_t (*bits)[8]) {
  for (unsigned lane = 0; lane < warpLanes; ++lane)
    for (unsigned part = 0; part < 2; ++part) {
      unsigned row = lane / 4, column = lane % 4 * 2 + part;
      if (isTransposed)
        std::swap(row, column);
      const ShadowEntry *entry = warp.shadow->find(warp, slot, part, lane);
      if (entry && (!isTransposed || bitsOf(entry->format) == 16))
        rows[row][column] = *entry;
      bits[row][column] =
          uint16_t(cellBits(warp, slot, lane, false) >> part * 16);
    }
}

void loadMatrices(Warp &warp, const Op &op, LaneMask active) {
  const ShadowInfo &info = infoOf(op);
  uint64_t at[warpLanes];
  lanesAddresses(warp, op, *info.access, op.operand(0), at);
  if (active != allLanes)
    return;
  for (unsigned matrix = 0; matrix < info.m; ++matrix) {
    Row rows[8];
    for (unsigned row = 0; row < 8; ++row) {
      unsigned lane = matrix * 8 + row;
      loadShadow(warp, lane, locate(warp, *info.access, at[lane]), 16,
                 rows[row].data());
    }
    rowsToRegister(warp, rows, op.result(matrix), info.isNegated);
  }
}

void storeMatrices(Warp &warp, const Op &op, LaneMask active) {
  const ShadowInfo &info = infoOf(op);
  uint64_t at[warpLanes];
  lanesAddresses(warp, op, *info.access, op.operand(0), at);
  if (active != allLanes)
    return;
  for (unsigned matrix = 0; matrix < info.m; ++matrix) {
    Row rows[8];
    uint16_t bits[8][8];
    registerToRows(warp, op.operand(1 + matrix), info.isNegated, rows, bits);
    for (unsigned row = 0; row < 8; ++row) {
      unsigned lane = matrix * 8 + row;
      storeShadow(warp, lane, locate(warp, *info.access, at[lane]), 16,
                  reinterpret_cast<const uint8_t *>(bits[row]),
                  rows[row].data());
    }
  }
}

void moveMatrix(Warp &warp, const Op &op, LaneMask active) {
  if (active != allLanes)
    return;
  Row rows[8];
  uint16_t bits[8][8];
  registerToRows(warp, op.operand(0), false, rows, bits);
  rowsToRegister(warp, rows, op.result(0), true);
}

/// wmma.load and wmma.store: `visit(cell, place)` for each element.
template <typename Visit>
void forFragment(Warp &warp, const Op &op, Visit visit) {
  const ShadowInfo &info = infoOf(op);
  unsigned bytes = info.sourceBits / 8, rows = info.m, columns = info.n;
  unsigned perCell = bytes == 2 ? 2 : 1;
  uint64_t at[warpLanes];
  lanesAddresses(warp, op, *info.access, op.operand(0), at);
  uint64_t stride = warp.lanes<uint32_t>(op.operand(1))[0];
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned column = 0; column < columns; ++column) {
      uint64_t element =
          info.isNegated ? column * stride + row : row * stride + column;
      visit(placeInWmma(row, column, columns, perCell),
            locate(warp, *info.access, at[0] + element * bytes), bytes);
    }
}

void loadFragment(Warp &warp, const Op &op, LaneMask active) {
  const ShadowInfo &info = infoOf(op);
  if (active != allLanes)
    return;
  for (Slot slot : op.results())
    warp.shadow->clear(warp, slot, active);
  unsigned whole = info.m * info.n * info.sourceBits / 8 /
                   (warpLanes * std::max(4, info.sourceBits / 8));
  forFragment(warp, op, [&](Cell cell, const Place &place, unsigned bytes) {
    ShadowEntry entries[4];
    loadShadow(warp, 0, place, bytes, entries);
    if (entries[0].format == Format::None)
      return;
    // Some hold the matrix more than once.
    for (unsigned r = cell.r; r < info.registers; r += whole)
      warp.shadow->set(warp, op.result(r), cell.part, cell.lane, entries[0]);
  });
}

void storeFragment(Warp &warp, const Op &op, LaneMask active) {
  if (active != allLanes)
    return;
  forFragment(warp, op, [&](Cell cell, const Place &place, unsigned bytes) {
    Slot slot = op.operand(2 + cell.r);
    ShadowEntry entries[4];
    if (const ShadowEntry *entry =
            warp.shadow->find(warp, slot, cell.part, cell.lane))
      entries[0] = *entry;
    uint64_t bits =
        cellBits(warp, slot, cell.lane, bytes == 8) >> cell.part * 16;
    storeShadow(warp, 0, place, bytes, reinterpret_cast<const uint8_t *>(&bits),
                entries);
  });
}

Handler productShadow(Decoder &decoder, Op &op, ShadowInfo &info) {
  const Instruction &instruction = decoder.instruction();
  // d, a, b, c; without those of the factors they are halves.
  llvm::SmallVector<Type, 4> types;
  std::optional<MatrixShape> shape;
  for (llvm::StringRef modifier : instruction.modifiers) {
    if (auto one = parseMatrixShape(modifier); one && one->k)
      shape = one;
    else if (std::optional<Type> type = parseType(modifier))
      types.push_back(*type);
  }
  if (types.size() == 2)
    types.insert(types.begin() + 1, 2, Type::F16);
  if (!shape || types.size() != 4 || types[1] != types[2] || !op.info)
    return nullptr;
  info.isWmma = instruction.opcode == "wmma";
  info.m = uint8_t(shape->m);
  info.n = uint8_t(shape->n);
  info.k = uint8_t(shape->k);
  info.format = formatOf(types[0]);
  info.formatC = formatOf(types[3]);
  info.from = types[1] == Type::TF32 ? Format::F32 : formatOf(types[1]);
  info.precision = types[1] == Type::TF32 ? 11 : 0;
  info.parts = bitsOf(info.from) == 16 ? 2 : 1;
  info.isWideSource = info.from == Format::F64;
  bool isKnown = info.format != Format::None && info.formatC != Format::None &&
                 info.from != Format::None;
  return isKnown ? multiply : nullptr;
}

Handler fragmentShadow(Decoder &decoder, ShadowInfo &info) {
  const Instruction &instruction = decoder.instruction();
  std::optional<MatrixShape> shape;
  Type type = Type::None;
  char which = 0;
  for (llvm::StringRef modifier : instruction.modifiers) {
    if (auto one = parseMatrixShape(modifier); one && one->k)
      shape = one;
    else if (std::optional<Type> one = parseType(modifier))
      type = *one;
    else if (modifier.size() == 1)
      which = modifier[0];
  }
  bool isStore = instruction.has("store");
  if (!shape || !which ||
      (type != Type::TF32 && formatOf(type) == Format::None))
    return nullptr;
  const Operand &fragment = instruction.operands[isStore ? 1 : 0];
  info.registers = uint8_t(std::max<size_t>(fragment.elements.size(), 1));
  info.m = uint8_t(which == 'b' ? shape->k : shape->m);
  info.n = uint8_t(which == 'a' ? shape->k : shape->n);
  info.isNegated = instruction.has("col");
  info.sourceBits = type == Type::TF32 ? 32 : uint8_t(bitWidth(type));
  return isStore ? storeFragment : loadFragment;
}

} // namespace

Handler tensorShadow(Decoder &decoder, Op &op, ShadowInfo &info) {
  const Instruction &instruction = decoder.instruction();
  llvm::StringRef opcode = instruction.opcode;
  if (opcode == "mma" || (opcode == "wmma" && instruction.has("mma")))
    return productShadow(decoder, op, info);
  if (opcode == "movmatrix")
    return moveMatrix;
  bool isStore = opcode == "stmatrix" || instruction.has("store");
  if ((opcode != "ldmatrix" && opcode != "stmatrix" && opcode != "wmma") ||
      instruction.operands.size() < 2)
    return nullptr;
  const Operand &place = instruction.operands[isStore ? 0 : 1];
  if (place.elements.empty())
    return nullptr;
  auto *access = decoder.makeInfo<MemoryInfo>();
  const Operand &base = place.elements[0];
  access->isWide =
      !base.isRegister() || bitWidth(decoder.registerType(base)) == 64;
  for (llvm::StringRef modifier : instruction.modifiers)
    if (std::optional<Space> space = parseSpace(modifier))
      access->space = *space;
  info.access = access;
  if (opcode == "wmma")
    return fragmentShadow(decoder, info);
  info.m = instruction.has("x4") ? 4 : instruction.has("x2") ? 2 : 1;
  info.isNegated = instruction.has("trans");
  return isStore ? storeMatrices : loadMatrices;
}

} // namespace fsr::ptx
