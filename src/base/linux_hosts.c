// Look-ups of many names by several threads, which take one name after another. A thread that is
// still running at the timeout is detached, so its memory is shared and reference-counted. (glibc's
// getaddrinfo_a would do the same, but gai_suspend leaves a pointer to its caller's stack with
// requests that end as it returns: the process dies of it.)
#define _GNU_SOURCE
#include "base/linux_hosts.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/thread.h"

// --- Addresses ----------------------------------------------------------------------------------

// Returns the bytes of an IPv4 or IPv6 address; NULL for another family.
static const unsigned char *bytes_of(const struct sockaddr *address, size_t *out_size)
{
    const void *any = address; // a larger type, aligned for it
    if (address == NULL) return NULL;
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *four = any;
        *out_size = sizeof four->sin_addr;
        return (const unsigned char *)&four->sin_addr;
    }
    if (address->sa_family != AF_INET6) return NULL;
    const struct sockaddr_in6 *six = any;
    *out_size = sizeof six->sin6_addr;
    return (const unsigned char *)&six->sin6_addr;
}

// 127.0.0.0/8, ::1
static bool is_loopback(const struct sockaddr *address)
{
    size_t size = 0;
    const unsigned char *bytes = bytes_of(address, &size);
    if (bytes == NULL) return false;
    if (size == sizeof(struct in_addr)) return bytes[0] == 127;
    return memcmp(bytes, &in6addr_loopback, sizeof in6addr_loopback) == 0;
}

// Returns true if one of this host's interfaces has the address.
static bool is_own(const struct ifaddrs *interfaces, const struct sockaddr *address)
{
    size_t size = 0, own_size = 0;
    const unsigned char *bytes = bytes_of(address, &size);
    for (const struct ifaddrs *i = interfaces; i != NULL && bytes != NULL; i = i->ifa_next) {
        const unsigned char *own = bytes_of(i->ifa_addr, &own_size);
        if (own != NULL && own_size == size && memcmp(own, bytes, size) == 0) return true;
    }
    return false;
}

static void take_answer(bel_linux_host *host, const struct addrinfo *list,
                        const struct ifaddrs *interfaces)
{
    for (const struct addrinfo *a = list; a != NULL; a = a->ai_next) {
        size_t size = 0;
        const unsigned char *bytes = bytes_of(a->ai_addr, &size);
        if (bytes == NULL) continue;
        if (host->address[0] == '\0') {
            inet_ntop(a->ai_family, bytes, host->address, sizeof host->address);
            host->is_loopback = is_loopback(a->ai_addr);
        }
        bool here = is_loopback(a->ai_addr) || is_own(interfaces, a->ai_addr);
        host->is_here = host->is_here || here;
    }
    if (host->address[0] == '\0')
        bel_snprintf(host->problem, sizeof host->problem, "it has no address");
}

// --- Asking -------------------------------------------------------------------------------------

// State shared by the look-up threads and their caller.
typedef struct inquiry {
    pthread_mutex_t mutex; // guards all below
    pthread_cond_t cond;   // another answer is known
    int holders;
    size_t count, next, known_count; // names; the first unassigned one; answers
    char **names;
    bel_linux_host *answers; // without names
    bool *known;
} inquiry;

static inquiry *create_inquiry(const bel_linux_host *hosts, size_t count)
{
    inquiry *q = bel_xcalloc(1, sizeof *q);
    bel_cond_init(&q->cond);
    pthread_mutex_init(&q->mutex, NULL);
    q->holders = 1;
    q->count = count;
    q->names = bel_xcalloc(count, sizeof *q->names);
    q->answers = bel_xcalloc(count, sizeof *q->answers);
    q->known = bel_xcalloc(count, sizeof *q->known);
    for (size_t i = 0; i < count; i++)
        q->names[i] = bel_xstrdup(hosts[i].name);
    return q;
}

// Unlocks the mutex, which the caller holds; the last holder frees.
static void leave_locked(inquiry *q)
{
    bool last = --q->holders == 0;
    pthread_mutex_unlock(&q->mutex);
    if (!last) return;
    for (size_t i = 0; i < q->count; i++)
        bel_free(q->names[i]);
    bel_free(q->names);
    bel_free(q->answers);
    bel_free(q->known);
    pthread_cond_destroy(&q->cond);
    pthread_mutex_destroy(&q->mutex);
    bel_free(q);
}

static bel_linux_host look_up(const char *name)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM}; // each address once
    struct addrinfo *found = NULL;
    struct ifaddrs *interfaces = NULL;
    bel_linux_host host = {0};
    int error = getaddrinfo(name, NULL, &hints, &found);
    if (error != 0) {
        bel_snprintf(host.problem, sizeof host.problem, "%s", gai_strerror(error));
        return host;
    }
    if (getifaddrs(&interfaces) != 0)
        interfaces = NULL; // then only names and the loopback are
                           // known
    take_answer(&host, found, interfaces);
    if (interfaces != NULL) freeifaddrs(interfaces);
    freeaddrinfo(found);
    return host;
}

static void *hosts_ask(void *context)
{
    inquiry *q = context;
    pthread_mutex_lock(&q->mutex);
    while (q->next < q->count) {
        size_t i = q->next++;
        pthread_mutex_unlock(&q->mutex);
        bel_linux_host answer = look_up(q->names[i]); // names are immutable
        pthread_mutex_lock(&q->mutex);
        q->answers[i] = answer;
        q->known[i] = true;
        q->known_count++;
        pthread_cond_signal(&q->cond);
    }
    leave_locked(q);
    return NULL;
}

// Starts one thread a name, within limits. Without any thread no answer arrives.
static void start_asking_locked(inquiry *q)
{
    enum { MOST = 32 };
    for (size_t i = 0; i < q->count && i < MOST; i++) {
        pthread_t thread;
        bel_status *status = bel_thread_start(&thread, hosts_ask, q);
        if (status != NULL) {
            bel_status_ignore(status); // the running threads serve all
            return;
        }
        pthread_detach(thread);
        q->holders++;
    }
}

void bel_linux_hosts_find(bel_linux_host *hosts, size_t count, int timeout_ms)
{
    char own[256] = "";
    if (gethostname(own, sizeof own - 1) != 0) own[0] = '\0';
    int64_t deadline = bel_clock_ns() + (int64_t)timeout_ms * 1000000;
    inquiry *q = create_inquiry(hosts, count);
    pthread_mutex_lock(&q->mutex);
    start_asking_locked(q);
    bool in_time = true;
    while (q->known_count < count && q->holders > 1 && in_time)
        in_time = bel_cond_wait_until(&q->cond, &q->mutex, deadline);
    for (size_t i = 0; i < count; i++) {
        const char *name = hosts[i].name;
        hosts[i] = q->answers[i];
        hosts[i].name = name;
        hosts[i].is_here = hosts[i].is_here || strcmp(name, own) == 0;
        if (q->known[i]) continue;
        bel_snprintf(hosts[i].problem, sizeof hosts[i].problem,
                     "the name service has not answered within %g s", timeout_ms * 1e-3);
    }
    q->next = count; // no thread starts another name
    leave_locked(q);
}
