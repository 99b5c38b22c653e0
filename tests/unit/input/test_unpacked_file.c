// Large packed files: unpacked once for all readers, removed with the last of them, even if
// processes are killed. The bytes are those of unpacking in memory.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/str.h"
#include "input/files/file_view.h"
#include "support/bel_test.h"

enum { LENGTH = 300000, PATIENCE_SECS = 60 };

static char content[LENGTH];
static char packed[LENGTH + 1000];
static size_t packed_size;

static int make_content(void **state)
{
    (void)state;
    for (int i = 0; i < LENGTH; i++)
        content[i] = (char)('a' + (int64_t)i * (i / 7) % 26);
    z_stream stream = {.next_in = (unsigned char *)content,
                       .avail_in = LENGTH,
                       .next_out = (unsigned char *)packed,
                       .avail_out = sizeof packed};
    if (deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) return 1;
    bool whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
    packed_size = stream.total_out;
    (void)deflateEnd(&stream);
    return whole ? 0 : 1;
}

// --- Helpers -------------------------------------------------------------------------------------

// The folder of unpacked files, below the test's folder; free with bel_free.
static char *unpacked_folder(void)
{
    char name[64];
    (void)snprintf(name, sizeof name, "belfry-unpacked-%lld", (long long)geteuid());
    return bel_path_join(bel_test_own_folder(), name);
}

// TMPDIR is the test's folder during a test and is restored afterwards, as test folders are below
// TMPDIR.
static char *tmpdir_before;

static int enter(void **state)
{
    int result = bel_test_enter_folder(state);
    const char *before = getenv("TMPDIR");
    tmpdir_before = before != NULL ? bel_xstrdup(before) : NULL;
    return result != 0 ? result : setenv("TMPDIR", bel_test_own_folder(), 1);
}

static int leave(void **state)
{
    if (tmpdir_before != NULL)
        (void)setenv("TMPDIR", tmpdir_before, 1);
    else
        (void)unsetenv("TMPDIR");
    bel_free(tmpdir_before);
    return bel_test_leave_folder(state);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, enter, leave)

static size_t count_files(void)
{
    char *folder = unpacked_folder(), **names;
    size_t count;
    BEL_ASSERT_OK(bel_dir_list(folder, &names, &count));
    bel_dir_names_free(names, count);
    bel_free(folder);
    return count;
}

static bel_status *open_version(uint64_t inode, double patience_secs, bel_host_file *out_file)
{
    bel_file_version version = {.inode = inode};
    return bel_unpacked_file_open("x.gz", &version, packed, packed_size, patience_secs, out_file);
}

static bool has_content(const bel_host_file *file)
{
    if (file->size != LENGTH) return false;
    char *data = mmap(NULL, LENGTH, PROT_READ, MAP_PRIVATE, file->descriptor, 0);
    if (data == MAP_FAILED) return false;
    bool same = memcmp(data, content, LENGTH) == 0;
    munmap(data, LENGTH);
    return same;
}

// Opens the .part file of version 1 like a process that writes it.
static int hold_part(char **out_path)
{
    bel_host_file file;
    BEL_ASSERT_OK(open_version(1, PATIENCE_SECS, &file));
    *out_path = bel_strf("%s.part", file.path);
    bel_host_file_close(&file);
    int part = open(*out_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(part >= 0);
    assert_int_equal(flock(part, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(write(part, "half", 4), 4);
    return part;
}

// --- Tests ---------------------------------------------------------------------------------------

static void test_one_for_all(void **state)
{
    (void)state;
    bel_host_file a, b, other;
    struct stat of_a, of_b;
    BEL_ASSERT_OK(open_version(1, PATIENCE_SECS, &a));
    BEL_ASSERT_OK(open_version(1, PATIENCE_SECS, &b));
    BEL_ASSERT_OK(open_version(2, PATIENCE_SECS, &other));
    assert_int_equal(fstat(a.descriptor, &of_a), 0);
    assert_int_equal(fstat(b.descriptor, &of_b), 0);
    assert_int_equal(of_a.st_ino, of_b.st_ino);
    assert_int_equal(count_files(), 2);
    bel_host_file_close(&a);
    assert_int_equal(count_files(), 2);
    assert_true(has_content(&b));
    assert_true(has_content(&other));
    bel_host_file_close(&b);
    assert_int_equal(count_files(), 1);
    bel_host_file_close(&other);
    assert_int_equal(count_files(), 0);
    bel_host_file_close(&other);
}

// The next writer uses or removes the remains of killed processes, complete or not. Files in use
// stay.
static void test_leftovers(void **state)
{
    (void)state;
    bel_host_file used, file;
    char *folder = unpacked_folder(), *half;
    close(hold_part(&half)); // as after a kill
    BEL_ASSERT_OK(open_version(2, PATIENCE_SECS, &used));
    assert_false(bel_file_exists(half));
    bel_free(bel_test_file(folder, "0123456789abcdef", "old", 3));
    bel_free(bel_test_file(folder, "0123456789abcdef.part", "old", 3));
    assert_int_equal(count_files(), 3);
    BEL_ASSERT_OK(open_version(1, PATIENCE_SECS, &file));
    assert_int_equal(count_files(), 2);
    assert_true(has_content(&file));
    assert_true(has_content(&used));
    bel_host_file_close(&file);
    bel_host_file_close(&used);
    bel_free(bel_test_file(folder, "0123456789abcdef.part", "", 0));
    BEL_ASSERT_OK(open_version(1, PATIENCE_SECS, &file));
    assert_int_equal(count_files(), 1);
    bel_host_file_close(&file);
    bel_free(half);
    bel_free(folder);
}

static void test_a_writer_that_stands_still(void **state)
{
    (void)state;
    char *path;
    bel_host_file file;
    int part = hold_part(&path);
    BEL_ASSERT_FAILS(open_version(1, 0.1, &file), BEL_DEADLINE_EXCEEDED,
                     "has made no progress for 0.1 s");
    assert_true(bel_file_exists(path));
    close(part); // as after a kill
    BEL_ASSERT_OK(open_version(1, 0.1, &file));
    assert_true(has_content(&file));
    bel_host_file_close(&file);
    bel_free(path);
}

static void *let_go(void *argument)
{
    (void)poll(NULL, 0, 100);
    close(*(int *)argument);
    return NULL;
}

static void test_a_writer_is_waited_for(void **state)
{
    (void)state;
    char *path;
    bel_host_file file;
    pthread_t thread;
    int part = hold_part(&path);
    assert_int_equal(pthread_create(&thread, NULL, let_go, &part), 0);
    BEL_ASSERT_OK(open_version(1, PATIENCE_SECS, &file));
    assert_true(has_content(&file));
    bel_host_file_close(&file);
    pthread_join(thread, NULL);
    bel_free(path);
}

static void test_failures_leave_nothing(void **state)
{
    (void)state;
    bel_host_file file;
    packed[packed_size / 2] ^= 1;
    bel_status *status = open_version(1, PATIENCE_SECS, &file);
    packed[packed_size / 2] ^= 1;
    BEL_ASSERT_FAILS(status, BEL_DATA_LOSS, "x.gz: gzip stream is truncated or corrupt");
    assert_null(file.path);
    assert_int_equal(count_files(), 0);
    bel_fault_set("write:2");
    BEL_ASSERT_FAILS(open_version(1, PATIENCE_SECS, &file), BEL_RESOURCE_EXHAUSTED,
                     "unpacking x.gz into a folder below $TMPDIR");
    assert_int_equal(count_files(), 0);
}

static void test_folders_of_others(void **state)
{
    (void)state;
    bel_host_file file;
    char *folder = unpacked_folder();
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(chmod(folder, 0755), 0);
    BEL_ASSERT_FAILS(open_version(1, PATIENCE_SECS, &file), BEL_FAILED_PRECONDITION, "mode 0700");
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(symlink("/", folder), 0);
    BEL_ASSERT_FAILS(open_version(1, PATIENCE_SECS, &file), BEL_FAILED_PRECONDITION, "mode 0700");
    assert_int_equal(unlink(folder), 0);
    assert_int_equal(setenv("TMPDIR", folder, 1), 0);
    BEL_ASSERT_FAILS(open_version(1, PATIENCE_SECS, &file), BEL_NOT_FOUND, folder);
    bel_free(folder);
}

// Opens and closes two versions in turn, until the process is asked to end or is killed.
static void use_for(int rounds, unsigned seed)
{
    for (int i = 0; i < rounds; i++) {
        bel_host_file file;
        bel_status *status = open_version(rand_r(&seed) % 2 == 0 ? 1 : 2, PATIENCE_SECS, &file);
        if (status != NULL) {
            (void)fprintf(stderr, "%s\n", bel_status_message(status));
            _exit(1);
        }
        if (!has_content(&file)) _exit(2);
        bel_host_file_close(&file);
    }
    _exit(0);
}

// Many processes run at once, and some are killed at any point. All others always read the right
// bytes, and no file remains.
static void test_many_processes(void **state)
{
    (void)state;
    enum { PROCESSES = 6, KILLED = 12, ROUNDS = 60 };
    pid_t readers[PROCESSES];
    for (unsigned i = 0; i < PROCESSES; i++) {
        readers[i] = fork();
        assert_true(readers[i] >= 0);
        if (readers[i] == 0) use_for(ROUNDS, i + 1);
    }
    for (unsigned i = 0; i < KILLED; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) use_for(1 << 20, i + 100);
        (void)poll(NULL, 0, 1 + (int)(7 * i % 11));
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int result;
        assert_int_equal(waitpid(readers[i], &result, 0), readers[i]);
        assert_int_equal(result, 0);
    }
    bel_host_file file;
    BEL_ASSERT_OK(open_version(3, PATIENCE_SECS, &file));
    assert_int_equal(count_files(), 1);
    bel_host_file_close(&file);
}

// Bytes after the stream are left out, but the last four count as the size: 2 GiB. So this short
// file is handled like a long one.
static void test_a_view_of_a_large_file(void **state)
{
    (void)state;
    static char large[2 << 20];
    memcpy(large, packed, packed_size);
    memset(large + packed_size, 0, sizeof large - packed_size);
    large[sizeof large - 1] = 0x7f;
    char *path = bel_test_file(bel_test_own_folder(), "large.gz", large, sizeof large);
    bel_file_view view, again;
    BEL_ASSERT_OK(bel_file_view_open(path, &view));
    BEL_ASSERT_OK(bel_file_view_open(path, &again));
    assert_int_equal(count_files(), 1);
    assert_int_equal(view.size, LENGTH);
    assert_memory_equal(view.data, content, LENGTH);
    assert_string_equal(bel_file_view_at(view.data + LENGTH - 1), path);
    BEL_ASSERT_OK(bel_file_view_check(&view, path));
    bel_file_view_close(&again);
    unlink(path); // no longer needed
    BEL_ASSERT_OK(bel_file_view_check(&view, path));
    assert_memory_equal(view.data, content, LENGTH);
    bel_file_view_close(&view);
    assert_int_equal(count_files(), 0);
    bel_free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(test_one_for_all),
        IN_FOLDER(test_leftovers),
        IN_FOLDER(test_a_writer_that_stands_still),
        IN_FOLDER(test_a_writer_is_waited_for),
        IN_FOLDER(test_failures_leave_nothing),
        IN_FOLDER(test_folders_of_others),
        IN_FOLDER(test_many_processes),
        IN_FOLDER(test_a_view_of_a_large_file),
    };
    return cmocka_run_group_tests(tests, make_content, NULL);
}
