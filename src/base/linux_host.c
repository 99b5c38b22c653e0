// Names and addresses through getaddrinfo. It may block for seconds, as it asks the name service,
// so it is called only after a failure, or once at the start. An address without a port counts as
// known, as unix sockets do. An unavailable name service looks like an unknown name.
//
// The routing table determines which of this host's addresses another host sees: connecting a
// datagram socket selects its local address, and sends nothing.
#define _GNU_SOURCE
#include "base/linux_host.h"

#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"

static bool is_unix(const char *address)
{
    return strncmp(address, "unix:", 5) == 0;
}

// Returns "host" of "host:port", and "address" of "[address]:port". Free with bel_free.
static char *host_of(const char *address)
{
    const char *colon = strrchr(address, ':'), *begin = address;
    const char *end = colon != NULL ? colon : address + strlen(address);
    if (*begin == '[' && end > begin && end[-1] == ']') {
        begin++;
        end--;
    }
    return bel_xstrndup(begin, (size_t)(end - begin));
}

// Returns the first address of a host; NULL: no address. Free with freeaddrinfo.
static struct addrinfo *host_resolve(const char *host, int type)
{
    const struct addrinfo hints = {.ai_socktype = type};
    struct addrinfo *found = NULL;
    return getaddrinfo(host, "9", &hints, &found) == 0 ? found : NULL;
}

// Formats an address: "10.0.0.3", "fe80::1%eth0". False: it has no text.
static bool name_address(const struct sockaddr *address, socklen_t length, char out[NI_MAXHOST])
{
    return getnameinfo(address, length, out, NI_MAXHOST, NULL, 0, NI_NUMERICHOST) == 0;
}

bool bel_linux_host_is_known(const char *address)
{
    if (is_unix(address) || strrchr(address, ':') == NULL) return true;
    char *host = host_of(address);
    struct addrinfo *found = host_resolve(host, SOCK_STREAM);
    if (found != NULL) freeaddrinfo(found);
    bel_free(host);
    return found != NULL;
}

bool bel_linux_host_is_loopback(const char *host)
{
    return strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 ||
           strncmp(host, "127.", 4) == 0 || strncmp(host, "::ffff:127.", 11) == 0;
}

bool bel_linux_host_is_here(const char *host)
{
    char name[256] = "";
    if (bel_linux_host_is_loopback(host)) return true;
    return gethostname(name, sizeof name - 1) == 0 && strcmp(host, name) == 0;
}

bool bel_linux_address_is_loopback(const char *address)
{
    if (is_unix(address)) return true;
    char *host = host_of(address);
    bool loopback = bel_linux_host_is_loopback(host);
    bel_free(host);
    return loopback;
}

char *bel_linux_host_toward(const char *address)
{
    char *host = host_of(address), text[NI_MAXHOST] = "", *own = NULL;
    struct addrinfo *to = host_resolve(host, SOCK_DGRAM);
    struct sockaddr_storage here;
    socklen_t length = sizeof here;
    int file = to != NULL ? socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
    if (file >= 0 && connect(file, to->ai_addr, to->ai_addrlen) == 0 &&
        getsockname(file, (struct sockaddr *)&here, &length) == 0 &&
        name_address((const struct sockaddr *)&here, length, text)) {
        own = strchr(text, ':') != NULL ? bel_strf("[%s]", text) : bel_xstrdup(text);
    }
    if (file >= 0) close(file);
    if (to != NULL) freeaddrinfo(to);
    bel_free(host);
    return own;
}

char *bel_linux_host_listening(const char *address)
{
    const char *colon = strrchr(address, ':');
    if (is_unix(address) || colon == NULL) return bel_xstrdup(address);
    char *host = host_of(address), text[NI_MAXHOST] = "";
    struct addrinfo *found =
        bel_linux_host_is_loopback(host) ? NULL : host_resolve(host, SOCK_STREAM);
    bool hidden = found != NULL && name_address(found->ai_addr, found->ai_addrlen, text) &&
                  bel_linux_host_is_loopback(text);
    if (found != NULL) freeaddrinfo(found);
    bel_free(host);
    return hidden ? bel_strf("[::]%s", colon) : bel_xstrdup(address);
}
