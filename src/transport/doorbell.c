// An eventcount: rings are counted without a lock, here by an atomic and elsewhere by each remote.
// An event is signaled only while a thread sleeps. Each remote's count is compared separately, so
// that no remote can hide the rings of another.
#include "transport/doorbell.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/linux_shared.h"

enum { NAP_NS = 1000000 }; // between polls if there is no event to sleep on

typedef struct entry {
    bel_doorbell_remote remote;
    uint64_t seen;
} entry;

struct bel_doorbell {
    atomic_uint_fast64_t rung; // by this process
    atomic_uint asleep;        // 1: the next ring signals
    int event;
    pthread_mutex_t mutex; // guards what follows
    int sleepers;
    uint64_t seen;    // last seen value of `rung`
    uint64_t removed; // rings of removed remotes
    uint64_t signals;
    entry *entries;
    size_t count, capacity;
};

bel_doorbell *bel_doorbell_create(void)
{
    bel_doorbell *doorbell = bel_xcalloc(1, sizeof *doorbell);
    pthread_mutex_init(&doorbell->mutex, NULL);
    doorbell->event = bel_linux_event_create();
    return doorbell;
}

void bel_doorbell_destroy(bel_doorbell *doorbell)
{
    if (doorbell == NULL) return;
    if (doorbell->event >= 0) close(doorbell->event);
    pthread_mutex_destroy(&doorbell->mutex);
    bel_free(doorbell->entries);
    bel_free(doorbell);
}

// Counts first, then looks for sleepers; a sleeper uses the reverse order (doorbell.h), so all
// accesses are sequentially consistent. One of several ringing threads clears `asleep` and
// signals.
void bel_doorbell_ring(bel_doorbell *doorbell)
{
    atomic_fetch_add(&doorbell->rung, 1);
    if (atomic_load(&doorbell->asleep) == 0) return;
    if (atomic_exchange(&doorbell->asleep, 0) != 0 && doorbell->event >= 0) {
        bel_linux_event_signal(doorbell->event); // one signal is enough for all rings
    }
}

// True if any count has risen since it was last taken; takes all counts.
static bool take_rings_locked(bel_doorbell *doorbell)
{
    uint64_t rung = atomic_load(&doorbell->rung);
    bool any = rung != doorbell->seen;
    doorbell->seen = rung;
    for (size_t i = 0; i < doorbell->count; i++) {
        entry *e = &doorbell->entries[i];
        uint64_t rings = atomic_load(e->remote.rings);
        any = any || rings != e->seen;
        e->seen = rings;
    }
    return any;
}

// Shows here and to every remote whether a thread sleeps. A ring of this process clears its word;
// the next change of sleepers restores it.
static void change_sleepers_locked(bel_doorbell *doorbell, int change)
{
    doorbell->sleepers += change;
    uint32_t asleep = doorbell->sleepers > 0;
    atomic_store(&doorbell->asleep, asleep);
    for (size_t i = 0; i < doorbell->count; i++)
        atomic_store(doorbell->entries[i].remote.asleep, asleep);
}

// Empties the event, so that it does not wake the next sleeper for rings that are taken.
static void take_signals_locked(bel_doorbell *doorbell)
{
    if (doorbell->event >= 0) doorbell->signals += bel_linux_event_take(doorbell->event);
}

// Sleeps once, without the lock; earlier rings are not missed.
static void sleep_locked(bel_doorbell *doorbell, int64_t timeout_ns)
{
    if (doorbell->event < 0 && timeout_ns > NAP_NS) timeout_ns = NAP_NS;
    pthread_mutex_unlock(&doorbell->mutex);
    bel_linux_event_wait(doorbell->event, timeout_ns);
    pthread_mutex_lock(&doorbell->mutex);
    take_signals_locked(doorbell);
}

bool bel_doorbell_wait(bel_doorbell *doorbell, int64_t deadline_ns)
{
    pthread_mutex_lock(&doorbell->mutex);
    bool was_rung = take_rings_locked(doorbell);
    while (!was_rung) { // the signal may be old: sleep again until a ring or the deadline
        int64_t left_ns = deadline_ns - bel_clock_ns();
        if (left_ns <= 0) break;
        change_sleepers_locked(doorbell, 1);
        was_rung = take_rings_locked(doorbell);
        if (!was_rung) sleep_locked(doorbell, left_ns);
        change_sleepers_locked(doorbell, -1);
        was_rung = was_rung || take_rings_locked(doorbell);
    }
    pthread_mutex_unlock(&doorbell->mutex);
    return was_rung;
}

uint64_t bel_doorbell_count(bel_doorbell *doorbell)
{
    pthread_mutex_lock(&doorbell->mutex);
    uint64_t rings = atomic_load(&doorbell->rung) + doorbell->removed;
    for (size_t i = 0; i < doorbell->count; i++)
        rings += atomic_load(doorbell->entries[i].remote.rings);
    pthread_mutex_unlock(&doorbell->mutex);
    return rings;
}

void bel_doorbell_add(bel_doorbell *doorbell, const bel_doorbell_remote *remote)
{
    pthread_mutex_lock(&doorbell->mutex);
    doorbell->entries = bel_xgrow(doorbell->entries, &doorbell->capacity, doorbell->count + 1,
                                  sizeof *doorbell->entries);
    doorbell->entries[doorbell->count++] = (entry){.remote = *remote};
    bool asleep = doorbell->sleepers > 0;
    atomic_store(remote->asleep, asleep);
    // A thread that is already asleep has not looked at this count.
    bool signal = asleep && atomic_load(remote->rings) != 0 && doorbell->event >= 0;
    pthread_mutex_unlock(&doorbell->mutex);
    if (signal) bel_linux_event_signal(doorbell->event);
}

void bel_doorbell_remove(bel_doorbell *doorbell, const bel_doorbell_remote *remote)
{
    pthread_mutex_lock(&doorbell->mutex);
    for (size_t i = 0; i < doorbell->count; i++) {
        entry *e = &doorbell->entries[i];
        if (e->remote.rings != remote->rings) continue;
        doorbell->removed += atomic_load(e->remote.rings);
        *e = doorbell->entries[--doorbell->count];
        break;
    }
    pthread_mutex_unlock(&doorbell->mutex);
}

int bel_doorbell_event(const bel_doorbell *doorbell)
{
    return doorbell->event;
}

uint64_t bel_doorbell_signals(bel_doorbell *doorbell)
{
    pthread_mutex_lock(&doorbell->mutex);
    take_signals_locked(doorbell);
    uint64_t signals = doorbell->signals;
    pthread_mutex_unlock(&doorbell->mutex);
    return signals;
}
