// Models in shared objects (--package).
#ifndef BELFRY_TOOLS_PACKAGE_H
#define BELFRY_TOOLS_PACKAGE_H

#include "belfry/estimator.h"

// Opens the shared object and returns its description, after checking the ABI number. It stays open
// until the process ends, since its code may be in use. INVALID_ARGUMENT: no such file, not a
// shared object, no BEL_PACKAGE in it, no model function; FAILED_PRECONDITION: made for another
// ABI.
// From then on a crash says that a package was in use before it ends the process, and exit, which
// is not for packages to call, ends it with a line and 1 until bel_package_over.
bel_status *bel_package_open(const char *path, const bel_package **out_package) BEL_MUST_USE;

// The process ends by itself.
void bel_package_over(void);

#endif
