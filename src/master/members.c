// A mailbox for each caller; the first message on it says who it is. The endpoint's thread only
// adds callers to a list; everything else happens on the master's thread.
#include "master/members.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "belfry/estimator.h"
#include "transport/grpc/mailbox.h"

enum { LINGER_MS = 500 };

typedef struct seat { // a member, joined or not
    bel_member member;
    bel_mailbox *mailbox; // NULL until it has joined
} seat;

typedef struct caller { // a mailbox that has not said who it is
    struct caller *next;
    bel_mailbox *mailbox;
} caller;

struct bel_members {
    bel_members_config config;
    char *token;
    bel_endpoint *endpoint;
    bel_doorbell *bell;
    seat *seats;
    int seat_count;
    int next_seat;         // whose message is taken next: everybody in turn
    pthread_mutex_t mutex; // guards callers
    caller *callers;
    int64_t step; // of the job
    bool dismissed;
};

// --- Life ----------------------------------------------------------------------------------------

static bel_status *accept_stream(void *context, const char *path, bel_stream *stream,
                                 bel_stream_events *out_events)
{
    bel_members *members = context;
    if (strcmp(path, BEL_MAILBOX_PATH) != 0) {
        const bel_endpoint_config *lanes = &members->config.endpoint;
        return lanes->accept(lanes->context, path, stream, out_events);
    }
    caller *c = bel_xcalloc(1, sizeof *c);
    c->mailbox = bel_mailbox_accept(stream, members->bell, out_events);
    pthread_mutex_lock(&members->mutex);
    c->next = members->callers;
    members->callers = c;
    pthread_mutex_unlock(&members->mutex);
    return NULL;
}

static void add_seats(bel_members *members, bel_role role)
{
    for (int i = 0; i < members->config.counts[role]; i++) {
        members->seats[members->seat_count++].member = (bel_member){.role = role, .index = i};
    }
}

bel_status *bel_members_create(const bel_members_config *config, bel_members **out_members)
{
    bel_members *members = bel_xcalloc(1, sizeof *members);
    members->config = *config;
    members->token = bel_xstrdup(config->token);
    members->bell = bel_doorbell_create();
    pthread_mutex_init(&members->mutex, NULL);
    const int *counts = config->counts;
    size_t most =
        (size_t)(counts[BEL_ROLE_PS] + counts[BEL_ROLE_WORKER] + counts[BEL_ROLE_EVALUATOR]);
    members->seats = bel_xcalloc(most, sizeof *members->seats);
    add_seats(members, BEL_ROLE_PS);
    add_seats(members, BEL_ROLE_WORKER);
    add_seats(members, BEL_ROLE_EVALUATOR);
    bel_endpoint_config endpoint = config->endpoint;
    endpoint.accept = accept_stream;
    endpoint.context = members;
    bel_status *status = bel_endpoint_create(&endpoint, &members->endpoint);
    if (status != NULL) {
        bel_members_destroy(members);
        return status;
    }
    *out_members = members;
    return NULL;
}

void bel_members_destroy(bel_members *members)
{
    if (members == NULL) return;
    for (int i = 0; i < members->seat_count; i++) {
        bel_mailbox_close(members->seats[i].mailbox, LINGER_MS);
        bel_free(members->seats[i].member.host);
        bel_free(members->seats[i].member.address);
        bel_free(members->seats[i].member.doing);
    }
    bel_endpoint_destroy(members->endpoint);
    while (members->callers != NULL) {
        caller *c = members->callers;
        members->callers = c->next;
        bel_mailbox_close(c->mailbox, 0);
        bel_free(c);
    }
    pthread_mutex_destroy(&members->mutex);
    bel_doorbell_destroy(members->bell);
    bel_free(members->seats);
    bel_free(members->token);
    bel_free(members);
}

bel_endpoint *bel_members_endpoint(bel_members *members)
{
    return members->endpoint;
}

const bel_member *bel_members_get(const bel_members *members, int member)
{
    return &members->seats[member].member;
}

int bel_members_find(const bel_members *members, bel_role role, int index)
{
    for (int i = 0; i < members->seat_count; i++) {
        const bel_member *m = &members->seats[i].member;
        if (m->role == role && m->index == index) return i;
    }
    return -1;
}

// --- Joining -------------------------------------------------------------------------------------

static const char *name_of(const bel_member *member, char text[32])
{
    return bel_role_text(member->role, member->index, text);
}

typedef struct expected {
    char *const *names, *const *values;
    int count;
} expected;

// The first setting in which a member differs; NULL: none.
static bel_status *compare_settings(const expected *e, const bel_message *join, const char *name)
{
    if (join->role != BEL_ROLE_WORKER) return NULL; // only workers build the model
    for (int i = 0; i < e->count; i++) {
        const char *value = NULL;
        for (size_t k = 0; k < join->setting_count && value == NULL; k++)
            if (strcmp(join->settings[k].name, e->names[i]) == 0) value = join->settings[k].value;
        if (value != NULL && strcmp(value, e->values[i]) == 0) continue;
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "%s on %s runs with other settings than the master: %s is %s there and %s "
                       "here",
                       name, join->host, e->names[i], value != NULL ? value : "not set",
                       e->values[i]);
    }
    return NULL;
}

static bel_status *check_join(const bel_members *members, const expected *e,
                              const bel_message *join, int member)
{
    char text[32];
    bool known_role = join->role >= 0 && join->role < BEL_ROLE_COUNT;
    const char *name =
        known_role ? bel_role_text((bel_role)join->role, join->index, text) : "a stranger";
    if (join->protocol != BEL_PROTOCOL_VERSION || strcmp(join->text, bel_version()) != 0) {
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "%s on %s runs belfry %s with protocol %d, the master %s with protocol %d; "
                       "hint: install the same version everywhere",
                       name, join->host, join->text, join->protocol, bel_version(),
                       BEL_PROTOCOL_VERSION);
    }
    if (member < 0) {
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "%s on %s is no member of this job: it has %d workers, %d parameter servers "
                       "and %d evaluators",
                       name, join->host, members->config.counts[BEL_ROLE_WORKER],
                       members->config.counts[BEL_ROLE_PS],
                       members->config.counts[BEL_ROLE_EVALUATOR]);
    }
    const seat *s = &members->seats[member];
    if (s->mailbox != NULL) {
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "%s on %s (pid %lld) joins, but it is there already, on %s (pid %lld)", name,
                       join->host, (long long)join->pid, s->member.host, (long long)s->member.pid);
    }
    if (strcmp(join->folder, members->token) != 0) {
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "%s on %s does not see the master's model_dir: %s; hint: all roles need one "
                       "shared folder under the same name",
                       name, join->host,
                       join->folder[0] == '\0' ? "job.token is missing there"
                                               : "job.token there is another");
    }
    return compare_settings(e, join, name);
}

// Sits a caller down, or refuses it. The mailbox is closed when it is refused.
static bel_status *seat_caller(bel_members *members, const expected *e, bel_mailbox *mailbox,
                               bel_message *join)
{
    int member = -1;
    if (join->role >= 0 && join->role < BEL_ROLE_COUNT) {
        member = bel_members_find(members, (bel_role)join->role, join->index);
    }
    bel_status *status = check_join(members, e, join, member);
    if (status != NULL) {
        bel_mailbox_refuse(mailbox, bel_status_code(status), bel_status_message(status));
        bel_mailbox_close(mailbox, LINGER_MS);
        return status;
    }
    seat *s = &members->seats[member];
    s->mailbox = mailbox;
    s->member.pid = join->pid;
    s->member.host = bel_xstrdup(join->host);
    s->member.address = bel_xstrdup(join->address);
    s->member.doing = bel_xstrdup("has joined");
    return NULL;
}

// Looks at those who have called; strangers and late-comers are refused without ending the job.
static bel_status *hear_callers(bel_members *members, const expected *e, bool joining)
{
    pthread_mutex_lock(&members->mutex);
    caller *list = members->callers;
    members->callers = NULL;
    pthread_mutex_unlock(&members->mutex);
    bel_status *first = NULL;
    while (list != NULL) {
        caller *c = list;
        list = c->next;
        bel_message message;
        bool said = bel_mailbox_take(c->mailbox, &message);
        if (!said && !bel_mailbox_is_over(c->mailbox)) { // it will
            pthread_mutex_lock(&members->mutex);
            c->next = members->callers;
            members->callers = c;
            pthread_mutex_unlock(&members->mutex);
            continue;
        }
        bel_status *status = NULL;
        if (said && message.kind == BEL_MESSAGE_JOIN) {
            status = seat_caller(members, e, c->mailbox, &message);
        } else {
            if (said) bel_mailbox_refuse(c->mailbox, BEL_INVALID_ARGUMENT, "expected a join");
            bel_mailbox_close(c->mailbox, said ? LINGER_MS : 0);
        }
        if (said) bel_message_deinit(&message);
        if (status != NULL && joining && first == NULL) {
            first = status;
        } else if (status != NULL) {
            bel_log_write(BEL_LOG_WARN, "refused: %s", bel_status_message(status));
            bel_status_destroy(status);
        }
        bel_free(c);
    }
    return first;
}

static bel_status *who_is_missing(const bel_members *members)
{
    bel_str names = {0};
    char text[32];
    int missing = 0;
    for (int i = 0; i < members->seat_count; i++) {
        if (members->seats[i].mailbox != NULL) continue;
        bel_str_printf(&names, "%s%s", missing++ > 0 ? ", " : "",
                       name_of(&members->seats[i].member, text));
    }
    if (missing == 0) return NULL;
    bel_status *status = BEL_ERR(BEL_DEADLINE_EXCEEDED,
                                 "no word from %s within %g s of the start; hint: see their "
                                 "logs, and whether they can reach %s",
                                 names.text, members->config.join_timeout_secs,
                                 bel_endpoint_address(members->endpoint));
    bel_str_deinit(&names);
    return status;
}

bel_status *bel_members_gather(bel_members *members, char *const *names, char *const *values,
                               int count, bool (*stop)(void))
{
    enum { NAP_NS = 100000000 };
    const expected e = {names, values, count};
    int64_t deadline = bel_clock_ns() + (int64_t)(members->config.join_timeout_secs * 1e9);
    for (;;) {
        BEL_TRY(hear_callers(members, &e, true));
        BEL_TRY(bel_members_check(members));
        bel_status *missing = who_is_missing(members);
        if (missing == NULL) return NULL;
        int64_t now = bel_clock_ns();
        if (now >= deadline) return missing;
        bel_status_ignore(missing); // not yet
        if (stop()) return BEL_ERR(BEL_CANCELLED, "stopped before all members had joined");
        bel_doorbell_wait(members->bell, now + NAP_NS < deadline ? now + NAP_NS : deadline);
    }
}

// --- Messages ------------------------------------------------------------------------------------

void bel_members_send(bel_members *members, int member, const bel_message *message)
{
    if (members->seats[member].mailbox != NULL) {
        bel_mailbox_send(members->seats[member].mailbox, message);
    }
}

void bel_members_send_all(bel_members *members, const bel_message *message)
{
    for (int i = 0; i < members->seat_count; i++)
        bel_members_send(members, i, message);
}

static bool take_from(bel_members *members, int index, bel_message *out_message)
{
    seat *s = &members->seats[index];
    while (s->mailbox != NULL && bel_mailbox_take(s->mailbox, out_message)) {
        if (out_message->kind != BEL_MESSAGE_STATUS) return true;
        s->member.step = out_message->step;
        bel_free(s->member.doing);
        s->member.doing = bel_xstrdup(out_message->text);
        bel_message_deinit(out_message);
    }
    return false;
}

bool bel_members_take(bel_members *members, double secs, int *out_member, bel_message *out_message)
{
    int64_t deadline = bel_clock_ns() + (int64_t)(secs * 1e9);
    do {
        bel_status_ignore(hear_callers(members, &(expected){0}, false)); // refused already
        for (int i = 0; i < members->seat_count; i++) {
            int index = (members->next_seat + i) % members->seat_count;
            if (!take_from(members, index, out_message)) continue;
            members->next_seat = index + 1;
            if (out_message->kind == BEL_MESSAGE_ENDED) {
                members->seats[index].member.ended = true;
                members->seats[index].member.step = out_message->step;
            }
            *out_member = index;
            return true;
        }
    } while (bel_doorbell_wait(members->bell, deadline));
    return false;
}

// --- Clocks --------------------------------------------------------------------------------------

void bel_members_note_step(bel_members *members, int64_t step)
{
    members->step = step;
}

static bel_status *lost(const bel_members *members, const bel_member *member, const char *why)
{
    char text[32];
    int64_t step = member->step > members->step ? member->step : members->step;
    return BEL_ERR(BEL_UNAVAILABLE, "lost %s on %s (pid %lld) after step %lld: %s",
                   name_of(member, text), member->host, (long long)member->pid, (long long)step,
                   why);
}

bel_status *bel_members_check(bel_members *members)
{
    double limit = members->config.silence_timeout_secs;
    for (int i = 0; i < members->seat_count; i++) {
        const seat *s = &members->seats[i];
        if (s->mailbox == NULL || members->dismissed) continue;
        if (bel_mailbox_is_over(s->mailbox))
            return lost(members, &s->member, "its connection has ended");
        double silence = (double)bel_mailbox_silence_ns(s->mailbox) * 1e-9;
        if (silence < limit) continue;
        char why[96];
        snprintf(why, sizeof why, "nothing heard of it for %.1f s", silence);
        return lost(members, &s->member, why);
    }
    return NULL;
}

void bel_members_describe(const bel_members *members, bel_str *out)
{
    char text[32];
    for (int i = 0; i < members->seat_count; i++) {
        const bel_member *m = &members->seats[i].member;
        bel_str_printf(out, "%s%s %s (step %lld)", i > 0 ? "; " : "", name_of(m, text),
                       m->doing != NULL ? m->doing : "has not joined", (long long)m->step);
    }
}

// --- The end -------------------------------------------------------------------------------------

void bel_members_dismiss(bel_members *members, bel_code code, const char *text, double wait_secs)
{
    char *words = bel_xstrdup(text);
    bel_members_send_all(
        members, &(bel_message){.kind = BEL_MESSAGE_END, .code = (int32_t)code, .text = words});
    bel_free(words);
    members->dismissed = true;
    int64_t deadline = bel_clock_ns() + (int64_t)(wait_secs * 1e9);
    for (;;) {
        int member, here = 0;
        bel_message message;
        while (bel_members_take(members, 0, &member, &message)) // nothing counts any more
            bel_message_deinit(&message);
        for (int i = 0; i < members->seat_count; i++)
            here += members->seats[i].mailbox != NULL &&
                    !bel_mailbox_is_over(members->seats[i].mailbox);
        if (here == 0 || !bel_doorbell_wait(members->bell, deadline)) return;
    }
}
