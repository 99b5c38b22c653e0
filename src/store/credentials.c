// Credentials of this process: see credentials.h. A renewal runs outside of the mutex. Others keep
// the old credentials meanwhile if they are still good, and wait for the new ones if not. The
// renewal's requests have limits, so the wait ends.
#include "store/credentials.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "store/patience.h"
#include "store/profile.h"

enum { EARLY_SECS = 300, LEAST_SECS = 10, PAUSE_SECS = 30 };

// Cache for one kind of store.
typedef struct cache {
    bel_credentials *now; // NULL: not loaded, or anonymous
    bool is_loaded, is_renewing;
    int64_t renewed_ns; // end of the last renewal, also of one that failed
    bool is_reported;   // renewals fail, and one line said so
} cache;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t renewed;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static cache caches[2]; // BEL_STORE_S3, BEL_STORE_GS

static void begin(void)
{
    bel_cond_init(&renewed);
}

static void credentials_drop(bel_credentials *c) // under the mutex
{
    if (c != NULL && --c->users <= 0) bel_credentials_destroy(c);
}

void bel_credentials_release(bel_credentials *credentials)
{
    pthread_mutex_lock(&mutex);
    credentials_drop(credentials);
    pthread_mutex_unlock(&mutex);
}

// Seconds for which the cached credentials are good.
static double left_secs(const cache *c)
{
    if (!c->is_loaded) return 0;
    return c->now == NULL || c->now->expires <= 0 ? 1e9 : c->now->expires - bel_clock_wall();
}

// Keeps the promise of bel_credentials_get about codes. A caller may read others as an answer of
// the store: that there is no object, or that another writer was first.
static bel_status *fit_code(bel_status *status)
{
    bel_code code = bel_status_code(status);
    if (code == BEL_OK || code == BEL_PERMISSION_DENIED || code == BEL_INVALID_ARGUMENT ||
        code == BEL_UNAVAILABLE)
        return status;
    bool passes = code == BEL_DEADLINE_EXCEEDED || code == BEL_RESOURCE_EXHAUSTED;
    bel_status *fitting =
        BEL_ERR(passes ? BEL_UNAVAILABLE : BEL_PERMISSION_DENIED, "%s", bel_status_message(status));
    bel_status_destroy(status);
    return fitting;
}

// Loads new ones; the mutex is held at the begin and the end, not meanwhile.
static bel_status *renew(cache *c, bel_store_scheme scheme, int64_t deadline_ns)
{
    bel_credentials *made = NULL;
    c->is_renewing = true;
    pthread_mutex_unlock(&mutex);
    bel_status *status =
        fit_code(scheme == BEL_STORE_S3 ? bel_credentials_load_aws(deadline_ns, &made)
                                        : bel_credentials_load_google(deadline_ns, &made));
    pthread_mutex_lock(&mutex);
    c->is_renewing = false;
    c->renewed_ns = bel_clock_ns();
    pthread_cond_broadcast(&renewed);
    if (status != NULL) return status;
    credentials_drop(c->now);
    c->now = made;
    if (made != NULL) made->users = 1;
    c->is_loaded = true;
    c->is_reported = false;
    return NULL;
}

// Renews credentials that are good for a while yet: an error is only logged, once.
static void renew_early(cache *c, bel_store_scheme scheme, int64_t deadline_ns)
{
    bel_status *status = renew(c, scheme, deadline_ns);
    if (status == NULL) return;
    if (!c->is_reported)
        bel_log_write(BEL_LOG_WARN,
                      "credentials from %s end in %.0f s, and a renewal failed: %s; it is tried "
                      "every %d s",
                      c->now->source, left_secs(c), bel_status_message(status), PAUSE_SECS);
    c->is_reported = true;
    bel_status_destroy(status);
}

// True shortly after a renewal, which failed or gave no later end.
static bool rests(const cache *c)
{
    return c->renewed_ns != 0 && bel_clock_ns() - c->renewed_ns < PAUSE_SECS * INT64_C(1000000000);
}

bel_status *bel_credentials_get(bel_store_scheme scheme, const bel_credentials *refused,
                                bel_credentials **out_credentials)
{
    const char *anonymous = bel_store_env(BEL_STORE_ANONYMOUS_VARIABLE);
    *out_credentials = NULL;
    if (scheme == BEL_STORE_WEB || (anonymous != NULL && strcmp(anonymous, "0") != 0)) return NULL;
    pthread_once(&once, begin);
    cache *c = &caches[scheme];
    bel_status *status = NULL;
    int64_t deadline_ns = bel_patience_end_ns(bel_clock_ns());
    pthread_mutex_lock(&mutex);
    for (;;) {
        double left = left_secs(c);
        bool is_refused = refused != NULL && c->now == refused;
        bool good = left > LEAST_SECS && !is_refused;
        bool early = left > EARLY_SECS || c->is_renewing || rests(c);
        if (good && !early) renew_early(c, scheme, deadline_ns);
        if (good) break;
        if (!c->is_renewing) {
            status = renew(c, scheme, deadline_ns);
            break;
        }
        if (!bel_cond_wait_until(&renewed, &mutex, deadline_ns)) {
            status = BEL_ERR(BEL_UNAVAILABLE, "a renewal of credentials does not end");
            break;
        }
    }
    if (status == NULL && c->now != NULL) c->now->users++;
    if (status == NULL) *out_credentials = c->now;
    pthread_mutex_unlock(&mutex);
    return status;
}
