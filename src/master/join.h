// Who may join: what a member says of itself against what the job is.
#ifndef BELFRY_MASTER_JOIN_H
#define BELFRY_MASTER_JOIN_H

#include "master/members.h"

typedef struct bel_join_rules {
    const int *counts;    // seats of each role
    const char *token;    // of who sees the model folder
    bool may_be_blind;    // others may join as well
    bel_join_graph graph; // of a worker
} bel_join_rules;

// `seat` is the one that the member asks for, NULL when there is none; `connected`: its process has
// a mailbox. FAILED_PRECONDITION: another version, no seat or a taken one, another folder, another
// setting (named, with both values). ALREADY_EXISTS: the process was replaced by a later one.
// *out_blind: it does not see the folder, at least not yet, which is why where all must.
bel_status *bel_join_check(const bel_join_rules *rules, const Bel__Join *join,
                           const bel_member_view *seat, bool connected,
                           bool *out_blind) BEL_MUST_USE;

#endif
