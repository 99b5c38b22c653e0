// The library's version, as a function, so that a program gets that of the library it runs with.
// The build defines it (CMakeLists.txt). All members of a job must have the same version, which the
// master compares when they join (master/members/join.c).
#include "belfry/estimator.h"

const char *bel_version(void)
{
    return BEL_VERSION;
}
