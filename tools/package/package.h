// Models in shared objects (--package).
#ifndef BELFRY_TOOLS_PACKAGE_PACKAGE_H
#define BELFRY_TOOLS_PACKAGE_PACKAGE_H

#include "base/options.h"
#include "belfry/package.h"

// Opens the shared object, checks its ABI number and returns its description. Fields that are newer
// than the package are zero. The object stays open until the process ends, because its code may be
// in use. INVALID_ARGUMENT: no such file, not a shared object, no BEL_PACKAGE in it, no model
// function. FAILED_PRECONDITION: made for another ABI, or changed since it was put in a store.
// From then on a crash reports that a package was in use before it ends the process. Packages must
// not call exit: until bel_package_over, exit ends the process with a message and code 1.
bel_status *bel_package_open(const char *path, const bel_package **out_package) BEL_MUST_USE;

// Opens it and adds its flags to those of the command. INVALID_ARGUMENT besides: a flag has the
// name of another, or a default that it does not accept.
bel_status *bel_package_add_flags(const char *path, bel_options *options) BEL_MUST_USE;

// Announces that the process itself is about to exit.
void bel_package_over(void);

#endif
