// The file of a table's rows: a full disk, rows that are damaged or gone, and how large it gets.
// The bits of tables on disk are tested by the programs *_on_disk.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fault.h"
#include "ps/table/table_file.h"
#include "unit/ps/test_table_fixture.h"

enum { KEYS = 6000, NAMED = 700, MEMORY = 64 << 10 };

static bel_table *make_disk(const bel_table_config *from, const char *folder)
{
    bel_table_config config = *from;
    config.memory_limit = MEMORY;
    config.disk_folder = folder;
    return make_table(&config);
}

static void update_range(bel_table *table, const bel_optimizer *optimizer, int64_t step,
                         int64_t first, int64_t n)
{
    static int64_t keys[KEYS];
    for (int64_t i = 0; i < n; i++)
        keys[i] = first + i;
    update_rows(table, NULL, optimizer, step, keys, n);
}

// The descriptor of the file without a name in a folder.
static int find_file(const char *folder)
{
    char name[64], path[4096];
    for (int file = 3; file < 256; file++) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", file);
        ssize_t length = readlink(name, path, sizeof path - 1);
        if (length <= 0) continue;
        path[length] = 0;
        if (strstr(path, folder) != NULL && strstr(path, " (deleted)") != NULL) return file;
    }
    fail_msg("no file of rows in %s", folder);
    return -1;
}

static bel_status *pull_all(const bel_table *table)
{
    static int64_t keys[KEYS];
    static float rows[KEYS * WIDTH];
    for (int64_t i = 0; i < KEYS; i++)
        keys[i] = i;
    return bel_table_pull_places(table, keys, KEYS, rows, NULL);
}

static void test_full_disk(void **state)
{
    (void)state;
    static int64_t keys[KEYS];
    static float sums[KEYS * WIDTH];
    const char *folder = bel_test_own_folder();
    bel_table_config config = make_config(BEL_OPTIMIZER_ADAGRAD);
    bel_rule_step rule = bel_rule_begin(&config.optimizer, 0);
    bel_table *table = make_disk(&config, folder);
    for (int64_t i = 0; i < KEYS; i++)
        keys[i] = i;
    bel_fault_set("write:2");
    BEL_ASSERT_FAILS(bel_table_update(table, NULL, &rule, 0, keys, NULL, sums, 1, KEYS),
                     BEL_RESOURCE_EXHAUSTED, "cannot write the file of rows in");
    static const char of_no_use[] = "is of no use since an error of its file";
    BEL_ASSERT_FAILS(bel_table_update(table, NULL, &rule, 0, keys, NULL, sums, 1, KEYS),
                     BEL_FAILED_PRECONDITION, of_no_use);
    BEL_ASSERT_FAILS(pull_all(table), BEL_FAILED_PRECONDITION, of_no_use);
    BEL_ASSERT_FAILS(bel_table_snapshot(table), BEL_FAILED_PRECONDITION, of_no_use);
    BEL_ASSERT_OK(bel_table_clear(table));
    BEL_ASSERT_OK(bel_table_update(table, NULL, &rule, 0, keys, NULL, sums, 1, KEYS));
    BEL_ASSERT_OK(pull_all(table));
    bel_table_destroy(table);
}

static void test_damage(void **state)
{
    (void)state;
    const char *folder = bel_test_own_folder();
    bel_table_config config = make_config(BEL_OPTIMIZER_ADAGRAD);
    bel_table *table = make_disk(&config, folder);
    update_range(table, &config.optimizer, 0, 0, KEYS);
    BEL_ASSERT_OK(pull_all(table));
    int file = find_file(folder);
    char byte;
    assert_int_equal(pread(file, &byte, 1, 100), 1);
    byte ^= 4;
    assert_int_equal(pwrite(file, &byte, 1, 100), 1);
    BEL_ASSERT_FAILS(pull_all(table), BEL_DATA_LOSS, "has another record at byte");
    BEL_ASSERT_OK(bel_table_snapshot(table));
    content read = make_content(KEYS);
    BEL_ASSERT_FAILS(bel_table_snapshot_range(table, 0, KEYS, read.keys, read.rows, NULL),
                     BEL_DATA_LOSS, "has another record at byte");
    assert_int_equal(ftruncate(file, 1000), 0);
    BEL_ASSERT_FAILS(pull_all(table), BEL_DATA_LOSS, "ends at byte");
    BEL_ASSERT_FAILS(bel_table_snapshot_range(table, 0, KEYS, read.keys, read.rows, NULL),
                     BEL_DATA_LOSS, "ends at byte");
    free_content(&read);
    bel_table_snapshot_end(table);
    bel_table_destroy(table);
}

static void test_no_folder(void **state)
{
    (void)state;
    bel_table_config config = make_config(BEL_OPTIMIZER_ADAGRAD);
    bel_table *table;
    config.memory_limit = MEMORY;
    config.disk_folder = "none/here";
    BEL_ASSERT_FAILS(bel_table_create(&config, &table), BEL_NOT_FOUND,
                     "cannot create a file of rows (table_disk) in none/here");
    config.disk_folder = ".";
    config.memory_limit = 200;
    BEL_ASSERT_FAILS(bel_table_create(&config, &table), BEL_RESOURCE_EXHAUSTED,
                     "200 bytes hold 2 rows of 80 bytes, expected room for 4 or more");
}

enum { PLACES = 4400, HELD = 3300, CELL_FLOATS = 8 };

static uint32_t cell_of[HELD];

static bool is_at(void *context, uint32_t row, uint32_t cell)
{
    (void)context;
    return cell_of[row] == cell;
}

static void moved(void *context, uint32_t row, uint32_t cell)
{
    (void)context;
    cell_of[row] = cell;
}

// Three of four cells have a record: holes are filled before the file is full.
static void test_limit(void **state)
{
    (void)state;
    enum { ROUNDS = 5000, AGAIN = 8 };
    static float record[CELL_FLOATS];
    const float *const records[] = {record};
    const bel_table_file_owner owner = {.is_at = is_at, .moved = moved};
    bel_table_file *file;
    BEL_ASSERT_OK(bel_table_file_create(bel_test_own_folder(), sizeof record, 400, PLACES, &file));
    for (uint32_t row = 0; row < HELD; row++)
        BEL_ASSERT_OK(bel_table_file_append(file, &row, records, 1, &cell_of[row]));
    uint64_t random = 1;
    for (int k = 0; k < ROUNDS; k++) {
        BEL_ASSERT_OK(bel_table_file_tidy(file, &owner));
        for (int again = 0; again < AGAIN; again++) {
            random = random * UINT64_C(6364136223846793005) + 1;
            uint32_t row = (uint32_t)(random >> 33) % HELD;
            bel_table_file_drop(file, cell_of[row]);
            BEL_ASSERT_OK(bel_table_file_append(file, &row, records, 1, &cell_of[row]));
        }
    }
    assert_int_equal(bel_table_file_count(file), HELD);
    bel_status *status = NULL;
    for (uint32_t row = 0, cell; status == NULL; row = (row + 1) % HELD)
        status = bel_table_file_append(file, &row, records, 1, &cell);
    BEL_ASSERT_FAILS(status, BEL_RESOURCE_EXHAUSTED, "it has 4400 places, few of which are free");
    bel_table_file_destroy(file);
}

// The file has at most twice the cells of its records, and some segments. Cleared, it has none.
static void test_size(void **state)
{
    (void)state;
    enum { STEPS = 300, CELL = 2 * WIDTH * 4 + 8, SEGMENTS = 6 };
    bel_table_config config = make_config(BEL_OPTIMIZER_ADAGRAD);
    bel_table *table = make_disk(&config, bel_test_own_folder()), *plain = make_table(&config);
    for (int64_t step = 0; step < STEPS; step++) {
        static int64_t keys[NAMED];
        make_keys(step, 10 * NAMED, false, keys, NAMED);
        update_rows(table, NULL, &config.optimizer, step, keys, NAMED);
        update_rows(plain, NULL, &config.optimizer, step, keys, NAMED);
        bel_table_tally tally = bel_table_count_all(table);
        assert_true(tally.rows - tally.in_file <= MEMORY / (2 * WIDTH * 4));
        assert_true(tally.file_bytes <= 2 * tally.in_file * CELL + SEGMENTS * (257 << 10));
    }
    content a = read_table(table), b = read_table(plain);
    assert_same(&a, &b);
    free_content(&a);
    free_content(&b);
    BEL_ASSERT_OK(bel_table_clear(table));
    assert_int_equal(bel_table_count_all(table).file_bytes, 0);
    update_range(table, &config.optimizer, 0, 0, KEYS);
    BEL_ASSERT_OK(bel_table_clear(plain));
    update_range(plain, &config.optimizer, 0, 0, KEYS);
    a = read_table(table);
    b = read_table(plain);
    assert_same(&a, &b);
    free_content(&a);
    free_content(&b);
    bel_table_destroy(table);
    bel_table_destroy(plain);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        BEL_TEST_IN_FOLDER(test_full_disk), BEL_TEST_IN_FOLDER(test_damage),
        cmocka_unit_test(test_no_folder),   BEL_TEST_IN_FOLDER(test_size),
        BEL_TEST_IN_FOLDER(test_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
