// The library's version, as a function, so that a program is told that of the library it runs
// with. The build gives it (CMakeLists.txt). Members of a job must all have the same one, which
// the master compares when they join (master/join.c).
#include "belfry/estimator.h"

const char *bel_version(void)
{
    return BEL_VERSION;
}
