// Verb carry: a process of a job on this host, for a supervisor on another one (launch/carry.h).
// Nobody types it. Its errors come as JSON, as a supervisor reads them.
#include "launch/carry.h"
#include "verbs.h"

bel_status *bel_verb_carry(const bel_options *options, int *out_exit_code)
{
    (void)options;
    return bel_carry(out_exit_code);
}
