// Every possible member has a seat from the start; workers' seats are contiguous, by index. The
// first message on a caller's mailbox identifies it. The endpoint's thread only adds callers to a
// list (callers.c); everything else happens on the master's thread, so seats need no lock.
//
// The caller is notified of a member that joins anew before it gets any message of the new mailbox.
// Messages left in the old mailbox are dropped, and the member repeats them. Messages are taken
// from all members in turn. The patience with a lost member counts from the detection of the loss.
// A member that joins after the end is sent the end at once.
#include "master/members/members_inner.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "master/members/callers.h"
#include "master/members/join.h"
#include "transport/streams/mailbox.h"

enum { LINGER_MS = 500 };

// --- Seats ---------------------------------------------------------------------------------------

static void tell_end(bel_mailbox *mailbox, bel_code code, const char *text, bool leaves)
{
    Bel__End end;
    bel__end__init(&end);
    end.leaves = leaves;
    end.code = (int32_t)code;
    end.text = bel_xstrdup(text);
    bel_mailbox_send(mailbox, 0, &end.base);
    bel_free(end.text);
}

static void set_text(char **text, const char *value)
{
    bel_free(*text);
    *text = bel_xstrdup(value);
}

// Gives a caller its seat, or returns why not; for callers.c, on the master's thread. *out_blind:
// that of bel_join_check.
static bel_status *seat_caller(void *context, bel_mailbox *mailbox, const Bel__Join *join,
                               uint32_t generation, bool *out_blind)
{
    bel_members *members = context;
    int member = -1;
    if (join->role >= 0 && join->role < BEL_ROLE_COUNT) {
        member = bel_members_find(members, (bel_role)join->role, join->index);
    }
    const bel_seat *taken = member >= 0 ? &members->seats[member] : NULL;
    bool connected = taken != NULL && taken->mailbox != NULL;
    bel_status *refusal = bel_join_check(
        &members->rules, join, taken != NULL ? &taken->member : NULL, connected, out_blind);
    if (refusal != NULL && taken != NULL && !connected)
        set_text(&members->seats[member].refusal, bel_status_message(refusal));
    BEL_TRY(refusal);
    bel_seat *s = &members->seats[member];
    bel_free(s->refusal);
    s->refusal = NULL;
    bool planned = s->member.vacant || s->let_go || s->failed; // wanted again
    if (s->mailbox != NULL) // the last connection, or the predecessor
        bel_members_lose(members, s, "it is back before its loss was detected", planned);
    s->mailbox = mailbox;
    s->came_back = true;
    s->member.here = true;
    s->member.ended = s->member.vacant = s->let_go = s->failed = false;
    s->member.leave_ns = join->leaves ? -1 : 0;
    bel_seat_forget_kept(s);
    s->member.blind = *out_blind;
    if (s->member.blind) {
        char text[32];
        bel_log_write(BEL_LOG_INFO, "%s on %s does not see the model folder%s",
                      bel_seat_name(&s->member, text), join->host,
                      s->member.role == BEL_ROLE_PS || s->member.role == BEL_ROLE_EVALUATOR ||
                              members->config.counts[BEL_ROLE_PS] == 0
                          ? ": this process transfers its checkpoints"
                          : "");
    }
    members->restarts +=
        s->member.pid != 0 && !planned && join->incarnation > s->member.incarnation;
    s->member.incarnation = join->incarnation;
    s->member.generation = generation;
    s->member.held_generation = join->held_generation;
    s->member.held_step = join->held_step;
    s->member.held_snapshot = join->held_snapshot;
    s->member.mirror_generation = join->mirror_generation;
    s->member.mirror_step = join->mirror_step;
    s->member.step = join->step;
    s->member.pid = join->pid;
    s->member.clock_lead_ns = bel_clock_ns() - join->clock;
    set_text(&s->member.host, join->host);
    set_text(&s->member.address, join->address);
    set_text(&s->member.place, join->place);
    set_text(&s->member.doing, "has joined");
    if (members->dismissed) tell_end(mailbox, members->end_code, members->end_text, false);
    return NULL;
}

// --- Creation and destruction -------------------------------------------------------------------

// Runs on the endpoint's thread: control streams become callers, other paths are the backend's.
static bel_status *accept_stream(void *context, const char *path, bel_stream *stream,
                                 bel_stream_events *out_events)
{
    bel_members *members = context;
    if (strcmp(path, BEL_MAILBOX_PATH) != 0) {
        const bel_endpoint_config *lanes = &members->config.endpoint;
        return lanes->accept(lanes->context, path, stream, out_events);
    }
    bel_callers_add(members->callers, bel_mailbox_accept(stream, members->bell, out_events));
    return NULL;
}

// Adds the seats of a role. Those of workers beyond the wanted number are vacant.
static void add_seats(bel_members *members, bel_role role)
{
    for (int i = 0; i < members->config.counts[role]; i++) {
        bool vacant = role == BEL_ROLE_WORKER && i >= members->config.wanted_workers;
        members->seats[members->seat_count++].member =
            (bel_member_view){.role = role, .index = i, .vacant = vacant};
    }
}

bel_status *bel_members_create(const bel_members_config *config, bel_members **out_members)
{
    bel_members *members = bel_xcalloc(1, sizeof *members);
    members->config = *config;
    members->token = bel_xstrdup(config->token);
    members->patient_until_ns = INT64_MAX;
    members->rules = (bel_join_rules){.counts = members->config.counts,
                                      .token = members->token,
                                      .may_be_blind = config->may_be_blind};
    members->bell = bel_doorbell_create();
    members->callers = bel_callers_create(seat_caller, members);
    const int *counts = config->counts;
    size_t most = (size_t)counts[BEL_ROLE_PS] + (size_t)counts[BEL_ROLE_WORKER] +
                  (size_t)counts[BEL_ROLE_EVALUATOR];
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

const char *bel_members_token(const bel_members *members)
{
    return members->token;
}

void bel_members_destroy(bel_members *members)
{
    if (members == NULL) return;
    int64_t deadline = bel_clock_ns() + LINGER_MS * (int64_t)1000000; // for all of them together
    for (int i = 0; i < members->seat_count; i++) {
        int64_t left_ms = (deadline - bel_clock_ns()) / 1000000;
        bel_mailbox_close(members->seats[i].mailbox, left_ms > 0 ? left_ms : 0);
        bel_free(members->seats[i].member.host);
        bel_free(members->seats[i].member.address);
        bel_free(members->seats[i].member.place);
        bel_free(members->seats[i].member.doing);
        bel_free(members->seats[i].member.numbers);
        bel_free(members->seats[i].member.devices);
        bel_free(members->seats[i].loss);
        bel_free(members->seats[i].refusal);
        bel_seat_forget_kept(&members->seats[i]);
        bel_free(members->seats[i].kept);
    }
    bel_endpoint_destroy(members->endpoint);
    bel_callers_destroy(members->callers);
    bel_doorbell_destroy(members->bell);
    bel_free(members->seats);
    bel_free(members->token);
    bel_free(members->end_text);
    bel_free(members);
}

bel_endpoint *bel_members_endpoint(bel_members *members)
{
    return members->endpoint;
}

const bel_member_view *bel_members_get(const bel_members *members, int member)
{
    return &members->seats[member].member;
}

int bel_members_count(const bel_members *members)
{
    return members->seat_count;
}

void bel_members_set_generation(bel_members *members, int member, uint32_t generation)
{
    members->seats[member].member.generation = generation;
}

void bel_members_set_held(bel_members *members, int member, uint32_t generation,
                          const Bel__Held *held)
{
    bel_member_view *m = &members->seats[member].member;
    m->generation = 0;
    m->held_generation = held->step >= 0 ? generation : 0;
    m->held_step = held->step;
    m->held_snapshot = held->snapshot;
    m->mirror_generation = held->mirror_step >= 0 ? generation : 0;
    m->mirror_step = held->mirror_step;
}

int bel_members_find(const bel_members *members, bel_role role, int index)
{
    for (int i = 0; i < members->seat_count; i++) {
        const bel_member_view *m = &members->seats[i].member;
        if (m->role == role && m->index == index) return i;
    }
    return -1;
}

// --- Noted messages -------------------------------------------------------------------------

// The seat takes ownership of the list.
static void take_numbers(bel_seat *s, double **numbers, size_t *count)
{
    if (*count == 0) return;
    bel_free(s->member.numbers);
    s->member.numbers = *numbers;
    s->member.number_count = *count;
    s->member.numbers_ns = bel_clock_ns();
    *numbers = NULL;
    *count = 0;
}

// Takes the devices, omitting invalid ones.
static void take_devices(bel_seat *s, const Bel__Status *status)
{
    size_t count = status->n_devices < BEL_MOST_DEVICES ? status->n_devices : BEL_MOST_DEVICES;
    bel_free(s->member.devices);
    s->member.devices = count > 0 ? bel_xcalloc(count, sizeof *s->member.devices) : NULL;
    s->member.device_count = 0;
    for (size_t i = 0; i < count; i++) {
        const Bel__Device *its = status->devices[i];
        if (its->number < 0 || its->number >= BEL_MOST_DEVICES || its->towers < 0) continue;
        s->member.devices[s->member.device_count++] =
            (bel_device_numbers){its->number, its->towers, its->taken, its->free, its->memory};
    }
}

// True if a message is only noted here; false: the caller gets it as well.
static bool members_note(bel_members *members, bel_seat *s, Bel__Message *message)
{
    if (message->kind_case == BEL__MESSAGE__KIND_STATUS) {
        Bel__Status *status = message->status;
        s->member.step = status->step;
        if (status->step > members->reached) members->reached = status->step;
        set_text(&s->member.doing, status->doing);
        take_numbers(s, &status->numbers, &status->n_numbers);
        take_devices(s, status);
        return true;
    }
    if (message->kind_case == BEL__MESSAGE__KIND_LEAVE) {
        if (s->member.leave_ns == 0) s->member.leave_ns = bel_clock_ns();
        return true;
    }
    if (message->kind_case == BEL__MESSAGE__KIND_ENDED) {
        Bel__Ended *ended = message->ended;
        s->member.ended = true;
        s->member.step = ended->step;
        take_numbers(s, &ended->numbers, &ended->n_numbers);
    }
    if (message->kind_case != BEL__MESSAGE__KIND_JOIN) return false;
    // It has already joined; it may now have access to the folder, which a network shows late.
    if (strcmp(message->join->token, members->token) == 0) s->member.blind = false;
    return true;
}

// Notes messages while the master waits for others and takes none; keeps the rest in order.
static void note_all(bel_members *members)
{
    for (int i = 0; i < members->seat_count; i++) {
        bel_seat *s = &members->seats[i];
        Bel__Message *message;
        while (s->mailbox != NULL && (message = bel_mailbox_take(s->mailbox)) != NULL) {
            if (members_note(members, s, message)) {
                bel_message_destroy(message);
                continue;
            }
            s->kept = bel_xgrow(s->kept, &s->kept_capacity, s->kept_count + 1, sizeof *s->kept);
            s->kept[s->kept_count++] = message;
        }
    }
}

// --- Joining -------------------------------------------------------------------------------------

static bel_status *hear_callers(bel_members *members, bool joining)
{
    int64_t patience_ns = (int64_t)(members->config.folder_patience_secs * 1e9);
    return bel_callers_hear(members->callers, patience_ns, members->patient_until_ns, joining);
}

// Whether a member has not joined or not come back; lists their names.
static bool is_missing(const bel_members *members, bel_str *out_names)
{
    char text[32];
    for (int i = 0; i < members->seat_count; i++) {
        const bel_seat *s = &members->seats[i];
        if ((s->mailbox != NULL && !s->let_go) || s->member.vacant) continue;
        bel_str_printf(out_names, "%s%s", out_names->length > 0 ? ", " : "",
                       bel_seat_name(&s->member, text));
    }
    return out_names->length > 0;
}

static bel_status *late(const bel_members *members, const char *names)
{
    const char *tls = bel_endpoint_tls_hint(members->endpoint);
    return BEL_ERR(
        BEL_DEADLINE_EXCEEDED,
        "no word from %s within %g s of the start; hint: see their logs, whether they can reach "
        "%s%s%s",
        names, members->config.join_timeout_secs, bel_endpoint_address(members->endpoint),
        tls != NULL ? ", and " : "", tls != NULL ? tls : "");
}

// --- Workers that the job continues without -----------------------------------------------------

// Gives up all absent members, if the job may; false: it needs one of them.
static bool give_up_missing(bel_members *members)
{
    bool all = true;
    for (int i = 0; i < members->seat_count; i++) {
        bel_seat *s = &members->seats[i];
        bool away = (s->mailbox == NULL || s->let_go) && !s->member.vacant;
        if (away && !bel_seat_give_up(members, s)) all = false;
    }
    return all;
}

void bel_members_want(bel_members *members, int workers)
{
    members->config.wanted_workers = workers;
}

void bel_members_set_vacant(bel_members *members, int member, bool vacant)
{
    members->seats[member].member.vacant = vacant;
}

static void send_away(bel_seat *s, bool leaves)
{
    tell_end(s->mailbox, BEL_OK, "", leaves);
    s->came_back = s->member.here = false;
    s->let_go = true;
    s->member.generation = 0;
}

void bel_members_note_failure(bel_members *members, int member)
{
    members->seats[member].failed = true;
}

void bel_members_retire(bel_members *members, int member)
{
    send_away(&members->seats[member], false);
    members->seats[member].member.vacant = true;
}

void bel_members_let_go(bel_members *members, int member)
{
    send_away(&members->seats[member], true);
}

// Returns when no seat is missing, on an error, on a stop, or at the deadline if a needed member is
// missing. The nap bounds the delay of a stop.
bel_status *bel_members_gather(bel_members *members, const bel_join_graph *graph,
                               bool (*stop)(void *context), void *context)
{
    enum { NAP_NS = 100000000 };
    members->rules.graph = *graph;
    int64_t deadline = bel_clock_awake_ns() + (int64_t)(members->config.join_timeout_secs * 1e9);
    members->patient_until_ns = deadline;
    bel_str missing = {0};
    bel_status *status = NULL;
    for (;;) {
        missing.length = 0;
        status = hear_callers(members, true);
        note_all(members);
        if (status == NULL) status = bel_members_check(members);
        if (status != NULL || !is_missing(members, &missing)) break;
        if (stop(context)) status = BEL_ERR(BEL_CANCELLED, "stopped before all members had joined");
        if (bel_clock_awake_ns() >= deadline && status == NULL && !give_up_missing(members)) {
            status = hear_callers(members, true); // a blind member is the reason
            if (status == NULL) status = late(members, missing.text);
        }
        if (status != NULL) break;
        bel_doorbell_wait(members->bell, bel_clock_ns() + NAP_NS);
    }
    members->patient_until_ns = INT64_MAX;
    for (int i = 0; i < members->seat_count; i++)
        members->seats[i].came_back = false; // the caller checks all of them
    bel_str_deinit(&missing);
    return status;
}

void bel_members_hear(bel_members *members, double secs)
{
    int64_t deadline = bel_clock_ns() + (int64_t)(secs * 1e9);
    bel_str missing = {0};
    do {
        missing.length = 0;
        bel_status_ignore(hear_callers(members, false)); // already refused
    } while (is_missing(members, &missing) && bel_doorbell_wait(members->bell, deadline));
    bel_str_deinit(&missing);
}

// --- Messages ------------------------------------------------------------------------------------

void bel_members_send(bel_members *members, int member, uint32_t generation,
                      const ProtobufCMessage *kind)
{
    if (members->seats[member].mailbox != NULL)
        bel_mailbox_send(members->seats[member].mailbox, generation, kind);
}

// Takes the news of one seat: that it was taken anew comes before any message of its new mailbox.
static bool take_from(bel_members *members, bel_seat *s, Bel__Message **out_message)
{
    *out_message = NULL;
    if (s->came_back) {
        s->came_back = false;
        return true;
    }
    if (s->kept_taken < s->kept_count) {
        *out_message = s->kept[s->kept_taken++];
        return true;
    }
    while (s->mailbox != NULL && (*out_message = bel_mailbox_take(s->mailbox)) != NULL) {
        if (!members_note(members, s, *out_message)) return true;
        bel_message_destroy(*out_message);
    }
    return false;
}

// Starts after the seat of the last message, so that a talkative member does not block the others.
bool bel_members_take(bel_members *members, double secs, int *out_member,
                      Bel__Message **out_message)
{
    int64_t deadline = bel_clock_ns() + (int64_t)(secs * 1e9);
    do {
        bel_status_ignore(hear_callers(members, false)); // already refused
        for (int i = 0; i < members->seat_count; i++) {
            int index = (members->next_seat + i) % members->seat_count;
            if (!take_from(members, &members->seats[index], out_message)) continue;
            members->next_seat = index + 1;
            *out_member = index;
            return true;
        }
    } while (!atomic_exchange(&members->woken, false) &&
             bel_doorbell_wait(members->bell, deadline));
    return false;
}

void bel_members_wake(bel_members *members)
{
    atomic_store(&members->woken, true);
    bel_doorbell_ring(members->bell);
}

void bel_members_describe(const bel_members *members, bel_str *out)
{
    char text[32];
    for (int i = 0; i < members->seat_count; i++) {
        const bel_member_view *m = &members->seats[i].member;
        if (m->vacant) continue;
        bel_str_printf(out, "%s%s %s (step %lld)", out->length > 0 ? "; " : "",
                       bel_seat_name(m, text), m->doing != NULL ? m->doing : "has not joined",
                       (long long)m->step);
    }
}

// --- The end -------------------------------------------------------------------------------------

void bel_members_dismiss(bel_members *members, bel_code code, const char *text, double wait_secs)
{
    members->end_code = code;
    members->end_text = bel_xstrdup(text);
    members->dismissed = true;
    for (int i = 0; i < members->seat_count; i++)
        if (members->seats[i].mailbox != NULL)
            tell_end(members->seats[i].mailbox, code, members->end_text, false);
    int64_t deadline = bel_clock_ns() + (int64_t)(wait_secs * 1e9);
    for (;;) {
        int member, here = 0;
        Bel__Message *message;
        while (bel_members_take(members, 0, &member, &message)) // messages no longer matter
            bel_message_destroy(message);
        for (int i = 0; i < members->seat_count; i++)
            here += members->seats[i].mailbox != NULL &&
                    !bel_mailbox_is_over(members->seats[i].mailbox);
        if (here == 0 || !bel_doorbell_wait(members->bell, deadline)) return;
    }
}
