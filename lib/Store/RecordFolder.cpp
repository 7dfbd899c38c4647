// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reading goes from what decides most to what costs most: are the files there,
// which version, do the hashes hold, what do they say. Nothing of a record is
// parsed into its structs before its hashes held.
//
//===----------------------------------------------------------------------===//

#include "RecordFolder.h"

#include "Layout.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Hash.h"
#include "fsr/Support/Json.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace fsr;
using namespace fsr::store;

static constexpr llvm::StringLiteral idFile = "id";
static constexpr llvm::StringLiteral jsonFile = "record.json";
static constexpr llvm::StringLiteral sourceFile = "kernel.cu";
static constexpr llvm::StringLiteral fatbinFile = "kernel.fatbin";
static constexpr llvm::StringLiteral idHeader = "fsr-record ";

namespace {
/// A file that `id` vouches for.
struct Part {
  llvm::StringLiteral name;
  uint64_t cap;
};
} // namespace

static constexpr Part parts[] = {{jsonFile, maxJsonBytes},
                                 {sourceFile, maxTextBytes},
                                 {fatbinFile, maxFatbinBytes}};

static std::string idText(llvm::ArrayRef<NamedBytes> files) {
  std::string text =
      (idHeader + llvm::Twine(Record::formatVersion) + "\n").str();
  for (const NamedBytes &file : files)
    text += file.first + " " + sha256(file.second) + "\n";
  return text;
}

llvm::Expected<EncodedRecord> fsr::store::encodeRecord(const Record &record) {
  llvm::json::Value json = toJSON(record);
  llvm::json::Object &object = *json.getAsObject();
  object.erase("id"); // It is made from this text.
  object["format_version"] = Record::formatVersion;
  if (llvm::Expected<Record> back = decode<Record>(object, "record"); !back)
    return makeError(ErrorKind::BadInput,
                     "a record that could not be read back: " +
                         llvm::toString(back.takeError()));
  EncodedRecord encoded;
  encoded.files = {{jsonFile.str(), printJson(json)},
                   {sourceFile.str(), record.candidate.source},
                   {fatbinFile.str(), record.fatbin}};
  for (auto [part, file] : llvm::zip_equal(parts, encoded.files))
    if (llvm::Error error = checkSize(part.name, file.second.size(), part.cap))
      return error;
  std::string id = idText(encoded.files);
  encoded.id = sha256(id);
  encoded.files.push_back({idFile.str(), std::move(id)});
  return encoded;
}

static llvm::Error changed(const llvm::Twine &what) {
  return makeError(ErrorKind::Corrupt, what);
}

static llvm::Expected<std::string>
readPart(llvm::StringRef folder, llvm::StringRef name, uint64_t cap) {
  llvm::Expected<std::string> bytes =
      readFile((folder + "/" + name).str(), cap);
  if (bytes)
    return bytes;
  llvm::Error error = bytes.takeError();
  // Larger than any record's may be, or no file at all: not what was written.
  if (kindOf(error) == ErrorKind::BadInput)
    return changed(llvm::toString(std::move(error)));
  return error;
}

/// The version in the first line of the file `id`.
static std::optional<int64_t> idVersion(llvm::StringRef text) {
  int64_t version = 0;
  llvm::StringRef line = text.split('\n').first;
  if (!line.consume_front(idHeader) ||
      line.split(' ').first.getAsInteger(10, version))
    return std::nullopt;
  return version;
}

/// What is done with a record that `id` says is of another version.
static llvm::Expected<LoadedRecord> passOver(llvm::StringRef path,
                                             int64_t version) {
  llvm::Expected<std::string> text = readPart(path, jsonFile, maxJsonBytes);
  if (!text)
    return text.takeError();
  std::optional<int64_t> stated;
  if (llvm::Expected<llvm::json::Object> object = parseObject(*text))
    stated = versionOf(*object);
  else
    llvm::consumeError(object.takeError());
  if (stated != version)
    return changed("the file 'id' states format version " +
                   llvm::Twine(version) + ", record.json " +
                   (stated ? llvm::Twine(*stated).str() : "none"));
  LoadedRecord loaded;
  loaded.skipped =
      ("record '" + path + "' has format version " + llvm::Twine(version) +
       ", this program reads " + llvm::Twine(Record::formatVersion))
          .str();
  return loaded;
}

static llvm::Expected<LoadedRecord>
load(llvm::StringRef path, llvm::StringRef taskKey, llvm::StringRef target) {
  auto unfinished = [&](llvm::StringRef missing) {
    LoadedRecord loaded;
    loaded.skipped =
        ("record '" + path + "' is unfinished: " + missing + " is missing")
            .str();
    return loaded;
  };
  auto has = [&](llvm::StringRef name) {
    return llvm::sys::fs::exists(path + "/" + name);
  };
  for (llvm::StringRef name :
       {llvm::StringRef(idFile), llvm::StringRef(jsonFile)})
    if (!has(name))
      return unfinished(name);
  llvm::Expected<std::string> id = readPart(path, idFile, 4096);
  if (!id)
    return id.takeError();
  std::optional<int64_t> version = idVersion(*id);
  if (!version)
    return changed("the file 'id' was changed: its first line names no "
                   "format version");
  if (*version != Record::formatVersion)
    return passOver(path, *version);

  llvm::StringRef name = llvm::sys::path::filename(path);
  if (sha256(*id) != name)
    return changed("the file 'id' or the name of the folder was changed: the "
                   "file's SHA-256 is " +
                   sha256(*id));
  std::vector<NamedBytes> files;
  for (const Part &part : parts) {
    if (!has(part.name))
      return unfinished(part.name);
    llvm::Expected<std::string> bytes = readPart(path, part.name, part.cap);
    if (!bytes)
      return bytes.takeError();
    std::string digest = sha256(*bytes);
    if (!llvm::StringRef(*id).contains(
            ("\n" + part.name + " " + digest + "\n").str()))
      return changed("the file '" + part.name +
                     "' was changed: its SHA-256 is " + digest +
                     ", which is not the one in 'id'");
    files.push_back({part.name.str(), std::move(*bytes)});
  }
  if (idText(files) != *id)
    return changed("the file 'id' is not one that FSR writes");

  llvm::Expected<llvm::json::Object> object = parseObject(files[0].second);
  if (!object)
    return addContext(object.takeError(), jsonFile);
  (*object)["id"] = name;
  llvm::Expected<Record> record = decode<Record>(std::move(*object), jsonFile);
  if (!record)
    return record.takeError();
  if (record->taskKey != taskKey || record->target != target)
    return changed("it lies in the folder of another task or target: "
                   "record.json says " +
                   record->taskKey + "/" + record->target);
  record->candidate.source = std::move(files[1].second);
  record->fatbin = std::move(files[2].second);
  LoadedRecord loaded;
  loaded.record = std::move(*record);
  loaded.id = std::move(*id);
  loaded.json = std::move(files[0].second);
  return loaded;
}

std::vector<NamedBytes> fsr::store::filesOf(const LoadedRecord &loaded) {
  return {{idFile.str(), loaded.id},
          {jsonFile.str(), loaded.json},
          {sourceFile.str(), loaded.record->candidate.source},
          {fatbinFile.str(), loaded.record->fatbin}};
}

llvm::Expected<LoadedRecord> fsr::store::loadRecord(llvm::StringRef path,
                                                    llvm::StringRef taskKey,
                                                    llvm::StringRef target) {
  llvm::Expected<LoadedRecord> loaded = load(path, taskKey, target);
  if (!loaded)
    return addContext(loaded.takeError(), "record '" + path + "'");
  return loaded;
}
