// Admission of members: a member's description is checked against the job's.
#ifndef BELFRY_MASTER_MEMBERS_JOIN_H
#define BELFRY_MASTER_MEMBERS_JOIN_H

#include "master/members/members.h"

typedef struct bel_join_rules {
    const int *counts;    // seats of each role
    const char *token;    // token that only processes with access to the model folder have
    bool may_be_blind;    // others may join as well
    bel_join_graph graph; // for workers
} bel_join_rules;

// Checks a join. `seat` is the requested one, NULL if it does not exist; `connected`: its process
// has a mailbox. FAILED_PRECONDITION: another version, no seat or a taken one, another folder,
// another setting (the message has both values). ALREADY_EXISTS: a later process has replaced this
// one. *out_blind: it cannot access the folder, at least not yet; if all members must, that is the
// reason of the refusal.
bel_status *bel_join_check(const bel_join_rules *rules, const Bel__Join *join,
                           const bel_member_view *seat, bool connected,
                           bool *out_blind) BEL_MUST_USE;

#endif
