// A record is identified by the message of its error, which names its position: so a record that is
// met in each epoch counts once, whichever dataset it comes from. The list is searched linearly, as
// it is short, and only if a record is bad.
#include "input/source/bad_records.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/log.h"

struct bel_bad_records {
    int64_t most;
    pthread_mutex_t mutex;
    uint64_t *seen; // hashes of messages
    size_t count, capacity;
};

bel_bad_records *bel_bad_records_create(int64_t most)
{
    bel_bad_records *bad = bel_xcalloc(1, sizeof *bad);
    bad->most = most;
    pthread_mutex_init(&bad->mutex, NULL);
    return bad;
}

void bel_bad_records_destroy(bel_bad_records *bad)
{
    if (bad == NULL) return;
    pthread_mutex_destroy(&bad->mutex);
    bel_free(bad->seen);
    bel_free(bad);
}

// Whether an error is one of the data or of a function that reads it, and not one of memory or of a
// run that ends.
static bool is_about_a_record(bel_code code)
{
    return code == BEL_DATA_LOSS || code == BEL_INVALID_ARGUMENT || code == BEL_NOT_FOUND ||
           code == BEL_OUT_OF_RANGE || code == BEL_UNKNOWN;
}

// Number of this record among the bad ones, 0 if it was met before.
static int64_t bad_records_note(bel_bad_records *bad, uint64_t hash)
{
    int64_t number = 0;
    size_t i = 0;
    pthread_mutex_lock(&bad->mutex);
    while (i < bad->count && bad->seen[i] != hash)
        i++;
    if (i == bad->count) {
        bad->seen = bel_xgrow(bad->seen, &bad->capacity, bad->count + 1, sizeof *bad->seen);
        bad->seen[bad->count++] = hash;
        number = (int64_t)bad->count;
    }
    pthread_mutex_unlock(&bad->mutex);
    return number;
}

bel_status *bel_bad_records_pass(bel_bad_records *bad, bel_status *status)
{
    if (status == NULL || bad == NULL || !is_about_a_record(bel_status_code(status))) return status;
    const char *message = bel_status_message(status);
    int64_t number = bad_records_note(bad, bel_hash64(message, strlen(message)));
    if (number > bad->most) {
        return bel_status_wrap(status, __FILE__, __LINE__, "more than %lld bad records",
                               (long long)bad->most);
    }
    if (number > 0) {
        bel_log_write(BEL_LOG_WARN, "bad record %lld of %lld at most, left out: %s",
                      (long long)number, (long long)bad->most, message);
    }
    bel_status_ignore(status); // counted and logged
    return NULL;
}
