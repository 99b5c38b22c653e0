// Shared memory and descriptors through memfd and its seals, eventfd and SCM_RIGHTS. Memory is
// sized, then mapped for writing, then sealed: the write seal exempts existing mappings, so the
// owner has the only writable one. A full event cannot be signaled, and need not be, as its owner
// is awake.
//
// Sockets never block. Descriptors arrive close-on-exec and belong to the caller as soon as they
// are in its list, even if the message is refused. Excess ones are closed here, so a peer cannot
// fill the table of descriptors.
#define _GNU_SOURCE
#include "base/linux_shared.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/number.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20 };
enum { SIZE_SEALS = F_SEAL_SHRINK | F_SEAL_GROW };
enum { SEALS = SIZE_SEALS | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL };

// --- Memory -------------------------------------------------------------------------------------

// Reserves pages first, with room to align them, and then replaces them by the file's.
static void *map_aligned(int descriptor, size_t bytes, int protection)
{
    if (bytes > SIZE_MAX - HUGE_PAGE) return NULL;
    size_t slack = bytes >= HUGE_PAGE ? HUGE_PAGE : 0;
    char *base =
        mmap(NULL, bytes + slack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return NULL;
    size_t head = slack > 0 ? (HUGE_PAGE - ((uintptr_t)base & (HUGE_PAGE - 1))) % HUGE_PAGE : 0;
    char *memory = base + head;
    if (mmap(memory, bytes, protection, MAP_SHARED | MAP_FIXED, descriptor, 0) == MAP_FAILED) {
        munmap(base, bytes + slack);
        return NULL;
    }
    if (head > 0) munmap(base, head);
    if (slack > head) munmap(memory + bytes, slack - head);
    if (slack > 0) (void)madvise(memory, bytes, MADV_HUGEPAGE); // small pages are acceptable
    return memory;
}

static bel_status *memory_error(const char *what, const char *name, size_t bytes)
{
    bel_code code = errno == EINVAL || errno == ENOSYS ? BEL_UNIMPLEMENTED : BEL_RESOURCE_EXHAUSTED;
    return BEL_ERR(code, "cannot %s shared memory \"%s\" of %zu bytes: %s", what, name, bytes,
                   strerror(errno));
}

// Some systems allow only memory that can never be executed; older ones do not know that flag.
static int open_memory(const char *name)
{
    enum { NOEXEC_SEAL = 8 }; // Linux 6.3
    int descriptor = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | NOEXEC_SEAL);
    if (descriptor >= 0 || errno != EINVAL) return descriptor;
    return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

bel_status *bel_linux_shared_create(const char *name, size_t bytes, int *out_descriptor,
                                    void **out_memory)
{
    int descriptor = open_memory(name);
    if (descriptor < 0) return memory_error("make", name, bytes);
    bel_status *status = NULL;
    void *memory = NULL;
    if (bytes > INT64_MAX) {
        errno = EFBIG;
        status = memory_error("size", name, bytes);
    } else if (ftruncate(descriptor, (off_t)bytes) != 0) {
        status = memory_error("size", name, bytes);
    } else if ((memory = map_aligned(descriptor, bytes, PROT_READ | PROT_WRITE)) == NULL) {
        errno = ENOMEM;
        status = memory_error("map", name, bytes);
    } else if (fcntl(descriptor, F_ADD_SEALS, SEALS) != 0) { // this mapping stays writable
        status = memory_error("seal", name, bytes);
    }
    if (status == NULL) {
        *out_descriptor = descriptor;
        *out_memory = memory;
        return NULL;
    }
    if (memory != NULL) munmap(memory, bytes);
    close(descriptor);
    return status;
}

int bel_linux_shared_open(const char *name)
{
    return open_memory(name);
}

void bel_linux_shared_close_on_exec(int descriptor)
{
    (void)fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}

size_t bel_linux_shared_bytes(int descriptor)
{
    struct stat state;
    bool known = fcntl(descriptor, F_GET_SEALS) >= 0 && fstat(descriptor, &state) == 0;
    return known && state.st_size > 0 ? (size_t)state.st_size : 0;
}

// A successor maps it for writing, so it has no seal against that. Readers get a descriptor that
// was opened for reading.
bel_status *bel_linux_shared_keep(int descriptor, size_t bytes, int *out_descriptor,
                                  void **out_memory)
{
    static const char name[] = "kept";
    char path[64];
    bel_snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    size_t before = bel_linux_shared_bytes(descriptor);
    int reading = open(path, O_RDONLY | O_CLOEXEC);
    void *memory = NULL;
    bel_status *status = NULL;
    if (fcntl(descriptor, F_GET_SEALS) < 0 || (before != 0 && before != bytes)) {
        status = BEL_ERR(BEL_INVALID_ARGUMENT,
                         "kept memory of %zu bytes, expected a memfd of %zu bytes", before, bytes);
    } else if (reading < 0) {
        status = memory_error("open", name, bytes);
    } else if (before == 0 && ftruncate(descriptor, (off_t)bytes) != 0) {
        status = memory_error("size", name, bytes);
    } else if ((memory = map_aligned(descriptor, bytes, PROT_READ | PROT_WRITE)) == NULL) {
        errno = ENOMEM;
        status = memory_error("map", name, bytes);
    } else if (fcntl(descriptor, F_ADD_SEALS, SIZE_SEALS) != 0) {
        status = memory_error("seal", name, bytes);
    }
    if (descriptor >= 0) close(descriptor);
    if (status == NULL) {
        *out_descriptor = reading;
        *out_memory = memory;
        return NULL;
    }
    if (memory != NULL) munmap(memory, bytes);
    if (reading >= 0) close(reading);
    return status;
}

bool bel_linux_shared_is_sealed(int descriptor)
{
    int seals = fcntl(descriptor, F_GET_SEALS);
    return seals >= 0 && (seals & SIZE_SEALS) == SIZE_SEALS;
}

void *bel_linux_shared_map(int descriptor, size_t bytes)
{
    return map_aligned(descriptor, bytes, PROT_READ);
}

bool bel_linux_shared_map_at(int descriptor, size_t offset, size_t bytes, void *at)
{
    return mmap(at, bytes, PROT_READ, MAP_SHARED | MAP_FIXED, descriptor, (off_t)offset) == at;
}

void bel_linux_shared_unmap(void *memory, size_t bytes)
{
    munmap(memory, bytes);
}

bool bel_linux_shared_populate(void *memory, size_t bytes)
{
#if defined(MADV_POPULATE_WRITE)
    return madvise(memory, bytes, MADV_POPULATE_WRITE) == 0;
#else
    enum { POPULATE_WRITE = 23 }; // Linux 5.14; the C library may be older than the kernel
    return madvise(memory, bytes, POPULATE_WRITE) == 0;
#endif
}

// --- Events -------------------------------------------------------------------------------------

int bel_linux_event_create(void)
{
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

bool bel_linux_event_is(int descriptor)
{
    static const char kind[] = "anon_inode:[eventfd]";
    char path[64], target[64];
    bel_snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(path, target, sizeof target);
    return length == (ssize_t)sizeof kind - 1 && memcmp(target, kind, sizeof kind - 1) == 0;
}

void bel_linux_event_signal(int event)
{
    const uint64_t one = 1;
    ssize_t written;
    do {
        written = write(event, &one, sizeof one); // fails if it is full, and then the owner is
                                                  // awake
    } while (written < 0 && errno == EINTR);
}

void bel_linux_event_wait(int event, int64_t timeout_ns)
{
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000),
                               .tv_nsec = (long)(timeout_ns % 1000000000)};
    struct pollfd waiting = {.fd = event, .events = POLLIN};
    (void)ppoll(&waiting, 1, &timeout, NULL);
}

uint64_t bel_linux_event_take(int event)
{
    uint64_t signals = 0;
    return read(event, &signals, sizeof signals) == (ssize_t)sizeof signals ? signals : 0;
}

// --- Unix sockets -------------------------------------------------------------------------------

bool bel_linux_socket_is_own_user(int socket)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

typedef union control_space {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(BEL_LINUX_DESCRIPTORS * sizeof(int))];
} control_space;

bel_status *bel_linux_socket_try(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof name.sun_path)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: too long for a socket", path);
    memcpy(name.sun_path, path, strlen(path));
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return bel_file_error(errno, "open a socket for", path);
    bool passes = connect(descriptor, (const struct sockaddr *)&name, sizeof name) == 0 ||
                  errno == ECONNREFUSED || errno == EAGAIN || errno == ENOENT;
    bel_status *status = passes ? NULL : bel_file_error(errno, "connect to", path);
    close(descriptor);
    return status;
}

char *bel_linux_shared_place(const char *folder)
{
    struct stat about, users;
    char *boot = NULL;
    size_t size;
    if (stat(folder, &about) != 0 || stat("/proc/self/ns/user", &users) != 0) return NULL;
    bel_status *status = bel_file_read("/proc/sys/kernel/random/boot_id", &boot, &size);
    bel_status_ignore(status); // the result says so
    if (status != NULL) return NULL;
    boot[strcspn(boot, "\n")] = '\0';
    char *place = bel_strf("%s %llu %llu:%llu", boot, (unsigned long long)users.st_ino,
                           (unsigned long long)about.st_dev, (unsigned long long)about.st_ino);
    bel_free(boot);
    return place;
}

bool bel_linux_socket_send(int socket, const void *data, size_t bytes, const int *descriptors,
                           int count)
{
    char copy[1024]; // iovec has no const
    if (bytes > sizeof copy || count > BEL_LINUX_DESCRIPTORS) return false;
    memcpy(copy, data, bytes);
    struct iovec part = {.iov_base = copy, .iov_len = bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    control_space control = {0};
    if (count > 0) {
        size_t size = (size_t)count * sizeof *descriptors;
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(size);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(size);
        memcpy(CMSG_DATA(header), descriptors, size);
    }
    return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)bytes;
}

// Moves the descriptors of a message to the caller's list; false if there are too many.
static bool take_descriptors(struct msghdr *message, int *descriptors, int *count)
{
    bool fit = (message->msg_flags & MSG_CTRUNC) == 0;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(message); h != NULL; h = CMSG_NXTHDR(message, h)) {
        if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS) continue;
        size_t came = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < came; i++) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(h) + i * sizeof descriptor, sizeof descriptor);
            if (*count < BEL_LINUX_DESCRIPTORS) {
                descriptors[(*count)++] = descriptor;
            } else {
                close(descriptor);
                fit = false;
            }
        }
    }
    return fit;
}

ssize_t bel_linux_socket_receive(int socket, void *data, size_t capacity, int *descriptors,
                                 int *count)
{
    control_space control = {0};
    struct iovec part = {.iov_base = data, .iov_len = capacity};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t got;
    do {
        got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got < 0) return got;
    if (take_descriptors(&message, descriptors, count)) return got;
    errno = EPROTO;
    return -1;
}

// --- TCP sockets --------------------------------------------------------------------------------

// Unsupported options are skipped: the deadlines of the waits remain.
void bel_linux_socket_watch(int socket, double patience_secs)
{
    int patience_ms = patience_secs < 1e6 ? (int)(patience_secs * 1e3) : 1000000000;
    const struct {
        int level, option, value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},   {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, 15}, {IPPROTO_TCP, TCP_KEEPINTVL, 5},
        {IPPROTO_TCP, TCP_KEEPCNT, 3},   {IPPROTO_TCP, TCP_USER_TIMEOUT, patience_ms},
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        (void)setsockopt(socket, options[i].level, options[i].option, &options[i].value,
                         sizeof options[i].value);
}

bool bel_linux_socket_is_sent(int socket)
{
    int left = 0;
    return ioctl(socket, SIOCOUTQ, &left) != 0 || left == 0;
}
