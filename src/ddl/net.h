// Connections of ranks that do not share memory, and exchanges over them: some ranks send and
// receive at once, each until both are done.
//
// Bytes go in frames, which say how many they are. The first frame of a call carries what its
// sender calls, so that calls that differ are found by whoever meets first. A rank that fails tells
// the reason to all others, and who waits for one that has ended sees its connection end.
#ifndef BELFRY_DDL_NET_H
#define BELFRY_DDL_NET_H

#include "ddl/meet.h"
#include "ddl/region.h"

typedef struct bel_ddl_net bel_ddl_net;

// The last call has begun: ranks leave as soon as they are through with it, while others still wait
// within their group. Who waits for a rank itself sees its end all the same.
void bel_ddl_net_expect_end(bel_ddl_net *net);

// Takes the meeting's connections.
bel_ddl_net *bel_ddl_net_create(const bel_ddl_meeting *meeting, const bel_ddl_place *place,
                                double timeout_secs);
void bel_ddl_net_destroy(bel_ddl_net *net); // NULL is fine
// Failures of this region end exchanges from now on.
void bel_ddl_net_watch(bel_ddl_net *net, const bel_ddl_region *region);
// Between exchanges: the failure of another rank, or that one has ended. A bel_ddl_look, of a net.
bel_status *bel_ddl_net_look(void *net, const char *doing) BEL_MUST_USE;

// With one rank: what goes there and what comes, either of which may be nothing.
typedef struct bel_ddl_transfer {
    int rank;
    const void *out;
    void *in;
    size_t out_bytes, in_bytes;
} bel_ddl_transfer;

// Makes the transfers, at most one with a rank. Both sides give the same bytes. `said`: this is the
// call's first exchange between these ranks, and all of them say so; else NULL. `doing` says in
// messages what for, and `late_secs` how much later than others' waits this one ends: so the rank
// that is waited for can say first whom it waits for itself.
bel_status *bel_ddl_net_exchange(bel_ddl_net *net, const bel_ddl_transfer *transfers, int count,
                                 const bel_ddl_said *said, const char *doing,
                                 double late_secs) BEL_MUST_USE;

// Tells all others why this rank fails; they cannot exchange with it any more.
void bel_ddl_net_fail(bel_ddl_net *net, const bel_status *status);

#endif
