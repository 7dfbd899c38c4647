// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One record as a folder of four files:
//
//   id             "fsr-record <version>", then name and SHA-256 of the others
//   record.json    the record without its source and fatbin
//   kernel.cu      the source
//   kernel.fatbin  the fatbin
//
// The SHA-256 of the file `id` is the record's id and the folder's name. So one
// changed byte anywhere shows, and shows where. The version stands in `id` and
// in record.json; only where both name the same one is it believed, so that a
// changed digit of a version is not mistaken for a format of the future.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_STORE_RECORDFOLDER_H
#define FSR_LIB_STORE_RECORDFOLDER_H

#include "fsr/Core/Trial.h"
#include "fsr/Support/Files.h"

#include <optional>
#include <string>
#include <vector>

namespace fsr::store {

/// The files of `record`, and its id.
struct EncodedRecord {
  std::string id;
  std::vector<NamedBytes> files;
};

/// An error (kind BadInput) where the record could not be read back.
llvm::Expected<EncodedRecord> encodeRecord(const Record &record);

/// A record, or the sentence that says why it is passed over.
struct LoadedRecord {
  std::optional<Record> record;
  std::string skipped;
  std::string id, json; ///< Bytes of those two files, where there is a record.
};

/// Which of two records answers a look-up: the higher level of evidence, the
/// higher lower bound of the gain, then the smaller id.
bool isBetter(const Record &a, const Record &b);

/// Reads and verifies the folder `path`, whose last component is the id.
/// `taskKey` and `target` are what the folders above it are named. An error
/// names the folder and the file.
llvm::Expected<LoadedRecord> loadRecord(llvm::StringRef path,
                                        llvm::StringRef taskKey,
                                        llvm::StringRef target);

/// The four files of a loaded record, byte for byte.
std::vector<NamedBytes> filesOf(const LoadedRecord &loaded);

} // namespace fsr::store

#endif // FSR_LIB_STORE_RECORDFOLDER_H
