#include "Checks.h"
namespace fsr::ptx { void addScienceChecks(Checks &) {} }
