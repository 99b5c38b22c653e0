// The library's version.
#include "belfry/estimator.h"

const char *bel_version(void)
{
    return BEL_VERSION;
}
