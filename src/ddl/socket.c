// Sockets never block: a call transfers the available bytes and returns their number; waiting is
// done by poll, with a deadline. Addresses are numeric text, so IPv4 and IPv6 use the same code. A
// host's name may resolve to its loopback address locally and to another one elsewhere; then it
// listens at all addresses.
#include "ddl/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/linux_host.h"
#include "base/linux_shared.h"
#include "base/number.h"

enum { WAIT_MS = 20 };

static bel_status *look_up(const char *host, int port, bool own, struct addrinfo **out)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = own ? AI_PASSIVE : 0};
    char service[16];
    bel_snprintf(service, sizeof service, "%d", port);
    int error = getaddrinfo(host, service, &hints, out);
    if (error == 0) return NULL;
    return BEL_ERR(BEL_NOT_FOUND, "%s: %s", host == NULL ? "this host" : host, gai_strerror(error));
}

static int open_socket(const struct addrinfo *address)
{
    int file = socket(address->ai_family, SOCK_STREAM, address->ai_protocol);
    if (file < 0) return -1;
    (void)fcntl(file, F_SETFD, FD_CLOEXEC);
    (void)fcntl(file, F_SETFL, O_NONBLOCK);
    return file;
}

static int listen_at(const struct addrinfo *address)
{
    int file = open_socket(address), yes = 1;
    if (file < 0) return -1;
    (void)setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(file, address->ai_addr, address->ai_addrlen) == 0 && listen(file, SOMAXCONN) == 0)
        return file;
    int error = errno;
    (void)close(file);
    errno = error;
    return -1;
}

static int port_of(int file)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    char service[16];
    if (getsockname(file, (struct sockaddr *)&address, &length) != 0 ||
        getnameinfo((struct sockaddr *)&address, length, NULL, 0, service, sizeof service,
                    NI_NUMERICSERV) != 0)
        return 0;
    int port = 0;
    for (const char *at = service; *at >= '0' && *at <= '9'; at++)
        port = port * 10 + (*at - '0');
    return port;
}

bel_status *bel_ddl_socket_listen(const char *host, int port, int *out_file, int *out_port)
{
    struct addrinfo *list;
    int file = -1;
    BEL_TRY(look_up(host, port, true, &list));
    for (const struct addrinfo *a = list; a != NULL && file < 0; a = a->ai_next)
        file = listen_at(a);
    int error = errno;
    freeaddrinfo(list);
    char address[BEL_DDL_ADDRESS_TEXT] = "";
    if (file >= 0) bel_ddl_socket_address(file, false, address);
    bool hidden =
        host != NULL && bel_linux_host_is_loopback(address) && !bel_linux_host_is_loopback(host);
    if (hidden) (void)close(file);
    if (hidden || (file < 0 && error == EADDRNOTAVAIL && host != NULL))
        return bel_ddl_socket_listen(NULL, port, out_file, out_port);
    if (file < 0)
        return BEL_ERR(BEL_UNAVAILABLE, "cannot listen at port %d of %s: %s", port,
                       host == NULL ? "this host" : host, strerror(error));
    *out_file = file;
    *out_port = port_of(file);
    return NULL;
}

// True if a connection is to itself: the system chose a port of this host without a listener as the
// connection's local port.
static bool is_own(int file)
{
    struct sockaddr_storage own, other;
    socklen_t own_length = sizeof own, other_length = sizeof other;
    return getsockname(file, (struct sockaddr *)&own, &own_length) == 0 &&
           getpeername(file, (struct sockaddr *)&other, &other_length) == 0 &&
           own_length == other_length && memcmp(&own, &other, own_length) == 0;
}

// Returns 0, or the error of the attempt.
static int finish_connecting(int file, int64_t deadline)
{
    struct pollfd entry = {.fd = file, .events = POLLOUT};
    while (poll(&entry, 1, WAIT_MS) <= 0)
        if (bel_clock_awake_ns() > deadline) return ETIMEDOUT;
    int error = 0;
    socklen_t length = sizeof error;
    return getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

static int connect_to(const struct addrinfo *address, int64_t deadline, int *out_file)
{
    int file = open_socket(address);
    if (file < 0) return errno;
    int error = connect(file, address->ai_addr, address->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) error = finish_connecting(file, deadline);
    if (error == 0 && is_own(file)) error = ECONNREFUSED;
    if (error == 0) {
        *out_file = file;
    } else {
        (void)close(file);
    }
    return error;
}

bel_status *bel_ddl_socket_connect(const char *host, int port, int64_t deadline,
                                   double patience_secs, int *out_file)
{
    struct addrinfo *list;
    int error = ECONNREFUSED;
    BEL_TRY(look_up(host, port, false, &list));
    for (const struct addrinfo *a = list; a != NULL && error != 0; a = a->ai_next)
        error = connect_to(a, deadline, out_file);
    freeaddrinfo(list);
    if (error != 0) return BEL_ERR(BEL_UNAVAILABLE, "%s:%d: %s", host, port, strerror(error));
    bel_linux_socket_watch(*out_file, patience_secs);
    return NULL;
}

int bel_ddl_socket_accept(int listener, double patience_secs)
{
    int file = accept(listener, NULL, NULL);
    if (file < 0) return -1;
    (void)fcntl(file, F_SETFD, FD_CLOEXEC);
    (void)fcntl(file, F_SETFL, O_NONBLOCK);
    bel_linux_socket_watch(file, patience_secs);
    return file;
}

void bel_ddl_socket_address(int file, bool peer, char out[BEL_DDL_ADDRESS_TEXT])
{
    struct sockaddr_storage address;
    struct sockaddr *any = (struct sockaddr *)&address;
    socklen_t length = sizeof address;
    int error = peer ? getpeername(file, any, &length) : getsockname(file, any, &length);
    if (error != 0 ||
        getnameinfo(any, length, out, BEL_DDL_ADDRESS_TEXT, NULL, 0, NI_NUMERICHOST) != 0)
        out[0] = '\0';
}

// Interprets the result of a send or receive system call.
static ssize_t moved(ssize_t result, const char **out_why)
{
    if (result > 0) return result;
    if (result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return 0;
    *out_why = result == 0 ? "it has closed the connection" : strerror(errno);
    return -1;
}

ssize_t bel_ddl_socket_send(int file, const void *data, size_t bytes, const char **out_why)
{
    return bytes == 0 ? 0 : moved(send(file, data, bytes, MSG_NOSIGNAL), out_why);
}

ssize_t bel_ddl_socket_receive(int file, void *data, size_t bytes, const char **out_why)
{
    return bytes == 0 ? 0 : moved(recv(file, data, bytes, 0), out_why);
}

bool bel_ddl_socket_peek(int file, void *data, size_t bytes)
{
    return recv(file, data, bytes, MSG_PEEK) == (ssize_t)bytes;
}

bool bel_ddl_socket_has_ended(int file)
{
    char byte;
    const char *why;
    return moved(recv(file, &byte, 1, MSG_PEEK), &why) < 0;
}

static bool socket_await(int file, short events, int64_t deadline, const char **out_why)
{
    struct pollfd entry = {.fd = file, .events = events};
    while (poll(&entry, 1, WAIT_MS) <= 0) {
        if (bel_clock_awake_ns() < deadline) continue;
        *out_why = "the time is over";
        return false;
    }
    return true;
}

bool bel_ddl_socket_send_all(int file, const void *data, size_t bytes, int64_t deadline,
                             const char **out_why)
{
    const char *at = data;
    while (bytes > 0) {
        ssize_t sent = bel_ddl_socket_send(file, at, bytes, out_why);
        if (sent < 0 || (sent == 0 && !socket_await(file, POLLOUT, deadline, out_why)))
            return false;
        at += sent;
        bytes -= (size_t)sent;
    }
    return true;
}

bool bel_ddl_socket_receive_all(int file, void *data, size_t bytes, int64_t deadline,
                                const char **out_why)
{
    char *at = data;
    while (bytes > 0) {
        ssize_t came = bel_ddl_socket_receive(file, at, bytes, out_why);
        if (came < 0 || (came == 0 && !socket_await(file, POLLIN, deadline, out_why))) return false;
        at += came;
        bytes -= (size_t)came;
    }
    return true;
}
