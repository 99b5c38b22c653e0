// Limits of control groups, read from folders that replace /proc and /sys.
#include "base/cgroup.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "support/bel_test.h"

static void put(const char *root, const char *folder, const char *name, const char *text)
{
    char *path = bel_path_join(root, folder);
    BEL_ASSERT_OK(bel_dir_create(path));
    bel_free(bel_test_file(path, name, text, strlen(text)));
    bel_free(path);
}

static void assert_limit(const char *root, uint64_t expected)
{
    assert_true(bel_cgroup_memory_limit(root) == expected);
}

static void test_none(void **state)
{
    (void)state;
    char *root = bel_test_folder();
    assert_limit(root, UINT64_MAX);
    put(root, "proc/self", "cgroup", "0::/a\n");
    put(root, "sys/fs/cgroup/a", "memory.max", "max\n");
    assert_limit(root, UINT64_MAX);
    bel_free(root);
}

// The smallest limit of a group and its parents counts. Groups that a container cannot see are
// skipped.
static void test_version_2(void **state)
{
    (void)state;
    char *root = bel_test_folder();
    put(root, "proc/self", "cgroup", "0::/a/b\n");
    put(root, "sys/fs/cgroup/a/b", "memory.max", "9000\n");
    assert_limit(root, 9000);
    put(root, "sys/fs/cgroup/a", "memory.max", "4000\n");
    assert_limit(root, 4000);
    put(root, "proc/self", "cgroup", "0::/of/the/host\n");
    put(root, "sys/fs/cgroup", "memory.max", "7000\n");
    assert_limit(root, 7000);
    bel_free(root);
}

static void test_version_1(void **state)
{
    (void)state;
    char *root = bel_test_folder();
    put(root, "proc/self", "cgroup", "3:cpu,cpuacct:/a\n9:memory:/a\n0::/\n");
    put(root, "sys/fs/cgroup/memory/a", "memory.limit_in_bytes", "5000\n");
    put(root, "sys/fs/cgroup/memory", "memory.limit_in_bytes", "9223372036854771712\n");
    assert_limit(root, 5000);
    bel_free(root);
}

static void test_threads(void **state)
{
    (void)state;
    char *root = bel_test_folder();
    put(root, "proc/self", "cgroup", "0::/a/b\n");
    put(root, "sys/fs/cgroup/a/b", "pids.max", "max\n");
    assert_true(bel_cgroup_thread_limit(root) == UINT64_MAX);
    put(root, "sys/fs/cgroup/a", "pids.max", "40\n");
    assert_true(bel_cgroup_thread_limit(root) == 40);
    bel_free(root);
}

static void assert_cores(const char *root, uint64_t expected)
{
    assert_true(bel_cgroup_core_limit(root) == expected);
}

// The quota of a parent group counts. A fraction of a core counts as one core.
static void test_cores_of_version_2(void **state)
{
    (void)state;
    char *root = bel_test_folder();
    assert_cores(root, UINT64_MAX);
    put(root, "proc/self", "cgroup", "0::/a/b\n");
    put(root, "sys/fs/cgroup/a/b", "cpu.max", "max 100000\n");
    assert_cores(root, UINT64_MAX);
    put(root, "sys/fs/cgroup/a", "cpu.max", "250000 100000\n");
    assert_cores(root, 3);
    put(root, "sys/fs/cgroup/a/b", "cpu.max", "20000 10000\n");
    assert_cores(root, 2);
    bel_free(root);
}

// The controller's name is exactly "cpu", not a name that begins with it.
static void test_cores_of_version_1(void **state)
{
    (void)state;
    char *root = bel_test_folder();
    put(root, "proc/self", "cgroup", "2:cpuset:/b\n3:cpuacct,cpu:/a\n0::/\n");
    put(root, "sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "-1\n");
    put(root, "sys/fs/cgroup/cpu", "cpu.cfs_period_us", "100000\n");
    put(root, "sys/fs/cgroup/cpu/b", "cpu.cfs_quota_us", "100000\n");
    put(root, "sys/fs/cgroup/cpu/b", "cpu.cfs_period_us", "100000\n");
    assert_cores(root, UINT64_MAX);
    put(root, "sys/fs/cgroup/cpu/a", "cpu.cfs_quota_us", "150000\n");
    put(root, "sys/fs/cgroup/cpu/a", "cpu.cfs_period_us", "50000\n");
    assert_cores(root, 3);
    bel_free(root);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_version_2),
        cmocka_unit_test(test_version_1),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_cores_of_version_2),
        cmocka_unit_test(test_cores_of_version_1),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
