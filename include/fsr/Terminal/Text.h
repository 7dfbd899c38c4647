// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How tasks and trials look on a terminal. Strategies, messages and names were
// written by an LLM or by whoever wrote the store: no byte of them may steer
// the terminal. Colour only where the output is one.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TERMINAL_TEXT_H
#define FSR_TERMINAL_TEXT_H

#include "fsr/Core/Trial.h"
#include "fsr/Support/Printable.h"

#include "llvm/Support/raw_ostream.h"

#include <string>
#include <vector>

namespace fsr {

enum class Colour { None, Good, Bad, Dim, Bold };

/// `text` in `colour` where `os` is a terminal that has colours, and NO_COLOR
/// is not set.
std::string coloured(const llvm::raw_ostream &os, Colour colour,
                     llvm::StringRef text);

/// The first line, with "…" where there is more or it is longer than `columns`.
std::string oneLine(llvm::StringRef text, size_t columns);

/// "13.62x [13.50, 13.70]", or "13.62x modelled"; empty where nothing was
/// timed.
std::string gainText(const Measurement &measurement, bool isModelled);
std::string gainText(const Trial &trial); ///< Empty where nothing was timed.
std::string gainText(const Record &record);

/// "HINT=0 ROWS=1"; "-" where there are none.
std::string parametersText(const Parameters &parameters);

/// "16: 2 accepted, 14 undecided", in the order of the verdicts; "none".
std::string countsText(const std::vector<Trial> &trials);

/// A table: name, result, inputs, and the rule with what was seen.
void printChecks(llvm::ArrayRef<Check> checks, llvm::raw_ostream &os);

Colour colourOf(Verdict verdict);

/// `text` filled with blanks to `columns`, counted in characters.
std::string padded(llvm::StringRef text, size_t columns);
size_t columnsOf(llvm::StringRef text);

} // namespace fsr

#endif // FSR_TERMINAL_TEXT_H
