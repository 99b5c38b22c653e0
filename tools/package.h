// Models in shared objects (--package).
#ifndef BELFRY_TOOLS_PACKAGE_H
#define BELFRY_TOOLS_PACKAGE_H

#include "base/options.h"
#include "belfry/package.h"

// Opens the shared object and returns its description, after checking the ABI number; what the
// package is too old to have is zero. It stays open until the process ends, since its code may be
// in use. INVALID_ARGUMENT: no such file, not a shared object, no BEL_PACKAGE in it, no model
// function; FAILED_PRECONDITION: made for another ABI, or of a store and changed since.
// From then on a crash says that a package was in use before it ends the process, and exit, which
// is not for packages to call, ends it with a line and 1 until bel_package_over.
bel_status *bel_package_open(const char *path, const bel_package **out_package) BEL_MUST_USE;

// Opens it and adds its flags to those of the command. INVALID_ARGUMENT besides: a flag has the
// name of another, or a default that it does not accept.
bel_status *bel_package_add_flags(const char *path, bel_options *options) BEL_MUST_USE;

// The process ends by itself.
void bel_package_over(void);

#endif
