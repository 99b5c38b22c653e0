// Watcher of the main thread's long waits, which logs them and repeats a signal that came before. A
// detached thread checks once a second, and ends when there is no wait. A series of short waits
// thus starts at most one thread a second, and a training starts none. If the system has no thread
// left, waits are not watched.
#include "base/long_wait.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/linux_process.h"
#include "base/log.h"
#include "base/thread.h"

enum { LOOK_SECS = 1, SAY_SECS = 30 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; // guards `innermost` and `watched`
static bel_long_wait *innermost;
static bool watched;
static atomic_int depth;
static atomic_bool training;
static atomic_int early_signal; // 0: none

// Returns false if there is no wait, so the thread is to end.
static bool long_wait_look(void)
{
    pthread_mutex_lock(&mutex);
    bel_long_wait *wait = innermost;
    int64_t secs = wait != NULL ? (bel_clock_ns() - wait->begun_ns) / 1000000000 : 0;
    if (wait != NULL && secs / SAY_SECS > wait->said) {
        wait->said = secs / SAY_SECS;
        bel_log_write(BEL_LOG_INFO, "%s has taken %lld s so far", wait->what, (long long)secs);
    }
    watched = wait != NULL;
    pthread_mutex_unlock(&mutex);
    int number = atomic_load(&early_signal);
    if (wait != NULL && number != 0 && bel_long_wait_is_on())
        kill(getpid(), number); // for the main thread: this one blocks signals
    return wait != NULL;
}

static void *long_wait_watch(void *unused)
{
    const struct timespec nap = {.tv_sec = LOOK_SECS};
    do
        (void)nanosleep(&nap, NULL);
    while (long_wait_look());
    return unused;
}

void bel_long_wait_begin(bel_long_wait *wait, const char *what)
{
    *wait = (bel_long_wait){.what = what, .counts = bel_linux_is_main_thread()};
    if (!wait->counts) return;
    wait->begun_ns = bel_clock_ns();
    pthread_mutex_lock(&mutex);
    wait->outer = innermost;
    innermost = wait;
    bool starts = !watched;
    pthread_t thread;
    bel_status *status = starts ? bel_thread_start(&thread, long_wait_watch, NULL) : NULL;
    if (starts && status == NULL) pthread_detach(thread);
    if (status == NULL) watched = true;
    bel_status_ignore(status); // as above
    pthread_mutex_unlock(&mutex);
    atomic_fetch_add(&depth, 1);
}

void bel_long_wait_end(bel_long_wait *wait)
{
    if (!wait->counts) return;
    atomic_fetch_sub(&depth, 1);
    pthread_mutex_lock(&mutex);
    innermost = wait->outer;
    pthread_mutex_unlock(&mutex);
}

bool bel_long_wait_is_on(void)
{
    return atomic_load(&depth) > 0 && !atomic_load(&training);
}

void bel_long_wait_note_signal(int number)
{
    atomic_store(&early_signal, number);
}

void bel_long_wait_note_training(bool trains)
{
    atomic_store(&training, trains);
}
