// The lease is one small JSON object. Each write of it has the condition that it is the object that
// was read before, so of two owners that begin at once only one succeeds. Its age is judged by the
// store's clock, since the clocks of two hosts may differ. A write is repeated only for a short
// time: the time in its text must not become old.
#include "launch/folder/stored_lease.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "launch/folder/stored.h"

typedef struct lease_text {
    char *owner, *host;
    double renewed; // by the store's clock, seconds since 1970
    bool released;
} lease_text;

static void lease_text_deinit(lease_text *text)
{
    bel_free(text->owner);
    bel_free(text->host);
    *text = (lease_text){0};
}

static char *lease_url(const bel_stored_state *state)
{
    return bel_strf("%s/" BEL_LEASE_FILE, state->url);
}

static double store_now(const bel_stored_state *state)
{
    return bel_clock_wall() + bel_store_clock_offset_secs(state->url);
}

static bel_status *write_lease(const bel_stored_state *state, bool released,
                               const bel_store_condition *condition, bel_store_info *out_info)
{
    bel_str text = {0};
    char host[256] = "";
    (void)gethostname(host, sizeof host - 1);
    bel_str_puts(&text, "{\"owner\": ");
    bel_json_write_string(&text, state->owner);
    bel_str_puts(&text, ", \"host\": ");
    bel_json_write_string(&text, host);
    bel_str_printf(&text, ", \"process\": %lld, \"renewed\": ", (long long)getpid());
    bel_json_write_number(&text, store_now(state));
    bel_str_printf(&text, ", \"released\": %d}\n", released);
    enum { PATIENCE_SECS = 20 }; // the time in the text must not become old
    char *url = lease_url(state);
    double before = bel_store_set_patience(PATIENCE_SECS);
    bel_status *status = bel_store_write(url, text.text, text.length, condition, out_info);
    (void)bel_store_set_patience(before);
    bel_free(url);
    bel_str_deinit(&text);
    return status;
}

// Reads the lease. *out_text stays zeroed if the store has no lease.
static bel_status *read_lease(const bel_stored_state *state, lease_text *out_text,
                              bel_store_info *out_info)
{
    char bytes[4096], *url = lease_url(state);
    size_t size = 0;
    bel_json *json = NULL;
    *out_text = (lease_text){0};
    bel_status *status = bel_store_read(url, NULL, 0, sizeof bytes, bytes, &size, out_info);
    if (bel_status_code(status) == BEL_NOT_FOUND) {
        bel_status_ignore(status); // the folder has no owner
        bel_free(url);
        return NULL;
    }
    if (status == NULL) status = bel_json_parse(bytes, size, url, &json);
    if (status == NULL) {
        const bel_json_value *root = bel_json_root(json);
        const char *owner = "", *host = "";
        int64_t released = 0;
        (void)bel_json_string(root, "owner", &owner);
        (void)bel_json_string(root, "host", &host);
        (void)bel_json_i64(root, "released", &released);
        (void)bel_json_f64(root, "renewed", &out_text->renewed);
        out_text->owner = bel_xstrdup(owner);
        out_text->host = bel_xstrdup(host);
        out_text->released = released != 0;
    }
    bel_json_destroy(json);
    bel_free(url);
    return status;
}

// Whether this host owns the lease or owned it last.
static bool is_mine(const bel_stored_state *state, const lease_text *text)
{
    return text->owner != NULL && strcmp(text->owner, state->owner) == 0;
}

// A store without conditions cannot exclude two owners that begin at the same moment. So the lease
// is read again after a pause, in which the other owner writes, too.
static bel_status *take_without_conditions(const bel_stored_state *state)
{
    enum { PAUSE_SECS = 5 };
    lease_text text;
    bel_store_info info;
    bel_log_write(BEL_LOG_WARN,
                  "%s: this store has no conditional writes: two jobs that begin within %d s of "
                  "each other are told apart by a pause, and one that was stopped for more than "
                  "%d s may write beside its successor",
                  state->url, PAUSE_SECS, BEL_LEASE_SECS);
    BEL_TRY(write_lease(state, false, NULL, &info));
    (void)nanosleep(&(struct timespec){.tv_sec = PAUSE_SECS}, NULL);
    BEL_TRY(read_lease(state, &text, &info));
    bool mine = is_mine(state, &text);
    bel_status *status = NULL;
    if (!mine) {
        status =
            BEL_ERR(BEL_FAILED_PRECONDITION, "%s: another job began at the same time on host %s",
                    state->url, text.host != NULL ? text.host : "unknown");
    }
    lease_text_deinit(&text);
    return status;
}

static bool is_free(const bel_stored_state *state, const lease_text *text)
{
    if (text->owner == NULL || text->released || is_mine(state, text)) return true;
    return store_now(state) - text->renewed > BEL_LEASE_SECS;
}

bel_status *bel_stored_lease_take(const bel_stored_state *state, bel_store_info *out_lease)
{
    enum { MOST_TRIES = 5 };
    bel_status *status = NULL;
    for (int i = 0; i < MOST_TRIES; i++) {
        lease_text text;
        bel_store_info before;
        bel_status_ignore(status); // another process wrote the lease between read and write
        BEL_TRY(read_lease(state, &text, &before));
        bool exists = text.owner != NULL;
        status = NULL;
        if (!is_free(state, &text)) {
            status =
                BEL_ERR(BEL_FAILED_PRECONDITION,
                        "another job trains in %s, on host %s; its lease was renewed %.0f s "
                        "ago and ends %d s after the last renewal",
                        state->url, text.host, store_now(state) - text.renewed, BEL_LEASE_SECS);
        }
        lease_text_deinit(&text);
        BEL_TRY(status);
        bel_store_condition condition = {.absent = !exists, .tag = exists ? before.tag : NULL};
        status = write_lease(state, false, &condition, out_lease);
        if (bel_status_code(status) == BEL_UNIMPLEMENTED) {
            bel_status_ignore(status); // there is another way
            out_lease->tag[0] = '\0';
            return take_without_conditions(state);
        }
        if (bel_status_code(status) != BEL_FAILED_PRECONDITION) break;
    }
    return status;
}

// After an answer that was lost the lease has this host's new tag.
bel_status *bel_stored_lease_renew(const bel_stored_state *state, bel_store_info *lease,
                                   bool *out_lost)
{
    lease_text text;
    bool blind = lease->tag[0] == '\0'; // the store has no conditions
    *out_lost = false;
    if (!blind) {
        bel_store_info written;
        bel_store_condition condition = {.tag = lease->tag};
        bel_status *status = write_lease(state, false, &condition, &written);
        if (status == NULL) *lease = written;
        if (bel_status_code(status) != BEL_FAILED_PRECONDITION) return status;
        bel_status_ignore(status); // looked at below
    }
    bel_store_info found = {0};
    BEL_TRY(read_lease(state, &text, &found));
    bel_status *status = NULL;
    if (!is_mine(state, &text)) {
        *out_lost = true;
        status = BEL_ERR(BEL_ABORTED, "%s: host %s took the lease of this job", state->url,
                         text.host != NULL ? text.host : "unknown");
    } else if (blind) {
        status = write_lease(state, false, NULL, NULL);
    } else {
        *lease = found;
    }
    lease_text_deinit(&text);
    return status;
}

// After an answer that was lost the lease has this host's new tag.
bel_status *bel_stored_lease_release(const bel_stored_state *state, bel_store_info *lease)
{
    bool lost;
    BEL_TRY(bel_stored_lease_renew(state, lease, &lost));
    bel_store_condition condition = {.tag = lease->tag};
    bool blind = lease->tag[0] == '\0';
    return write_lease(state, true, blind ? NULL : &condition, NULL);
}

bel_status *bel_stored_lease_owner(const bel_stored_state *state, char **out_host)
{
    lease_text text;
    bel_store_info info;
    BEL_TRY(read_lease(state, &text, &info));
    *out_host = is_free(state, &text) ? NULL : bel_xstrdup(text.host);
    lease_text_deinit(&text);
    return NULL;
}

bel_status *bel_stored_lease_is_mine(const bel_stored_state *state, bool *out_mine)
{
    lease_text text;
    bel_store_info info;
    BEL_TRY(read_lease(state, &text, &info));
    *out_mine = is_mine(state, &text);
    lease_text_deinit(&text);
    return NULL;
}
