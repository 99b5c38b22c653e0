// Listening, accepting, connecting. Connecting never blocks: a listener with a full queue counts as
// absent, and the caller tries again. A socket file without a listener is a left-over and is
// removed; the job's folder belongs to its user, so no other process interferes.
#include "transport/streams/local_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static const char prefix[] = "unix:";

bool bel_local_is(const char *address)
{
    return strncmp(address, prefix, sizeof prefix - 1) == 0;
}

static bel_status *make_name(const char *address, struct sockaddr_un *out_name)
{
    const char *path = address + sizeof prefix - 1;
    *out_name = (struct sockaddr_un){.sun_family = AF_UNIX};
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof out_name->sun_path) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: a unix socket's path must have from 1 to %zu bytes", address,
                       sizeof out_name->sun_path - 1);
    }
    memcpy(out_name->sun_path, path, length);
    return NULL;
}

// The system may grant less; a connection works with any buffer.
static void local_socket_prepare(int descriptor)
{
    const int bytes = 4 << 20;
    (void)setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    (void)setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

// A socket that does not block, and that processes started later do not inherit.
static bel_status *open_socket(int *out_descriptor)
{
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0) {
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "cannot make a socket: %s", strerror(errno));
    }
    *out_descriptor = descriptor;
    return NULL;
}

// A listener with too many callers counts as absent. Returns 0 or an errno.
static int connect_to(int descriptor, const struct sockaddr_un *name)
{
    return connect(descriptor, (const struct sockaddr *)name, sizeof *name) == 0 ? 0 : errno;
}

bel_status *bel_local_connect(const char *address, int *out_descriptor)
{
    struct sockaddr_un name;
    int descriptor = -1;
    BEL_TRY(make_name(address, &name));
    BEL_TRY(open_socket(&descriptor));
    int error = connect_to(descriptor, &name);
    if (error != 0) {
        close(descriptor);
        return BEL_ERR(BEL_UNAVAILABLE, "cannot connect to %s: %s", address, strerror(error));
    }
    local_socket_prepare(descriptor);
    *out_descriptor = descriptor;
    return NULL;
}

// True if a process listens there, though it may be too busy to answer (EAGAIN). Otherwise the file
// is a left-over.
static bel_status *find_taken(const struct sockaddr_un *name, bool *out_taken)
{
    int descriptor = -1;
    BEL_TRY(open_socket(&descriptor));
    int error = connect_to(descriptor, name);
    close(descriptor);
    *out_taken = error == 0 || error == EAGAIN;
    return NULL;
}

bel_status *bel_local_listen(const char *address, int *out_descriptor)
{
    struct sockaddr_un name;
    BEL_TRY(make_name(address, &name));
    bool taken = false;
    BEL_TRY(find_taken(&name, &taken));
    if (taken) {
        return BEL_ERR(BEL_UNAVAILABLE, "cannot listen on %s: another process does", address);
    }
    struct stat about;
    bool exists = lstat(name.sun_path, &about) == 0;
    if (exists && !S_ISSOCK(about.st_mode)) {
        return BEL_ERR(BEL_UNAVAILABLE, "cannot listen on %s: the file there is no socket",
                       address);
    }
    int descriptor = -1;
    BEL_TRY(open_socket(&descriptor));
    if (exists) (void)unlink(name.sun_path);
    if (bind(descriptor, (const struct sockaddr *)&name, sizeof name) == 0 &&
        listen(descriptor, SOMAXCONN) == 0) {
        *out_descriptor = descriptor;
        return NULL;
    }
    int error = errno;
    close(descriptor);
    return BEL_ERR(BEL_UNAVAILABLE, "cannot listen on %s: %s", address, strerror(error));
}

int bel_local_accept(int descriptor)
{
    for (;;) {
        int connection = accept(descriptor, NULL, NULL);
        if (connection < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
        if (connection < 0) return -1;
        (void)fcntl(connection, F_SETFD, FD_CLOEXEC);
        (void)fcntl(connection, F_SETFL, fcntl(connection, F_GETFL) | O_NONBLOCK);
        local_socket_prepare(connection);
        return connection;
    }
}

void bel_local_shut(const char *address, int descriptor)
{
    (void)unlink(address + sizeof prefix - 1); // first: afterwards it may be a successor's
    (void)shutdown(descriptor, SHUT_RDWR);
}
