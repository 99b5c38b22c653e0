// Tables in checkpoints: the rows and the digest do not depend on the number of shards that wrote
// them. Includes damaged files and the worked example of docs/formats/checkpoint.md.
#include "base/hash.h"
#include "base/str.h"
#include "checkpoint/digest.h"
#include "checkpoint/manifest.h"
#include "checkpoint/table.h"
#include "checkpoint/table_rows.h"
#include "unit/checkpoint/test_fixture.h"

enum { ROWS = 10000, WIDTH = 3, COLUMNS = 2 };

static const char *const columns[COLUMNS] = {"values", "adagrad/accumulator"};
static const bel_ckpt_table info = {"deep", WIDTH, COLUMNS, columns};

// Rows i of the table with i % shards == shard; the key of row i is i * 7 - 9000.
typedef struct part {
    int64_t shards, shard;
    int64_t wrong_at, wrong_key; // this row of the part has wrong_key; -1: no row
} part;

static int64_t key_of(int64_t row)
{
    return row * 7 - 9000;
}

static float element(int64_t key, int column, int i)
{
    return (float)(key * 3 + column * 100 + i);
}

static int64_t part_count(const part *p)
{
    return (ROWS - p->shard + p->shards - 1) / p->shards;
}

static bel_status *read_part(void *context, int64_t first, int64_t n, int64_t *out_keys, int column,
                             float *out_floats)
{
    const part *p = context;
    for (int64_t i = 0; i < n; i++) {
        int64_t row = first + i;
        out_keys[i] = row == p->wrong_at ? p->wrong_key : key_of(row * p->shards + p->shard);
        for (int j = 0; out_floats != NULL && j < WIDTH; j++)
            out_floats[i * WIDTH + j] = element(out_keys[i], column, j);
    }
    return NULL;
}

static bel_ckpt_rows rows_of(const part *p)
{
    return (bel_ckpt_rows){.table = info,
                           .row_count = part_count(p),
                           .read = read_part,
                           .context = (void *)(uintptr_t)p};
}

// Writes a checkpoint of step 1 from the parts, with a tensor on shard 0.
static bel_status *save(const char *model_dir, const part *parts, int shards,
                        bel_hash128 *out_digest)
{
    static const float bias[2] = {1, -2};
    const bel_ckpt_piece piece = {"bias", BEL_DTYPE_F32, BEL_SHAPE(2), 0, 2, bias};
    bel_ckpt_shard *written[MAX_SHARDS] = {NULL};
    bel_ckpt_info about = fixture_info(1);
    char *folder = NULL;
    bel_status *status = bel_ckpt_begin(model_dir, 1, 2, 1, &folder);
    for (int s = 0; s < shards && status == NULL; s++) {
        bel_ckpt_rows rows = rows_of(&parts[s]);
        status =
            bel_ckpt_write_shard_tables(folder, s, shards, &piece, s == 0, &rows, 1, &written[s]);
    }
    if (status == NULL) {
        status = bel_ckpt_commit(model_dir, folder, &about, written, shards, out_digest);
    }
    for (int s = 0; s < shards; s++)
        bel_ckpt_shard_destroy(written[s]);
    bel_free(folder);
    return status;
}

static void make_parts(part *parts, int shards)
{
    for (int s = 0; s < shards; s++)
        parts[s] = (part){.shards = shards, .shard = s, .wrong_at = -1};
}

// --- Valid tables --------------------------------------------------------------------------------

typedef struct taken {
    int64_t count, modulus, rest; // wants the keys with key mod modulus == rest
} taken;

static bool wants(void *context, int64_t key)
{
    const taken *t = context;
    return (key + 7 * t->modulus * 9000) % t->modulus == t->rest;
}

static bel_status *take(void *context, int64_t n, const int64_t *keys, const float *const *got)
{
    taken *t = context;
    assert_true(n > 0);
    for (int64_t i = 0; i < n; i++) {
        assert_true(wants(t, keys[i]));
        for (int c = 0; c < COLUMNS; c++)
            for (int j = 0; j < WIDTH; j++)
                assert_true(got[c][i * WIDTH + j] == element(keys[i], c, j));
    }
    t->count += n;
    return NULL;
}

static void check_reader(const bel_ckpt_reader *reader)
{
    int64_t rows, total = 0;
    assert_int_equal(bel_ckpt_table_count(reader), 1);
    bel_ckpt_table got = bel_ckpt_table_at(reader, 0, &rows);
    assert_string_equal(got.name, "deep");
    assert_int_equal(rows, ROWS);
    assert_int_equal(got.width, WIDTH);
    assert_int_equal(got.column_count, COLUMNS);
    assert_string_equal(got.columns[1], columns[1]);
    for (int rest = 0; rest < 3; rest++) {
        taken t = {.modulus = 3, .rest = rest};
        BEL_ASSERT_OK(bel_ckpt_read_table(reader, &info, &(bel_ckpt_row_sink){wants, take, &t}));
        total += t.count;
    }
    assert_int_equal(total, ROWS);
    taken all = {.modulus = 1};
    BEL_ASSERT_OK(bel_ckpt_read_table(reader, &info, &(bel_ckpt_row_sink){NULL, take, &all}));
    assert_int_equal(all.count, ROWS);
    assert_int_equal(bel_ckpt_tensor_count(reader), 1); // a table does not count as a tensor
}

static void test_any_number_of_shards(void **state)
{
    (void)state;
    bel_hash128 first = {0};
    for (int shards = 1; shards <= MAX_SHARDS; shards++) {
        char *dir = bel_test_folder();
        part parts[MAX_SHARDS];
        make_parts(parts, shards);
        bel_hash128 digest;
        BEL_ASSERT_OK(save(dir, parts, shards, &digest));
        if (shards == 1) first = digest;
        assert_true(same_digest(first, digest));
        bel_ckpt_reader *reader;
        BEL_ASSERT_OK(bel_ckpt_open_latest(dir, &reader));
        BEL_ASSERT_OK(bel_ckpt_verify(reader));
        check_reader(reader);
        bel_ckpt_close(reader);
        bel_test_remove_folder(dir);
    }
}

// One bit of a row, a key, or a column's name changes the digest.
static void test_digest_sees_changes(void **state)
{
    (void)state;
    const float values[2] = {1, 2}, swapped[2] = {2, 1};
    const int64_t keys[2] = {1, 2}, moved[2] = {1, 3};
    bel_hash128 sum = {0}, other;
    bel_ckpt_hash_rows(keys, values, 1, 2, &sum);
    other = (bel_hash128){0};
    bel_ckpt_hash_rows(keys, swapped, 1, 2, &other);
    assert_false(same_digest(sum, other));
    other = (bel_hash128){0};
    bel_ckpt_hash_rows(moved, values, 1, 2, &other);
    assert_false(same_digest(sum, other));
    other = (bel_hash128){0}; // the same from parts in any order
    bel_ckpt_hash_rows(keys + 1, values + 1, 1, 1, &other);
    bel_ckpt_hash_rows(keys, values, 1, 1, &other);
    assert_true(same_digest(sum, other));
}

static bel_status *no_rows(void *context, int64_t first, int64_t n, int64_t *out_keys, int column,
                           float *out_floats)
{
    (void)context, (void)first, (void)n, (void)out_keys, (void)column, (void)out_floats;
    fail();
    return NULL;
}

static void test_empty_table(void **state)
{
    (void)state;
    char *dir = bel_test_folder(), *folder;
    bel_ckpt_rows rows = {.table = info, .read = no_rows};
    bel_ckpt_info about = fixture_info(1);
    bel_ckpt_shard *shard;
    bel_hash128 digest;
    BEL_ASSERT_OK(bel_ckpt_begin(dir, 1, 2, 1, &folder));
    BEL_ASSERT_OK(bel_ckpt_write_shard_tables(folder, 0, 1, NULL, 0, &rows, 1, &shard));
    BEL_ASSERT_OK(bel_ckpt_commit(dir, folder, &about, &shard, 1, &digest));
    bel_ckpt_reader *reader;
    BEL_ASSERT_OK(bel_ckpt_open_latest(dir, &reader));
    BEL_ASSERT_OK(bel_ckpt_verify(reader));
    taken t = {.modulus = 1};
    BEL_ASSERT_OK(bel_ckpt_read_table(reader, &info, &(bel_ckpt_row_sink){NULL, take, &t}));
    assert_int_equal(t.count, 0);
    bel_ckpt_close(reader);
    bel_ckpt_shard_destroy(shard);
    bel_free(folder);
    bel_test_remove_folder(dir);
}

// --- Refusals ------------------------------------------------------------------------------------

static void test_what_cannot_be_saved(void **state)
{
    (void)state;
    static const char *const twice[] = {"values", "values"}, *const keys[] = {"keys"};
    static const struct {
        bel_ckpt_table table;
        const char *part;
    } rows[] = {
        {{"", 1, 1, columns}, "its name is empty"},
        {{"a#b", 1, 1, columns}, "table \"a#b\": its name is empty or holds a \"#\""},
        {{"bias", 1, 1, columns}, "there is a tensor of its name"},
        {{"deep", 0, 1, columns}, "its width is out of range"},
        {{"deep", 1, 0, columns}, "it has no column"},
        {{"deep", 1, 2, twice}, "two columns have one name"},
        {{"deep", 1, 1, keys}, "a column's name is empty, \"keys\""},
    };
    static const float bias = 1;
    const bel_ckpt_piece piece = {"bias", BEL_DTYPE_F32, BEL_SHAPE(1), 0, 1, &bias};
    char *folder = bel_test_folder();
    bel_ckpt_shard *shard;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bel_ckpt_rows table = {.table = rows[i].table, .read = no_rows};
        BEL_ASSERT_FAILS(bel_ckpt_write_shard_tables(folder, 0, 1, &piece, 1, &table, 1, &shard),
                         BEL_INVALID_ARGUMENT, rows[i].part);
    }
    part unsorted = {.shards = 1, .wrong_at = 9000, .wrong_key = key_of(8999)};
    bel_ckpt_rows table = rows_of(&unsorted);
    BEL_ASSERT_FAILS(bel_ckpt_write_shard_tables(folder, 0, 1, NULL, 0, &table, 1, &shard),
                     BEL_INVALID_ARGUMENT, "row 9000: expected a key above 53993, got 53993");
    const bel_ckpt_rows both[] = {{.table = info, .read = no_rows},
                                  {.table = info, .read = no_rows}};
    BEL_ASSERT_FAILS(bel_ckpt_write_shard_tables(folder, 0, 1, NULL, 0, both, 2, &shard),
                     BEL_INVALID_ARGUMENT, "there is another one of its name");
    bel_test_remove_folder(folder);
}

// Shard 1 has no part of the table, or a part with another width.
static void test_shards_that_disagree(void **state)
{
    (void)state;
    static const char *const parts_of_error[] = {
        "table \"deep\": expected a part of each of the 2 shards, there is not one of shard 1",
        "shard 0 has rows of 2 times 3 floats, shard 1 of 1 times 3"};
    for (int round = 0; round < 2; round++) {
        char *dir = bel_test_folder(), *folder;
        bel_ckpt_info about = fixture_info(1);
        bel_ckpt_shard *shards[2];
        bel_hash128 digest;
        part parts[2];
        make_parts(parts, 2);
        bel_ckpt_rows rows[] = {rows_of(&parts[0]), rows_of(&parts[1])};
        rows[1].table.column_count = 1;
        BEL_ASSERT_OK(bel_ckpt_begin(dir, 1, 2, 1, &folder));
        for (int s = 0; s < 2; s++) {
            BEL_ASSERT_OK(bel_ckpt_write_shard_tables(folder, s, 2, NULL, 0, &rows[s],
                                                      s == 0 || round == 1, &shards[s]));
        }
        BEL_ASSERT_FAILS(bel_ckpt_commit(dir, folder, &about, shards, 2, &digest), BEL_INTERNAL,
                         parts_of_error[round]);
        for (int s = 0; s < 2; s++)
            bel_ckpt_shard_destroy(shards[s]);
        bel_free(folder);
        bel_test_remove_folder(dir);
    }
}

static void test_other_columns(void **state)
{
    (void)state;
    char *dir = bel_test_folder();
    part p;
    make_parts(&p, 1);
    bel_hash128 digest;
    BEL_ASSERT_OK(save(dir, &p, 1, &digest));
    bel_ckpt_reader *reader;
    BEL_ASSERT_OK(bel_ckpt_open_latest(dir, &reader));
    static const char *const adam[] = {"values", "adam/m", "adam/v"};
    taken t = {.modulus = 1};
    bel_ckpt_row_sink sink = {NULL, take, &t};
    BEL_ASSERT_FAILS(
        bel_ckpt_read_table(reader, &(bel_ckpt_table){"deep", WIDTH, 3, adam}, &sink),
        BEL_DATA_LOSS,
        "expected width 3, columns values, adam/m, adam/v; got width 3, columns values, adagrad/");
    BEL_ASSERT_FAILS(
        bel_ckpt_read_table(reader, &(bel_ckpt_table){"deep", 4, COLUMNS, columns}, &sink),
        BEL_DATA_LOSS, "expected width 4");
    BEL_ASSERT_FAILS(
        bel_ckpt_read_table(reader, &(bel_ckpt_table){"wide", WIDTH, COLUMNS, columns}, &sink),
        BEL_NOT_FOUND, "has no table \"wide\"");
    bel_ckpt_close(reader);
    bel_test_remove_folder(dir);
}

// --- Damaged -------------------------------------------------------------------------------------

// Changes `size` bytes of a file of checkpoint 1, at the last occurrence of `from`. The manifest's
// checksums follow, so that only the content is wrong.
static void forge(const char *dir, const char *name, const void *from, const void *to, size_t size)
{
    char *path = bel_strf("%s/ckpt-00000001/%s", dir, name);
    char *manifest = bel_strf("%s/ckpt-00000001/manifest.json", dir);
    char *bytes, *text;
    size_t length, text_length;
    BEL_ASSERT_OK(bel_file_read(path, &bytes, &length));
    BEL_ASSERT_OK(bel_file_read(manifest, &text, &text_length));
    char was[9], is[9];
    snprintf(was, sizeof was, "%08x", bel_crc32c(0, bytes, length));
    size_t at = length - size;
    while (memcmp(bytes + at, from, size) != 0) {
        assert_true(at > 0);
        at--;
    }
    memcpy(bytes + at, to, size);
    snprintf(is, sizeof is, "%08x", bel_crc32c(0, bytes, length));
    char *place = strstr(text, was);
    assert_non_null(place);
    memcpy(place, is, 8);
    char *seal = strstr(text, "  \"crc32c\": \"");
    assert_non_null(seal);
    snprintf(is, sizeof is, "%08x", bel_crc32c(0, text, (size_t)(seal - text)));
    memcpy(seal + strlen("  \"crc32c\": \""), is, 8);
    BEL_ASSERT_OK(bel_file_write_atomic(path, bytes, length));
    BEL_ASSERT_OK(bel_file_write_atomic(manifest, text, text_length));
    bel_free(bytes);
    bel_free(text);
    bel_free(path);
    bel_free(manifest);
}

// Saves with two shards, changes key `from` of shard 1 to `to`, and opens.
static bel_ckpt_reader *open_forged(const char *dir, int64_t from, int64_t to)
{
    part parts[2];
    make_parts(parts, 2);
    bel_hash128 digest;
    bel_ckpt_reader *reader;
    BEL_ASSERT_OK(save(dir, parts, 2, &digest));
    forge(dir, "shard-00001-of-00002.safetensors", &from, &to, sizeof from);
    BEL_ASSERT_OK(bel_ckpt_open_latest(dir, &reader));
    return reader;
}

static bel_status *take_any(void *context, int64_t n, const int64_t *keys, const float *const *got)
{
    (void)context, (void)n, (void)keys, (void)got;
    return NULL;
}

static void test_unsorted_keys(void **state)
{
    (void)state;
    static const int64_t rows[] = {1, 4095, 4096, 4999}; // rows in and at block starts
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *dir = bel_test_folder(), part_of_error[100];
        int64_t key = key_of(rows[i] * 2 + 1), before = key_of(rows[i] * 2 - 1);
        bel_ckpt_reader *reader = open_forged(dir, key, before);
        snprintf(part_of_error, sizeof part_of_error,
                 "table \"deep\": row %lld: expected a key above %lld, got %lld",
                 (long long)rows[i], (long long)before, (long long)before);
        BEL_ASSERT_FAILS(bel_ckpt_read_table(reader, &info, &(bel_ckpt_row_sink){.take = take_any}),
                         BEL_DATA_LOSS, part_of_error);
        BEL_ASSERT_FAILS(bel_ckpt_verify(reader), BEL_DATA_LOSS, part_of_error);
        bel_ckpt_close(reader);
        bel_test_remove_folder(dir);
    }
}

static void test_key_in_two_shards(void **state)
{
    (void)state;
    char *dir = bel_test_folder();
    bel_ckpt_reader *reader = open_forged(dir, key_of(7001), key_of(7000));
    BEL_ASSERT_FAILS(bel_ckpt_verify(reader), BEL_DATA_LOSS, "table \"deep\": key 40000 is in ");
    bel_ckpt_close(reader);
    bel_test_remove_folder(dir);
}

static void test_changed_row(void **state)
{
    (void)state;
    char *dir = bel_test_folder();
    part p;
    make_parts(&p, 1);
    bel_hash128 digest;
    BEL_ASSERT_OK(save(dir, &p, 1, &digest));
    float from = element(key_of(77), 1, 2), to = from + 1;
    forge(dir, "shard-00000-of-00001.safetensors", &from, &to, sizeof from);
    bel_ckpt_reader *reader;
    BEL_ASSERT_OK(bel_ckpt_open_latest(dir, &reader));
    BEL_ASSERT_FAILS(bel_ckpt_verify(reader), BEL_DATA_LOSS, "expected the digest");
    bel_ckpt_close(reader);
    bel_test_remove_folder(dir);
}

// A column's name in the file differs from the manifest's: the piece is missing.
static void test_missing_piece(void **state)
{
    (void)state;
    char *dir = bel_test_folder(), *folder = bel_strf("%s/ckpt-00000001", dir);
    part parts[2];
    make_parts(parts, 2);
    bel_hash128 digest;
    BEL_ASSERT_OK(save(dir, parts, 2, &digest));
    forge(dir, "shard-00001-of-00002.safetensors", "deep#values", "deep#volues", 11);
    bel_ckpt_reader *reader;
    BEL_ASSERT_FAILS(bel_ckpt_open(folder, &reader), BEL_DATA_LOSS,
                     "expected a tensor \"deep#values\", which the manifest names");
    char *file = bel_strf("%s/shard-00001-of-00002.safetensors", folder);
    BEL_ASSERT_OK(bel_dir_remove(file));
    BEL_ASSERT_FAILS(bel_ckpt_open(folder, &reader), BEL_NOT_FOUND, "shard-00001-of-00002");
    bel_free(file);
    bel_free(folder);
    bel_test_remove_folder(dir);
}

// --- Hostile manifests ---------------------------------------------------------------------------

static const char good[] =
    "{\"format\": \"belfry-checkpoint\", \"format_version\": 2, \"step\": 0, \"generation\": 0,\n"
    "  \"seed\": \"1\", \"digest\": \"00000000000000000000000000000000\",\n"
    "  \"segments\": [], \"settings\": {},\n"
    "  \"files\": [{\"name\": \"a\", \"size\": 1, \"crc32c\": \"00000000\"},\n"
    "            {\"name\": \"b\", \"size\": 1, \"crc32c\": \"00000000\"}],\n"
    "  \"tensors\": [{\"name\": \"t\", \"dtype\": \"u8\", \"shape\": [], \"pieces\": [[0, 0, "
    "1]]}],\n"
    "  \"tables\": [\n"
    "    {\"name\": \"deep\", \"width\": 16, \"columns\": [\"values\", \"adam/m\"], \"rows\": [5, "
    "0]},\n"
    "    {\"name\": \"wide\", \"width\": 1, \"columns\": [\"values\"], \"rows\": [0, 7]}\n"
    "  ],\n";

static const struct {
    const char *from, *to, *part;
} changes[] = {
    {"", "", NULL},
    {"\"format_version\": 2", "\"format_version\": 1", NULL}, // version 1 ignores "tables"
    {"\"tables\"", "\"tobles\"", "\"tables\": expected a list"},
    {"\"name\": \"wide\"", "\"name\": \"deep\"", "names in ascending order, none twice"},
    {"\"name\": \"wide\"", "\"name\": \"t\"", "a name without \"#\" that no tensor has"},
    {"\"name\": \"wide\"", "\"name\": \"w#\"", "a name without \"#\""},
    {"\"name\": \"wide\"", "\"name\": \"\"", "a name without \"#\""},
    {"\"width\": 16", "\"width\": 0", "\"width\": expected at least 1, got 0"},
    {"\"width\": 16", "\"width\": 1048577", "\"width\": expected at most 1048576"},
    {"\"width\": 16", "\"width\": \"16\"", "\"width\": expected an integer"},
    {"[\"values\", \"adam/m\"]", "[]", "\"columns\": expected a list of 1 to 16 names"},
    {"[\"values\", \"adam/m\"]", "7", "\"columns\": expected a list"},
    {"[\"values\", \"adam/m\"]", "[\"values\", \"values\"]", "no duplicates"},
    {"[\"values\", \"adam/m\"]", "[\"keys\"]", "no \"keys\""},
    {"[\"values\", \"adam/m\"]", "[\"a#b\"]", "names without \"#\""},
    {"[\"values\", \"adam/m\"]", "[7]", "names without \"#\""},
    {"[5, 0]", "[5]", "\"rows\": expected a number for each file"},
    {"[5, 0]", "[5, 0, 0]", "\"rows\": expected a number for each file"},
    {"[5, 0]", "[-5, 0]", "\"rows\": expected integers from 0 up"},
    {"[5, 0]", "[9223372036854775807, 0]", "of less than 2^63 bytes together"},
    {"[5, 0]", "[36028797018963967, 36028797018963967]", "of less than 2^63 bytes together"},
};

static void test_hostile_manifests(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        const char *place = strstr(good, changes[i].from);
        assert_non_null(place);
        bel_arena *arena = bel_arena_create();
        bel_str text = {0};
        bel_str_append(&text, good, (size_t)(place - good));
        bel_str_puts(&text, changes[i].to);
        bel_str_puts(&text, place + strlen(changes[i].from));
        uint32_t crc = bel_crc32c(0, text.text, text.length);
        bel_str_printf(&text, "  \"crc32c\": \"%08x\"\n}\n", crc);
        bel_manifest manifest;
        bel_status *status = bel_manifest_parse(text.text, text.length, "M", arena, &manifest);
        if (changes[i].part == NULL) {
            BEL_ASSERT_OK(status);
        } else {
            BEL_ASSERT_FAILS(status, BEL_DATA_LOSS, changes[i].part);
        }
        bel_str_deinit(&text);
        bel_arena_destroy(arena);
    }
}

// --- Worked example ------------------------------------------------------------------------------

// Two shards: rows -1 and 5 on the first, row 3 on the second.
typedef struct example {
    int64_t keys[2];
    float values[2][2];
} example;

static bel_status *read_example(void *context, int64_t first, int64_t n, int64_t *out_keys,
                                int column, float *out_floats)
{
    const example *e = context;
    memcpy(out_keys, e->keys + first, (size_t)n * sizeof *out_keys);
    if (column == 0) memcpy(out_floats, e->values[first], (size_t)n * sizeof e->values[0]);
    return NULL;
}

static const char example_manifest[] =
    "{\n"
    "  \"format\": \"belfry-checkpoint\",\n"
    "  \"format_version\": 2,\n"
    "  \"step\": 5,\n"
    "  \"generation\": 0,\n"
    "  \"seed\": \"42\",\n"
    "  \"digest\": \"789893d57e9dc24b7f636033448278d7\",\n"
    "  \"segments\": [\n"
    "  ],\n"
    "  \"settings\": {\n"
    "  },\n"
    "  \"files\": [\n"
    "    {\"name\": \"shard-00000-of-00002.safetensors\", \"size\": 288, \"crc32c\": "
    "\"b2c84977\"},\n"
    "    {\"name\": \"shard-00001-of-00002.safetensors\", \"size\": 272, \"crc32c\": "
    "\"0eeb4539\"}\n"
    "  ],\n"
    "  \"tensors\": [\n"
    "  ],\n"
    "  \"tables\": [\n"
    "    {\"name\": \"deep\", \"width\": 2, \"columns\": [\"values\"], \"rows\": [2, 1]}\n"
    "  ],\n"
    "  \"crc32c\": \"991430e4\"\n"
    "}\n";

static void test_worked_example(void **state)
{
    (void)state;
    static example shards[2] = {{{-1, 5}, {{1, -2}, {0.5f, 0}}}, {{3}, {{3, 4}}}};
    char *dir = bel_test_folder(), *folder, *text;
    bel_ckpt_shard *written[2];
    for (int s = 0; s < 2; s++) {
        bel_ckpt_rows rows = {.table = {"deep", 2, 1, columns},
                              .row_count = 2 - s,
                              .read = read_example,
                              .context = &shards[s]};
        if (s == 0) BEL_ASSERT_OK(bel_ckpt_begin(dir, 5, 0, 0, &folder));
        BEL_ASSERT_OK(bel_ckpt_write_shard_tables(folder, s, 2, NULL, 0, &rows, 1, &written[s]));
    }
    bel_hash128 digest;
    bel_ckpt_info about = {.step = 5, .seed = 42};
    BEL_ASSERT_OK(bel_ckpt_commit(dir, folder, &about, written, 2, &digest));
    bel_free(folder);
    char *path = bel_strf("%s/ckpt-00000005/manifest.json", dir);
    size_t length;
    BEL_ASSERT_OK(bel_file_read(path, &text, &length));
    assert_int_equal(length, strlen(example_manifest));
    assert_memory_equal(text, example_manifest, length);
    for (int s = 0; s < 2; s++)
        bel_ckpt_shard_destroy(written[s]);
    bel_free(text);
    bel_free(path);
    bel_test_remove_folder(dir);
}

// All blocks of a column together are bounded, whatever the number of files.
static void test_blocks_share_memory(void **state)
{
    (void)state;
    static const int widths[] = {1, 64, 1024, BEL_CKPT_MAX_WIDTH};
    for (int w = 0; w < 4; w++) {
        bel_ckpt_table table = {"deep", widths[w], COLUMNS, columns};
        for (int open = 1; open <= 256; open *= 4) {
            int64_t rows = bel_table_block_rows(&table, open), floats = rows * widths[w];
            assert_true(rows >= 1);
            assert_true(rows == 1 || floats * open <= 1 << 20);
            assert_true(rows >= bel_table_block_rows(&table, open * 4));
        }
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_number_of_shards), cmocka_unit_test(test_digest_sees_changes),
        cmocka_unit_test(test_empty_table),          cmocka_unit_test(test_what_cannot_be_saved),
        cmocka_unit_test(test_shards_that_disagree), cmocka_unit_test(test_other_columns),
        cmocka_unit_test(test_unsorted_keys),        cmocka_unit_test(test_key_in_two_shards),
        cmocka_unit_test(test_changed_row),          cmocka_unit_test(test_missing_piece),
        cmocka_unit_test(test_hostile_manifests),    cmocka_unit_test(test_worked_example),
        cmocka_unit_test(test_blocks_share_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
