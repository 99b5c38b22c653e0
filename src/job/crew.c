// What every kind of crew says alike.
#include "job/crew.h"

bel_status *bel_crew_nonfinite(const char *variable)
{
    return BEL_ERR(BEL_ABORTED,
                   "variable \"%s\" is not finite, so nothing was saved; hint: a lower "
                   "learning_rate often helps",
                   variable);
}
