// Fuzz target for a complete checkpoint: a manifest and the file of one shard. It opens it, reads
// every tensor and table, and computes the digest. The first two bytes are the manifest's length.
// In the manifest '$' means the file's size and '%' its checksum. The manifest's checksum is
// appended, so that the data after checksums is reached. A manifest may name a base: there is one
// of step 1, with the tables "t" and "t/age".
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/number.h"
#include "base/str.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/table.h"
#include "fuzz/fuzz.h"

static char path[256];

static void remove_folder(void)
{
    (void)fuzz_is_good(bel_dir_remove(path));
}

static bel_status *read_base(void *context, int64_t first, int64_t n, int64_t *out_keys, int column,
                             float *out_floats)
{
    static const int64_t keys[] = {-5, 0, 7, 9};
    (void)context;
    for (int64_t i = 0; i < n; i++) {
        out_keys[i] = keys[first + i];
        if (column >= 0) out_floats[i] = (float)(first + i);
    }
    return NULL;
}

// Writes the base that a delta may name.
static void put_base(void)
{
    static const char *const columns[] = {"values"};
    const bel_ckpt_rows tables[] = {
        {.table = {"t", 1, 1, columns}, .row_count = 4, .read = read_base},
        {.table = {"t/age", 1, 1, columns}, .row_count = 4, .read = read_base}};
    const bel_ckpt_info info = {.step = 1};
    char *temporary = NULL, *base = bel_path_join(path, "base");
    char *made = bel_path_join(path, "ckpt-00000001");
    bel_ckpt_shard *shard = NULL;
    bel_hash128 digest;
    bool good =
        fuzz_is_good(bel_ckpt_begin(path, 1, 0, 0, &temporary)) &&
        fuzz_is_good(bel_ckpt_write_shard_tables(temporary, 0, 1, NULL, 0, tables, 2, &shard)) &&
        fuzz_is_good(bel_ckpt_commit(path, temporary, &info, &shard, 1, &digest)) &&
        fuzz_is_good(bel_file_rename(made, base));
    fuzz_expect(good, "a base");
    bel_ckpt_shard_destroy(shard);
    bel_free(temporary);
    bel_free(made);
    bel_free(base);
}

static const char *folder(void)
{
    if (path[0] != '\0') return path;
    bel_snprintf(path, sizeof path, "%.200s/belfry-fuzz-XXXXXX", fuzz_folder());
    fuzz_expect(mkdtemp(path) != NULL && atexit(remove_folder) == 0,
                "a separate folder in $TMPDIR");
    put_base();
    return path;
}

static void put_file(const char *name, const void *data, size_t size)
{
    char *where = bel_path_join(folder(), name);
    int file = open(where, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    fuzz_expect(file >= 0 && (size == 0 || write(file, data, size) == (ssize_t)size), "a file");
    (void)close(file);
    bel_free(where);
}

static void put_manifest(const char *text, size_t length, const uint8_t *file, size_t size)
{
    bel_str out = {0};
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '$') {
            bel_str_printf(&out, "%zu", size);
        } else if (text[i] == '%') {
            bel_str_printf(&out, "%08x", bel_crc32c(0, file, size));
        } else {
            bel_str_append(&out, text + i, 1);
        }
    }
    uint32_t crc = bel_crc32c(0, out.text, out.length);
    bel_str_printf(&out, "  \"crc32c\": \"%08x\"\n}\n", crc);
    put_file("manifest.json", out.text, out.length);
    bel_str_deinit(&out);
}

static void read_tensors(const bel_ckpt_reader *reader)
{
    enum { MOST = 1 << 16 };
    static char data[MOST];
    for (int i = 0; i < bel_ckpt_tensor_count(reader); i++) {
        const char *name;
        bel_dtype dtype;
        bel_shape shape;
        bel_ckpt_tensor(reader, i, &name, &dtype, &shape);
        fuzz_expect(bel_ckpt_find(reader, name) == i, "a unique name");
        int64_t count = bel_shape_elements(&shape), most = MOST / (int64_t)bel_dtype_size(dtype);
        if (count > most) count = most;
        (void)fuzz_is_good(bel_ckpt_read(reader, name, dtype, &shape, 0, count, data));
    }
}

static bel_status *take_rows(void *context, int64_t n, const int64_t *keys,
                             const float *const *columns)
{
    volatile double *sum = context;
    for (int64_t i = 0; i < n; i++)
        *sum += (double)keys[i] + (double)columns[0][i];
    return NULL;
}

static void read_tables(const bel_ckpt_reader *reader)
{
    for (int i = 0; i < bel_ckpt_table_count(reader); i++) {
        int64_t rows;
        double sum = 0;
        bel_ckpt_table table = bel_ckpt_table_at(reader, i, &rows);
        const bel_ckpt_row_sink sink = {.take = take_rows, .context = &sum};
        (void)fuzz_is_good(bel_ckpt_read_table(reader, &table, &sink));
        (void)fuzz_is_good(bel_ckpt_read_rows(reader, table.name, table.width, &sink));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input = {data, size};
    size_t wanted = (size_t)fuzz_take(&input, 2), length, bytes;
    const char *text = (const char *)fuzz_take_bytes(&input, wanted, &length);
    const uint8_t *file = fuzz_take_bytes(&input, size, &bytes);
    put_file("shard-00000-of-00001.safetensors", file, bytes);
    put_manifest(text, length, file, bytes);
    bel_ckpt_reader *reader;
    if (!fuzz_is_good(bel_ckpt_open(folder(), &reader))) return 0;
    read_tensors(reader);
    read_tables(reader);
    (void)fuzz_is_good(bel_ckpt_verify(reader));
    bel_ckpt_close(reader);
    return 0;
}
