// The seats of members, for members.c and members_watch.c.
#ifndef BELFRY_MASTER_MEMBERS_INNER_H
#define BELFRY_MASTER_MEMBERS_INNER_H

#include <stdatomic.h>

#include "master/callers.h"
#include "master/join.h"
#include "master/members.h"
#include "transport/grpc/mailbox.h"

typedef struct bel_seat { // a member, joined or not
    bel_member_view member;
    bel_mailbox *mailbox; // NULL until it has joined, and while it is lost
    char *loss;           // what is said when it does not come back
    char *refusal;        // why a process that came in its place was refused; NULL: none was
    int64_t lost_ns;      // when it was lost, or when the job began to wait for it
    bool came_back;       // and the caller has not been told
    bool let_go;          // it was; its mailbox stays until it has ended it
    bool failed;          // as it has said: it ends, and its process says why
    Bel__Message **kept;  // that came while others were waited for
    size_t kept_count, kept_capacity, kept_taken;
} bel_seat;

struct bel_members {
    bel_members_config config;
    char *token;
    bel_endpoint *endpoint;
    bel_doorbell *bell;
    atomic_bool woken; // whoever waits for messages has something else to do
    bel_seat *seats;
    int seat_count;
    int next_seat; // whose message is taken next: everybody in turn
    bel_join_rules rules;
    bel_callers *callers;
    int64_t patient_until_ns; // for members that do not see the model folder
    int64_t step;             // of the job
    int64_t reached;          // the same, or a member's own where that is later
    int64_t losses, restarts;
    bool dismissed;
    bel_code end_code; // what everybody is told then
    char *end_text;
};

// "worker 1", in `text`.
static inline const char *bel_seat_name(const bel_member_view *member, char text[32])
{
    return bel_role_text(member->role, member->index, text);
}

// What came and was not taken is gone.
void bel_seat_forget_kept(bel_seat *s);

// A worker that is away is not waited for any longer, if the job may go on without it.
bool bel_seat_give_up(bel_members *members, bel_seat *s);

#endif
