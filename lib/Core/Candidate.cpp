// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Candidates: their names, parameter combinations, ABI and JSON form. Reading
// checks form only; whether a plan fits its task is for `resolvePlan`.
//
//===----------------------------------------------------------------------===//

#include "fsr/Core/Candidate.h"

#include "JsonHelpers.h"

#include "fsr/Support/Hash.h"

#include "llvm/ADT/STLExtras.h"

namespace fsr {

using namespace detail;

namespace {

constexpr size_t maxParameters = 16;
constexpr size_t maxParameterValues = 64;

/// One expression: a string, or an integer as LLMs like to write it.
struct ExprText {
  std::string value;
};

bool fromJSON(const llvm::json::Value &json, ExprText &out,
              llvm::json::Path path) {
  if (std::optional<int64_t> number = json.getAsInteger())
    out.value = std::to_string(*number);
  else if (std::optional<llvm::StringRef> text = json.getAsString())
    out.value = text->str();
  else {
    path.report("expected an expression (string or integer)");
    return false;
  }
  return true;
}

/// One to three dimensions; those left out are 1.
struct Dimensions {
  std::array<std::string, 3> value{"1", "1", "1"};
};

bool fromJSON(const llvm::json::Value &json, Dimensions &out,
              llvm::json::Path path) {
  const llvm::json::Array *array = json.getAsArray();
  if (!array) {
    ExprText one;
    if (!fromJSON(json, one, path))
      return false;
    out.value[0] = std::move(one.value);
    return true;
  }
  if (array->empty() || array->size() > 3) {
    path.report("expected one to three dimensions");
    return false;
  }
  for (size_t i = 0; i < array->size(); ++i) {
    ExprText each;
    if (!fromJSON((*array)[i], each, path.index(i)))
      return false;
    out.value[i] = std::move(each.value);
  }
  return true;
}

/// "same", or a list of names.
struct ArgumentNames {
  std::vector<std::string> value{"same"};
};

bool fromJSON(const llvm::json::Value &json, ArgumentNames &out,
              llvm::json::Path path) {
  if (std::optional<llvm::StringRef> text = json.getAsString()) {
    if (*text == "same")
      return true;
    path.report("expected \"same\" or array of names");
    return false;
  }
  return llvm::json::fromJSON(json, out.value, path);
}

/// The values of one parameter: a list, or one integer.
struct ParameterValues {
  std::vector<int64_t> value;
};

bool fromJSON(const llvm::json::Value &json, ParameterValues &out,
              llvm::json::Path path) {
  if (std::optional<int64_t> number = json.getAsInteger()) {
    out.value = {*number};
    return true;
  }
  if (!llvm::json::fromJSON(json, out.value, path))
    return false;
  if (out.value.empty() || out.value.size() > maxParameterValues) {
    path.report("expected 1 to 64 values");
    return false;
  }
  return true;
}

llvm::json::Array dimensions(const std::array<std::string, 3> &value) {
  return llvm::json::Array{text(value[0]), text(value[1]), text(value[2])};
}

} // namespace

static llvm::json::Value toJSON(const PlannedLaunch &value) {
  return llvm::json::Object{{"kernel", text(value.kernel)},
                            {"grid", dimensions(value.grid)},
                            {"block", dimensions(value.block)},
                            {"cluster", dimensions(value.cluster)},
                            {"shared", text(value.shared)},
                            {"args", texts(value.args)}};
}

static bool fromJSON(const llvm::json::Value &json, PlannedLaunch &value,
                     llvm::json::Path path) {
  llvm::json::ObjectMapper mapper(json, path);
  Dimensions grid, block, cluster;
  ExprText shared{"0"};
  ArgumentNames args;
  if (!mapper || !mapper.map("kernel", value.kernel) ||
      !mapper.map("grid", grid) || !mapper.map("block", block) ||
      !mapper.mapOptional("cluster", cluster) ||
      !mapper.mapOptional("shared", shared) ||
      !mapper.mapOptional("args", args))
    return false;
  value.grid = std::move(grid.value);
  value.block = std::move(block.value);
  value.cluster = std::move(cluster.value);
  value.shared = std::move(shared.value);
  value.args = std::move(args.value);
  return true;
}

static llvm::json::Value toJSON(const ScratchBuffer &value) {
  return llvm::json::Object{{"name", text(value.name)},
                            {"bytes", text(value.bytes)},
                            {"zero", value.zero}};
}

static bool fromJSON(const llvm::json::Value &json, ScratchBuffer &value,
                     llvm::json::Path path) {
  llvm::json::ObjectMapper mapper(json, path);
  ExprText bytes;
  if (!mapper || !mapper.map("name", value.name) ||
      !mapper.map("bytes", bytes) || !mapper.mapOptional("zero", value.zero))
    return false;
  value.bytes = std::move(bytes.value);
  return true;
}

llvm::json::Value toJSON(const LaunchPlan &value) {
  return llvm::json::Object{{"launch", llvm::json::Array(value.launches)},
                            {"scratch", llvm::json::Array(value.scratch)}};
}

bool fromJSON(const llvm::json::Value &json, LaunchPlan &value,
              llvm::json::Path path) {
  value = LaunchPlan();
  llvm::json::ObjectMapper mapper(json, path);
  return mapper && mapper.map("launch", value.launches) &&
         mapper.mapOptional("scratch", value.scratch);
}

llvm::json::Value toJSON(const Candidate &value) {
  llvm::json::Value json = toJSON(value.plan);
  llvm::json::Object &object = *json.getAsObject();
  object["source"] = text(value.source);
  object["requires"] = texts(value.guards);
  llvm::json::Object parameters;
  for (const auto &[name, values] : value.parameters)
    parameters[llvm::json::fixUTF8(name)] = llvm::json::Array(values);
  object["params"] = std::move(parameters);
  object["strategy"] = text(value.strategy);
  object["notes"] = text(value.notes);
  return json;
}

bool fromJSON(const llvm::json::Value &json, Candidate &value,
              llvm::json::Path path) {
  value = Candidate();
  llvm::json::ObjectMapper mapper(json, path);
  std::map<std::string, ParameterValues> parameters;
  if (!mapper || !fromJSON(json, value.plan, path) ||
      !mapper.mapOptional("source", value.source) ||
      !mapper.mapOptional("requires", value.guards) ||
      !mapper.mapOptional("params", parameters) ||
      !mapper.mapOptional("strategy", value.strategy) ||
      !mapper.mapOptional("notes", value.notes))
    return false;
  if (parameters.size() > maxParameters) {
    path.field("params").report("expected at most 16 parameters");
    return false;
  }
  // Checked before anything else sees them: they become -DNAME=value.
  if (!checkParameterNames(json, "params", path))
    return false;
  for (auto &[name, values] : parameters)
    value.parameters[name] = std::move(values.value);
  return true;
}

static llvm::json::Value toJSON(const ResolvedLaunch &value) {
  llvm::json::Value json = toJSON(value.shape);
  llvm::json::Object &object = *json.getAsObject();
  object["kernel"] = text(value.kernel);
  object["args"] = texts(value.args);
  return json;
}

static bool fromJSON(const llvm::json::Value &json, ResolvedLaunch &value,
                     llvm::json::Path path) {
  llvm::json::ObjectMapper mapper(json, path);
  if (!mapper || !mapper.map("kernel", value.kernel) ||
      !mapper.map("args", value.args) || !fromJSON(json, value.shape, path))
    return false;
  if (!isUsableName(value.kernel)) {
    path.field("kernel").report("expected a C identifier that is no keyword");
    return false;
  }
  return true;
}

static llvm::json::Value toJSON(const ResolvedScratch &value) {
  return llvm::json::Object{
      {"name", text(value.name)}, {"bytes", value.bytes}, {"zero", value.zero}};
}

static bool fromJSON(const llvm::json::Value &json, ResolvedScratch &value,
                     llvm::json::Path path) {
  llvm::json::ObjectMapper mapper(json, path);
  if (!mapper || !mapper.map("name", value.name) ||
      !mapNatural(mapper, "bytes", value.bytes) ||
      !mapper.mapOptional("zero", value.zero))
    return false;
  if (!isUsableName(value.name)) {
    path.field("name").report("expected a C identifier that is no keyword");
    return false;
  }
  return true;
}

llvm::json::Value toJSON(const ResolvedPlan &value) {
  return llvm::json::Object{{"launch", llvm::json::Array(value.launches)},
                            {"scratch", llvm::json::Array(value.scratch)}};
}

bool fromJSON(const llvm::json::Value &json, ResolvedPlan &value,
              llvm::json::Path path) {
  value = ResolvedPlan();
  llvm::json::ObjectMapper mapper(json, path);
  if (!mapper || !mapper.map("launch", value.launches) ||
      !mapper.mapOptional("scratch", value.scratch))
    return false;
  if (value.launches.empty()) {
    path.field("launch").report("expected at least one launch");
    return false;
  }
  return true;
}

std::string Candidate::hash() const {
  FieldHasher hasher;
  hasher.add("candidate").add(source);
  hasher.add(static_cast<int64_t>(plan.launches.size()));
  for (const PlannedLaunch &launch : plan.launches) {
    hasher.add(launch.kernel);
    for (const auto *sizes : {&launch.grid, &launch.block, &launch.cluster})
      for (const std::string &size : *sizes)
        hasher.add(size);
    hasher.add(launch.shared);
    hasher.add(static_cast<int64_t>(launch.args.size()));
    for (const std::string &arg : launch.args)
      hasher.add(arg);
  }
  hasher.add(static_cast<int64_t>(plan.scratch.size()));
  for (const ScratchBuffer &scratch : plan.scratch)
    hasher.add(scratch.name).add(scratch.bytes).add(scratch.zero ? 1 : 0);
  hasher.add(static_cast<int64_t>(guards.size()));
  for (const std::string &guard : guards)
    hasher.add(guard);
  return hasher.digest();
}

std::vector<Parameters> Candidate::combinations(size_t limit) const {
  std::vector<Parameters> all;
  if (limit == 0 || llvm::any_of(parameters, [](const auto &each) {
        return each.second.empty();
      }))
    return all;
  // An odometer over the names: the last one turns fastest.
  std::vector<size_t> digits(parameters.size(), 0);
  while (all.size() < limit) {
    Parameters one;
    size_t place = 0;
    for (const auto &[name, values] : parameters)
      one[name] = values[digits[place++]];
    all.push_back(std::move(one));

    auto turning = parameters.rbegin();
    for (place = digits.size(); place > 0; --place, ++turning) {
      if (++digits[place - 1] < turning->second.size())
        break;
      digits[place - 1] = 0;
    }
    if (place == 0)
      break;
  }
  return all;
}

std::vector<std::string> candidateAbiNames(const KernelTask &task) {
  // Sizes and strides are static in this version of the format, so that each
  // argument is one parameter.
  std::vector<std::string> names;
  for (const Argument &argument : task.arguments)
    names.push_back(argument.name);
  return names;
}

std::string candidateSignature(const KernelTask &task) {
  std::string out;
  for (const Argument &argument : task.arguments) {
    if (!out.empty())
      out += ",\n    ";
    // No __restrict__: that buffers do not overlap is not proved.
    bool written = argument.access == Access::Write ||
                   argument.access == Access::ReadWrite;
    if (argument.isBuffer && !written)
      out += "const ";
    out += cudaName(argument.element);
    out += argument.isBuffer ? " *" : " ";
    out += argument.name;
  }
  return out;
}

} // namespace fsr
