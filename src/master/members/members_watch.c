// Detects lost members: by the ends of their streams, then by silence. A loss is detected in
// bel_members_check, on the master's thread; the patience with an absent member counts from then
// on. A member that was told to leave is no loss, nor is one that reported its failure.
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "master/members/members_inner.h"

void bel_seat_forget_kept(bel_seat *s)
{
    for (size_t i = s->kept_taken; i < s->kept_count; i++)
        bel_message_destroy(s->kept[i]);
    s->kept_count = s->kept_taken = 0;
}

// A worker beyond the currently wanted ones.
static bool is_unwanted(const bel_members *members, const bel_seat *s)
{
    return s->member.role == BEL_ROLE_WORKER && s->member.index >= members->config.wanted_workers;
}

bool bel_seat_give_up(bel_members *members, bel_seat *s)
{
    char text[32];
    int others = 0;
    for (int i = 0; i < members->seat_count; i++) {
        const bel_member_view *other = &members->seats[i].member;
        others += other->role == BEL_ROLE_WORKER && !other->vacant && other != &s->member &&
                  other->index < members->config.wanted_workers;
    }
    int least = is_unwanted(members, s) ? 1 : members->config.min_workers;
    if (s->member.role != BEL_ROLE_WORKER || least == 0 || others < least) return false;
    s->member.vacant = true;
    bel_log_write(BEL_LOG_WARN, "%s is not waited for: the job continues with %d worker%s",
                  bel_seat_name(&s->member, text), others, others == 1 ? "" : "s");
    return true;
}

int64_t bel_members_losses(const bel_members *members)
{
    return members->losses;
}

int64_t bel_members_restarts(const bel_members *members)
{
    return members->restarts;
}

void bel_members_note_step(bel_members *members, int64_t step)
{
    members->step = step;
    if (step > members->reached) members->reached = step;
}

int64_t bel_members_reached(const bel_members *members)
{
    return members->reached;
}

void bel_members_begin_at(bel_members *members, int64_t step)
{
    members->step = members->reached = step;
    for (int i = 0; i < members->seat_count; i++) {
        bel_member_view *member = &members->seats[i].member;
        if (member->step > step) member->step = step;
    }
}

void bel_members_lose(bel_members *members, bel_seat *s, const char *why, bool planned)
{
    char text[32];
    bel_member_view *member = &s->member;
    int64_t step = member->step > members->step ? member->step : members->step;
    bel_mailbox_close(s->mailbox, 0);
    s->mailbox = NULL;
    bel_seat_forget_kept(s);
    member->here = false;
    s->lost_ns = bel_clock_awake_ns();
    bel_free(s->loss);
    s->loss = bel_strf("lost %s on %s (pid %lld) after step %lld: %s", bel_seat_name(member, text),
                       member->host, (long long)member->pid, (long long)step, why);
    if (planned) return; // no loss as long as the next one comes
    members->losses++;
    if (members->config.recovers || members->config.min_workers > 0) {
        bel_log_event(BEL_LOG_WARN, "lost", (long long)member->pid, "%s", s->loss);
    }
}

// Checks that one member is still present: its stream, then its silence.
static void look_after(bel_members *members, bel_seat *s)
{
    if (s->mailbox == NULL) return;
    if (s->member.vacant) { // retired, or omitted
        if (!bel_mailbox_is_over(s->mailbox)) return;
        bel_mailbox_close(s->mailbox, 0);
        s->mailbox = NULL;
        return;
    }
    if (bel_mailbox_is_over(s->mailbox)) {
        const char *why = s->let_go   ? "it was told to go"
                          : s->failed ? "it has failed"
                                      : "its connection ended";
        bel_members_lose(members, s, why, s->let_go || s->failed);
        return;
    }
    double silence = (double)bel_mailbox_silence_ns(s->mailbox) * 1e-9;
    if (silence < members->config.silence_timeout_secs) return;
    char why[96];
    bel_snprintf(why, sizeof why, "nothing heard of it for %.1f s", silence);
    bel_members_lose(members, s, why, false);
}

void bel_members_give_up_recovery(bel_members *members)
{
    members->config.recovers = false;
}

// Checks all members. A lost one has `patience` to come back; then the job continues without it, or
// ends.
bel_status *bel_members_check(bel_members *members)
{
    double patience = members->config.recovers ? members->config.join_timeout_secs : 0;
    for (int i = 0; i < members->seat_count && !members->dismissed; i++) {
        bel_seat *s = &members->seats[i];
        look_after(members, s);
        if (s->loss == NULL || s->mailbox != NULL || s->member.vacant) continue;
        double away = (double)(bel_clock_awake_ns() - s->lost_ns) * 1e-9;
        if (away < patience && !is_unwanted(members, s)) continue;
        if (bel_seat_give_up(members, s)) continue;
        if (!members->config.recovers) return BEL_ERR(BEL_UNAVAILABLE, "%s", s->loss);
        return BEL_ERR(BEL_UNAVAILABLE, "%s; it did not come back within %g s%s%s", s->loss,
                       patience, s->refusal != NULL ? "; refused: " : "",
                       s->refusal != NULL ? s->refusal : "");
    }
    return NULL;
}
