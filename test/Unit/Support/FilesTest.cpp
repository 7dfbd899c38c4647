// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Whole or not there: files, folders, two writers at once, and what a hostile
// folder may hold.
//
//===----------------------------------------------------------------------===//

#include "fsr/Support/Files.h"
#include "fsr/Support/Error.h"

#include "TemporaryFolder.h"

#include "gtest/gtest.h"

#include <atomic>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace fsr;

static std::string messageOf(llvm::Error error) {
  return llvm::toString(std::move(error));
}

static std::string contentOf(const std::string &path) {
  llvm::Expected<std::string> bytes = readFile(path);
  return bytes ? *bytes : "error: " + messageOf(bytes.takeError());
}

TEST(Files, WriteAndRead) {
  TemporaryFolder folder;
  std::string path = folder / "a/b/c.txt";
  std::string bytes("one\0two", 7);
  ASSERT_FALSE(writeFileAtomically(path, bytes));
  EXPECT_EQ(contentOf(path), bytes);
  ASSERT_FALSE(writeFileAtomically(path, ""));
  EXPECT_EQ(contentOf(path), "");
  EXPECT_EQ(namesIn(folder / "a/b").size(), 1u);
}

TEST(Files, ReadCap) {
  TemporaryFolder folder;
  std::string path = folder / "f";
  ASSERT_FALSE(writeFileAtomically(path, "12345"));
  llvm::Expected<std::string> fits = readFile(path, 5);
  ASSERT_TRUE(!!fits);
  EXPECT_EQ(*fits, "12345");
  llvm::Expected<std::string> over = readFile(path, 4);
  ASSERT_FALSE(!!over);
  EXPECT_EQ(messageOf(over.takeError()),
            "cannot read '" + path + "': larger than the limit of 4 bytes");
}

TEST(Files, ReadCapOfAFileWithoutASize) {
  llvm::Expected<std::string> whole = readFile("/proc/self/maps");
  ASSERT_TRUE(!!whole);
  EXPECT_GT(whole->size(), 100u);
  llvm::Expected<std::string> over = readFile("/proc/self/maps", 50);
  ASSERT_FALSE(!!over);
  EXPECT_EQ(kindOf(over.takeError()), ErrorKind::BadInput);
}

TEST(Files, ReadErrorsNameThePath) {
  TemporaryFolder folder;
  std::string missing = folder / "missing";
  llvm::Expected<std::string> none = readFile(missing);
  ASSERT_FALSE(!!none);
  EXPECT_EQ(messageOf(none.takeError()),
            "cannot read '" + missing + "': No such file or directory");
  llvm::Expected<std::string> directory = readFile(folder.path);
  ASSERT_FALSE(!!directory);
  EXPECT_EQ(messageOf(directory.takeError()),
            "cannot read '" + folder.path + "': not a regular file");
}

TEST(Files, ReadDoesNotWaitAtAFifo) {
  TemporaryFolder folder;
  std::string path = folder / "fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  llvm::Expected<std::string> bytes = readFile(path);
  ASSERT_FALSE(!!bytes);
  EXPECT_EQ(messageOf(bytes.takeError()),
            "cannot read '" + path + "': not a regular file");
}

TEST(Files, WriteErrorsLeaveNothing) {
  TemporaryFolder folder;
  ASSERT_FALSE(writeFileAtomically(folder / "file", "x"));
  llvm::Error below = writeFileAtomically(folder / "file/below", "x");
  ASSERT_TRUE(!!below);
  EXPECT_NE(messageOf(std::move(below)).find("'" + (folder / "file") + "'"),
            std::string::npos);
  ASSERT_FALSE(makeFolders(folder / "taken/inner"));
  llvm::Error onFolder = writeFileAtomically(folder / "taken", "x");
  ASSERT_TRUE(!!onFolder);
  llvm::consumeError(std::move(onFolder));
  EXPECT_EQ(namesIn(folder.path).size(), 2u);
}

TEST(Files, Folders) {
  TemporaryFolder folder;
  EXPECT_FALSE(makeFolders(folder / "x/y/z"));
  EXPECT_FALSE(makeFolders(folder / "x/y/z/"));
  EXPECT_TRUE(llvm::sys::fs::is_directory(folder / "x/y/z"));
  ASSERT_FALSE(writeFileAtomically(folder / "f", ""));
  llvm::Error error = makeFolders(folder / "f");
  ASSERT_TRUE(!!error);
  EXPECT_EQ(messageOf(std::move(error)),
            "cannot make folder '" + (folder / "f") + "': Not a directory");
}

TEST(Files, FolderIsWrittenOnce) {
  TemporaryFolder folder;
  std::string path = folder / "deep/record";
  llvm::Expected<bool> first =
      writeFolderAtomically(path, {{"a", "1"}, {"b", std::string("2\0", 2)}});
  ASSERT_TRUE(!!first);
  EXPECT_TRUE(*first);
  llvm::Expected<bool> second = writeFolderAtomically(path, {{"a", "other"}});
  ASSERT_TRUE(!!second);
  EXPECT_FALSE(*second);
  EXPECT_EQ(contentOf(path + "/a"), "1");
  EXPECT_EQ(contentOf(path + "/b"), std::string("2\0", 2));
  EXPECT_EQ(namesIn(folder / "deep"), std::vector<std::string>{"record"});
}

TEST(Files, FolderNeverReplacesAnything) {
  TemporaryFolder folder;
  ASSERT_FALSE(makeFolders(folder / "empty"));
  ASSERT_FALSE(writeFileAtomically(folder / "file", "x"));
  ASSERT_EQ(::symlink("nowhere", (folder / "link").c_str()), 0);
  for (const char *name : {"empty", "file", "link"}) {
    llvm::Expected<bool> written =
        writeFolderAtomically(folder / name, {{"a", "1"}});
    ASSERT_TRUE(!!written) << name;
    EXPECT_FALSE(*written) << name;
  }
  EXPECT_EQ(namesIn(folder.path).size(), 3u);
  EXPECT_TRUE(namesIn(folder / "empty").empty());
}

TEST(Files, FolderRefusesNamesThatLeaveIt) {
  TemporaryFolder folder;
  for (std::string name : {"", ".", "..", "../x", "a/b"}) {
    llvm::Expected<bool> written =
        writeFolderAtomically(folder / "r", {{name, "1"}});
    ASSERT_FALSE(!!written) << name;
    EXPECT_EQ(kindOf(written.takeError()), ErrorKind::BadInput);
  }
  EXPECT_TRUE(namesIn(folder.path).empty());
}

TEST(Files, FolderWithTwoFilesOfOneNameLeavesNothing) {
  TemporaryFolder folder;
  llvm::Expected<bool> written =
      writeFolderAtomically(folder / "r", {{"a", "1"}, {"a", "2"}});
  ASSERT_FALSE(!!written);
  llvm::consumeError(written.takeError());
  EXPECT_TRUE(namesIn(folder.path).empty());
}

TEST(Files, ManyWritersOfOneFolder) {
  TemporaryFolder folder;
  std::string path = folder / "records/one";
  std::atomic<int> wrote{0}, failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      std::string text = std::to_string(t);
      llvm::Expected<bool> written =
          writeFolderAtomically(path, {{"a", text}, {"b", text}});
      if (!written) {
        llvm::consumeError(written.takeError());
        ++failed;
      } else if (*written)
        ++wrote;
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(wrote, 1);
  EXPECT_EQ(contentOf(path + "/a"), contentOf(path + "/b"));
  EXPECT_EQ(namesIn(folder / "records").size(), 1u);
}

TEST(Files, FileIsWrittenOnce) {
  TemporaryFolder folder;
  std::string path = folder / "a/f";
  llvm::Expected<bool> first = writeFileOnce(path, "first");
  ASSERT_TRUE(!!first);
  EXPECT_TRUE(*first);
  llvm::Expected<bool> second = writeFileOnce(path, "second");
  ASSERT_TRUE(!!second);
  EXPECT_FALSE(*second);
  EXPECT_EQ(contentOf(path), "first");
  EXPECT_EQ(namesIn(folder / "a").size(), 1u);
}

TEST(Files, OneOfManyWritersWritesOnce) {
  TemporaryFolder folder;
  std::string path = folder / "f";
  std::atomic<int> wrote{0}, failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      llvm::Expected<bool> written = writeFileOnce(path, std::to_string(t));
      if (!written) {
        llvm::consumeError(written.takeError());
        ++failed;
      } else if (*written)
        ++wrote;
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(wrote, 1);
  EXPECT_EQ(namesIn(folder.path).size(), 1u);
}

TEST(Files, ManyWritersOfOneFile) {
  TemporaryFolder folder;
  std::string path = folder / "f";
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i)
        if (llvm::Error error =
                writeFileAtomically(path, std::string(10000, 'a' + t))) {
          llvm::consumeError(std::move(error));
          ++failed;
        }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(failed, 0);
  std::string bytes = contentOf(path);
  EXPECT_EQ(bytes, std::string(10000, bytes[0]));
  EXPECT_EQ(namesIn(folder.path).size(), 1u);
}

TEST(Files, StagingNames) {
  EXPECT_TRUE(isStagingName(".fsr-staging-12-AB-0"));
  EXPECT_FALSE(isStagingName("record.json"));
  EXPECT_FALSE(isStagingName(""));
}

TEST(Files, FolderOfThisCodeIsThatOfTheTestProgram) {
  char program[4096];
  ssize_t size = ::readlink("/proc/self/exe", program, sizeof program);
  ASSERT_GT(size, 0);
  llvm::StringRef path(program, size);
  EXPECT_EQ(folderOfThisCode(), path.rsplit('/').first);
}

TEST(Files, AnOutputIsCheckedBeforeAndLeavesNothing) {
  TemporaryFolder folder;
  EXPECT_FALSE(checkOutput(folder / "new.json"));
  EXPECT_FALSE(checkOutput("/dev/null"));
  EXPECT_TRUE(namesIn(folder.path).empty());
  llvm::Error missing = checkOutput(folder / "none/x.json");
  EXPECT_EQ(kindOf(missing), ErrorKind::BadInput);
  EXPECT_NE(messageOf(std::move(missing)).find("no folder"), std::string::npos);
  EXPECT_NE(messageOf(checkOutput(folder.path)).find("it is a folder"),
            std::string::npos);
}
