// Recorder of traces. A thread locks the mutex when it records for the first time and when it ends;
// its ring then passes to the next thread that starts. `recording` shows a thread that its ring
// belonged to an earlier recording and is gone. A span is written before its count (release), so a
// killed process leaves only complete spans.
//
// A ring's disk space is allocated before it is mapped: a write to a mapped page without space
// would kill the process. A thread without a ring counts its lost spans.
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

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; // guards the variables below
static int part_file = -1;
static bel_trace_header *header;
static bel_trace_ring *rings[BEL_TRACE_MOST_RINGS];
static bool taken[BEL_TRACE_MOST_RINGS]; // by a live thread
static int ring_count;
static atomic_uint recording; // number of the recording, so that threads notice a new one

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key; // its destructor gives a thread's ring to the next one

static _Thread_local struct {
    unsigned recording;
    int number;
    bel_trace_ring *ring; // NULL: no ring was left
} own;

// --- Rings ---------------------------------------------------------------------------------------

// Runs when a thread ends, while its `own` still exists.
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
    (void)pthread_key_create(&key, give_ring_back); // on failure rings are not reused
}

// Allocates its disk space first: a write to a mapped page without space would be fatal.
static bel_trace_ring *add_ring_locked(void)
{
    off_t offset = BEL_TRACE_PAGE + (off_t)ring_count * (off_t)sizeof(bel_trace_ring);
    if (ring_count == BEL_TRACE_MOST_RINGS || part_file < 0) return NULL;
    if (posix_fallocate(part_file, offset, (off_t)sizeof(bel_trace_ring)) != 0) return NULL;
    void *memory =
        mmap(NULL, sizeof(bel_trace_ring), PROT_READ | PROT_WRITE, MAP_SHARED, part_file, offset);
    return memory != MAP_FAILED ? memory : NULL;
}

// Reuses a ring of an ended thread, or makes one; fails if all are in use or the disk is full.
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

// Maps a page for the header, whose disk space is allocated first, as for rings.
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
