// Connections of ranks that do not share memory, and exchanges over them. In an exchange each rank
// sends and receives at once, until both are complete.
//
// Bytes are in frames with a length. The first frame of a call describes the sender's call, so that
// the first two ranks to meet detect different calls. A failing rank sends the reason to all
// others. If a rank exits, its peers see the connection close.
#ifndef BELFRY_DDL_NET_H
#define BELFRY_DDL_NET_H

#include "ddl/meet.h"
#include "ddl/region.h"

typedef struct bel_ddl_net bel_ddl_net;

// Announces the last call: ranks leave as soon as they have finished it, while others still wait
// within their groups. A rank that waits for such a rank still sees the exit.
void bel_ddl_net_expect_end(bel_ddl_net *net);

// Takes ownership of the meeting's connections.
bel_ddl_net *bel_ddl_net_create(const bel_ddl_meeting *meeting, const bel_ddl_place *place,
                                double timeout_secs);
void bel_ddl_net_destroy(bel_ddl_net *net); // NULL is fine
// Makes this region's failures end exchanges from now on.
void bel_ddl_net_watch(bel_ddl_net *net, const bel_ddl_region *region);
// Between exchanges: returns another rank's failure or exit. A bel_ddl_look whose context is a net.
bel_status *bel_ddl_net_look(void *net, const char *doing) BEL_MUST_USE;

// With one rank: the bytes sent and received; either may be empty.
typedef struct bel_ddl_transfer {
    int rank;
    const void *out;
    void *in;
    size_t out_bytes, in_bytes;
} bel_ddl_transfer;

// Makes the transfers, at most one per rank. Both sides must expect the same sizes. `said` is
// non-NULL in the call's first exchange between these ranks, on all of them. `doing` names the
// purpose in messages. `late_secs` makes this wait end later than others', so that the awaited rank
// can first report which rank it waits for itself.
bel_status *bel_ddl_net_exchange(bel_ddl_net *net, const bel_ddl_transfer *transfers, int count,
                                 const bel_ddl_said *said, const char *doing,
                                 double late_secs) BEL_MUST_USE;

// Sends this rank's failure to all others; they cannot exchange with it any more.
void bel_ddl_net_fail(bel_ddl_net *net, const bel_status *status);

#endif
