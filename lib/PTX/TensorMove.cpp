// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Matrices between memory and the registers of a warp: ldmatrix, stmatrix,
// movmatrix, wmma.load and wmma.store. Memory is accessed in pieces of up to
// 16 bytes by the handlers of ordinary loads and stores, with all their checks;
// registers that only these handlers use take the pieces.
//
//===----------------------------------------------------------------------===//

#include "MemoryOps.h"
#include "Tensor.h"

#include "llvm/ADT/StringSwitch.h"

using llvm::StringRef;
using llvm::Twine;

namespace fsr::ptx {

namespace {

/// Of the largest piece, which is a row of ldmatrix.
constexpr unsigned pieceWords = 4;

/// What `Op::info` points to.
struct MoveInfo {
  MemoryInfo access; ///< Of a piece.
  Handler run = nullptr;
  unsigned matrices = 0; ///< Of ldmatrix and stmatrix.
  bool isTransposed = false;
  // Of wmma: a matrix of `runs` stretches of `length` elements; the fragment
  // holds the transposed one where `isTransposed`.
  unsigned runs = 0, length = 0, elementBytes = 0, registers = 0;
  unsigned words = pieceWords; ///< Of a piece, 4 bytes each.
  unsigned pieceBytes() const { return words * 4; }
  bool isWide = true; ///< The address register.
};

/// The op that accesses pieces on behalf of `op`.
Op pieceOp(const Op &op, const MoveInfo &info) {
  Op inner;
  inner.source = op.source;
  inner.opClass = OpClass::Memory;
  inner.flow = Flow::Handler;
  inner.info = &info.access;
  inner.run = info.run;
  return inner;
}

bool isInShared(Warp &warp, const Op &op, const MoveInfo &info,
                LaneMask active) {
  if (info.access.space != Space::Generic)
    return true;
  const uint64_t *at = warp.lanes<uint64_t>(op.operand(0));
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    uint64_t address = at[lane] + uint64_t(op.offset);
    if (address - sharedWindow < windowBytes)
      continue;
    warp.fatal(op, lane, FindingKind::OutOfBounds, address,
               "0x" + Twine::utohexstr(address) + " is not shared memory");
    return false;
  }
  return true;
}

LaneMask lanesOf(unsigned matrices) {
  return matrices == 4 ? allLanes : (LaneMask(1) << matrices * 8) - 1;
}

uint16_t halfOf(const uint32_t *cells, unsigned at) {
  return uint16_t(cells[at / 2] >> at % 2 * 16);
}

/// The result's cells from a matrix whose rows are 4 cells each.
void transpose(const uint32_t *rows, uint32_t *to) {
  for (unsigned lane = 0; lane < warpLanes; ++lane) {
    unsigned row = lane / 4, column = lane % 4 * 2;
    to[lane] = uint32_t(halfOf(rows, column * 8 + row)) |
               uint32_t(halfOf(rows, (column + 1) * 8 + row)) << 16;
  }
}

/// Results: the fragments, then the cells of the rows. Source: the address.
void loadMatrices(Warp &warp, const Op &op, LaneMask active) {
  const auto &info = *static_cast<const MoveInfo *>(op.info);
  LaneMask rows = lanesOf(info.matrices);
  if (!allTakePart(warp, op, active) || !isInShared(warp, op, info, rows))
    return;
  Op inner = pieceOp(op, info);
  inner.offset = op.offset;
  inner.numResults = pieceWords;
  inner.numSources = 1;
  for (unsigned word = 0; word < pieceWords; ++word)
    inner.slots.push_back(op.result(info.matrices + word));
  inner.slots.push_back(op.operand(0));
  info.run(warp, inner, rows);
  for (unsigned matrix = 0; matrix < info.matrices; ++matrix) {
    uint32_t cells[warpLanes];
    LaneMask tainted = 0;
    for (unsigned word = 0; word < pieceWords; ++word) {
      Slot slot = op.result(info.matrices + word);
      const uint32_t *from = warp.lanes<uint32_t>(slot) + matrix * 8;
      for (unsigned row = 0; row < 8; ++row)
        cells[row * 4 + word] = from[row];
      if (warp.tracksTaint)
        tainted |= warp.taint(slot) >> matrix * 8 & 0xff;
    }
    uint32_t *to = warp.lanes<uint32_t>(op.result(matrix));
    if (info.isTransposed)
      transpose(cells, to);
    else
      std::memcpy(to, cells, sizeof(cells));
    if (warp.tracksTaint)
      warp.setTaint(op.result(matrix), allLanes, tainted ? allLanes : 0);
  }
}

/// Results: the cells of the rows. Sources: the address, then the fragments.
void storeMatrices(Warp &warp, const Op &op, LaneMask active) {
  const auto &info = *static_cast<const MoveInfo *>(op.info);
  LaneMask rows = lanesOf(info.matrices);
  if (!allTakePart(warp, op, active) || !isInShared(warp, op, info, rows))
    return;
  LaneMask tainted = 0;
  for (unsigned matrix = 0; matrix < info.matrices; ++matrix) {
    Slot slot = op.operand(1 + matrix);
    uint32_t cells[warpLanes];
    if (info.isTransposed)
      transpose(warp.lanes<uint32_t>(slot), cells);
    else
      std::memcpy(cells, warp.lanes<uint32_t>(slot), sizeof(cells));
    for (unsigned word = 0; word < pieceWords; ++word) {
      uint32_t *to = warp.lanes<uint32_t>(op.result(word)) + matrix * 8;
      for (unsigned row = 0; row < 8; ++row)
        to[row] = cells[row * 4 + word];
    }
    if (warp.tracksTaint && warp.taint(slot))
      tainted |= LaneMask(0xff) << matrix * 8;
  }
  Op inner = pieceOp(op, info);
  inner.offset = op.offset;
  inner.numSources = 1 + pieceWords;
  inner.slots.push_back(op.operand(0));
  for (unsigned word = 0; word < pieceWords; ++word) {
    inner.slots.push_back(op.result(word));
    if (warp.tracksTaint)
      warp.setTaint(op.result(word), allLanes, tainted);
  }
  info.run(warp, inner, rows);
}

void moveMatrix(Warp &warp, const Op &op, LaneMask active) {
  if (!allTakePart(warp, op, active))
    return;
  uint32_t cells[warpLanes];
  std::memcpy(cells, warp.lanes<uint32_t>(op.operand(0)), sizeof(cells));
  transpose(cells, warp.lanes<uint32_t>(op.result(0)));
}

//===----------------------------------------------------------------------===//
// wmma
//===----------------------------------------------------------------------===//

/// Of the largest fragment: 16x16 of f32.
constexpr unsigned mostMatrixBytes = 1024;

/// The place of the matrix and the stride, which all lanes have to agree on.
bool readPlace(Warp &warp, const Op &op, const MoveInfo &info,
               uint64_t &address, uint32_t &stride) {
  auto at = [&](unsigned lane) {
    return info.isWide ? warp.lanes<uint64_t>(op.operand(0))[lane]
                       : uint64_t(warp.lanes<uint32_t>(op.operand(0))[lane]);
  };
  const uint32_t *strides = warp.lanes<uint32_t>(op.operand(1));
  address = at(0) + uint64_t(op.offset);
  if (!info.isWide)
    address = uint32_t(address);
  stride = strides[0];
  for (unsigned lane = 1; lane < warpLanes; ++lane)
    if (at(lane) != at(0) || strides[lane] != stride) {
      warp.fatal(op, lane, FindingKind::Other, at(lane),
                 "the lanes of the warp give different addresses or strides");
      return false;
    }
  uint64_t bytes = uint64_t(stride) * info.elementBytes;
  if (bytes % info.pieceBytes()) {
    warp.fatal(op, 0, FindingKind::Misaligned, address,
               "a stride of " + Twine(stride) + " elements is " + Twine(bytes) +
                   " bytes, which is no multiple of " +
                   Twine(info.pieceBytes()));
    return false;
  }
  return true;
}

/// Runs `access` for up to 32 pieces at a time, their addresses in `slot`.
template <typename Access>
void forPieces(Warp &warp, const MoveInfo &info, Slot slot, uint64_t address,
               uint32_t stride, Access access) {
  unsigned perRun = info.length * info.elementBytes / info.pieceBytes();
  unsigned pieces = info.runs * perRun;
  for (unsigned first = 0; first < pieces; first += warpLanes) {
    unsigned count = std::min(pieces - first, warpLanes);
    uint64_t *to = warp.lanes<uint64_t>(slot);
    for (unsigned lane = 0; lane < count; ++lane) {
      unsigned piece = first + lane;
      to[lane] = address +
                 uint64_t(piece / perRun) * stride * info.elementBytes +
                 piece % perRun * info.pieceBytes();
    }
    access(first, count,
           count == warpLanes ? allLanes : (LaneMask(1) << count) - 1);
  }
}

/// Turns `runs` stretches of `length` into `length` of `runs`.
void transposeElements(const uint8_t *from, uint8_t *to, unsigned runs,
                       unsigned length, unsigned bytes) {
  for (unsigned i = 0; i < runs; ++i)
    for (unsigned j = 0; j < length; ++j)
      std::memcpy(to + (j * runs + i) * bytes, from + (i * length + j) * bytes,
                  bytes);
}

/// Results: the fragment, then the cells of a piece, then addresses. Sources:
/// the address and the stride.
void loadFragment(Warp &warp, const Op &op, LaneMask active) {
  const auto &info = *static_cast<const MoveInfo *>(op.info);
  uint64_t address;
  uint32_t stride;
  if (!allTakePart(warp, op, active) ||
      !readPlace(warp, op, info, address, stride))
    return;
  Slot addresses = op.result(info.registers + pieceWords);
  Op inner = pieceOp(op, info);
  inner.numResults = uint8_t(info.words);
  inner.numSources = 1;
  for (unsigned word = 0; word < info.words; ++word)
    inner.slots.push_back(op.result(info.registers + word));
  inner.slots.push_back(addresses);
  uint8_t bytes[mostMatrixBytes], turned[mostMatrixBytes];
  LaneMask tainted = 0;
  if (warp.tracksTaint) {
    tainted = warp.taint(op.operand(0)) | warp.taint(op.operand(1));
    warp.setTaint(addresses, allLanes, tainted);
  }
  forPieces(warp, info, addresses, address, stride,
            [&](unsigned first, unsigned count, LaneMask lanes) {
              info.run(warp, inner, lanes);
              for (unsigned word = 0; word < info.words; ++word) {
                Slot slot = inner.result(word);
                const uint32_t *from = warp.lanes<uint32_t>(slot);
                for (unsigned lane = 0; lane < count; ++lane)
                  std::memcpy(bytes + (first + lane) * info.pieceBytes() +
                                  word * 4,
                              &from[lane], 4);
                if (warp.tracksTaint)
                  tainted |= warp.taint(slot) & lanes;
              }
            });
  const uint8_t *matrix = bytes;
  if (info.isTransposed) {
    transposeElements(bytes, turned, info.runs, info.length, info.elementBytes);
    matrix = turned;
  }
  // Fragments of f16 may hold the matrix more than once.
  unsigned total = info.runs * info.length * info.elementBytes;
  unsigned cellBytes = info.elementBytes == 8 ? 8 : 4;
  for (unsigned r = 0; r < info.registers; ++r) {
    std::memcpy(warp.lanes<uint8_t>(op.result(r)),
                matrix + r * warpLanes * cellBytes % total,
                warpLanes * cellBytes);
    if (warp.tracksTaint)
      warp.setTaint(op.result(r), allLanes, tainted ? allLanes : 0);
  }
}

/// Results: the cells of a piece, then addresses. Sources: the address, the
/// stride, the fragment.
void storeFragment(Warp &warp, const Op &op, LaneMask active) {
  const auto &info = *static_cast<const MoveInfo *>(op.info);
  uint64_t address;
  uint32_t stride;
  if (!allTakePart(warp, op, active) ||
      !readPlace(warp, op, info, address, stride))
    return;
  uint8_t bytes[mostMatrixBytes], turned[mostMatrixBytes];
  unsigned cellBytes = info.elementBytes == 8 ? 8 : 4;
  LaneMask tainted = 0;
  for (unsigned r = 0; r < info.registers; ++r) {
    Slot slot = op.operand(2 + r);
    std::memcpy(bytes + r * warpLanes * cellBytes, warp.lanes<uint8_t>(slot),
                warpLanes * cellBytes);
    if (warp.tracksTaint)
      tainted |= warp.taint(slot);
  }
  const uint8_t *matrix = bytes;
  if (info.isTransposed) {
    // The fragment is in the order of rows; memory in that of columns.
    transposeElements(bytes, turned, info.length, info.runs, info.elementBytes);
    matrix = turned;
  }
  Slot addresses = op.result(pieceWords);
  Op inner = pieceOp(op, info);
  inner.numSources = uint8_t(1 + info.words);
  inner.slots.push_back(addresses);
  for (unsigned word = 0; word < info.words; ++word) {
    inner.slots.push_back(op.result(word));
    if (warp.tracksTaint)
      warp.setTaint(op.result(word), allLanes, tainted ? allLanes : 0);
  }
  if (warp.tracksTaint)
    warp.setTaint(addresses, allLanes,
                  warp.taint(op.operand(0)) | warp.taint(op.operand(1)));
  forPieces(warp, info, addresses, address, stride,
            [&](unsigned first, unsigned count, LaneMask lanes) {
              for (unsigned word = 0; word < info.words; ++word) {
                uint32_t *to = warp.lanes<uint32_t>(op.result(word));
                for (unsigned lane = 0; lane < count; ++lane)
                  std::memcpy(&to[lane],
                              matrix + (first + lane) * info.pieceBytes() +
                                  word * 4,
                              4);
              }
              info.run(warp, inner, lanes);
            });
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

/// Four cells of 32 bits.
void setAccess(MoveInfo &info, Space space, bool isStore) {
  info.access.space = space;
  info.access.type = Type::B32;
  info.access.elementBytes = 4;
  info.access.vector = uint8_t(info.words);
  info.access.isStore = isStore;
  info.access.isWide = info.isWide;
  // Bytes that nothing wrote are used, not copied.
  info.access.isOnlyCopied = 0;
  info.run = isStore ? storeHandler(4, info.words) : loadHandler(4, info.words);
}

void addPieceSlots(Decoder &decoder, llvm::SmallVectorImpl<Slot> &to,
                   bool hasAddresses) {
  for (unsigned i = 0; i < pieceWords + unsigned(hasAddresses); ++i)
    to.push_back(decoder.temporarySlot());
}

Decoded decodeRows(Decoder &decoder, Op &op, bool isStore) {
  const Instruction &instruction = decoder.instruction();
  auto *info = decoder.makeInfo<MoveInfo>();
  Space space = Space::Generic;
  bool isSync = false, isAligned = false, hasShape = false, hasType = false;
  for (StringRef modifier : instruction.modifiers) {
    unsigned count = llvm::StringSwitch<unsigned>(modifier)
                         .Case("x1", 1)
                         .Case("x2", 2)
                         .Case("x4", 4)
                         .Default(0);
    if (count)
      info->matrices = count;
    else if (modifier == "sync")
      isSync = true;
    else if (modifier == "aligned")
      isAligned = true;
    else if (modifier == "m8n8")
      hasShape = true;
    else if (modifier == "b16")
      hasType = true;
    else if (modifier == "trans")
      info->isTransposed = true;
    else if (modifier == "shared" || modifier == "shared::cta")
      space = Space::Shared;
    else
      return decoder.failModifier(modifier);
  }
  if (!isSync || !isAligned || !hasShape || !hasType || !info->matrices)
    return decoder.fail(".sync.aligned.m8n8, a count and .b16 wanted");
  if (!decoder.expectOperands(2))
    return Decoded::Failed;
  const Operand &place = instruction.operands[isStore ? 0 : 1];
  const Operand &fragment = instruction.operands[isStore ? 1 : 0];
  Decoder::AddressParts parts = decoder.address(place);
  if (parts.base == noSlot)
    return Decoded::Failed;
  // A variable by its name is an offset in its own space.
  if (space == Space::Generic && parts.space)
    space = *parts.space;
  if (space == Space::Generic && !parts.isWide)
    return decoder.fail("an address of 64 bits wanted");
  info->isWide = parts.isWide;
  setAccess(*info, space, isStore);
  llvm::SmallVector<Slot, 8> results, sources{parts.base};
  if (!fragmentSlots(decoder, fragment, Type::B32, info->matrices, !isStore,
                     isStore ? sources : results))
    return Decoded::Failed;
  addPieceSlots(decoder, results, /*hasAddresses=*/false);
  setCollective(decoder, op, results, sources,
                isStore ? storeMatrices : loadMatrices);
  op.info = info;
  op.offset = parts.offset;
  op.opClass = OpClass::Memory;
  op.flow = Flow::Handler;
  op.steers = 1;
  return Decoded::Done;
}

Decoded decodeMove(Decoder &decoder, Op &op) {
  const Instruction &instruction = decoder.instruction();
  static constexpr StringRef wanted[] = {"sync", "aligned", "m8n8", "trans",
                                         "b16"};
  if (llvm::ArrayRef<StringRef>(instruction.modifiers) !=
      llvm::ArrayRef<StringRef>(wanted))
    return decoder.fail(".sync.aligned.m8n8.trans.b16 wanted");
  if (!decoder.expectOperands(2))
    return Decoded::Failed;
  llvm::SmallVector<Slot, 1> results, sources;
  if (!fragmentSlots(decoder, instruction.operands[0], Type::B32, 1, true,
                     results) ||
      !fragmentSlots(decoder, instruction.operands[1], Type::B32, 1, false,
                     sources))
    return Decoded::Failed;
  setCollective(decoder, op, results, sources, moveMatrix);
  op.opClass = OpClass::Shuffle;
  op.flow = Flow::Across;
  return Decoded::Done;
}

/// Rows and columns of the matrix, its elements and its registers; false: no
/// such fragment.
bool describeFragment(char which, const MatrixShape &shape, Type type,
                      unsigned &rows, unsigned &columns, MoveInfo &info) {
  bool isFactor = which == 'a' || which == 'b';
  Type family = type == Type::U8 ? Type::S8 : type;
  if (isFactor ? !wmmaHandler(family, shape, /*wide=*/false)
               : type != Type::F16 && type != Type::F32 && type != Type::S32 &&
                     type != Type::F64)
    return false;
  bool hasShape = false;
  for (Type one : {Type::F16, Type::BF16, Type::S8, Type::TF32, Type::F64}) {
    bool goesWith =
        isFactor            ? one == family
        : type == Type::F16 ? one == Type::F16
        : type == Type::F32
            ? one == Type::F16 || one == Type::BF16 || one == Type::TF32
        : type == Type::S32 ? one == Type::S8
                            : one == Type::F64;
    hasShape |= goesWith && wmmaHandler(one, shape, /*wide=*/false);
  }
  if (!hasShape)
    return false;
  rows = which == 'b' ? shape.k : shape.m;
  columns = which == 'a' ? shape.k : shape.n;
  // tf32 takes 32 bits of memory.
  info.elementBytes = type == Type::TF32 ? 4 : bitWidth(type) / 8;
  unsigned perCell = info.elementBytes >= 4 ? 1 : 4 / info.elementBytes;
  info.registers = isFactor && type == Type::F16
                       ? 8
                       : rows * columns / (warpLanes * perCell);
  return true;
}

Decoded decodeFragment(Decoder &decoder, Op &op) {
  const Instruction &instruction = decoder.instruction();
  auto *info = decoder.makeInfo<MoveInfo>();
  bool isStore = instruction.has("store"), isSync = false, isAligned = false;
  Space space = Space::Generic;
  StringRef layout;
  char which = 0;
  std::optional<MatrixShape> shape;
  Type type = Type::None;
  for (StringRef modifier : instruction.modifiers) {
    if (modifier == "load" || modifier == "store")
      continue;
    if (modifier == "sync")
      isSync = true;
    else if (modifier == "aligned")
      isAligned = true;
    else if (modifier == "row" || modifier == "col")
      layout = modifier;
    else if (modifier.size() == 1 && modifier[0] >= 'a' && modifier[0] <= 'd')
      which = modifier[0];
    else if (modifier == "shared" || modifier == "shared::cta")
      space = Space::Shared;
    else if (modifier == "global")
      space = Space::Global;
    else if (auto one = parseMatrixShape(modifier); one && one->k)
      shape = one;
    else if (auto one = parseType(modifier))
      type = *one;
    else
      return decoder.failModifier(modifier);
  }
  if (!isSync || !isAligned || layout.empty() || !which || !shape ||
      type == Type::None || isStore != (which == 'd'))
    return decoder.fail(".sync.aligned, a matrix, a layout, a shape and a type "
                        "wanted");
  unsigned rows = 0, columns = 0;
  if (!describeFragment(which, *shape, type, rows, columns, *info))
    return decoder.fail("a fragment of this shape and type is not supported");
  info->isTransposed = layout == "col";
  info->runs = info->isTransposed ? columns : rows;
  info->length = info->isTransposed ? rows : columns;
  // Each run is aligned to what the fragment takes of a lane's registers.
  unsigned cellBytes = info->elementBytes == 8 ? 8 : 4;
  info->words = std::min({pieceWords, info->registers * cellBytes / 4,
                          info->length * info->elementBytes / 4});
  size_t count = instruction.operands.size();
  if (count != 2 && count != 3)
    return decoder.fail("two or three operands wanted");
  const Operand &place = instruction.operands[isStore ? 0 : 1];
  const Operand &fragment = instruction.operands[isStore ? 1 : 0];
  Decoder::AddressParts parts = decoder.address(place);
  if (parts.base == noSlot)
    return Decoded::Failed;
  // A variable by its name is an offset in its own space.
  if (space == Space::Generic && parts.space)
    space = *parts.space;
  Slot stride = count == 3
                    ? decoder.sourceSlot(instruction.operands[2], Type::U32)
                    : decoder.constantSlot(info->length, 32);
  if (stride == noSlot)
    return Decoded::Failed;
  info->isWide = parts.isWide;
  setAccess(*info, space, isStore);
  info->access.isWide = true;
  llvm::SmallVector<Slot, 16> results, sources{parts.base, stride};
  Type cell = type == Type::F64 ? Type::F64 : Type::B32;
  if (!fragmentSlots(decoder, fragment, cell, info->registers, !isStore,
                     isStore ? sources : results))
    return Decoded::Failed;
  addPieceSlots(decoder, results, /*hasAddresses=*/true);
  setCollective(decoder, op, results, sources,
                isStore ? storeFragment : loadFragment);
  op.info = info;
  op.offset = parts.offset;
  op.opClass = OpClass::Memory;
  op.flow = Flow::Handler;
  op.steers = 3;
  return Decoded::Done;
}

} // namespace

Decoded decodeMatrixMove(Decoder &decoder, Op &op) {
  const Instruction &instruction = decoder.instruction();
  if (instruction.opcode == "ldmatrix")
    return decodeRows(decoder, op, /*isStore=*/false);
  if (instruction.opcode == "stmatrix")
    return decodeRows(decoder, op, /*isStore=*/true);
  if (instruction.opcode == "movmatrix")
    return decodeMove(decoder, op);
  if (instruction.has("load") || instruction.has("store"))
    return decodeFragment(decoder, op);
  return decoder.fail("this form of wmma is not supported");
}

} // namespace fsr::ptx
