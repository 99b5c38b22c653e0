// Recording. The mutex is taken when a thread records for the first time and when it ends; a
// ring is then given to the next thread that begins. `recording` tells a thread that its ring is
// of an earlier recording and is gone. A span is written before the count that says it is there
// (release), so that a process which is killed leaves whole spans.
//
// A ring's room on the disk is made before it is mapped: a write to a mapped page without room
// would kill the process. A thread for which there is no ring any more counts what it could not
// record.
#include "base/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "base/trace_part.h"

atomic_bool bel_trace_on;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; // guards what follows
static int part_file = -1;
static bel_trace_header *header;
static bel_trace_ring *rings[BEL_TRACE_MOST_RINGS];
static bool taken[BEL_TRACE_MOST_RINGS]; // by a thread that lives
static int ring_count;
static atomic_uint recording; // number of the recording, so that threads notice another one

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key; // its destructor gives a thread's ring to the next one

static _Thread_local struct {
    unsigned recording;
    int number;
    bel_trace_ring *ring; // NULL: there was none left
} own;

// --- Rings ---------------------------------------------------------------------------------------

// Runs when a thread ends, with its `own` still there.
static void give_ring_back(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&mutex);
    if (own.recording == recording && own.ring != NULL) taken[own.number] = false;
    own.ring = NULL;
    own.recording = 0;
    pthread_mutex_unlock(&mutex);
}

static void make_key(void)
{
    (void)pthread_key_create(&key, give_ring_back); // without it rings are not used again
}

// Its room on the disk is made first: a write into a mapped page without room would be fatal.
static bel_trace_ring *add_ring_locked(void)
{
    off_t offset = BEL_TRACE_PAGE + (off_t)ring_count * (off_t)sizeof(bel_trace_ring);
    if (ring_count == BEL_TRACE_MOST_RINGS || part_file < 0) return NULL;
    if (posix_fallocate(part_file, offset, (off_t)sizeof(bel_trace_ring)) != 0) return NULL;
    void *memory =
        mmap(NULL, sizeof(bel_trace_ring), PROT_READ | PROT_WRITE, MAP_SHARED, part_file, offset);
    return memory != MAP_FAILED ? memory : NULL;
}

// A ring that another thread has left, or a new one; none is left when all are taken or the disk is
// full.
static void find_ring(void)
{
    pthread_once(&key_once, make_key);
    pthread_mutex_lock(&mutex);
    int number = 0;
    while (number < ring_count && taken[number])
        number++;
    own.recording = recording;
    own.number = number;
    own.ring = number < ring_count ? rings[number] : add_ring_locked();
    if (own.ring != NULL) {
        if (number == ring_count) rings[ring_count++] = own.ring;
        taken[number] = true;
    }
    pthread_mutex_unlock(&mutex);
    (void)pthread_setspecific(key, &own);
}

static void note_lost(void)
{
    pthread_mutex_lock(&mutex);
    if (header != NULL) atomic_fetch_add(&header->lost, 1);
    pthread_mutex_unlock(&mutex);
}

void bel_trace_put(const bel_trace_event *event)
{
    if (own.recording != atomic_load_explicit(&recording, memory_order_relaxed)) find_ring();
    if (own.ring == NULL) {
        note_lost();
        return;
    }
    uint64_t number = atomic_load_explicit(&own.ring->written, memory_order_relaxed);
    own.ring->events[number % BEL_TRACE_RING] = *event;
    atomic_store_explicit(&own.ring->written, number + 1, memory_order_release);
}

// --- The part file -------------------------------------------------------------------------------

// A page for the header, whose room is made before it is mapped, as that of rings.
static bel_status *open_part(const char *path)
{
    int descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (descriptor < 0) return bel_file_error(errno, "create", path);
    int error = posix_fallocate(descriptor, 0, BEL_TRACE_PAGE);
    void *memory = MAP_FAILED;
    if (error == 0) {
        memory = mmap(NULL, BEL_TRACE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
        error = errno;
    }
    if (memory == MAP_FAILED) {
        close(descriptor);
        (void)unlink(path);
        return bel_file_error(error, "map", path);
    }
    header = memory;
    header->magic = BEL_TRACE_MAGIC;
    header->event_bytes = sizeof(bel_trace_event);
    header->ring_events = BEL_TRACE_RING;
    part_file = descriptor;
    return NULL;
}

bel_status *bel_trace_start(const char *folder, const char *name)
{
    BEL_TRY(bel_dir_create(folder));
    char *file = bel_strf("%s" BEL_TRACE_SUFFIX, name), *path = bel_path_join(folder, file);
    bel_status *status = NULL;
    pthread_mutex_lock(&mutex);
    if (part_file < 0) {
        status = open_part(path);
        recording++;
        if (status == NULL) atomic_store(&bel_trace_on, true);
    }
    pthread_mutex_unlock(&mutex);
    bel_free(file);
    bel_free(path);
    return status;
}

void bel_trace_set_lead(int64_t lead_ns)
{
    pthread_mutex_lock(&mutex);
    if (header != NULL) atomic_store(&header->lead_ns, lead_ns);
    pthread_mutex_unlock(&mutex);
}

void bel_trace_stop(void)
{
    atomic_store(&bel_trace_on, false);
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < ring_count; i++)
        (void)munmap(rings[i], sizeof *rings[i]);
    if (header != NULL) (void)munmap(header, BEL_TRACE_PAGE);
    if (part_file >= 0) close(part_file);
    memset(taken, 0, sizeof taken);
    ring_count = 0;
    header = NULL;
    part_file = -1;
    recording++;
    pthread_mutex_unlock(&mutex);
}
