// One thread that wakes eight times within the limit and checks whether it was fed since. It counts
// its naps rather than the time, so that a suspended and resumed process does not count as dead.
// The state is one word: the watched thread writes FED or RESTING over anything, the dog HUNGRY
// over FED only, by compare and exchange, so that no feeding is missed. `stands_still` is called
// without the mutex, at most once, as it may end the process.
#include "master/backend/watchdog.h"

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/thread.h"

enum { NAPS = 8 };

typedef enum bel_watchdog_state { FED, HUNGRY, RESTING } bel_watchdog_state;

struct bel_watchdog {
    int64_t nap_ns;
    void (*stands_still)(void *context, double secs);
    void *context;
    atomic_int state; // the watched thread writes FED and RESTING, the dog HUNGRY over FED
    pthread_t thread;
    pthread_mutex_t mutex; // guards stop
    pthread_cond_t changed;
    bool stop;
};

// The dog's thread. A nap that finds HUNGRY saw no food; one that finds FED makes it HUNGRY, and
// RESTING counts as fed.
static void *watchdog_watch(void *argument)
{
    bel_watchdog *dog = argument;
    int naps = 0; // without food
    pthread_mutex_lock(&dog->mutex);
    while (!dog->stop && naps < NAPS) {
        int64_t end = bel_clock_ns() + dog->nap_ns;
        while (!dog->stop && bel_clock_ns() < end)
            (void)bel_cond_wait_until(&dog->changed, &dog->mutex, end);
        int seen = FED;
        bool eats = atomic_compare_exchange_strong(&dog->state, &seen, HUNGRY);
        naps = eats || seen == RESTING ? 0 : naps + 1;
    }
    bool stands_still = !dog->stop;
    pthread_mutex_unlock(&dog->mutex); // the callback may end the process
    if (stands_still) dog->stands_still(dog->context, (double)(NAPS * dog->nap_ns) * 1e-9);
    return NULL;
}

bel_status *bel_watchdog_start(double limit_secs, void (*stands_still)(void *context, double secs),
                               void *context, bel_watchdog **out_dog)
{
    bel_watchdog *dog = bel_xcalloc(1, sizeof *dog);
    dog->nap_ns = (int64_t)(limit_secs * 1e9) / NAPS + 1;
    atomic_init(&dog->state, RESTING);
    dog->stands_still = stands_still;
    dog->context = context;
    pthread_mutex_init(&dog->mutex, NULL);
    bel_cond_init(&dog->changed);
    bel_status *status = bel_thread_start(&dog->thread, watchdog_watch, dog);
    if (status != NULL) {
        pthread_cond_destroy(&dog->changed);
        pthread_mutex_destroy(&dog->mutex);
        bel_free(dog);
        return status;
    }
    *out_dog = dog;
    return NULL;
}

void bel_watchdog_stop(bel_watchdog *dog)
{
    if (dog == NULL) return;
    pthread_mutex_lock(&dog->mutex);
    dog->stop = true;
    pthread_cond_signal(&dog->changed);
    pthread_mutex_unlock(&dog->mutex);
    pthread_join(dog->thread, NULL);
    pthread_cond_destroy(&dog->changed);
    pthread_mutex_destroy(&dog->mutex);
    bel_free(dog);
}

// Called on the watched thread; only the state is shared without the mutex.
void bel_watchdog_feed(bel_watchdog *dog, bool rests)
{
    if (dog != NULL) atomic_store(&dog->state, rests ? RESTING : FED);
}
