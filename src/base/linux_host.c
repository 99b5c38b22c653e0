// getaddrinfo, to tell a name that is wrong from a host that does not answer: asked only after
// something has failed, since it may block for seconds. An address without a port is taken as
// known, as unix sockets are. A name service that is away looks like a name that does not exist.
#define _GNU_SOURCE
#include "base/linux_host.h"

#include <netdb.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"

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
