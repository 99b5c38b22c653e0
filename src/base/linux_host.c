// getaddrinfo, to tell a name that is wrong from a host that does not answer: asked only after
// something has failed, since it may block for seconds. An address without a port is taken as
// known, as unix sockets are. A name service that is away looks like a name that does not exist.
//
// Many names are asked for by getaddrinfo_a, whose threads wait side by side. A request that is
// still under way when the time is over belongs to that thread, and its memory is left to it.
#define _GNU_SOURCE
#include "base/linux_host.h"

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

bool bel_linux_host_is_known(const char *address)
{
    const char *colon = strrchr(address, ':');
    if (strncmp(address, "unix:", 5) == 0 || colon == NULL) return true;
    const char *begin = address, *end = colon;
    if (*begin == '[' && end > begin && end[-1] == ']') {
        begin++;
        end--;
    }
    char *host = bel_xstrndup(begin, (size_t)(end - begin));
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int error = getaddrinfo(host, NULL, &hints, &found);
    if (error == 0) freeaddrinfo(found);
    bel_free(host);
    return error == 0;
}

// --- Addresses ----------------------------------------------------------------------------------

// The bytes of an IPv4 or IPv6 address; NULL for another family.
static const unsigned char *bytes_of(const struct sockaddr *address, size_t *out_size)
{
    const void *any = address; // of a larger type, and aligned for it
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

// True when one of this host's interfaces has the address.
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

typedef struct request {
    struct gaicb *item; // freed but where it is left to a thread
    struct addrinfo *hints;
    char *name;
} request;

static request make_request(const char *name)
{
    request r = {bel_xcalloc(1, sizeof *r.item), bel_xcalloc(1, sizeof *r.hints),
                 bel_xstrdup(name)};
    r.hints->ai_socktype = SOCK_STREAM; // each address once
    r.item->ar_name = r.name;
    r.item->ar_request = r.hints;
    return r;
}

static void end_request(request *r, bel_linux_host *host, const struct ifaddrs *interfaces,
                        int timeout_ms)
{
    int error = gai_error(r->item);
    if (error == EAI_INPROGRESS) {
        bel_snprintf(host->problem, sizeof host->problem,
                     "the name service has not answered within %d s", timeout_ms / 1000);
        if (gai_cancel(r->item) != EAI_CANCELED) return; // a thread has it
    } else if (error != 0) {
        bel_snprintf(host->problem, sizeof host->problem, "%s", gai_strerror(error));
    } else {
        take_answer(host, r->item->ar_result, interfaces);
        freeaddrinfo(r->item->ar_result);
    }
    bel_free(r->item);
    bel_free(r->hints);
    bel_free(r->name);
}

static void wait_for_answers(const struct gaicb *const *items, int count, int timeout_ms)
{
    int64_t deadline = bel_clock_ns() + (int64_t)timeout_ms * 1000000;
    for (;;) {
        bool waits = false;
        for (int i = 0; i < count && !waits; i++)
            waits = gai_error((struct gaicb *)(uintptr_t)items[i]) == EAI_INPROGRESS;
        int64_t left = deadline - bel_clock_ns();
        if (!waits || left <= 0) return;
        const struct timespec most = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
        (void)gai_suspend(items, count, &most); // returns when one more has ended
    }
}

void bel_linux_hosts_find(bel_linux_host *hosts, size_t count, int timeout_ms)
{
    if (count == 0) return;
    request *requests = bel_xcalloc(count, sizeof *requests);
    struct gaicb **items = bel_xcalloc(count, sizeof *items);
    for (size_t i = 0; i < count; i++) {
        requests[i] = make_request(hosts[i].name);
        items[i] = requests[i].item;
    }
    int error = getaddrinfo_a(GAI_NOWAIT, items, (int)count, NULL);
    if (error == 0) wait_for_answers((const struct gaicb *const *)items, (int)count, timeout_ms);
    struct ifaddrs *interfaces = NULL;
    char own[256] = "";
    if (getifaddrs(&interfaces) != 0) interfaces = NULL; // then names and the loopback tell
    if (gethostname(own, sizeof own - 1) != 0) own[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        end_request(&requests[i], &hosts[i], interfaces, timeout_ms);
        hosts[i].is_here = hosts[i].is_here || strcmp(hosts[i].name, own) == 0;
    }
    if (interfaces != NULL) freeifaddrs(interfaces);
    bel_free(items);
    bel_free(requests);
}
