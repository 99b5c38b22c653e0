// Processes that have called the master and are not yet members. Each is heard until it joins,
// disconnects, or is refused. Callers are added on any thread and heard on the master's.
#ifndef BELFRY_MASTER_MEMBERS_CALLERS_H
#define BELFRY_MASTER_MEMBERS_CALLERS_H

#include "transport/streams/mailbox.h"

typedef struct bel_callers bel_callers;

// Accepts the caller's mailbox for a member that holds state of `generation`, or returns why not.
// *out_blind: it cannot access the model folder, and may join again when it can.
typedef bel_status *bel_caller_sit(void *context, bel_mailbox *mailbox, const Bel__Join *join,
                                   uint32_t generation, bool *out_blind);

bel_callers *bel_callers_create(bel_caller_sit *sit, void *context);

// Disconnects the remaining callers.
void bel_callers_destroy(bel_callers *callers);

// Adds a caller. Any thread. The list owns the mailbox.
void bel_callers_add(bel_callers *callers, bel_mailbox *mailbox);

// Hears every caller once. Refuses a blind one after `patience_ns`, or at `until_ns`. With
// `joining` it returns the first refusal of a member that the job needs; those of strangers and
// late-comers are logged, and without `joining` all are.
bel_status *bel_callers_hear(bel_callers *callers, int64_t patience_ns, int64_t until_ns,
                             bool joining) BEL_MUST_USE;

#endif
