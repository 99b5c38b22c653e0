// Seats of members, for members.c and members_watch.c.
#ifndef BELFRY_MASTER_MEMBERS_MEMBERS_INNER_H
#define BELFRY_MASTER_MEMBERS_MEMBERS_INNER_H

#include <stdatomic.h>

#include "master/members/callers.h"
#include "master/members/join.h"
#include "master/members/members.h"
#include "transport/streams/mailbox.h"

typedef struct bel_seat { // a member, joined or not
    bel_member_view member;
    bel_mailbox *mailbox; // NULL until it has joined, and while it is lost
    char *loss;           // error message if it does not come back
    char *refusal;        // why a replacing process was refused; NULL: none
    int64_t lost_ns;      // awake time at which it was lost, or the job began to wait for it
    bool came_back;       // the caller was not yet notified
    bool let_go;          // it was dismissed; its mailbox stays until it has closed it
    bool failed;          // it reported its failure, and its process logs the reason
    Bel__Message **kept;  // messages that came while the master waited for others
    size_t kept_count, kept_capacity, kept_taken;
} bel_seat;

struct bel_members {
    bel_members_config config;
    char *token;
    bel_endpoint *endpoint;
    bel_doorbell *bell;
    atomic_bool woken; // the waiting thread has another task
    bel_seat *seats;
    int seat_count;
    int next_seat; // seat whose message is taken next, in turn
    bel_join_rules rules;
    bel_callers *callers;
    int64_t patient_until_ns; // awake time, for members without access to the model folder
    int64_t step;             // step of the job
    int64_t reached;          // the same, or a member's if later
    int64_t losses, restarts;
    bool dismissed;
    bel_code end_code; // code that all members are sent then
    char *end_text;
};

// Writes "worker 1" into `text`.
static inline const char *bel_seat_name(const bel_member_view *member, char text[32])
{
    return bel_role_text(member->role, member->index, text);
}

// Discards messages that were not taken.
void bel_seat_forget_kept(bel_seat *s);

// Empties a connected member's seat; its process may still live, and come back. Unless that is
// planned, it is counted and logged.
void bel_members_lose(bel_members *members, bel_seat *s, const char *why, bool planned);

// Stops waiting for an absent worker, if the job may continue without it.
bool bel_seat_give_up(bel_members *members, bel_seat *s);

#endif
