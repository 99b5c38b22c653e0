// An exchange polls all its connections in turns, and waits for any of them when none has moved
// bytes. A frame that has begun is completed, also by a rank that fails meanwhile, so that the
// other side can read the reason after it.
#include "ddl/net.h"

#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/linux_shared.h"
#include "base/number.h"
#include "ddl/socket.h"

enum { FAILURE_TEXT = 512, LOOK_MS = 10, END_MS = 500 };

typedef enum kind { DATA = 1, FIRST, FAILURE } kind; // FIRST: a bel_ddl_said, then the data

typedef struct head {
    uint32_t kind;
    uint32_t unused;
    uint64_t bytes; // length of the data
} head;

typedef struct failure {
    int32_t code;
    char text[FAILURE_TEXT];
} failure;

// The parts of a frame, one after another; `done` determines the progress of each.
typedef struct way {
    head head;
    bel_ddl_said said;
    bool has_said;
    char *data;
    size_t done;
} way;

typedef struct lane {
    int rank, file;
    way out, in;
    uint64_t in_bytes; // length announced by the other side, if unexpected
} lane;

struct bel_ddl_net {
    bool ends;                    // others may have left after their last call
    int files[BEL_DDL_MAX_RANKS]; // -1: closed, or inside a frame that will not end
    int rank, size;
    const bel_ddl_region *region;
    int64_t timeout_ns;
    lane lanes[BEL_DDL_MAX_RANKS]; // the current exchange's
};

typedef struct exchange {
    bel_ddl_net *net;
    const bel_ddl_said *said;
    const char *doing;
    lane *lanes;
    int count;
    int64_t region_failed; // time of the failure of this rank's group; 0: no failure
} exchange;

bel_ddl_net *bel_ddl_net_create(const bel_ddl_meeting *meeting, const bel_ddl_place *place,
                                double timeout_secs)
{
    bel_ddl_net *net = bel_xcalloc(1, sizeof *net);
    memcpy(net->files, meeting->files, sizeof net->files);
    net->rank = place->rank;
    net->size = place->size;
    net->timeout_ns = (int64_t)(timeout_secs * 1e9);
    return net;
}

void bel_ddl_net_watch(bel_ddl_net *net, const bel_ddl_region *region)
{
    net->region = region;
}

void bel_ddl_net_destroy(bel_ddl_net *net)
{
    if (net == NULL) return;
    for (int r = 0; r < net->size; r++)
        if (net->files[r] >= 0) (void)close(net->files[r]);
    bel_free(net);
}

// --- Frames --------------------------------------------------------------------------------------

static size_t way_whole(const way *w)
{
    return sizeof w->head + (w->has_said ? sizeof w->said : 0) + (size_t)w->head.bytes;
}

// Returns the part of a frame with its next byte, starting at that byte.
static char *next_part(way *w, size_t *out_bytes)
{
    size_t at = w->done;
    if (at < sizeof w->head) {
        *out_bytes = sizeof w->head - at;
        return (char *)&w->head + at;
    }
    at -= sizeof w->head;
    if (w->has_said && at < sizeof w->said) {
        *out_bytes = sizeof w->said - at;
        return (char *)&w->said + at;
    }
    at -= w->has_said ? sizeof w->said : 0;
    *out_bytes = (size_t)w->head.bytes - at;
    return w->data + at;
}

static bel_status *lost_rank(const bel_ddl_net *net, const char *doing, int rank, const char *why)
{
    return BEL_ERR(BEL_ABORTED, "rank %d of %d has exited; it was waited for in %s (%s)", rank,
                   net->size, doing, why);
}

// Handles the head of a failure frame.
static bel_status *hear_failure(const bel_ddl_net *net, const char *doing, int rank)
{
    failure heard;
    const char *why;
    int64_t deadline = bel_clock_awake_ns() + INT64_C(1000000) * END_MS;
    if (!bel_ddl_socket_receive_all(net->files[rank], &heard, sizeof heard, deadline, &why))
        return lost_rank(net, doing, rank, why);
    heard.text[sizeof heard.text - 1] = '\0';
    bel_code code = heard.code > BEL_OK && heard.code <= BEL_UNAUTHENTICATED ? (bel_code)heard.code
                                                                             : BEL_ABORTED;
    return BEL_ERR(code, "%s", heard.text);
}

static bel_status *other_size(const exchange *e, const lane *l, size_t expected)
{
    return BEL_ERR(BEL_INTERNAL, "rank %d has sent %llu bytes in %s, expected %zu", l->rank,
                   (unsigned long long)l->in_bytes, e->doing, expected);
}

// Checks a received head; `expected` is the length of the data.
static bel_status *check_head(const exchange *e, lane *l, size_t expected)
{
    const head *came = &l->in.head;
    if (came->kind == FAILURE) return hear_failure(e->net, e->doing, l->rank);
    if (came->kind == (uint32_t)(e->said != NULL ? FIRST : DATA) && came->bytes == expected)
        return NULL;
    l->in_bytes = came->bytes;
    l->in.head.bytes = 0; // skips the data; the first frame of a call begins with its description
    return came->kind == FIRST && e->said != NULL ? NULL : other_size(e, l, expected);
}

static bel_status *exchange_compare(const exchange *e, const lane *l, size_t expected)
{
    BEL_TRY(bel_ddl_said_compare(e->net->rank, e->said, l->rank, &l->in.said));
    return l->in.head.bytes == expected ? NULL : other_size(e, l, expected);
}

void bel_ddl_net_expect_end(bel_ddl_net *net)
{
    net->ends = true;
}

// Other bytes received belong to the next exchange, and stay in the socket.
bel_status *bel_ddl_net_look(void *context, const char *doing)
{
    bel_ddl_net *net = context;
    for (int r = 0; r < net->size; r++) {
        head next;
        const char *why = "it has closed the connection";
        if (net->files[r] < 0) continue;
        bool ended = bel_ddl_socket_has_ended(net->files[r]);
        if (ended && net->ends) continue;
        if (ended) return lost_rank(net, doing, r, why);
        if (!bel_ddl_socket_peek(net->files[r], &next, sizeof next) || next.kind != FAILURE)
            continue;
        (void)bel_ddl_socket_receive(net->files[r], &next, sizeof next, &why); // it has arrived
        return hear_failure(net, doing, r);
    }
    return NULL;
}

// --- Moving --------------------------------------------------------------------------------------

static bel_status *exchange_push(const exchange *e, lane *l, bool *moved_any)
{
    while (l->out.done < way_whole(&l->out)) {
        size_t bytes;
        const char *why, *from = next_part(&l->out, &bytes);
        ssize_t sent = bel_ddl_socket_send(l->file, from, bytes, &why);
        // The other side may have sent the reason before it closed.
        if (sent < 0) l->out.done = way_whole(&l->out);
        if (sent < 0 && l->in.done == way_whole(&l->in))
            return lost_rank(e->net, e->doing, l->rank, why);
        if (sent <= 0) return NULL;
        l->out.done += (size_t)sent;
        *moved_any = true;
    }
    return NULL;
}

// `expected`: length of the data; the received head has the actual length.
static bel_status *exchange_pull(const exchange *e, lane *l, size_t expected, bool *moved_any)
{
    size_t said_end = sizeof l->in.head + (l->in.has_said ? sizeof l->in.said : 0);
    while (l->in.done < way_whole(&l->in)) {
        size_t bytes;
        const char *why;
        char *to = next_part(&l->in, &bytes);
        ssize_t came = bel_ddl_socket_receive(l->file, to, bytes, &why);
        if (came < 0) return lost_rank(e->net, e->doing, l->rank, why);
        if (came == 0) return NULL;
        l->in.done += (size_t)came;
        *moved_any = true;
        if (l->in.done == sizeof l->in.head) BEL_TRY(check_head(e, l, expected));
        if (l->in.has_said && l->in.done == said_end) BEL_TRY(exchange_compare(e, l, expected));
    }
    return NULL;
}

static lane begin_lane(const exchange *e, const bel_ddl_transfer *t)
{
    lane l = {.rank = t->rank, .file = e->net->files[t->rank]};
    bool first = e->said != NULL;
    l.out = (way){.has_said = first, .data = (char *)(uintptr_t)t->out};
    l.out.head = (head){.kind = first ? FIRST : DATA, .bytes = t->out_bytes};
    if (first) l.out.said = *e->said;
    l.in = (way){.has_said = first, .data = t->in};
    l.in.head.bytes = t->in_bytes;
    return l;
}

static bool is_done(const lane *l)
{
    return l->out.done == way_whole(&l->out) && l->in.done == way_whole(&l->in);
}

static void exchange_look(const exchange *e)
{
    struct pollfd entries[BEL_DDL_MAX_RANKS];
    nfds_t count = 0;
    for (int i = 0; i < e->count; i++) {
        const lane *l = &e->lanes[i];
        bool out = l->out.done < way_whole(&l->out), in = l->in.done < way_whole(&l->in);
        if (!out && !in) continue;
        entries[count++] = (struct pollfd){
            .fd = l->file, .events = (short)((out ? POLLOUT : 0) | (in ? POLLIN : 0))};
    }
    (void)poll(entries, count, LOOK_MS);
}

// This rank's group may already have failed in a later call: this exchange can still complete.
static bel_status *look_at_group(exchange *e)
{
    bel_status *failed = e->net->region == NULL ? NULL : bel_ddl_region_check(e->net->region);
    int64_t now = bel_clock_awake_ns();
    if (failed == NULL) return NULL;
    if (e->region_failed == 0) e->region_failed = now;
    if (now - e->region_failed > INT64_C(1000000) * END_MS) return failed;
    bel_status_ignore(failed); // for now
    return NULL;
}

static bel_status *look_around(exchange *e, int64_t deadline)
{
    BEL_TRY(look_at_group(e));
    if (bel_clock_awake_ns() < deadline) return NULL;
    for (int i = 0; i < e->count; i++) {
        if (is_done(&e->lanes[i])) continue;
        return BEL_ERR(BEL_DEADLINE_EXCEEDED, "rank %d of %d has not come to %s within %g s",
                       e->lanes[i].rank, e->net->size, e->doing, (double)e->net->timeout_ns * 1e-9);
    }
    return NULL;
}

static bel_status *exchange_run(exchange *e, const bel_ddl_transfer *transfers, int64_t deadline)
{
    for (;;) {
        bool moved = false, done = true;
        for (int i = 0; i < e->count; i++) {
            lane *l = &e->lanes[i];
            BEL_TRY(exchange_push(e, l, &moved));
            BEL_TRY(exchange_pull(e, l, transfers[i].in_bytes, &moved));
            done = done && is_done(l);
        }
        if (done) return NULL;
        if (moved) continue;
        BEL_TRY(look_around(e, deadline));
        exchange_look(e);
    }
}

// Completes frames that have begun, if the others read them; otherwise that connection is unusable.
static void end_frames(exchange *e)
{
    int64_t deadline = bel_clock_awake_ns() + INT64_C(1000000) * END_MS;
    for (int i = 0; i < e->count; i++) {
        lane *l = &e->lanes[i];
        while (l->out.done > 0 && l->out.done < way_whole(&l->out)) {
            size_t bytes;
            const char *why, *from = next_part(&l->out, &bytes);
            if (!bel_ddl_socket_send_all(l->file, from, bytes, deadline, &why)) {
                (void)close(l->file);
                e->net->files[l->rank] = -1;
                break;
            }
            l->out.done += bytes;
        }
    }
}

bel_status *bel_ddl_net_exchange(bel_ddl_net *net, const bel_ddl_transfer *transfers, int count,
                                 const bel_ddl_said *said, const char *doing, double late_secs)
{
    exchange e = {.net = net, .said = said, .doing = doing, .lanes = net->lanes, .count = count};
    int64_t deadline = bel_clock_awake_ns() + net->timeout_ns + (int64_t)(late_secs * 1e9);
    for (int i = 0; i < count; i++) {
        e.lanes[i] = begin_lane(&e, &transfers[i]);
        if (e.lanes[i].file >= 0) continue;
        return BEL_ERR(BEL_ABORTED, "rank %d of %d has exited", transfers[i].rank, net->size);
    }
    bel_status *status = exchange_run(&e, transfers, deadline);
    if (status != NULL) end_frames(&e);
    return status;
}

// Waits until the sent bytes have arrived: closing a connection with unread received bytes would
// discard them. Bytes received meanwhile are dropped.
static void see_off(const bel_ddl_net *net)
{
    int64_t deadline = bel_clock_awake_ns() + INT64_C(1000000) * END_MS;
    char dropped[4096];
    for (int r = 0; r < net->size; r++) {
        const char *why;
        bool open = net->files[r] >= 0;
        while (open && !bel_linux_socket_is_sent(net->files[r]) &&
               bel_clock_awake_ns() < deadline) {
            ssize_t came = bel_ddl_socket_receive(net->files[r], dropped, sizeof dropped, &why);
            if (came == 0) (void)poll(NULL, 0, 1);
            open = came >= 0;
        }
    }
}

void bel_ddl_net_fail(bel_ddl_net *net, const bel_status *status)
{
    struct {
        head head;
        failure why;
    } frame = {.head = {.kind = FAILURE}, .why = {.code = (int32_t)bel_status_code(status)}};
    bel_snprintf(frame.why.text, sizeof frame.why.text, "%s", bel_status_message(status));
    for (int r = 0; r < net->size; r++) {
        const char *why;
        if (net->files[r] < 0) continue;
        // A rank that has exited, or does not read, cannot be informed.
        (void)bel_ddl_socket_send(net->files[r], &frame, sizeof frame.head + sizeof frame.why,
                                  &why);
    }
    see_off(net);
}
