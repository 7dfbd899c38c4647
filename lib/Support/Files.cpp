// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What is renamed has been flushed before, and the folder that holds the name
// is flushed after, so that a crash of the machine leaves the old state or the
// new. Staging names begin with a dot, so that shells and store readers pass
// over what a killed writer left.
//
//===----------------------------------------------------------------------===//

#include "fsr/Support/Files.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Interrupt.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <random>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace fsr;

static constexpr llvm::StringLiteral stagingPrefix = ".fsr-staging-";

static llvm::Error failed(llvm::StringRef doing, llvm::StringRef path,
                          int error) {
  return makeError(ErrorKind::Unavailable, "cannot " + doing + " '" + path +
                                               "': " + std::strerror(error));
}

bool fsr::isStagingName(llvm::StringRef name) {
  return name.starts_with(stagingPrefix);
}

/// Other processes, and threads of this one, stage in the same folder.
static std::string stagingName() {
  static std::atomic<uint64_t> count{0};
  std::random_device random;
  return (stagingPrefix + llvm::Twine(::getpid()) + "-" +
          llvm::Twine::utohexstr(uint64_t(random()) << 32 | random()) + "-" +
          llvm::Twine(count++))
      .str();
}

static std::string parentOf(llvm::StringRef path) {
  llvm::StringRef parent = llvm::sys::path::parent_path(path);
  return parent.empty() ? "." : parent.str();
}

llvm::Expected<std::string> fsr::readFile(llvm::StringRef path,
                                          uint64_t maxBytes) {
  // Without O_NONBLOCK, opening a FIFO planted in a store would wait for ever.
  int fd =
      ::open(path.str().c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0)
    return failed("read", path, errno);
  llvm::scope_exit closeIt([&] { ::close(fd); });
  struct stat info;
  if (::fstat(fd, &info) != 0)
    return failed("read", path, errno);
  if (!S_ISREG(info.st_mode))
    return makeError(ErrorKind::BadInput,
                     "cannot read '" + path + "': not a regular file");

  // Files of /proc announce no size, and a file may change while it is read, so
  // the announced size is a hint, and the cap is judged by what arrives.
  auto tooLarge = [&] {
    return makeError(ErrorKind::BadInput, "cannot read '" + path +
                                              "': larger than the limit of " +
                                              llvm::Twine(maxBytes) + " bytes");
  };
  if (static_cast<uint64_t>(info.st_size) > maxBytes)
    return tooLarge();
  std::string bytes;
  size_t expected = static_cast<size_t>(info.st_size);
  size_t filled = 0;
  while (true) {
    if (filled == bytes.size())
      bytes.resize(filled ? filled * 2 : std::max<size_t>(expected, 4096));
    ssize_t got = ::read(fd, bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return failed("read", path, errno);
    if (got == 0)
      break;
    filled += got;
    if (filled > maxBytes)
      return tooLarge();
    if (filled == expected)
      break;
  }
  bytes.resize(filled);
  return bytes;
}

static llvm::Error syncFolder(llvm::StringRef path) {
  int fd = ::open(path.str().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return failed("flush folder", path, errno);
  int result = ::fsync(fd);
  int error = errno;
  ::close(fd);
  // Some file systems cannot flush a folder; the rename is all they offer.
  if (result != 0 && error != EINVAL && error != ENOTSUP && error != EROFS)
    return failed("flush folder", path, error);
  return llvm::Error::success();
}

/// Makes `path`, which must not exist, with `bytes`, flushed to the disk.
static llvm::Error writeNewFile(llvm::StringRef path, llvm::StringRef bytes) {
  int fd = ::open(path.str().c_str(),
                  O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0666);
  if (fd < 0)
    return failed("write", path, errno);
  while (!bytes.empty()) {
    ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0) {
      int error = errno;
      ::close(fd);
      return failed("write", path, error);
    }
    bytes = bytes.drop_front(written);
  }
  int result = ::fsync(fd);
  int error = errno;
  if (::close(fd) != 0 && result == 0) { // NFS reports a full disk here.
    result = -1;
    error = errno;
  }
  if (result != 0)
    return failed("write", path, error);
  return llvm::Error::success();
}

llvm::Error fsr::makeFolders(llvm::StringRef path) {
  if (path.empty())
    return llvm::Error::success();
  std::string name = path.str();
  if (::mkdir(name.c_str(), 0777) == 0)
    return syncFolder(parentOf(path));
  int error = errno;
  if (error == ENOENT) {
    llvm::StringRef parent = llvm::sys::path::parent_path(path);
    if (parent.empty() || parent == path)
      return failed("make folder", path, error);
    if (llvm::Error failure = makeFolders(parent))
      return failure;
    if (::mkdir(name.c_str(), 0777) == 0)
      return syncFolder(parent);
    error = errno;
  }
  // Read-only file systems answer EROFS for a folder that is there as well.
  struct stat info;
  if (::stat(name.c_str(), &info) != 0)
    return failed("make folder", path, error);
  if (!S_ISDIR(info.st_mode))
    return failed("make folder", path, ENOTDIR);
  return llvm::Error::success();
}

/// Renames unless `to` exists. Returns an errno value.
static int renameIfFree(const std::string &from, const std::string &to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(),
                  RENAME_NOREPLACE) == 0)
    return 0;
  if (errno != EINVAL && errno != ENOSYS)
    return errno;
  // A file system without that flag: a folder replaces nothing but an empty
  // folder, and none that is written here is empty; of two files that are
  // written at the same moment either may stay.
  struct stat info;
  if (::lstat(to.c_str(), &info) == 0)
    return EEXIST;
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

enum class IfThere { Replace, Keep };

/// Returns false where a file was there to be kept.
static llvm::Expected<bool>
writeStaged(llvm::StringRef path, llvm::StringRef bytes, IfThere ifThere) {
  std::string goal = path.str();
  struct stat info;
  if (ifThere == IfThere::Keep && ::lstat(goal.c_str(), &info) == 0)
    return false;
  std::string folder = parentOf(path);
  if (llvm::Error error = makeFolders(folder))
    return error;
  WholeStep step;
  std::string staged = folder + "/" + stagingName();
  if (llvm::Error error = writeNewFile(staged, bytes)) {
    ::unlink(staged.c_str());
    return error;
  }
  int error = 0;
  if (ifThere == IfThere::Keep)
    error = renameIfFree(staged, goal);
  else if (::rename(staged.c_str(), goal.c_str()) != 0)
    error = errno;
  if (error)
    ::unlink(staged.c_str());
  if (error == EEXIST && ifThere == IfThere::Keep)
    return false;
  if (error)
    return failed("write", path, error);
  if (llvm::Error failure = syncFolder(folder))
    return failure;
  return true;
}

llvm::Error fsr::writeOutput(llvm::StringRef path, llvm::StringRef bytes) {
  struct stat info;
  bool there = ::stat(path.str().c_str(), &info) == 0;
  llvm::SmallString<256> real(path);
  if (there && S_ISREG(info.st_mode)) {
    if (std::error_code code = llvm::sys::fs::real_path(path, real))
      return failed("write", path, code.value());
    return writeFileAtomically(real, bytes);
  }
  if (!there) {
    llvm::StringRef parent = llvm::sys::path::parent_path(path);
    if (!parent.empty() && !llvm::sys::fs::is_directory(parent))
      return makeError(ErrorKind::BadInput, "cannot write '" + path +
                                                "': no folder '" + parent +
                                                "'");
    return writeFileAtomically(path, bytes);
  }
  std::error_code code;
  llvm::raw_fd_ostream os(path, code, llvm::sys::fs::CD_OpenExisting);
  if (!code) {
    os << bytes;
    os.flush();
    code = os.error();
    os.clear_error();
  }
  return code ? failed("write", path, code.value()) : llvm::Error::success();
}

llvm::Error fsr::checkOutput(llvm::StringRef path) {
  auto refuse = [&](llvm::Error error) {
    return makeError(ErrorKind::BadInput, "cannot write '" + path + "': " +
                                              llvm::toString(std::move(error)));
  };
  struct stat info;
  llvm::SmallString<256> real(path);
  if (::stat(path.str().c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode))
      return makeError(ErrorKind::BadInput,
                       "cannot write '" + path + "': it is a folder");
    if (!S_ISREG(info.st_mode)) {
      // To open a pipe would wait for its other end.
      if (::access(path.str().c_str(), W_OK) != 0)
        return makeError(ErrorKind::BadInput, "cannot write '" + path +
                                                  "': " + std::strerror(errno));
      return llvm::Error::success();
    }
    if (std::error_code code = llvm::sys::fs::real_path(path, real))
      return makeError(ErrorKind::BadInput,
                       "cannot write '" + path + "': " + code.message());
  } else if (errno != ENOENT) {
    return makeError(ErrorKind::BadInput,
                     "cannot write '" + path + "': " + std::strerror(errno));
  }
  std::string parent = parentOf(real);
  if (!llvm::sys::fs::is_directory(parent))
    return makeError(ErrorKind::BadInput,
                     "cannot write '" + path + "': no folder '" + parent + "'");
  if (llvm::Error error = tryToWrite(parent, 1))
    return refuse(std::move(error));
  return llvm::Error::success();
}

llvm::Error fsr::tryToWrite(llvm::StringRef folder, size_t bytes) {
  WholeStep step;
  std::string staged = (folder + "/" + stagingName()).str();
  llvm::Error error = writeNewFile(staged, std::string(bytes, '\n'));
  ::unlink(staged.c_str());
  return error;
}

llvm::Error fsr::writeFileAtomically(llvm::StringRef path,
                                     llvm::StringRef bytes) {
  return writeStaged(path, bytes, IfThere::Replace).takeError();
}

llvm::Expected<bool> fsr::writeFileOnce(llvm::StringRef path,
                                        llvm::StringRef bytes) {
  return writeStaged(path, bytes, IfThere::Keep);
}

llvm::Expected<bool>
fsr::writeFolderAtomically(llvm::StringRef path,
                           llvm::ArrayRef<NamedBytes> files) {
  for (const NamedBytes &file : files) {
    llvm::StringRef name = file.first;
    if (name.empty() || name == "." || name == ".." ||
        name.find_first_of(llvm::StringRef("/\0", 2)) != llvm::StringRef::npos)
      return makeError(ErrorKind::BadInput, "cannot write folder '" + path +
                                                "': '" + name +
                                                "' is no file name");
  }
  struct stat info;
  std::string goal = path.rtrim('/').str();
  if (::lstat(goal.c_str(), &info) == 0)
    return false;
  std::string folder = parentOf(goal);
  if (llvm::Error error = makeFolders(folder))
    return error;
  WholeStep step;
  std::string staged = folder + "/" + stagingName();
  if (::mkdir(staged.c_str(), 0777) != 0)
    return failed("make folder", staged, errno);
  bool renamed = false;
  llvm::scope_exit cleanUp([&] {
    if (renamed)
      return;
    for (const NamedBytes &file : files)
      ::unlink((staged + "/" + file.first).c_str());
    ::rmdir(staged.c_str());
  });
  for (const NamedBytes &file : files)
    if (llvm::Error error =
            writeNewFile(staged + "/" + file.first, file.second))
      return error;
  if (llvm::Error error = syncFolder(staged))
    return error;
  int error = renameIfFree(staged, goal);
  if (error == EEXIST || error == ENOTEMPTY || error == ENOTDIR)
    return false;
  if (error)
    return failed("write folder", path, error);
  renamed = true;
  if (llvm::Error failure = syncFolder(folder))
    return failure;
  return true;
}

std::string fsr::folderOfThisCode() {
  Dl_info here{}, program{};
  if (!::dladdr(reinterpret_cast<const void *>(&stagingName), &here))
    return "";
  // For the program itself dladdr repeats argv[0], which may be any text.
  auto *headers = reinterpret_cast<const void *>(::getauxval(AT_PHDR));
  bool isProgram = headers && ::dladdr(headers, &program) &&
                   program.dli_fbase == here.dli_fbase;
  llvm::SmallString<256> resolved;
  if (llvm::sys::fs::real_path(isProgram ? "/proc/self/exe" : here.dli_fname,
                               resolved))
    return "";
  return llvm::sys::path::parent_path(resolved).str();
}
