// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a program of ours does about its own standard streams and outputs. A
// write that fails is said in one sentence and is never the end of the process
// by a signal: not a file that may not grow (SIGXFSZ), not a reader that went
// (SIGPIPE). For tools only; a plugin leaves all of it to its host.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_SUPPORT_TOOL_H
#define FSR_SUPPORT_TOOL_H

#include "llvm/ADT/StringRef.h"

namespace fsr {

/// To be called once, first thing in main: threads inherit what is blocked
/// here, children of runProcess and ChildProcess do not. `program` stays.
void beginTool(const char *program);

/// The exit status of the tool that would end with `status`: 1, with a message,
/// where its standard output could not be written; 141, in silence, where its
/// reader went, as a shell would say it. A standard error that nobody reads
/// changes nothing.
int finishTool(llvm::StringRef program, int status);

} // namespace fsr

#endif // FSR_SUPPORT_TOOL_H
