// A folder of this host is owned by at most one process of it, which holds job.lock. Two threads
// serve it: one renews the lease, the other sends files. They are separate, as a large file may
// take longer to send than the lease lasts. Each request that changes the store asks before each of
// its tries whether the lease is fresh (bel_store_set_permission); if it is not, it waits for the
// renewal.
//
// While the store does not answer, training continues and checkpoints are saved on this host. The
// sender tries again until the job ends. Then bel_stored_release reports the store's error.
#include "launch/folder/stored.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/host_file.h"
#include "base/linux_lock.h"
#include "base/linux_process.h"
#include "base/log.h"
#include "base/requests.h"
#include "base/str.h"
#include "base/thread.h"
#include "belfry/estimator.h"
#include "launch/folder/stored_lease.h"
#include "launch/folder/stored_sync.h"
#include "store/cache.h"
#include "store/store.h"

enum { RENEW_SECS = 15, LOOK_SECS = 1, LEASE_PATIENCE_SECS = 10, MOST_PAUSE_SECS = 60 };

// --- The owner -----------------------------------------------------------------------------------

typedef struct stored_owner {
    bel_stored_state state; // the sender's, and the releasing thread's after that
    int lock;               // descriptor of FOLDER.store/lock, one byte of which is locked
    int folder_lock;        // keeps cleaners of temporary files out of the folder
    bel_store_info lease;   // the renewer's; an empty tag: the store has no conditions
    pthread_t renewer, sender;

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int64_t renewed_ns; // begin of the last renewal, on the clock that also runs in suspension
    bool sends, renews; // the threads shall continue
    bool lost;
    bel_stored_sums sums;

    struct stored_owner *next;
} stored_owner;

static struct {
    pthread_mutex_t mutex;
    stored_owner *first; // the folders that this process owns
} owners = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static double renew_secs(void)
{
    return bel_fault_is(BEL_FAULT_SHORT_LEASE) ? 1 : RENEW_SECS;
}

// Waits up to `secs`, or until *shall is false.
static bool owner_pause(stored_owner *o, const bool *shall, double secs)
{
    int64_t deadline = bel_clock_ns() + (int64_t)(secs * 1e9);
    pthread_mutex_lock(&o->mutex);
    while (*shall && bel_cond_wait_until(&o->changed, &o->mutex, deadline)) {
    }
    bool continues = *shall;
    pthread_mutex_unlock(&o->mutex);
    return continues;
}

static void *renew_lease(void *argument)
{
    stored_owner *o = argument;
    (void)bel_store_set_patience(LEASE_PATIENCE_SECS);
    while (owner_pause(o, &o->renews, renew_secs())) {
        int64_t began = bel_linux_boottime_ns();
        bool lost;
        bel_status *status = bel_stored_lease_renew(&o->state, &o->lease, &lost);
        if (lost) {
            bel_log_write(BEL_LOG_ERROR, "%s; this job saves on this host and ends",
                          bel_status_message(status));
        }
        pthread_mutex_lock(&o->mutex);
        if (status == NULL) o->renewed_ns = began;
        o->lost = lost;
        pthread_cond_broadcast(&o->changed);
        pthread_mutex_unlock(&o->mutex);
        bel_status_ignore(status); // tried again, or reported by bel_stored_release
        if (!lost) continue;
        bel_request_stop();
        break;
    }
    return NULL;
}

// Nanoseconds for which the lease is fresh. A successor waits for BEL_LEASE_SECS, and a request
// that is sent at the end may be silent for QUIET_SECS. Under the mutex.
static int64_t fresh_ns(const stored_owner *o)
{
    enum { QUIET_SECS = 20, FRESH_SECS = BEL_LEASE_SECS - QUIET_SECS, SHORT_SECS = 3 };
    int64_t secs = bel_fault_is(BEL_FAULT_SHORT_LEASE) ? SHORT_SECS : FRESH_SECS;
    return o->renewed_ns + secs * INT64_C(1000000000) - bel_linux_boottime_ns();
}

// For bel_store_set_permission: waits for a fresh lease. A request that is sent later would change
// the folder of a successor.
static bel_status *may_write(void *context)
{
    stored_owner *o = context;
    bel_status *status = NULL;
    int64_t deadline = bel_clock_ns() + MOST_PAUSE_SECS * INT64_C(1000000000);
    pthread_mutex_lock(&o->mutex);
    while (!o->lost && fresh_ns(o) <= 0 && bel_cond_wait_until(&o->changed, &o->mutex, deadline)) {
    }
    if (o->lost) {
        status = BEL_ERR(BEL_ABORTED, "%s: another job took the lease", o->state.url);
    } else if (fresh_ns(o) <= 0) {
        status = BEL_ERR(BEL_UNAVAILABLE, "%s: the lease could not be renewed", o->state.url);
    }
    pthread_mutex_unlock(&o->mutex);
    return status;
}

static bel_status *send_changes(stored_owner *o)
{
    bel_stored_sums sums;
    if (o->folder_lock >= 0) {
        bool same = false;
        BEL_TRY(bel_linux_is_open_on(o->folder_lock, o->state.folder, &same));
        if (!same) {
            return BEL_ERR(BEL_FAILED_PRECONDITION,
                           "%s is another folder than at the beginning; nothing is sent",
                           o->state.folder);
        }
    }
    bel_store_permission before = bel_store_set_permission((bel_store_permission){may_write, o});
    bel_status *status = bel_stored_push(&o->state, BEL_STORED_OWNER, &sums);
    (void)bel_store_set_permission(before);
    o->sums.files += sums.files;
    o->sums.bytes += sums.bytes;
    return status;
}

// Sends until it shall stop. One line reports an outage, and one its end.
static void *send_files(void *argument)
{
    stored_owner *o = argument;
    double pause = LOOK_SECS;
    bool failed = false;
    bel_store_lower_priority(); // training comes first
    while (owner_pause(o, &o->sends, pause)) {
        bel_status *status = send_changes(o);
        bool fails = status != NULL;
        if (fails && !failed) {
            bel_log_write(BEL_LOG_WARN,
                          "%s; training continues, the folder %s has all files, and they are sent "
                          "when the store accepts them",
                          bel_status_message(status), o->state.folder);
        }
        if (!fails && failed)
            bel_log_write(BEL_LOG_INFO, "%s: the store has all files again", o->state.url);
        pause = !fails ? LOOK_SECS : pause * 2 < MOST_PAUSE_SECS ? pause * 2 : MOST_PAUSE_SECS;
        failed = fails;
        bel_status_ignore(status); // tried again
    }
    return NULL;
}

// --- The folder on this host ---------------------------------------------------------------------

static char *stored_lock_path(const char *folder)
{
    return bel_stored_beside(folder, "lock");
}

bool bel_stored_is(const char *folder)
{
    char *path = bel_stored_beside(folder, "state.json");
    bool stored = bel_file_exists(path);
    bel_free(path);
    return stored;
}

char *bel_stored_url(const char *folder)
{
    bel_stored_state state;
    bel_status_ignore(bel_stored_state_read(folder, &state)); // damaged: its owner says so
    char *url = state.url != NULL ? bel_xstrdup(state.url) : NULL;
    bel_stored_state_deinit(&state);
    return url;
}

// Locks the folder's state against other processes of this host for a short time.
static bel_status *lock_state(const char *folder, int *out_lock)
{
    enum { PATIENCE_SECS = 600 };
    char *path = stored_lock_path(folder);
    bel_status *status = bel_linux_lock(path, PATIENCE_SECS, out_lock);
    bel_free(path);
    return status;
}

// URL without slashes at the end; free with bel_free.
static bel_status *clean_url(const char *url, char **out_url)
{
    BEL_TRY(bel_store_check_url(url));
    if (strncasecmp(url, "http", 4) == 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "a web server is only read; expected a folder in s3:// or gs://");
    }
    size_t length = strlen(url);
    while (length > 0 && url[length - 1] == '/')
        length--;
    *out_url = bel_xstrndup(url, length);
    return NULL;
}

static bel_status *make_state(const char *folder, const char *url)
{
    bel_stored_state state;
    int lock;
    unsigned char random[16];
    char *beside = bel_strf("%s.store", folder);
    bel_status *made = bel_dir_create(beside);
    bel_free(beside);
    BEL_TRY(made);
    BEL_TRY(lock_state(folder, &lock));
    bel_status *status = bel_stored_state_read(folder, &state);
    if (status == NULL && state.url == NULL) {
        status = bel_linux_random(random, sizeof random);
        bel_str owner = {0};
        for (size_t i = 0; i < sizeof random; i++)
            bel_str_printf(&owner, "%02x", random[i]);
        state = (bel_stored_state){
            .folder = bel_xstrdup(folder), .url = bel_xstrdup(url), .owner = owner.text};
        if (status == NULL) status = bel_stored_state_write(&state);
    }
    bel_stored_state_deinit(&state);
    bel_linux_unlock(lock);
    return status;
}

// Folders of models are not among temporary files if there is another place: they may have
// checkpoints that the store does not have yet.
static bel_status *find_base(char **out_base)
{
    const char *named = getenv(BEL_CACHE_DIR_VARIABLE);
    char *cache = named == NULL || named[0] == '\0' ? bel_cache_folder() : NULL;
    bool usable = cache != NULL && access(cache, W_OK) == 0;
    if (cache != NULL && !usable) {
        bel_status *status = bel_dir_create(cache);
        usable = status == NULL;
        bel_status_ignore(status); // then among temporary files
    }
    bel_status *status = bel_host_folder(usable ? cache : named, "belfry-folders", out_base);
    bel_free(cache);
    return status;
}

bel_status *bel_stored_place(const char *url, char **out_path)
{
    char *base = NULL;
    BEL_TRY(bel_store_check_url(url));
    BEL_TRY(find_base(&base));
    *out_path = bel_strf("%s/%s-%016llx", base, strrchr(url, '/') + 1,
                         (unsigned long long)bel_hash64(url, strlen(url)));
    bel_free(base);
    return NULL;
}

bel_status *bel_stored_folder(const char *url, char **out_folder)
{
    char *clean = NULL, *folder = NULL;
    BEL_TRY(clean_url(url, &clean));
    bel_status *status = bel_stored_place(clean, &folder);
    if (status == NULL) status = make_state(folder, clean);
    bel_free(clean);
    if (status == NULL)
        *out_folder = folder;
    else
        bel_free(folder);
    return status;
}

static bel_status *fetch(bel_stored_state *state, bool continues, const char *which, int lock)
{
    bel_stored_sums sums;
    char text[32];
    BEL_TRY(bel_stored_fetch(state, continues, which, lock, &sums));
    if (sums.files > 0) {
        bel_log_write(BEL_LOG_INFO, "%s: %lld files (%s) fetched to %s", state->url,
                      (long long)sums.files, bel_bytes_text((uint64_t)sums.bytes, text),
                      state->folder);
    }
    return NULL;
}

static bel_status *pull(bel_stored_state *state, const char *which, int lock)
{
    bool mine;
    BEL_TRY(bel_stored_lease_is_mine(state, &mine));
    return fetch(state, mine && state->complete, which, lock);
}

// A folder that no process of this host owns, while its state is locked.
typedef struct unowned {
    int lock;
    bel_stored_state state;
    const char *which;        // see bel_stored_pull
    bel_stored_writer writer; // sends the files
    bel_status *unsent;       // why they were not sent, although the store answers
} unowned;

// Acts on the folder. Does nothing if a process of this host owns it.
static bel_status *act_unowned(const char *folder, unowned *u, bel_status *(*act)(unowned *u))
{
    if (!bel_stored_is(folder)) return NULL;
    BEL_TRY(lock_state(folder, &u->lock));
    bel_status *status = NULL;
    if (!bel_stored_has_owner(u->lock)) {
        status = bel_stored_state_read(folder, &u->state);
        if (status == NULL && u->state.url != NULL) status = act(u); // else just removed
        bel_stored_state_deinit(&u->state);
    }
    bel_linux_unlock(u->lock);
    return status;
}

static bel_status *act_pull(unowned *u)
{
    return pull(&u->state, u->which, -1);
}

bel_status *bel_stored_pull(const char *folder, const char *which)
{
    return act_unowned(folder, &(unowned){.which = which}, act_pull);
}

static bel_status *is_owned_here(const char *folder, bool *out_owned)
{
    int lock;
    char *path = stored_lock_path(folder);
    bel_status *status = bel_linux_open_bytes(path, &lock);
    bel_free(path);
    BEL_TRY(status);
    *out_owned = bel_stored_has_owner(lock);
    bel_linux_unlock(lock);
    return NULL;
}

// Finds who owns a folder. *out_here: a process of this host. *out_host: another host, by the
// store's lease, else NULL; free with bel_free.
static bel_status *look_for_owner(const char *folder, bool *out_here, char **out_host)
{
    bel_stored_state state = {0};
    BEL_TRY(is_owned_here(folder, out_here));
    if (*out_here) return NULL;
    BEL_TRY(bel_stored_state_read(folder, &state));
    if (state.url == NULL) {
        return BEL_ERR(BEL_NOT_FOUND, "%s.store/state.json, which names the store, was removed",
                       folder);
    }
    bel_status *status = bel_stored_lease_owner(&state, out_host);
    bel_stored_state_deinit(&state);
    return status;
}

static bel_status *act_add(unowned *u)
{
    return bel_dir_exists(u->state.folder) ? bel_stored_push(&u->state, u->writer, NULL) : NULL;
}

bel_status *bel_stored_add(const char *folder, bel_stored_writer writer)
{
    enum { HURRY_SECS = 10 }; // a process that was asked to stop may be killed soon
    double before = bel_store_set_patience(HURRY_SECS);
    if (!bel_stop_requested()) (void)bel_store_set_patience(before);
    bel_status *status = act_unowned(folder, &(unowned){.writer = writer}, act_add);
    (void)bel_store_set_patience(before);
    return status;
}

// Checkpoints are fetched also if the store takes no files, unless it does not answer.
static bel_status *act_follow(unowned *u)
{
    u->unsent = act_add(u);
    if (bel_status_code(u->unsent) == BEL_UNAVAILABLE) {
        bel_status *status = u->unsent;
        u->unsent = NULL;
        return status;
    }
    return pull(&u->state, u->which, u->lock);
}

// One line reports files that are not sent.
static void report_unsent(const char *folder, bel_status *unsent)
{
    static atomic_bool reported;
    bool fails = unsent != NULL, again = atomic_exchange(&reported, fails);
    if (fails && !again) {
        bel_log_write(BEL_LOG_WARN,
                      "%s; the curves of this evaluator stay in %s until the store accepts them",
                      bel_status_message(unsent), folder);
    }
    bel_status_ignore(unsent); // the next call tries again
}

// The lease is read without a lock. Files are sent and fetched under it: an owner that begins
// meanwhile waits until the present file is fetched.
bel_status *bel_stored_follow(const char *folder, bool *out_trains)
{
    bool here;
    char *host = NULL;
    unowned u = {.writer = BEL_STORED_EVALUATOR};
    double before = bel_store_set_patience(LEASE_PATIENCE_SECS);
    bel_status *status = look_for_owner(folder, &here, &host);
    bool trains = status == NULL && (here || host != NULL);
    if (trains) *out_trains = true;
    if (status == NULL && !here) {
        status = act_unowned(folder, &u, act_follow);
        report_unsent(folder, u.unsent);
    }
    (void)bel_store_set_patience(before);
    bel_free(host);
    if (bel_status_code(status) == BEL_ABORTED) {
        bel_status_ignore(status); // a process of this host begins to own it
        return NULL;
    }
    if (status == NULL) *out_trains = trains; // all that a finished owner sent is here
    return status;
}

// --- Owning --------------------------------------------------------------------------------------

static void owner_free(stored_owner *o)
{
    bel_linux_unlock(o->folder_lock);
    bel_linux_unlock(o->lock);
    bel_stored_state_deinit(&o->state);
    pthread_cond_destroy(&o->changed);
    pthread_mutex_destroy(&o->mutex);
    bel_free(o);
}

static void stop_thread(stored_owner *o, bool *shall, pthread_t thread)
{
    pthread_mutex_lock(&o->mutex);
    bool runs = *shall;
    *shall = false;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->mutex);
    if (runs) pthread_join(thread, NULL);
}

static bel_status *start_thread(bool *shall, pthread_t *thread, void *(*body)(void *),
                                stored_owner *o)
{
    *shall = true;
    bel_status *status = bel_thread_start(thread, body, o);
    if (status != NULL) *shall = false; // no thread reads it
    return status;
}

// Stops the renewer and writes that the folder is free.
static bel_status *give_up_lease(stored_owner *o)
{
    stop_thread(o, &o->renews, o->renewer);
    if (o->lost) {
        return BEL_ERR(BEL_ABORTED,
                       "%s: another job took the lease; the files of this one are in %s; hint: "
                       "copy the checkpoints that you want to keep",
                       o->state.url, o->state.folder);
    }
    return bel_stored_lease_release(&o->state, &o->lease);
}

// Under the lock of the state. The renewer begins first: to fetch a large checkpoint may take
// longer than the lease lasts.
static bel_status *own_state(stored_owner *o, const char *folder)
{
    bool continues;
    BEL_TRY(bel_stored_state_read(folder, &o->state));
    BEL_TRY(bel_stored_lease_is_mine(&o->state, &continues));
    if (!continues) o->state.complete = false; // on disk before the lease names this host
    BEL_TRY(bel_stored_state_write(&o->state));
    o->renewed_ns = bel_linux_boottime_ns();
    BEL_TRY(bel_stored_lease_take(&o->state, &o->lease));
    bel_status *status = start_thread(&o->renews, &o->renewer, renew_lease, o);
    char *prefix = bel_strf("%s/", o->state.url);
    if (status == NULL) status = bel_store_abort_uploads(prefix); // left by killed owners
    if (status == NULL) status = fetch(&o->state, o->state.complete, BEL_STORED_ALL, -1);
    bel_free(prefix);
    if (status == NULL) status = start_thread(&o->sends, &o->sender, send_files, o);
    if (status != NULL) bel_status_ignore(give_up_lease(o)); // else it ends by time
    return status;
}

static bel_status *own(stored_owner *o, const char *folder)
{
    int lock;
    char *path = stored_lock_path(folder);
    bel_status *status = bel_linux_open_bytes(path, &o->lock);
    bel_free(path);
    BEL_TRY(status);
    if (!bel_linux_lock_byte(o->lock, 0)) {
        return BEL_ERR(BEL_FAILED_PRECONDITION, "another process of this host owns %s", folder);
    }
    BEL_TRY(bel_linux_lock_folder(folder, &o->folder_lock));
    BEL_TRY(lock_state(folder, &lock));
    status = own_state(o, folder);
    bel_linux_unlock(lock);
    return status;
}

bel_status *bel_stored_own(const char *folder)
{
    if (!bel_stored_is(folder)) return NULL;
    stored_owner *o = bel_xcalloc(1, sizeof *o);
    o->lock = o->folder_lock = -1;
    pthread_mutex_init(&o->mutex, NULL);
    bel_cond_init(&o->changed);
    bel_status *status = own(o, folder);
    if (status != NULL) {
        owner_free(o);
        return status;
    }
    bel_log_write(BEL_LOG_INFO, "%s: this host works in %s and sends what changes there",
                  o->state.url, folder);
    pthread_mutex_lock(&owners.mutex);
    o->next = owners.first;
    owners.first = o;
    pthread_mutex_unlock(&owners.mutex);
    return NULL;
}

static stored_owner *take_owner(const char *folder)
{
    pthread_mutex_lock(&owners.mutex);
    stored_owner **at = &owners.first, *found;
    while (*at != NULL && strcmp((*at)->state.folder, folder) != 0)
        at = &(*at)->next;
    found = *at;
    if (found != NULL) *at = found->next;
    pthread_mutex_unlock(&owners.mutex);
    return found;
}

// Sends all that is left. A store that does not answer is tried for a while longer, unless the run
// was asked to stop.
static bel_status *send_rest(stored_owner *o)
{
    enum { PATIENCE_SECS = 120 };
    int64_t deadline = bel_clock_ns() + PATIENCE_SECS * INT64_C(1000000000);
    bel_status *status = send_changes(o);
    while (bel_status_code(status) == BEL_UNAVAILABLE && bel_clock_ns() < deadline &&
           !bel_stop_requested()) {
        bel_log_write(BEL_LOG_WARN,
                      "%s; the last files are tried again; when this ends, %s has them",
                      bel_status_message(status), o->state.folder);
        bel_status_ignore(status); // logged
        status = send_changes(o);
    }
    return status;
}

bel_status *bel_stored_release(const char *folder)
{
    char text[32];
    stored_owner *o = take_owner(folder);
    if (o == NULL) return NULL;
    stop_thread(o, &o->sends, o->sender);
    bel_status *status = send_rest(o);
    bel_status *given = give_up_lease(o);
    if (status == NULL) {
        bel_log_write(BEL_LOG_INFO, "%s: the store has all files (%lld sent, %s)", o->state.url,
                      (long long)o->sums.files, bel_bytes_text((uint64_t)o->sums.bytes, text));
        status = given;
    } else if (o->lost) {
        bel_status_ignore(status); // the loss explains it
        status = given;
    } else {
        bel_status_ignore(given); // the lease ends by time
        status = bel_status_wrap(status, __FILE__, __LINE__,
                                 "%s lacks files, which %s has; hint: the same command sends them",
                                 o->state.url, folder);
    }
    owner_free(o);
    return status;
}
