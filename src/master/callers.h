// Processes that have called the master and are no members yet: each is heard until it has joined,
// has gone, or is sent away. Callers are added on any thread and heard on the master's.
#ifndef BELFRY_MASTER_CALLERS_H
#define BELFRY_MASTER_CALLERS_H

#include "transport/grpc/mailbox.h"

typedef struct bel_callers bel_callers;

// Takes the caller's mailbox for a member that holds state of `generation`, or says why not;
// *out_blind: it does not see the model folder, and may join again when it does.
typedef bel_status *bel_caller_sit(void *context, bel_mailbox *mailbox, const Bel__Join *join,
                                   uint32_t generation, bool *out_blind);

bel_callers *bel_callers_create(bel_caller_sit *sit, void *context);

// Hangs up on the callers that are left.
void bel_callers_destroy(bel_callers *callers);

// Any thread. The mailbox is the list's.
void bel_callers_add(bel_callers *callers, bel_mailbox *mailbox);

// Hears every caller once. One that is blind is sent away after `patience_ns`, or at `until_ns`.
// With `joining` the first refusal of a member that the job cannot do without is the result; those
// of strangers and late-comers are logged, and without `joining` all.
bel_status *bel_callers_hear(bel_callers *callers, int64_t patience_ns, int64_t until_ns,
                             bool joining) BEL_MUST_USE;

#endif
