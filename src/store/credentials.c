// Credentials of this process: see credentials.h. A renewal runs outside of the mutex. Others keep
// the old credentials meanwhile if they are still good, and wait for the new ones if not. The
// renewal's requests have limits, so the wait ends.
#include "store/credentials.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "store/patience.h"
#include "store/profile.h"

enum { EARLY_SECS = 300, LEAST_SECS = 10 };

// Cache for one kind of store.
typedef struct cache {
    bel_credentials *now; // NULL: not loaded, or anonymous
    bool is_loaded, is_renewing;
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

// Loads new ones; the mutex is held at the begin and the end, not meanwhile.
static bel_status *renew(cache *c, bel_store_scheme scheme)
{
    bel_credentials *made = NULL;
    c->is_renewing = true;
    pthread_mutex_unlock(&mutex);
    bel_status *status = scheme == BEL_STORE_S3 ? bel_credentials_load_aws(&made)
                                                : bel_credentials_load_google(&made);
    pthread_mutex_lock(&mutex);
    c->is_renewing = false;
    pthread_cond_broadcast(&renewed);
    if (status != NULL) return status;
    credentials_drop(c->now);
    c->now = made;
    if (made != NULL) made->users = 1;
    c->is_loaded = true;
    return NULL;
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
    int64_t deadline_ns = bel_clock_ns() + bel_patience_ns();
    pthread_mutex_lock(&mutex);
    for (;;) {
        double left = left_secs(c);
        bool is_refused = refused != NULL && c->now == refused;
        bool good = left > LEAST_SECS && !is_refused;
        if (good && (left > EARLY_SECS || c->is_renewing)) break;
        if (!c->is_renewing) {
            status = renew(c, scheme);
            if (status == NULL || !good) break;
            bel_status_ignore(status); // the old ones are good for a while: the next call tries
            status = NULL;
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
