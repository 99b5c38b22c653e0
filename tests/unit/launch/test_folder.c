// The lock of a model folder over processes and renames, and the count of starts in it.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/linux_lock.h"
#include "launch/folder_lock.h"
#include "launch/start_count.h"
#include "support/bel_test.h"

static int asked;

static bool stop_at_third(void)
{
    return ++asked >= 3;
}

static bool never(void)
{
    return false;
}

// A master keeps what it was given: the folder is locked until both are through.
static void test_given(void **state)
{
    (void)state;
    char *folder = bel_test_folder();
    int supervisors = -1, masters = -1, another = -1;
    BEL_ASSERT_OK(bel_folder_lock(folder, &supervisors));
    int given = dup(supervisors);
    BEL_ASSERT_OK(bel_folder_lock_of_master(folder, given, 0, never, &masters));
    assert_int_equal(masters, given);
    assert_int_not_equal(fcntl(masters, F_GETFD) & FD_CLOEXEC, 0);
    bel_linux_unlock(supervisors);
    BEL_ASSERT_FAILS(bel_folder_lock(folder, &another), BEL_FAILED_PRECONDITION, "another run");
    bel_linux_unlock(masters);
    BEL_ASSERT_OK(bel_folder_lock(folder, &another));
    bel_linux_unlock(another);
    bel_free(folder);
}

// A descriptor of something else, or none: it takes the lock itself, and waits for it.
static void test_own(void **state)
{
    (void)state;
    char *folder = bel_test_folder();
    int mine = -1, another = -1, stray = open("/dev/null", O_RDONLY);
    BEL_ASSERT_OK(bel_folder_lock_of_master(folder, stray, 0, never, &mine));
    assert_int_not_equal(mine, stray);
    BEL_ASSERT_FAILS(bel_folder_lock_of_master(folder, 0, 0, never, &another),
                     BEL_FAILED_PRECONDITION, "another run");
    asked = 0;
    BEL_ASSERT_FAILS(bel_folder_lock_of_master(folder, 0, 1000, stop_at_third, &another),
                     BEL_FAILED_PRECONDITION, "another run");
    assert_int_equal(asked, 3);
    bel_linux_unlock(mine);
    BEL_ASSERT_OK(bel_folder_lock_of_master(folder, 0, 0, never, &another));
    bel_linux_unlock(another);
    close(stray);
    bel_free(folder);
}

static void test_renamed(void **state)
{
    (void)state;
    char *base = bel_test_folder(), *folder = bel_path_join(base, "run");
    char *moved = bel_path_join(base, "moved");
    int lock = -1;
    BEL_ASSERT_OK(bel_folder_lock_check(folder, -1)); // a file system without locks
    BEL_ASSERT_OK(bel_folder_lock(folder, &lock));
    BEL_ASSERT_OK(bel_folder_lock_check(folder, lock));
    assert_int_equal(rename(folder, moved), 0);
    BEL_ASSERT_FAILS(bel_folder_lock_check(folder, lock), BEL_ABORTED, "renamed or removed");
    BEL_ASSERT_OK(bel_dir_create(folder)); // another one in its place
    BEL_ASSERT_FAILS(bel_folder_lock_check(folder, lock), BEL_ABORTED, "renamed or removed");
    bel_linux_unlock(lock);
    bel_free(moved);
    bel_free(folder);
    bel_free(base);
}

// Each role by itself, and always upwards.
static void test_starts(void **state)
{
    (void)state;
    char *folder = bel_test_folder();
    uint32_t count;
    for (uint32_t i = 1; i <= 3; i++) {
        BEL_ASSERT_OK(bel_start_count(folder, BEL_ROLE_WORKER, 1, &count));
        assert_int_equal(count, i);
    }
    BEL_ASSERT_OK(bel_start_count(folder, BEL_ROLE_WORKER, 2, &count));
    assert_int_equal(count, 1);
    BEL_ASSERT_OK(bel_start_count(folder, BEL_ROLE_PS, 1, &count));
    assert_int_equal(count, 1);
    bel_free(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_given),
        cmocka_unit_test(test_own),
        cmocka_unit_test(test_renamed),
        cmocka_unit_test(test_starts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
