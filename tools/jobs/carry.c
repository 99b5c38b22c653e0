// Verb carry: runs a process of a job on this host for a supervisor on another host
// (launch/supervise/carry.h). It is internal. Its errors are JSON, for the supervisor.
#include "launch/supervise/carry.h"
#include "command/verbs.h"

bel_status *bel_verb_carry(const bel_options *options, int *out_exit_code)
{
    (void)options;
    return bel_carry(out_exit_code);
}
