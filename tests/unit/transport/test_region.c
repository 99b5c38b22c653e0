// Regions: their seals protect them from every holder of the descriptor. Descriptors that are not
// regions are refused.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/linux_memory.h"
#include "base/linux_shared.h"
#include "support/bel_test.h"
#include "transport/shm/region.h"

// A Linux function, which the C library's headers declare only for src/base/linux_*.c.
int memfd_create(const char *name, unsigned flags);
enum { CLOSE_ON_EXEC = 1, ALLOW_SEALING = 2 };
enum { ADD_SEALS = 1033, SEAL_SEAL = 1, SEAL_SHRINK = 2, SEAL_GROW = 4 };

static bel_shm_region *make(size_t bytes)
{
    bel_shm_region *region = NULL;
    BEL_ASSERT_OK(bel_shm_region_create("test", bytes, &region));
    return region;
}

static bel_shm_region *open_copy(const bel_shm_region *region, size_t least_bytes)
{
    bel_shm_region *view = NULL;
    int descriptor = dup(bel_shm_region_descriptor(region));
    BEL_ASSERT_OK(bel_shm_region_open(descriptor, least_bytes, &view));
    return view;
}

static void test_reads_what_is_written(void **state)
{
    (void)state;
    const size_t bytes = 5 << 20;
    bel_shm_region *region = make(bytes - 100), *view = open_copy(region, bytes);
    assert_int_equal(bel_shm_region_bytes(region), bytes); // complete pages
    assert_int_equal(bel_shm_region_bytes(view), bytes);
    uint8_t *own = bel_shm_region_memory(region);
    const uint8_t *seen = bel_shm_region_memory(view);
    assert_int_equal((uintptr_t)own % (2 << 20), 0); // so that huge pages may back it
    assert_int_equal((uintptr_t)seen % (2 << 20), 0);
    assert_int_equal(seen[bytes - 1], 0);
    own[0] = 1;
    own[bytes - 1] = 2;
    bel_shm_region_touch(region, 1, bytes - 1);
    assert_int_equal(seen[0], 1);
    assert_int_equal(seen[bytes - 1], 2);
    bel_shm_region_destroy(region);
    own = NULL;
    assert_int_equal(seen[bytes - 1], 2); // a reader's view outlives the writer's
    bel_shm_region_destroy(view);
    bel_shm_region_destroy(NULL);
}

// A holder of the descriptor may only read.
static void test_seals_hold(void **state)
{
    (void)state;
    bel_shm_region *region = make(8192);
    int descriptor = bel_shm_region_descriptor(region);
    assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0),
                     MAP_FAILED);
    void *read_only = mmap(NULL, 4096, PROT_READ, MAP_SHARED, descriptor, 0);
    assert_ptr_not_equal(read_only, MAP_FAILED);
    assert_int_equal(mprotect(read_only, 4096, PROT_READ | PROT_WRITE), -1);
    munmap(read_only, 4096);
    assert_int_equal(ftruncate(descriptor, 4096), -1);
    assert_int_equal(ftruncate(descriptor, 16384), -1);
    assert_int_equal(pwrite(descriptor, "x", 1, 0), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(posix_fallocate(descriptor, 0, 16384), EPERM);
    *(char *)bel_shm_region_memory(region) = 'y'; // the owner still may
    char byte = 0;
    assert_int_equal(pread(descriptor, &byte, 1, 0), 1);
    assert_int_equal(byte, 'y');
    bel_shm_region_destroy(region);
}

static void test_refuses_what_is_no_region(void **state)
{
    (void)state;
    bel_shm_region *view = NULL;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    BEL_ASSERT_FAILS(bel_shm_region_open(ends[0], 1, &view), BEL_INVALID_ARGUMENT, "sealed memfd");
    assert_int_equal(fcntl(ends[0], F_GETFD), -1); // closed even on failure
    close(ends[1]);
    BEL_ASSERT_FAILS(bel_shm_region_open(-1, 1, &view), BEL_INVALID_ARGUMENT, "sealed memfd");
    FILE *file = tmpfile(); // has a size but no seals
    assert_int_equal(ftruncate(fileno(file), 8192), 0);
    BEL_ASSERT_FAILS(bel_shm_region_open(dup(fileno(file)), 1, &view), BEL_INVALID_ARGUMENT,
                     "sealed memfd");
    fclose(file);
    bel_shm_region *region = make(8192);
    int descriptor = dup(bel_shm_region_descriptor(region));
    BEL_ASSERT_FAILS(bel_shm_region_open(descriptor, 8193, &view), BEL_INVALID_ARGUMENT,
                     "8192 bytes, expected 8193");
    bel_shm_region_destroy(region);
    assert_null(view);
    BEL_ASSERT_FAILS(bel_shm_region_create("none", 0, &view), BEL_INVALID_ARGUMENT, "no bytes");
    BEL_ASSERT_FAILS(bel_shm_region_create("huge", SIZE_MAX, &view), BEL_RESOURCE_EXHAUSTED,
                     "large");
    BEL_ASSERT_FAILS(bel_shm_region_create("huge", SIZE_MAX / 2, &view), BEL_RESOURCE_EXHAUSTED,
                     "huge");
}

// A memfd without all seals: its writer could remove pages while a reader uses them.
static void test_refuses_missing_seals(void **state)
{
    (void)state;
    static const int seals[] = {0, SEAL_SHRINK, SEAL_GROW | SEAL_SEAL};
    for (size_t i = 0; i < sizeof seals / sizeof *seals; i++) {
        int descriptor = memfd_create("loose", ALLOW_SEALING | CLOSE_ON_EXEC);
        assert_int_equal(ftruncate(descriptor, 8192), 0);
        assert_int_equal(fcntl(descriptor, ADD_SEALS, seals[i]), 0);
        bel_shm_region *view = NULL;
        BEL_ASSERT_FAILS(bel_shm_region_open(descriptor, 1, &view), BEL_INVALID_ARGUMENT,
                         "sealed memfd");
    }
}

// Parts of two regions side by side, in another order than in their regions.
static void test_stitches_parts(void **state)
{
    (void)state;
    enum { PAGE = 4096 };
    bel_shm_region *a = make(4 * PAGE), *b = make(PAGE);
    uint8_t *of_a = bel_shm_region_memory(a), *of_b = bel_shm_region_memory(b);
    for (int i = 0; i < 4; i++)
        of_a[i * PAGE] = (uint8_t)(i + 1);
    of_b[0] = 9;
    bel_shm_region *view = open_copy(a, 1);
    uint8_t *room = bel_linux_map_pages(4 * PAGE);
    BEL_ASSERT_OK(bel_shm_region_map(view, 2 * PAGE, 2 * PAGE, room));
    BEL_ASSERT_OK(bel_shm_region_map(b, 0, PAGE, room + 2 * PAGE));
    assert_int_equal(room[0], 3);
    assert_int_equal(room[PAGE], 4);
    assert_int_equal(room[2 * PAGE], 9);
    of_a[3 * PAGE] = 77;
    assert_int_equal(room[PAGE], 77); // the same memory, not a copy
    room[3 * PAGE] = 5;               // unreplaced memory still belongs to the caller
    static const size_t bad[][2] = {
        {0, 5 * PAGE}, {4 * PAGE, PAGE}, {100, PAGE}, {0, 100}, {SIZE_MAX - PAGE + 1, PAGE},
        {0, 0}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        BEL_ASSERT_FAILS(bel_shm_region_map(view, bad[i][0], bad[i][1], room), BEL_INVALID_ARGUMENT,
                         "cannot map");
    }
    BEL_ASSERT_FAILS(bel_shm_region_map(view, 0, PAGE, room + 8), BEL_INVALID_ARGUMENT,
                     "cannot map");
    bel_linux_unmap_pages(room, 4 * PAGE);
    bel_shm_region_destroy(view);
    bel_shm_region_destroy(a);
    bel_shm_region_destroy(b);
}

// A successor maps the same memory for writing, with its contents; a peer gets a descriptor that
// cannot be mapped for writing.
static void test_kept_memory_outlives_its_region(void **state)
{
    (void)state;
    enum { BYTES = 8192 };
    int held = bel_linux_shared_open("test");
    bel_shm_region *region = NULL, *next = NULL;
    assert_true(held >= 0);
    assert_int_equal(bel_linux_shared_bytes(held), 0);
    BEL_ASSERT_OK(bel_shm_region_keep(dup(held), BYTES - 1, &region));
    uint8_t *own = bel_shm_region_memory(region);
    own[BYTES - 1] = 7;
    bel_shm_region *view = open_copy(region, BYTES);
    assert_int_equal(((const uint8_t *)bel_shm_region_memory(view))[BYTES - 1], 7);
    int peers = bel_shm_region_descriptor(region);
    assert_ptr_equal(mmap(NULL, BYTES, PROT_WRITE, MAP_SHARED, peers, 0), MAP_FAILED);
    assert_int_equal(ftruncate(held, 2 * BYTES), -1);
    bel_shm_region_destroy(region);
    assert_int_equal(bel_linux_shared_bytes(held), BYTES);
    BEL_ASSERT_FAILS(bel_shm_region_keep(dup(held), 2 * BYTES, &next), BEL_INVALID_ARGUMENT,
                     "kept memory of 8192 bytes, expected a memfd of 16384 bytes");
    BEL_ASSERT_OK(bel_shm_region_keep(dup(held), BYTES, &next));
    own = bel_shm_region_memory(next);
    assert_int_equal(own[BYTES - 1], 7);
    own[0] = 9;
    assert_int_equal(((const uint8_t *)bel_shm_region_memory(view))[0], 9);
    bel_shm_region_destroy(next);
    bel_shm_region_destroy(view);
    close(held);
    int other = open("/dev/null", O_RDWR);
    BEL_ASSERT_FAILS(bel_shm_region_keep(other, BYTES, &next), BEL_INVALID_ARGUMENT, "a memfd");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept_memory_outlives_its_region),
        cmocka_unit_test(test_reads_what_is_written),
        cmocka_unit_test(test_seals_hold),
        cmocka_unit_test(test_refuses_what_is_no_region),
        cmocka_unit_test(test_refuses_missing_seals),
        cmocka_unit_test(test_stitches_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
