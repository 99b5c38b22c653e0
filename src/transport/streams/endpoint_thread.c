// An endpoint's thread, its alarms and errands. The thread waits in epoll for the descriptors of
// streams on this host, for errands of other threads and for the next alarm. If gRPC is used it has
// a second thread; events of both run one at a time, under event_mutex. `dispatches` is odd while
// an event runs, which is enough for settling.
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/linux_sched.h"
#include "base/log.h"
#include "base/thread.h"
#include "transport/streams/endpoint_inner.h"

// --- Events --------------------------------------------------------------------------------------

void bel_endpoint_enter(bel_endpoint *endpoint)
{
    pthread_mutex_lock(&endpoint->event_mutex);
    atomic_fetch_add(&endpoint->dispatches, 1);
}

void bel_endpoint_leave(bel_endpoint *endpoint)
{
    atomic_fetch_add(&endpoint->dispatches, 1);
    pthread_mutex_unlock(&endpoint->event_mutex);
}

// An odd count that has changed means that the event in progress has finished, whatever runs now.
// Events are short, so this naps; the default memory order makes the event's effects visible here.
void bel_endpoint_settle(bel_endpoint *endpoint)
{
    enum { NAP_NS = 50000 };
    unsigned long long begun = atomic_load(&endpoint->dispatches);
    while (begun % 2 == 1 && atomic_load(&endpoint->dispatches) == begun)
        (void)nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

// --- Alarms --------------------------------------------------------------------------------------

struct bel_alarm {
    int64_t due_ns;
    void (*each)(void *context, bool due);
    void *context;
    bel_alarm *next;
};

static void set_alarm(bel_endpoint *endpoint, bel_alarm *alarm)
{
    alarm->next = endpoint->alarms;
    endpoint->alarms = alarm;
    if (alarm->due_ns < endpoint->alarm_ns) endpoint->alarm_ns = alarm->due_ns;
}

// The event may run on gRPC's thread, so this endpoint's thread is told of an earlier alarm.
void bel_endpoint_after(bel_endpoint *endpoint, int64_t delay_ms,
                        void (*each)(void *context, bool due), void *context)
{
    bel_alarm *alarm = bel_xcalloc(1, sizeof *alarm);
    *alarm = (bel_alarm){bel_clock_ns() + delay_ms * 1000000, each, context, NULL};
    bool sooner = alarm->due_ns < endpoint->alarm_ns;
    set_alarm(endpoint, alarm);
    if (sooner) bel_endpoint_wake(endpoint);
}

// Calls due alarms, or all at the end; new alarms may be set meanwhile.
static void call_alarms(bel_endpoint *endpoint, bool ending)
{
    int64_t now = bel_clock_ns();
    if (!ending && now < endpoint->alarm_ns) return;
    bel_alarm *list = endpoint->alarms;
    endpoint->alarms = NULL;
    endpoint->alarm_ns = INT64_MAX;
    while (list != NULL) {
        bel_alarm *alarm = list;
        list = alarm->next;
        if (!ending && alarm->due_ns > now) {
            set_alarm(endpoint, alarm);
            continue;
        }
        alarm->each(alarm->context, !ending);
        bel_free(alarm);
    }
}

// Returns how long the thread may sleep, in milliseconds, rounded up; -1 without an alarm.
static int time_to_alarm(const bel_endpoint *endpoint)
{
    if (endpoint->alarm_ns == INT64_MAX) return -1;
    int64_t left = (endpoint->alarm_ns - bel_clock_ns() + 999999) / 1000000;
    return left < 0 ? 0 : left < INT_MAX ? (int)left : INT_MAX;
}

// --- The thread ----------------------------------------------------------------------------------

static void control_watch(bel_endpoint *endpoint, int operation, int descriptor, bel_watch *watch,
                          uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};
    BEL_CHECK(epoll_ctl(endpoint->poll, operation, descriptor, &event) == 0);
}

void bel_endpoint_watch(bel_endpoint *endpoint, int descriptor, bel_watch *watch, uint32_t events)
{
    control_watch(endpoint, EPOLL_CTL_ADD, descriptor, watch, events);
}

void bel_endpoint_rewatch(bel_endpoint *endpoint, int descriptor, bel_watch *watch, uint32_t events)
{
    control_watch(endpoint, EPOLL_CTL_MOD, descriptor, watch, events);
}

void bel_endpoint_unwatch(bel_endpoint *endpoint, int descriptor)
{
    control_watch(endpoint, EPOLL_CTL_DEL, descriptor, NULL, 0);
}

void bel_endpoint_wake(bel_endpoint *endpoint)
{
    const uint64_t one = 1;
    ssize_t written = write(endpoint->wake, &one, sizeof one);
    (void)written; // a full counter wakes, too
}

bool bel_endpoint_post(bel_endpoint *endpoint, bel_errand *errand)
{
    pthread_mutex_lock(&endpoint->errand_mutex);
    bool is_new = !errand->waits, is_first = endpoint->first_errand == NULL;
    if (is_new) {
        errand->waits = true;
        errand->next = NULL;
        if (is_first) {
            endpoint->first_errand = errand;
        } else {
            endpoint->last_errand->next = errand;
        }
        endpoint->last_errand = errand;
    }
    pthread_mutex_unlock(&endpoint->errand_mutex);
    if (is_new && is_first) bel_endpoint_wake(endpoint);
    return is_new;
}

// Takes the list at once: an errand that is posted while one runs has woken the thread again.
static void run_errands(bel_endpoint *endpoint)
{
    pthread_mutex_lock(&endpoint->errand_mutex);
    bel_errand *list = endpoint->first_errand;
    endpoint->first_errand = endpoint->last_errand = NULL;
    pthread_mutex_unlock(&endpoint->errand_mutex);
    while (list != NULL) {
        bel_errand *errand = list;
        list = errand->next;
        pthread_mutex_lock(&endpoint->errand_mutex);
        errand->waits = false;
        pthread_mutex_unlock(&endpoint->errand_mutex);
        bel_endpoint_enter(endpoint);
        errand->run(errand);
        bel_endpoint_leave(endpoint);
    }
}

static void on_wake(bel_watch *watch, uint32_t events)
{
    (void)events;
    const bel_endpoint *endpoint = watch->owner;
    uint64_t count;
    ssize_t taken = read(endpoint->wake, &count, sizeof count);
    (void)taken; // the errands are looked at in any case
}

// Runs until bel_endpoint_stop. Remaining alarms are called as not due, so that their owners
// release them. Only an event of a watch, an errand or an alarm frees the watch, and the last two
// run between rounds, so no event of a round finds its watch gone.
static void *thread_main(void *argument)
{
    enum { EVENTS = 64 };
    bel_endpoint *endpoint = argument;
    struct epoll_event events[EVENTS];
    bel_linux_give_way();
    while (!atomic_load(&endpoint->ending)) {
        bel_endpoint_enter(endpoint);
        call_alarms(endpoint, false);
        int sleep_ms = time_to_alarm(endpoint);
        bel_endpoint_leave(endpoint);
        int count = epoll_wait(endpoint->poll, events, EVENTS, sleep_ms);
        BEL_CHECK(count >= 0 || errno == EINTR);
        for (int i = 0; i < count; i++) {
            bel_watch *watch = events[i].data.ptr;
            bel_endpoint_enter(endpoint);
            watch->ready(watch, events[i].events);
            bel_endpoint_leave(endpoint);
        }
        run_errands(endpoint);
    }
    run_errands(endpoint);
    call_alarms(endpoint, true);
    return NULL;
}

bel_status *bel_endpoint_start(bel_endpoint *endpoint)
{
    endpoint->poll = epoll_create1(EPOLL_CLOEXEC);
    endpoint->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (endpoint->poll < 0 || endpoint->wake < 0) {
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "cannot open a descriptor for a thread: %s",
                       strerror(errno));
    }
    endpoint->wake_watch = (bel_watch){on_wake, endpoint};
    bel_endpoint_watch(endpoint, endpoint->wake, &endpoint->wake_watch, EPOLLIN);
    BEL_TRY(bel_thread_start(&endpoint->thread, thread_main, endpoint));
    endpoint->has_thread = true;
    return NULL;
}

void bel_endpoint_stop(bel_endpoint *endpoint)
{
    atomic_store(&endpoint->ending, true);
    if (endpoint->has_thread) {
        bel_endpoint_wake(endpoint);
        pthread_join(endpoint->thread, NULL);
    }
    if (endpoint->wake >= 0) close(endpoint->wake);
    if (endpoint->poll >= 0) close(endpoint->poll);
}

// --- For carriers --------------------------------------------------------------------------------

bool bel_endpoint_is_stopping(bel_endpoint *endpoint)
{
    pthread_mutex_lock(&endpoint->mutex);
    bool stopping = endpoint->stopping;
    pthread_mutex_unlock(&endpoint->mutex);
    return stopping;
}

void bel_endpoint_say_stranger(bel_endpoint *endpoint, const char *peer)
{
    const int64_t second_ns = 1000000000;
    int64_t now = bel_clock_ns();
    if (endpoint->stranger_ns != 0 && now - endpoint->stranger_ns < second_ns) return;
    endpoint->stranger_ns = now;
    bel_log_write(BEL_LOG_WARN, "refused a call from %s that does not show this job's secret",
                  peer);
}

int bel_endpoint_patience_ms(const bel_endpoint *endpoint)
{
    enum { MOST_SECS = 1000000 };
    double silence = endpoint->config.silence_secs;
    int patience_ms = 1000 * (int)(silence < MOST_SECS ? silence : MOST_SECS);
    return patience_ms > BEL_KEEPALIVE_MS ? patience_ms : BEL_KEEPALIVE_MS;
}
