// The region gets its name once it is complete and locked. A name whose creator has exited belongs
// to a job that died while it started; this user's next job removes it.
//
// Waits first poll memory and yield the processor if there are fewer processors than ranks. Then
// they sleep until the last awaited rank wakes all. Sleepers check periodically whether a process
// has exited, with one system call per process.
#include "ddl/region.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/linux_file.h"
#include "base/linux_lock.h"
#include "base/linux_sched.h"
#include "base/linux_shared.h"
#include "base/number.h"
#include "base/str.h"
#include "base/thread.h"

#define FOLDER "/dev/shm"
enum { FAILURE_TEXT = 512, NAME_TEXT = 64, PATH_TEXT = NAME_TEXT + sizeof FOLDER };

enum { GOOD, FAILING, FAILED }; // stages of a failure

typedef struct header {
    char kind[16];            // KIND
    uint64_t bytes;           // the file's
    uint32_t size;            // ranks
    _Atomic uint32_t failure; // its stage
    // Number of sleeping ranks, and a word that changes at a wake-up.
    _Atomic uint32_t sleepers, rung;
    int32_t code; // the failure's, with its text, once it is FAILED
    char text[FAILURE_TEXT];
} header;

static const char KIND[16] = "belfry ddl 1";

struct bel_ddl_region {
    header *head;
    size_t bytes;
    int file;
    int rank, size; // within the group
    int first, all; // the group's first rank, and the number of all ranks
    size_t chunk;   // bytes of a slot
    bool crowded;   // fewer processors than ranks
    int64_t timeout_ns;
    bel_ddl_look *look; // NULL: no other groups
    void *context;      // argument of look
    char path[PATH_TEXT], job[BEL_LAUNCH_JOB_TEXT + 16];
};

// --- Addresses -----------------------------------------------------------------------------------

static size_t lines_at(void)
{
    return (sizeof(header) + 127) / 128 * 128;
}

static size_t slots_at(int size)
{
    size_t end = lines_at() + (size_t)size * sizeof(bel_ddl_line);
    return (end + 4095) / 4096 * 4096;
}

static size_t bytes_of(const bel_ddl_region *region)
{
    return slots_at(region->size) + (size_t)region->size * BEL_DDL_SLOTS * region->chunk;
}

bel_ddl_line *bel_ddl_region_line(const bel_ddl_region *region, int rank)
{
    char *first = (char *)region->head + lines_at();
    return (bel_ddl_line *)(void *)first + rank;
}

void *bel_ddl_region_slot(const bel_ddl_region *region, int rank, uint64_t round)
{
    size_t slot = (size_t)rank * BEL_DDL_SLOTS + (size_t)(round % BEL_DDL_SLOTS);
    return (char *)region->head + slots_at(region->size) + slot * region->chunk;
}

bel_status *bel_ddl_said_compare(int rank, const bel_ddl_said *said, int other_rank,
                                 const bel_ddl_said *other)
{
    if (said->digest == other->digest) return NULL;
    bool first = rank < other_rank;
    const bel_ddl_said *low = first ? said : other, *high = first ? other : said;
    bool same = strncmp(low->words, high->words, sizeof low->words) == 0;
    return BEL_ERR(BEL_FAILED_PRECONDITION, "call %llu differs: rank %d calls %.*s, rank %d %.*s%s",
                   (unsigned long long)low->number, first ? rank : other_rank,
                   (int)sizeof low->words - 1, low->words, first ? other_rank : rank,
                   (int)sizeof high->words - 1, high->words,
                   same ? "; some have other types, shapes or places" : "");
}

// --- Failures ------------------------------------------------------------------------------------

static void region_nap(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

// The failed rank is about to write the reason, unless it is killed at that moment.
bel_status *bel_ddl_region_check(const bel_ddl_region *region)
{
    enum { NAPS = 1000 };
    uint32_t stage = atomic_load_explicit(&region->head->failure, memory_order_acquire);
    if (stage == GOOD) return NULL;
    for (int i = 0; i < NAPS && stage == FAILING; i++) {
        region_nap();
        stage = atomic_load_explicit(&region->head->failure, memory_order_acquire);
    }
    if (stage == FAILING) return BEL_ERR(BEL_ABORTED, "another rank has failed");
    return BEL_ERR((bel_code)region->head->code, "%s", region->head->text);
}

// The first failure is the reason.
bel_status *bel_ddl_region_fail(bel_ddl_region *region, bel_status *status)
{
    header *head = region->head;
    uint32_t expected = GOOD;
    if (!atomic_compare_exchange_strong(&head->failure, &expected, FAILING)) {
        bel_status *first = bel_ddl_region_check(region);
        bel_status_ignore(status); // the first one is reported
        return first;
    }
    head->code = (int32_t)bel_status_code(status);
    bel_snprintf(head->text, sizeof head->text, "%s", bel_status_message(status));
    atomic_store_explicit(&head->failure, FAILED, memory_order_release);
    return status; // the others will notice soon
}

// --- Waits ---------------------------------------------------------------------------------------

static uint64_t read_count(const bel_ddl_line *line, bel_ddl_count count)
{
    return atomic_load_explicit(count == BEL_DDL_ARRIVED ? &line->arrived : &line->done,
                                memory_order_acquire);
}

// Returns the first other rank that has not arrived at the round; -1: all have.
static int first_missing(const bel_ddl_region *region, bel_ddl_count count, uint64_t round)
{
    for (int r = 0; r < region->size; r++)
        if (r != region->rank && read_count(bel_ddl_region_line(region, r), count) < round)
            return r;
    return -1;
}

static void wake(bel_ddl_region *region)
{
    atomic_fetch_add(&region->head->rung, 1);
    bel_linux_shared_futex_wake_all(&region->head->rung);
}

// No rank can continue before the last one has arrived, so only that one wakes the others. If two
// arrive at once, at least one sees the other's counter, because each writes its counter before it
// reads.
void bel_ddl_region_tell(bel_ddl_region *region, bel_ddl_count count, uint64_t round)
{
    bel_ddl_line *own = bel_ddl_region_line(region, region->rank);
    atomic_store_explicit(count == BEL_DDL_ARRIVED ? &own->arrived : &own->done, round,
                          memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&region->head->sleepers, memory_order_relaxed) == 0) return;
    if (first_missing(region, count, round) < 0) wake(region);
}

static bel_status *look_at_others(const bel_ddl_region *region, const char *doing)
{
    return region->look == NULL ? NULL : region->look(region->context, doing);
}

// Checks while sleeping: another rank's failure, an exited process, the deadline. A rank that
// published its counter before it exited does not affect this wait, so the counter is read after
// the lock.
static bel_status *look_around(bel_ddl_region *region, bel_ddl_count count, uint64_t round,
                               const char *doing, int64_t deadline)
{
    bel_status *failed = bel_ddl_region_check(region);
    if (failed != NULL && first_missing(region, count, round) < 0) {
        bel_status_ignore(failed); // from a later call; this wait is complete
        return NULL;
    }
    if (failed != NULL) return failed;
    BEL_TRY(look_at_others(region, doing));
    for (int r = 0; r < region->size; r++) {
        bool gone = r != region->rank && !bel_linux_byte_is_locked(region->file, r);
        if (!gone || read_count(bel_ddl_region_line(region, r), count) >= round) continue;
        return bel_ddl_region_fail(
            region, BEL_ERR(BEL_ABORTED, "rank %d of %d has exited; it was waited for in %s",
                            region->first + r, region->all, doing));
    }
    int missing = first_missing(region, count, round);
    if (missing < 0 || bel_clock_awake_ns() < deadline) return NULL;
    return bel_ddl_region_fail(region, BEL_ERR(BEL_DEADLINE_EXCEEDED,
                                               "rank %d of %d has not come to %s within %g s",
                                               region->first + missing, region->all, doing,
                                               (double)region->timeout_ns * 1e-9));
}

// With fewer processors than ranks the awaited rank may need this one's processor: it is yielded at
// once, and this rank sleeps soon.
static bool look_for_a_while(const bel_ddl_region *region, bel_ddl_count count, uint64_t round,
                             int64_t begun)
{
    enum { LOOKS = 500, YIELD_NS = 2000000, CROWDED_YIELD_NS = 50000 };
    int looks = region->crowded ? 1 : LOOKS;
    int64_t most_ns = region->crowded ? CROWDED_YIELD_NS : YIELD_NS;
    for (int i = 0; i < looks; i++) {
        if (first_missing(region, count, round) < 0) return true;
        bel_thread_pause();
    }
    while (bel_clock_ns() - begun < most_ns) {
        sched_yield();
        if (first_missing(region, count, round) < 0) return true;
    }
    return false;
}

bel_status *bel_ddl_region_await(bel_ddl_region *region, bel_ddl_count count, uint64_t round,
                                 const char *doing, double late_secs)
{
    enum { NAP_NS = 10000000 };
    header *head = region->head;
    if (first_missing(region, count, round) < 0) return NULL;
    int64_t begun = bel_clock_ns(), looked = begun;
    if (look_for_a_while(region, count, round, begun)) return NULL;
    int64_t deadline = bel_clock_awake_ns() + region->timeout_ns + (int64_t)(late_secs * 1e9);
    bel_status *status = NULL;
    atomic_fetch_add(&head->sleepers, 1);
    while (status == NULL) {
        uint32_t rung = atomic_load(&head->rung);
        if (first_missing(region, count, round) < 0) break;
        bel_linux_shared_futex_wait(&head->rung, rung, NAP_NS);
        if (bel_clock_ns() - looked < NAP_NS) continue;
        looked = bel_clock_ns();
        status = look_around(region, count, round, doing, deadline);
    }
    atomic_fetch_sub(&head->sleepers, 1);
    return status;
}

// --- Joining -------------------------------------------------------------------------------------

// The name begins with the user's ID.
static void name_region(const char *job, char out[NAME_TEXT])
{
    bel_snprintf(out, NAME_TEXT, "belfry-ddl-%u-", (unsigned)geteuid());
    size_t length = strlen(out);
    bel_snprintf(out + length, NAME_TEXT - length, "%016llx",
                 (unsigned long long)bel_hash64(job, strlen(job)));
}

static void path_of(const char *name, char out[PATH_TEXT])
{
    bel_snprintf(out, PATH_TEXT, "%s/%s", FOLDER, name);
}

static bel_status *ddl_region_map(bel_ddl_region *region)
{
    region->bytes = bytes_of(region);
    void *memory = mmap(NULL, region->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, region->file, 0);
    if (memory == MAP_FAILED) {
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "shared memory of %zu bytes: %s", region->bytes,
                       strerror(errno));
    }
    region->head = memory;
    return NULL;
}

static bel_status *ddl_region_make(bel_ddl_region *region)
{
    region->file = bel_linux_unnamed_open(FOLDER);
    size_t bytes = bytes_of(region);
    if (region->file < 0 || posix_fallocate(region->file, 0, (off_t)bytes) != 0)
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED, FOLDER ": no shared memory of %zu bytes", bytes);
    BEL_TRY(ddl_region_map(region));
    memcpy(region->head->kind, KIND, sizeof KIND);
    region->head->bytes = bytes;
    region->head->size = (uint32_t)region->size;
    if (bel_linux_lock_byte(region->file, region->rank)) return NULL;
    return BEL_ERR(BEL_RESOURCE_EXHAUSTED, FOLDER ": %s", strerror(errno));
}

// Removes regions whose creator has exited.
static void remove_left_behind(void)
{
    char **names = NULL, own[NAME_TEXT], path[PATH_TEXT];
    size_t count = 0, length;
    name_region("", own);
    length = (size_t)(strrchr(own, '-') - own) + 1;
    bel_status_ignore(bel_dir_list(FOLDER, &names, &count)); // a later job tries again
    for (size_t i = 0; i < count; i++) {
        if (strncmp(names[i], own, length) != 0 || strlen(names[i]) != strlen(own)) continue;
        path_of(names[i], path);
        int file = open(path, O_RDWR | O_CLOEXEC);
        if (file < 0) continue;
        bool same = false; // another job of that name may have started meanwhile
        if (!bel_linux_byte_is_locked(file, 0))
            bel_status_ignore(bel_linux_is_open_on(file, path, &same)); // then it is not
        if (same) (void)unlink(path);
        (void)close(file);
    }
    bel_dir_names_free(names, count);
}

static bel_status *ddl_region_publish(bel_ddl_region *region, int64_t deadline)
{
    BEL_TRY(ddl_region_make(region));
    remove_left_behind();
    while (!bel_linux_unnamed_link(region->file, region->path)) {
        if (errno != EEXIST)
            return BEL_ERR(BEL_PERMISSION_DENIED, "%s: %s", region->path, strerror(errno));
        if (bel_clock_awake_ns() > deadline) {
            return BEL_ERR(BEL_ALREADY_EXISTS,
                           "%s: another job with the same name is about to begin", region->path);
        }
        region_nap();
    }
    return NULL;
}

// Makes one attempt; *out_found is false if no complete region exists yet.
static bel_status *ddl_region_find(bel_ddl_region *region, bool *out_found)
{
    *out_found = false;
    region->file = open(region->path, O_RDWR | O_CLOEXEC);
    if (region->file < 0) return NULL;
    header head;
    struct stat state;
    bool sound = fstat(region->file, &state) == 0 && state.st_uid == geteuid() &&
                 pread(region->file, &head, sizeof head, 0) == (ssize_t)sizeof head &&
                 memcmp(head.kind, KIND, sizeof KIND) == 0 && head.bytes == (uint64_t)state.st_size;
    bool alive = sound && bel_linux_byte_is_locked(region->file, 0);
    if (!alive) {
        (void)close(region->file);
        region->file = -1;
        return NULL;
    }
    if (head.size != (uint32_t)region->size || head.bytes != bytes_of(region)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "rank %d is one of %d ranks that share memory, and rank %d one of %u",
                       region->first + region->rank, region->size, region->first, head.size);
    }
    BEL_TRY(ddl_region_map(region));
    *out_found = true;
    if (bel_linux_lock_byte(region->file, region->rank)) return NULL;
    return BEL_ERR(BEL_ALREADY_EXISTS, "rank %d of %d is there already",
                   region->first + region->rank, region->all);
}

static bel_status *find_in_time(bel_ddl_region *region, int64_t deadline)
{
    for (bool found = false; !found;) {
        BEL_TRY(ddl_region_find(region, &found));
        if (found) return NULL;
        BEL_TRY(look_at_others(region, "init"));
        if (bel_clock_awake_ns() > deadline) {
            return BEL_ERR(BEL_DEADLINE_EXCEEDED, "rank %d of %d has not come within %g s",
                           region->first, region->all, (double)region->timeout_ns * 1e-9);
        }
        region_nap();
    }
    return NULL;
}

static bool has_joined(const bel_ddl_region *region, int rank)
{
    return atomic_load(&bel_ddl_region_line(region, rank)->joined) != 0;
}

// Ranks that have joined must not exit before the last one has joined. Returns the first that has
// exited; -1: none.
static int find_lost(const bel_ddl_region *region)
{
    for (int r = 0; r < region->size; r++)
        if (r != region->rank && has_joined(region, r) &&
            !bel_linux_byte_is_locked(region->file, r))
            return r;
    return -1;
}

// Waits until all have joined, because no call is possible earlier; round 1 is the first.
static bel_status *await_all(bel_ddl_region *region, int64_t deadline)
{
    atomic_store(&bel_ddl_region_line(region, region->rank)->joined, 1);
    for (int r = 0; r < region->size; r++) {
        while (!has_joined(region, r)) {
            BEL_TRY(bel_ddl_region_check(region));
            int lost = find_lost(region);
            bel_status *status = look_at_others(region, "init");
            if (status != NULL) {
                // the reason
            } else if (lost >= 0) {
                status = BEL_ERR(BEL_ABORTED, "rank %d of %d has exited before all had come",
                                 region->first + lost, region->all);
            } else if (bel_clock_awake_ns() > deadline) {
                status = BEL_ERR(BEL_DEADLINE_EXCEEDED, "rank %d of %d has not come within %g s",
                                 region->first + r, region->all, (double)region->timeout_ns * 1e-9);
            }
            if (status != NULL) return bel_ddl_region_fail(region, status);
            region_nap();
        }
    }
    return NULL;
}

// Each group of a job has a separate name, because hosts may share the folder.
static void name_job(const bel_launch *launch, bel_ddl_region *region)
{
    bool alone = region->size == region->all;
    bel_snprintf(region->job, sizeof region->job, "%s", launch->job);
    size_t length = strlen(region->job);
    if (!alone)
        bel_snprintf(region->job + length, sizeof region->job - length, "\nfrom %d", region->first);
}

bel_status *bel_ddl_region_join(const bel_launch *launch, bel_ddl_group group, size_t chunk,
                                double timeout_secs, bel_ddl_look *look, void *context,
                                bel_ddl_region **out_region)
{
    bel_ddl_region *region = bel_xcalloc(1, sizeof *region);
    region->rank = launch->rank - group.first;
    region->size = group.size;
    region->first = group.first;
    region->all = group.all;
    region->chunk = chunk;
    region->look = look;
    region->context = context;
    region->crowded = bel_linux_affinity_cores() < region->size;
    region->timeout_ns = (int64_t)(timeout_secs * 1e9);
    region->file = -1;
    int64_t deadline = bel_clock_awake_ns() + region->timeout_ns;
    char name[NAME_TEXT];
    name_job(launch, region);
    name_region(region->job, name);
    path_of(name, region->path);
    bool first = region->rank == 0;
    bel_status *status =
        first ? ddl_region_publish(region, deadline) : find_in_time(region, deadline);
    bool named = first && status == NULL;
    if (status == NULL) status = await_all(region, deadline);
    if (named) (void)unlink(region->path);
    if (status != NULL) {
        bel_ddl_region_leave(region);
        return status;
    }
    *out_region = region;
    return NULL;
}

void bel_ddl_region_leave(bel_ddl_region *region)
{
    if (region == NULL) return;
    if (region->head != NULL) (void)munmap(region->head, region->bytes);
    if (region->file >= 0) (void)close(region->file);
    bel_free(region);
}

// --- Memory for tensors --------------------------------------------------------------------------

static void path_of_memory(const bel_ddl_region *region, uint64_t number, char out[PATH_TEXT])
{
    char job[BEL_LAUNCH_JOB_TEXT + 48], name[NAME_TEXT];
    bel_snprintf(job, sizeof job, "%s\n%llu", region->job, (unsigned long long)number);
    name_region(job, name);
    path_of(name, out);
}

static bel_status *map_memory(const bel_ddl_region *region, int file, size_t bytes,
                              bel_ddl_memory *out)
{
    size_t stride = (bytes + 4095) / 4096 * 4096, whole = stride * (size_t)region->size;
    void *base = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (base == MAP_FAILED) {
        return BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                       "shared memory of %zu bytes for each of %d ranks: %s", bytes, region->size,
                       strerror(errno));
    }
    *out = (bel_ddl_memory){.base = base, .stride = stride, .bytes = bytes, .file = file};
    return NULL;
}

// Allocates the pages now: otherwise a later write without a free page would kill the process. Byte
// 0 is locked as long as the name exists, so that other jobs do not take it for a leftover.
bel_status *bel_ddl_region_make_memory(const bel_ddl_region *region, uint64_t number, size_t bytes,
                                       bel_ddl_memory *out)
{
    char path[PATH_TEXT];
    path_of_memory(region, number, path);
    int file = bel_linux_unnamed_open(FOLDER);
    size_t stride = (bytes + 4095) / 4096 * 4096, whole = stride * (size_t)region->size;
    int error = file < 0 ? errno : posix_fallocate(file, 0, (off_t)whole);
    bool named = error == 0 && bel_linux_lock_byte(file, 0) && bel_linux_unnamed_link(file, path);
    bel_status *status = named ? map_memory(region, file, bytes, out)
                               : BEL_ERR(BEL_RESOURCE_EXHAUSTED,
                                         FOLDER ": no shared memory of %zu bytes for each of %d "
                                                "ranks: %s",
                                         bytes, region->size, strerror(error != 0 ? error : errno));
    if (status != NULL && named) (void)unlink(path);
    if (status != NULL && file >= 0) (void)close(file);
    return status;
}

// The mapping keeps the file alive.
bel_status *bel_ddl_region_open_memory(const bel_ddl_region *region, uint64_t number, size_t bytes,
                                       bel_ddl_memory *out)
{
    char path[PATH_TEXT];
    path_of_memory(region, number, path);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return BEL_ERR(BEL_RESOURCE_EXHAUSTED, "%s: %s", path, strerror(errno));
    bel_status *status = map_memory(region, file, bytes, out);
    (void)close(file);
    return status;
}

void bel_ddl_region_forget_name(const bel_ddl_region *region, uint64_t number,
                                const bel_ddl_memory *memory)
{
    char path[PATH_TEXT];
    path_of_memory(region, number, path);
    (void)unlink(path);
    (void)close(memory->file);
}

void bel_ddl_region_unmap(const bel_ddl_region *region, bel_ddl_memory *memory)
{
    if (memory->base != NULL) (void)munmap(memory->base, memory->stride * (size_t)region->size);
    memory->base = NULL;
}
