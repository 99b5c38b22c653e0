// Checkpoints of a model folder: failed and killed saves, replacement, retention, and the choice of
// the latest.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/hash.h"
#include "base/str.h"
#include "checkpoint/share.h"
#include "unit/checkpoint/test_fixture.h"

typedef struct fixture {
    char *folder;
    model old, new;
    bel_hash128 digest;
} fixture;

static int setup(void **state)
{
    fixture *made = bel_xcalloc(1, sizeof *made);
    made->folder = bel_test_folder();
    model_init(&made->old, 0);
    model_init(&made->new, 1);
    *state = made;
    return 0;
}

static int teardown(void **state)
{
    fixture *used = *state;
    bel_fault_set("");
    bel_test_remove_folder(used->folder);
    model_deinit(&used->old);
    model_deinit(&used->new);
    bel_free(used);
    return 0;
}

static void assert_latest(const fixture *used, const model *expected, int64_t step)
{
    bel_ckpt_reader *reader;
    BEL_ASSERT_OK(bel_ckpt_open_latest(used->folder, &reader));
    assert_non_null(reader);
    assert_holds(reader, expected, step);
    BEL_ASSERT_OK(bel_ckpt_verify(reader));
    bel_ckpt_close(reader);
}

// Names in the folder, joined by spaces; free with bel_free.
static char *listing(const char *folder)
{
    char **names;
    size_t count;
    bel_str text = {0};
    BEL_ASSERT_OK(bel_dir_list(folder, &names, &count));
    bel_str_puts(&text, "");
    for (size_t i = 0; i < count; i++) {
        bel_str_printf(&text, "%s%s", i > 0 ? " " : "", names[i]);
        bel_free(names[i]);
    }
    bel_free(names);
    return text.text;
}

static void assert_listing(const char *folder, const char *expected)
{
    char *got = listing(folder);
    assert_string_equal(got, expected);
    bel_free(got);
}

static void damage_manifest(const char *folder, const char *checkpoint)
{
    char *path = bel_strf("%s/%s", folder, checkpoint);
    bel_free(bel_test_file(path, "manifest.json", "garbage", 7));
    bel_free(path);
}

// --- Failed and killed saves --------------------------------------------------------------------

static void test_every_failed_write_is_reported_and_harms_nothing(void **state)
{
    fixture *used = *state;
    BEL_ASSERT_OK(model_save(&used->old, used->folder, 10, 2, &used->digest));
    int failed = 0;
    for (bool saved = false; !saved; failed++) {
        char fault[32];
        snprintf(fault, sizeof fault, "write:%d", failed + 1);
        bel_fault_set(fault);
        bel_status *status = model_save(&used->new, used->folder, 20, 3, &used->digest);
        bel_fault_set("");
        saved = status == NULL;
        if (saved) break;
        BEL_ASSERT_FAILS(status, BEL_RESOURCE_EXHAUSTED, used->folder);
        assert_latest(used, &used->old, 10);
    }
    assert_true(failed > 10); // writes of lengths, headers, tensors and the manifest failed
    assert_latest(used, &used->new, 20);
    assert_listing(used->folder, "ckpt-00000010 ckpt-00000020");
}

// Saves in a child process that is killed at a named point.
static void save_and_die(fixture *used, const model *saved, int64_t step, const char *point)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char *fault = bel_strf("crash:%s", point);
        bel_fault_set(fault);
        bel_status_ignore(model_save(saved, used->folder, step, 2, &used->digest)); // killed inside
        _exit(0);
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFSIGNALED(result) && WTERMSIG(result) == SIGKILL);
}

static void test_a_killed_save_leaves_the_one_before(void **state)
{
    fixture *used = *state;
    BEL_ASSERT_OK(model_save(&used->old, used->folder, 10, 2, &used->digest));
    save_and_die(used, &used->new, 20, "checkpoint_shard_written");
    assert_latest(used, &used->old, 10);
    save_and_die(used, &used->new, 20, "checkpoint_before_rename");
    assert_latest(used, &used->old, 10);
    assert_listing(used->folder, "ckpt-00000010 ckpt-00000020.tmp-g2-i1");
    save_and_die(used, &used->new, 20, "checkpoint_after_rename");
    assert_latest(used, &used->new, 20);
}

static void test_a_killed_replacement_leaves_the_replaced_one(void **state)
{
    fixture *used = *state;
    int64_t *steps;
    size_t count;
    BEL_ASSERT_OK(model_save(&used->old, used->folder, 10, 2, &used->digest));
    save_and_die(used, &used->new, 10, "checkpoint_before_rename");
    assert_latest(used, &used->old, 10);
    BEL_ASSERT_OK(bel_ckpt_list(used->folder, &steps, &count));
    assert_int_equal(count, 1);
    assert_int_equal(steps[0], 10);
    bel_free(steps);
    save_and_die(used, &used->new, 10, "checkpoint_before_rename"); // the second save too
    assert_latest(used, &used->old, 10);
    save_and_die(used, &used->new, 10, "checkpoint_after_rename");
    assert_latest(used, &used->new, 10);
    BEL_ASSERT_OK(model_save(&used->old, used->folder, 11, 1, &used->digest));
    assert_listing(used->folder, "ckpt-00000010 ckpt-00000011");
}

static void test_a_save_replaces_the_same_step(void **state)
{
    fixture *used = *state;
    BEL_ASSERT_OK(model_save(&used->old, used->folder, 10, 3, &used->digest));
    BEL_ASSERT_OK(model_save(&used->new, used->folder, 10, 1, &used->digest));
    assert_latest(used, &used->new, 10);
    assert_listing(used->folder, "ckpt-00000010");
    assert_listing(used->folder, "ckpt-00000010");
}

static void test_begin_removes_what_ended_runs_left(void **state)
{
    fixture *used = *state;
    static const char *const names[] = {
        "ckpt-00000001.tmp-g1-i1", // from an older master
        "ckpt-00000002.tmp-g2-i3", // from a failed save of this master
        "ckpt-00000003.tmp-g3-i0", // from a younger master: stays
        "ckpt-00000004.tmp-g0-i4", // from an older generation: goes
        "ckpt-00000005.removed",
        "ckpt-00000006.replaced", // the only one of step 6: stays
        "ckpt-00000007.tmp-g1",   // not a name of ours: stays
        "ckpt-8.tmp-g1-i1",       // not a name of ours: stays
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *path = bel_path_join(used->folder, names[i]);
        BEL_ASSERT_OK(bel_dir_create(path));
        bel_free(bel_test_file(path, "part", "x", 1));
        bel_free(path);
    }
    char *folder;
    BEL_ASSERT_OK(bel_ckpt_begin(used->folder, 9, 2, 3, &folder));
    assert_listing(used->folder, "ckpt-00000003.tmp-g3-i0 "
                                 "ckpt-00000006.replaced ckpt-00000007.tmp-g1 "
                                 "ckpt-00000009.tmp-g2-i3 ckpt-8.tmp-g1-i1");
    bel_free(bel_test_file(folder, "part", "x", 1));
    bel_free(folder);
    BEL_ASSERT_OK(bel_ckpt_begin(used->folder, 9, 2, 3, &folder));
    assert_listing(folder, ""); // the folder exists and is empty
    bel_free(folder);
    BEL_ASSERT_FAILS(bel_ckpt_begin(used->folder, -1, 0, 0, &folder), BEL_INVALID_ARGUMENT, "-1");
}

// --- Listing and the latest ---------------------------------------------------------------------

static void test_list_knows_checkpoints_from_other_names(void **state)
{
    fixture *used = *state;
    static const char *const names[] = {
        "ckpt-123456789", "ckpt-00000020",
        "ckpt-00000003",  "ckpt-20",
        "ckpt-0000002x",  "eval",
        "ckpt-",          "ckpt-99999999999999999999",
        "xckpt-00000001", "ckpt-00000004.tmp-g0-i0",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char *path = bel_path_join(used->folder, names[i]);
        BEL_ASSERT_OK(bel_dir_create(path));
        bel_free(path);
    }
    int64_t *steps;
    size_t count;
    BEL_ASSERT_OK(bel_ckpt_list(used->folder, &steps, &count));
    assert_int_equal(count, 3);
    assert_int_equal(steps[0], 3);
    assert_int_equal(steps[1], 20);
    assert_int_equal(steps[2], 123456789);
    bel_free(steps);
}

static void test_latest_of_nothing_is_nothing(void **state)
{
    fixture *used = *state;
    bel_ckpt_reader *reader = (bel_ckpt_reader *)used; // not NULL, so that the call must set it
    BEL_ASSERT_OK(bel_ckpt_open_latest(used->folder, &reader));
    assert_null(reader);
    char *missing = bel_path_join(used->folder, "missing");
    reader = (bel_ckpt_reader *)used;
    BEL_ASSERT_OK(bel_ckpt_open_latest(missing, &reader));
    assert_null(reader);
    bel_free(missing);
}

static void test_latest_passes_over_bad_ones(void **state)
{
    fixture *used = *state;
    bel_ckpt_reader *reader;
    BEL_ASSERT_OK(model_save(&used->old, used->folder, 10, 2, &used->digest));
    BEL_ASSERT_OK(model_save(&used->new, used->folder, 20, 2, &used->digest));
    BEL_ASSERT_OK(model_save(&used->new, used->folder, 30, 2, &used->digest));
    damage_manifest(used->folder, "ckpt-00000030");
    assert_latest(used, &used->new, 20);
    char *shard = bel_strf("%s/ckpt-00000020/shard-00001-of-00002.safetensors", used->folder);
    BEL_ASSERT_OK(bel_dir_remove(shard));
    bel_free(shard);
    assert_latest(used, &used->old, 10);
    damage_manifest(used->folder, "ckpt-00000010");
    BEL_ASSERT_FAILS(bel_ckpt_open_latest(used->folder, &reader), BEL_DATA_LOSS,
                     "no good checkpoint among the 3");
    BEL_ASSERT_FAILS(bel_ckpt_open_latest(used->folder, &reader), BEL_DATA_LOSS,
                     "/ckpt-00000030/manifest.json: expected a checksum");
}

static void test_latest_does_not_go_back_for_a_later_format(void **state)
{
    fixture *used = *state;
    static const char body[] = "{\"format\": \"belfry-checkpoint\", \"format_version\": 4,\n";
    bel_ckpt_reader *reader;
    BEL_ASSERT_OK(model_save(&used->old, used->folder, 10, 2, &used->digest));
    BEL_ASSERT_OK(model_save(&used->new, used->folder, 20, 2, &used->digest));
    char *path = bel_path_join(used->folder, "ckpt-00000020");
    char *text =
        bel_strf("%s  \"crc32c\": \"%08x\"\n}\n", body, bel_crc32c(0, body, sizeof body - 1));
    bel_free(bel_test_file(path, "manifest.json", text, strlen(text)));
    BEL_ASSERT_FAILS(bel_ckpt_open_latest(used->folder, &reader), BEL_UNIMPLEMENTED,
                     "reads checkpoints up to format 3, got format 4");
    bel_free(text);
    bel_free(path);
}

// A copy under a later step's name would be the newest forever.
static void test_a_copy_under_another_step_is_refused(void **state)
{
    fixture *used = *state;
    bel_ckpt_reader *reader;
    BEL_ASSERT_OK(model_save(&used->old, used->folder, 10, 2, &used->digest));
    BEL_ASSERT_OK(model_save(&used->new, used->folder, 20, 2, &used->digest));
    char *from = bel_path_join(used->folder, "ckpt-00000010");
    char *to = bel_path_join(used->folder, "ckpt-00009999");
    char *other = bel_path_join(used->folder, "backup");
    BEL_ASSERT_OK(bel_ckpt_share_folder(from, to));
    BEL_ASSERT_FAILS(bel_ckpt_open_latest(used->folder, &reader), BEL_FAILED_PRECONDITION,
                     "ckpt-00009999: expected the checkpoint of step 9999, got that of step 10");
    BEL_ASSERT_OK(bel_file_rename(to, other)); // a name without a step
    assert_latest(used, &used->new, 20);
    BEL_ASSERT_OK(bel_ckpt_open(other, &reader));
    bel_ckpt_close(reader);
    bel_free(from);
    bel_free(to);
    bel_free(other);
}

// --- Retention ----------------------------------------------------------------------------------

static void test_retention_keeps_the_newest(void **state)
{
    fixture *used = *state;
    for (int64_t step = 1; step <= 5; step++)
        BEL_ASSERT_OK(model_save(&used->old, used->folder, step, 1, &used->digest));
    bel_ckpt_retain(used->folder, 0, 0, -1); // keeps all
    bel_ckpt_retain(used->folder, 5, 0, -1);
    assert_listing(used->folder,
                   "ckpt-00000001 ckpt-00000002 ckpt-00000003 ckpt-00000004 ckpt-00000005");
    bel_ckpt_retain(used->folder, 2, 0, -1);
    assert_listing(used->folder, "ckpt-00000004 ckpt-00000005");
    bel_ckpt_retain(used->folder, 1, 0, -1);
    assert_listing(used->folder, "ckpt-00000005");
    assert_latest(used, &used->old, 5);
}

// Saves `count` checkpoints, every 30 minutes according to their manifests.
static void save_every_half_hour(fixture *used, int64_t count)
{
    for (int64_t step = 1; step <= count; step++) {
        BEL_ASSERT_OK(model_save(&used->old, used->folder, step, 1, &used->digest));
        char *path = bel_strf("%s/ckpt-%08lld/manifest.json", used->folder, (long long)step);
        struct timespec times[2] = {{.tv_sec = 1000000000 + step * 1800},
                                    {.tv_sec = 1000000000 + step * 1800}};
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
        bel_free(path);
    }
}

static void test_retention_keeps_one_in_n_hours(void **state)
{
    fixture *used = *state;
    save_every_half_hour(used, 8);
    bel_ckpt_retain(used->folder, 2, 1.0, -1);
    assert_listing(used->folder,
                   "ckpt-00000001 ckpt-00000003 ckpt-00000005 ckpt-00000007 ckpt-00000008");
    bel_ckpt_retain(used->folder, 1, 1.0, -1); // a second call keeps the same ones
    assert_listing(used->folder,
                   "ckpt-00000001 ckpt-00000003 ckpt-00000005 ckpt-00000007 ckpt-00000008");
    bel_ckpt_retain(used->folder, 1, 2.0, -1);
    assert_listing(used->folder, "ckpt-00000001 ckpt-00000005 ckpt-00000008");
}

static void test_a_reader_outlives_the_removal(void **state)
{
    fixture *used = *state;
    bel_ckpt_reader *reader;
    BEL_ASSERT_OK(model_save(&used->old, used->folder, 1, 2, &used->digest));
    BEL_ASSERT_OK(bel_ckpt_open_latest(used->folder, &reader));
    BEL_ASSERT_OK(model_save(&used->new, used->folder, 2, 2, &used->digest));
    bel_ckpt_retain(used->folder, 1, 0, -1);
    assert_listing(used->folder, "ckpt-00000002");
    assert_holds(reader, &used->old, 1);
    bel_ckpt_close(reader);
}

// A reader follows the folder while another process saves and removes, like an evaluator.
static void test_readers_of_a_busy_folder_always_find_one(void **state)
{
    enum { SAVES = 150 };
    fixture *used = *state;
    BEL_ASSERT_OK(model_save(&used->old, used->folder, 1, MAX_SHARDS, &used->digest));
    pid_t child = fork();
    assert_true(child >= 0);
    for (int64_t step = 2; child == 0 && step <= SAVES; step++) {
        if (model_save(&used->old, used->folder, step, MAX_SHARDS, &used->digest) != NULL) _exit(1);
        bel_ckpt_retain(used->folder, 1, 0, -1);
    }
    if (child == 0) _exit(0);
    int end = 0;
    while (waitpid(child, &end, WNOHANG) == 0) {
        bel_ckpt_reader *reader;
        BEL_ASSERT_OK(bel_ckpt_open_latest(used->folder, &reader));
        assert_non_null(reader);
        bel_ckpt_close(reader);
    }
    assert_true(WIFEXITED(end) && WEXITSTATUS(end) == 0);
    assert_latest(used, &used->old, SAVES);
}

// An old checkpoint that cannot be removed because its folder is not writable. root may write
// everywhere, so this process becomes another user for the removal.
static void test_what_cannot_be_removed_stays(void **state)
{
    enum { NOBODY = 65534 };
    fixture *used = *state;
    char *folder, *path = bel_path_join(used->folder, "ckpt-00000001");
    bool root = geteuid() == 0;
    BEL_ASSERT_OK(model_save(&used->old, used->folder, 1, 1, &used->digest));
    assert_int_equal(chmod(path, 0555), 0);
    if (root) assert_int_equal(chown(used->folder, NOBODY, NOBODY), 0);
    if (root) assert_int_equal(chown(path, NOBODY, NOBODY), 0);
    if (root) assert_int_equal(seteuid(NOBODY), 0);
    BEL_ASSERT_OK(model_save(&used->old, used->folder, 2, 1, &used->digest));
    bel_ckpt_retain(used->folder, 1, 0, -1);
    char *after_one = listing(used->folder);
    BEL_ASSERT_OK(model_save(&used->old, used->folder, 3, 1, &used->digest));
    bel_ckpt_retain(used->folder, 1, 0, -1);
    BEL_ASSERT_OK(bel_ckpt_begin(used->folder, 4, 0, 0, &folder));
    BEL_ASSERT_OK(bel_dir_remove(folder));
    bel_free(folder);
    if (root) assert_int_equal(seteuid(0), 0);
    assert_string_equal(after_one, "ckpt-00000001.removed ckpt-00000002");
    assert_listing(used->folder, "ckpt-00000001.removed ckpt-00000003");
    char *removed = bel_strf("%s.removed", path);
    assert_int_equal(chmod(removed, 0755), 0);
    bel_free(removed);
    bel_free(after_one);
    bel_free(path);
}

// A step saved again is moved aside, although the name for it is taken by a folder that cannot be
// removed.
static void test_a_replaced_one_that_stays_is_no_obstacle(void **state)
{
    enum { NOBODY = 65534 };
    fixture *used = *state;
    char *replaced = bel_path_join(used->folder, "ckpt-00000001.replaced");
    bool root = geteuid() == 0;
    BEL_ASSERT_OK(model_save(&used->old, used->folder, 1, 1, &used->digest));
    BEL_ASSERT_OK(bel_dir_create(replaced));
    bel_free(bel_test_file(replaced, "file", "x", 1));
    assert_int_equal(chmod(replaced, 0555), 0);
    if (root) assert_int_equal(chown(used->folder, NOBODY, NOBODY), 0);
    if (root) assert_int_equal(chown(replaced, NOBODY, NOBODY), 0);
    char *path = bel_path_join(used->folder, "ckpt-00000001");
    if (root) assert_int_equal(chown(path, NOBODY, NOBODY), 0);
    if (root) assert_int_equal(seteuid(NOBODY), 0);
    bel_status *status = model_save(&used->new, used->folder, 1, 1, &used->digest);
    if (root) assert_int_equal(seteuid(0), 0);
    BEL_ASSERT_OK(status);
    assert_latest(used, &used->new, 1);
    char *names = listing(used->folder), *moved = strstr(names, ".replaced.removed");
    if (moved != NULL) { // removed as soon as that is possible
        char *stays = bel_strf("%s.removed1", replaced);
        assert_int_equal(chmod(stays, 0755), 0);
        bel_free(stays);
    }
    BEL_ASSERT_OK(model_save(&used->new, used->folder, 2, 1, &used->digest));
    assert_listing(used->folder, "ckpt-00000001 ckpt-00000002");
    bel_free(names);
    bel_free(path);
    bel_free(replaced);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_failed_write_is_reported_and_harms_nothing,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_killed_save_leaves_the_one_before, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_killed_replacement_leaves_the_replaced_one, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_save_replaces_the_same_step, setup, teardown),
        cmocka_unit_test_setup_teardown(test_begin_removes_what_ended_runs_left, setup, teardown),
        cmocka_unit_test_setup_teardown(test_list_knows_checkpoints_from_other_names, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_latest_of_nothing_is_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_latest_passes_over_bad_ones, setup, teardown),
        cmocka_unit_test_setup_teardown(test_latest_does_not_go_back_for_a_later_format, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_replaced_one_that_stays_is_no_obstacle, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_copy_under_another_step_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_retention_keeps_the_newest, setup, teardown),
        cmocka_unit_test_setup_teardown(test_retention_keeps_one_in_n_hours, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_reader_outlives_the_removal, setup, teardown),
        cmocka_unit_test_setup_teardown(test_readers_of_a_busy_folder_always_find_one, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_what_cannot_be_removed_stays, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
