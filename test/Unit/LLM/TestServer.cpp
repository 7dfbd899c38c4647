// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lines to and from the server's standard input and output.
//
//===----------------------------------------------------------------------===//

#include "TestServer.h"

#include <cstdlib>
#include <poll.h>
#include <sys/socket.h>

using namespace fsr;

ScopedVariable::ScopedVariable(std::string variable,
                               std::optional<std::string> value)
    : name(std::move(variable)) {
  if (const char *old = std::getenv(name.c_str()))
    before = old;
  set(name, value);
}

ScopedVariable::~ScopedVariable() { set(name, before); }

void ScopedVariable::set(const std::string &name,
                         const std::optional<std::string> &value) {
  if (value)
    ::setenv(name.c_str(), value->c_str(), 1);
  else
    ::unsetenv(name.c_str());
}

std::unique_ptr<TestServer>
TestServer::start(std::string &why, const std::vector<std::string> &arguments) {
  std::string python = findOnPath("python3");
  if (python.empty()) {
    why = "this test needs python3 for its server";
    return nullptr;
  }
  std::vector<std::string> command = {python, FSR_TEST_SERVER};
  command.insert(command.end(), arguments.begin(), arguments.end());
  auto child = ChildProcess::start(command);
  if (!child) {
    why = llvm::toString(child.takeError());
    return nullptr;
  }
  std::unique_ptr<TestServer> server(new TestServer());
  server->child = std::move(*child);
  server->port = std::atoi(server->readLine().c_str());
  if (server->port == 0) {
    why = "the server does not start: " + server->child->reap();
    return nullptr;
  }
  return server;
}

std::string TestServer::readLine() {
  size_t end;
  while ((end = pending.find('\n')) == std::string::npos) {
    pollfd entry = {child->socket(), POLLIN, 0};
    char bytes[4096];
    if (::poll(&entry, 1, 20000) != 1)
      return "";
    ssize_t got = ::recv(child->socket(), bytes, sizeof bytes, 0);
    if (got <= 0)
      return "";
    pending.append(bytes, got);
  }
  std::string line = pending.substr(0, end);
  pending.erase(0, end + 1);
  return line;
}

llvm::json::Object TestServer::command(const std::string &line) {
  std::string bytes = line + "\n";
  if (::send(child->socket(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0)
    return {};
  auto reply = llvm::json::parse(readLine());
  if (!reply) {
    llvm::consumeError(reply.takeError());
    return {};
  }
  llvm::json::Object *object = reply->getAsObject();
  return object ? std::move(*object) : llvm::json::Object();
}
