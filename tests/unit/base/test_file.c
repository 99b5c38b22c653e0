// Files: complete reads, gzip and its damage, writers with sticky errors, atomic replacement,
// folders.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/linux_disk.h"
#include "base/linux_lock.h"
#include "support/bel_test.h"

static void check_content(const char *path, const char *expected)
{
    char *data;
    size_t size;
    BEL_ASSERT_OK(bel_file_read(path, &data, &size));
    assert_int_equal(size, strlen(expected));
    assert_string_equal(data, expected); // a zero byte follows the content
    bel_free(data);
}

static void test_read_errors(void **state)
{
    (void)state;
    char *folder = bel_test_folder(), *missing = bel_path_join(folder, "missing"), *data;
    size_t size;
    BEL_ASSERT_FAILS(bel_file_read(missing, &data, &size), BEL_NOT_FOUND, missing);
    BEL_ASSERT_FAILS(bel_file_read(folder, &data, &size), BEL_UNKNOWN, "Is a directory");
    bel_free(missing);
    bel_test_remove_folder(folder);
}

// Reads a file that holds only the first `size` bytes of a gzip file.
static bel_status *read_cut(const char *folder, const char *packed, size_t size)
{
    char *path = bel_test_file(folder, "cut.gz", packed, size), *data = NULL;
    size_t length;
    bel_status *status = bel_file_read(path, &data, &length);
    if (status == NULL) bel_free(data);
    bel_free(path);
    return status;
}

static void test_gzip(void **state)
{
    (void)state;
    char *folder = bel_test_folder(), *path = bel_path_join(folder, "rows.csv.gz");
    char text[5000];
    for (size_t i = 0; i < sizeof text - 1; i++)
        text[i] = (char)('a' + i * 7919 % 2003 % 26);
    text[sizeof text - 1] = '\0';
    gzFile file = gzopen(path, "wb");
    gzwrite(file, text, sizeof text - 1);
    gzclose(file);
    check_content(path, text);

    FILE *raw = fopen(path, "rb"); // bel_file_read would unpack it
    char packed[8192];
    size_t size = fread(packed, 1, sizeof packed, raw);
    fclose(raw);
    assert_true(size > 100 && size < sizeof packed);
    BEL_ASSERT_FAILS(read_cut(folder, packed, size / 2), BEL_DATA_LOSS, "truncated or corrupt");
    BEL_ASSERT_FAILS(read_cut(folder, packed, size - 1), BEL_DATA_LOSS, "cut.gz");
    packed[size - 6] ^= 1; // the stored checksum
    BEL_ASSERT_FAILS(read_cut(folder, packed, size), BEL_DATA_LOSS, "truncated or corrupt");
    bel_file_writer *writer;
    BEL_ASSERT_OK(bel_file_writer_open(path, &writer));
    bel_file_writer_abandon(writer);
    check_content(path, ""); // an empty file is not a damaged stream, whatever its name
    bel_free(path);
    bel_test_remove_folder(folder);
}

static void test_writer(void **state)
{
    (void)state;
    char *folder = bel_test_folder(), *path = bel_path_join(folder, "out");
    bel_file_writer *writer;
    uint64_t size = 77;
    uint32_t crc = 77;
    BEL_ASSERT_OK(bel_file_writer_open(path, &writer));
    bel_file_writer_write(writer, "12345", 5);
    bel_file_writer_write(writer, "6789", 4);
    BEL_ASSERT_OK(bel_file_writer_finish(writer, &size, &crc));
    assert_int_equal(size, 9);
    assert_int_equal(crc, 0xe3069283);
    check_content(path, "123456789");

    bel_fault_set("write:2");
    BEL_ASSERT_OK(bel_file_writer_open(path, &writer));
    for (int i = 0; i < 4; i++)
        bel_file_writer_write(writer, "abc", 3); // the second write fails, later ones do nothing
    size = 77;
    BEL_ASSERT_FAILS(bel_file_writer_finish(writer, &size, NULL), BEL_RESOURCE_EXHAUSTED, path);
    assert_int_equal(size, 77);
    bel_fault_set("");
    check_content(path, "abc");
    bel_free(path);
    bel_test_remove_folder(folder);
}

static void test_atomic(void **state)
{
    (void)state;
    char *folder = bel_test_folder(), *path = bel_test_file(folder, "settings", "old", 3);
    bel_fault_set("write:1");
    BEL_ASSERT_FAILS(bel_file_write_atomic(path, "new", 3), BEL_RESOURCE_EXHAUSTED, "settings");
    bel_fault_set("");
    check_content(path, "old"); // and no temporary file remains
    char **names;
    size_t count;
    BEL_ASSERT_OK(bel_dir_list(folder, &names, &count));
    assert_int_equal(count, 1);
    bel_free(names[0]);
    bel_free(names);
    BEL_ASSERT_OK(bel_file_write_atomic(path, "new", 3));
    check_content(path, "new");
    bel_free(path);
    bel_test_remove_folder(folder);
}

static void expect_content(const char *path, const char *expected)
{
    char *data;
    size_t size;
    BEL_ASSERT_OK(bel_file_read(path, &data, &size));
    assert_string_equal(data, expected);
    bel_free(data);
}

// Several processes write the same file at once. The file is always complete, and no other file
// remains.
static void test_writers_of_one_file(void **state)
{
    (void)state;
    char *folder = bel_test_folder(), *path = bel_path_join(folder, "board"), **names;
    bel_file_writer *a, *b, *c;
    size_t count;
    BEL_ASSERT_OK(bel_file_writer_open_beside(path, &a));
    BEL_ASSERT_OK(bel_file_writer_open_beside(path, &b));
    BEL_ASSERT_OK(bel_file_writer_open_beside(path, &c));
    bel_file_writer_write(a, "a longer one", 12);
    bel_file_writer_write(b, "short", 5);
    bel_file_writer_write(c, "never", 5);
    BEL_ASSERT_OK(bel_file_writer_finish(a, NULL, NULL));
    expect_content(path, "a longer one");
    BEL_ASSERT_OK(bel_file_writer_finish(b, NULL, NULL));
    bel_file_writer_abandon(c);
    expect_content(path, "short");
    BEL_ASSERT_OK(bel_dir_list(folder, &names, &count));
    assert_int_equal(count, 1);
    bel_free(names[0]);
    bel_free(names);
    bel_free(path);
    bel_test_remove_folder(folder);
}

static void test_folders(void **state)
{
    (void)state;
    char *folder = bel_test_folder(), *deep = bel_path_join(folder, "a/b/c"), **names;
    size_t count;
    BEL_ASSERT_OK(bel_dir_create(deep));
    BEL_ASSERT_OK(bel_dir_create(deep)); // an existing folder is no error
    BEL_ASSERT_OK(bel_dir_sync(deep));
    bel_free(bel_test_file(deep, "2", "", 0));
    bel_free(bel_test_file(deep, "10", "", 0));
    BEL_ASSERT_OK(bel_dir_list(deep, &names, &count));
    assert_int_equal(count, 2);
    assert_string_equal(names[0], "10"); // sorted by byte
    assert_string_equal(names[1], "2");
    for (size_t i = 0; i < count; i++)
        bel_free(names[i]);
    bel_free(names);
    char *file = bel_path_join(deep, "2"), *below = bel_path_join(file, "x");
    BEL_ASSERT_FAILS(bel_dir_create(below), BEL_INVALID_ARGUMENT, "a file is in the way");
    BEL_ASSERT_OK(bel_dir_remove(folder));
    assert_false(bel_file_exists(folder));
    BEL_ASSERT_OK(bel_dir_remove(folder)); // a missing folder is no error
    BEL_ASSERT_FAILS(bel_dir_list(folder, &names, &count), BEL_NOT_FOUND, folder);
    bel_free(file);
    bel_free(below);
    bel_free(deep);
    bel_free(folder);
}

static bel_code lock_elsewhere(const char *path, double timeout_secs)
{
    int how;
    pid_t child = fork();
    if (child == 0) {
        int lock;
        bel_status *status = bel_linux_lock(path, timeout_secs, &lock);
        _exit((int)bel_status_code(status));
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    return (bel_code)WEXITSTATUS(how);
}

static void test_cut_and_reserve(void **state)
{
    (void)state;
    enum { RESERVED = 1 << 20 };
    struct stat info;
    char *folder = bel_test_folder(), *path = bel_test_file(folder, "file", "0123456789", 10);
    int file = open(path, O_RDWR);
    assert_true(file >= 0);
    BEL_ASSERT_OK(bel_file_cut(path, file, 20)); // no longer than that
    BEL_ASSERT_OK(bel_file_cut(path, file, 4));
    BEL_ASSERT_OK(bel_linux_reserve(path, file, RESERVED));
    check_content(path, "0123");
    assert_int_equal(fstat(file, &info), 0);
    assert_int_equal(info.st_size, 4);
    BEL_ASSERT_FAILS(bel_linux_reserve(path, file, INT64_MAX / 2), BEL_RESOURCE_EXHAUSTED, path);
    close(file);
    BEL_ASSERT_FAILS(bel_file_cut(path, -1, 4), BEL_UNKNOWN, path);
    bel_free(path);
    bel_test_remove_folder(folder);
}

static void test_lock(void **state)
{
    (void)state;
    int lock;
    char *folder = bel_test_folder(), *path = bel_path_join(folder, "lock");
    BEL_ASSERT_OK(bel_linux_lock(path, 0, &lock));
    assert_int_equal(lock_elsewhere(path, 0.02), BEL_FAILED_PRECONDITION);
    bel_linux_unlock(lock);
    assert_int_equal(lock_elsewhere(path, 0), BEL_OK);
    BEL_ASSERT_OK(bel_linux_lock(path, 0, &lock)); // the process that held it exited
    bel_linux_unlock(lock);
    BEL_ASSERT_OK(bel_dir_remove(folder));
    BEL_ASSERT_FAILS(bel_linux_lock(path, 0, &lock), BEL_NOT_FOUND, path);
    bel_free(path);
    bel_free(folder);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_errors),
        cmocka_unit_test(test_gzip),
        cmocka_unit_test(test_writer),
        cmocka_unit_test(test_atomic),
        cmocka_unit_test(test_writers_of_one_file),
        cmocka_unit_test(test_folders),
        cmocka_unit_test(test_cut_and_reserve),
        cmocka_unit_test(test_lock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
