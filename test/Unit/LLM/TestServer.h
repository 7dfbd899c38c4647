// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The server of test/LLM/Inputs/server.py, started for a test on loopback, and
// environment variables that a test changes and puts back.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TEST_UNIT_LLM_TESTSERVER_H
#define FSR_TEST_UNIT_LLM_TESTSERVER_H

#include "fsr/Support/Subprocess.h"

#include "llvm/Support/JSON.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fsr {

/// Sets a variable, or takes it away, for as long as this lives.
class ScopedVariable {
public:
  ScopedVariable(std::string name, std::optional<std::string> value);
  ScopedVariable(const ScopedVariable &) = delete;
  ScopedVariable &operator=(const ScopedVariable &) = delete;
  ~ScopedVariable();

private:
  static void set(const std::string &name,
                  const std::optional<std::string> &value);
  std::string name;
  std::optional<std::string> before;
};

class TestServer {
public:
  /// Nothing where it cannot be started; `why` says so.
  static std::unique_ptr<TestServer>
  start(std::string &why, const std::vector<std::string> &arguments = {});

  std::string address() const {
    return "http://127.0.0.1:" + std::to_string(port);
  }
  int portNumber() const { return port; }

  llvm::json::Object stats() { return command("stats"); }
  void reset(uint64_t seed = 0) {
    command("reset {\"seed\": " + std::to_string(seed) + "}");
  }

private:
  TestServer() = default;
  std::string readLine();
  llvm::json::Object command(const std::string &line);

  std::unique_ptr<ChildProcess> child;
  std::string pending;
  int port = 0;
};

} // namespace fsr

#endif // FSR_TEST_UNIT_LLM_TESTSERVER_H
