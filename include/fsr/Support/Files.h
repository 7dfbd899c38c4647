// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Files that are either whole or not there. Every writer stages beside the goal
// under a name of its own and renames once, so a reader, or the next run after
// a kill, never sees half a file or half a folder.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_SUPPORT_FILES_H
#define FSR_SUPPORT_FILES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fsr {

/// The bytes of `path`. An error names the path; one larger than `maxBytes` is
/// an error too, since stores and exchange folders are hostile input.
llvm::Expected<std::string> readFile(llvm::StringRef path,
                                     uint64_t maxBytes = uint64_t(1) << 30);

/// Writes `bytes` to a staged file, flushes it to the disk and renames it to
/// `path`. Makes the parent folders.
llvm::Error writeFileAtomically(llvm::StringRef path, llvm::StringRef bytes);

/// The same, where `path` does not exist yet. Returns false, and leaves what is
/// there, where it does.
llvm::Expected<bool> writeFileOnce(llvm::StringRef path, llvm::StringRef bytes);

/// Writes `bytes` to an output that the user named: in place where it is there
/// and no regular file (a device, a pipe), through a link, else at once. Unlike
/// `writeFileAtomically` it makes no folders.
llvm::Error writeOutput(llvm::StringRef path, llvm::StringRef bytes);

/// Whether `writeOutput` could write `path` as things are: for before the work
/// whose result it is. Leaves nothing behind. Errors are BadInput.
llvm::Error checkOutput(llvm::StringRef path);

/// Writes a file of `bytes` bytes in `folder`, flushed, and removes it.
llvm::Error tryToWrite(llvm::StringRef folder, size_t bytes);

/// A file of a folder that is written as one: name without folders, bytes.
using NamedBytes = std::pair<std::string, std::string>;

/// Writes the files to a staged folder beside `path` and renames it once.
/// Returns false, and leaves what is there, where `path` exists already.
llvm::Expected<bool> writeFolderAtomically(llvm::StringRef path,
                                           llvm::ArrayRef<NamedBytes> files);

llvm::Error makeFolders(llvm::StringRef path);

/// True for the names that the two writers above stage under.
bool isStagingName(llvm::StringRef name);

/// The folder of the running program, or of the plugin that this code was
/// loaded from: helper programs are looked for there. Empty where unknown.
std::string folderOfThisCode();

} // namespace fsr

#endif // FSR_SUPPORT_FILES_H
