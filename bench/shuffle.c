// Benchmark of a shuffled epoch of a large file against an epoch in order, and of opening the file.
//   bench_shuffle make KIND FILE RECORDS WIDTH  writes records of WIDTH numbers and a label
//   bench_shuffle KIND FILE BATCH SECONDS       csv (numbers), table (inferred columns), idx or
//                                               tfrecord
// One thread reads blocks of both orders in turns, CHUNK records at a time. A record's cost is this
// thread's CPU time, so that other programs on the machine have little effect. The result is the
// median over the chunks, with the quartiles, as is the ratio of two chunks in turns. The start is
// the time from the paths to the opened dataset, as wall time and as CPU time of all threads.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"
#include "belfry/columns.h"
#include "figures.h"
#include "input/batch/input.h"
#include "mlp.h"

enum { CHUNK = 1 << 15, MOST_CHUNKS = 4096, CLASSES = 10 };

// --- Files ---------------------------------------------------------------------------------------

// The numbers of a record are pseudo-random and the same each time.
static uint32_t noise(int64_t record, int column)
{
    uint64_t x = (uint64_t)record * 0x9E3779B97F4A7C15u + (uint64_t)column;
    x ^= x >> 31;
    x *= 0xD6E8FEB86659FD93u;
    return (uint32_t)(x >> 32);
}

// "0.1234" to "9.9999", with a sign in half of the cases.
static char *put_number(char *to, uint32_t random)
{
    uint32_t value = random % 100000;
    if ((random & 0x80000000u) != 0) *to++ = '-';
    *to++ = (char)('0' + value / 10000);
    *to++ = '.';
    for (uint32_t unit = 1000; unit > 0; unit /= 10)
        *to++ = (char)('0' + value / unit % 10);
    return to;
}

static void write_csv(FILE *out, int64_t records, int width)
{
    char *line = bel_xmalloc((size_t)width * 9 + 16);
    for (int column = 0; column < width; column++)
        fprintf(out, "f%d,", column);
    fprintf(out, "label\n");
    for (int64_t record = 0; record < records; record++) {
        char *to = line;
        for (int column = 0; column < width; column++) {
            to = put_number(to, noise(record, column));
            *to++ = ',';
        }
        *to++ = (char)('0' + record % CLASSES);
        *to++ = '\n';
        fwrite(line, 1, (size_t)(to - line), out);
    }
    bel_free(line);
}

static void write_big_endian(FILE *out, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        fputc((int)(value >> shift & 255), out);
}

// FILE has the images, FILE.labels the labels.
static void write_idx(FILE *out, FILE *labels, int64_t records, int width)
{
    unsigned char *item = bel_xmalloc((size_t)width);
    write_big_endian(out, 0x0802);
    write_big_endian(out, (uint32_t)records);
    write_big_endian(out, (uint32_t)width);
    write_big_endian(labels, 0x0801);
    write_big_endian(labels, (uint32_t)records);
    for (int64_t record = 0; record < records; record++) {
        for (int i = 0; i < width; i++)
            item[i] = (unsigned char)noise(record, i);
        fwrite(item, 1, (size_t)width, out);
        fputc((int)(record % CLASSES), labels);
    }
    bel_free(item);
}

static void write_little_endian(FILE *out, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        fputc((int)(value >> 8 * i & 255), out);
}

static char *put_tag(char *to, int field, size_t length)
{
    *to++ = (char)(field << 3 | 2); // length-delimited field: tag, then length
    if (length >= 128) *to++ = (char)(length % 128 | 128);
    *to++ = (char)(length < 128 ? length : length / 128);
    return to;
}

static size_t tagged(size_t length)
{
    return length + (length < 128 ? 2 : 3);
}

// tf.train.Example { features { feature { key value { float_list { value } } } } } with one feature
// "x", for up to about 4,000 numbers.
static size_t put_example(char *to, int64_t record, int width)
{
    const char *begin = to;
    size_t packed = (size_t)width * sizeof(float), list = tagged(packed), value = tagged(list);
    size_t entry = tagged(1) + tagged(value), features = tagged(entry);
    to = put_tag(to, 1, features);
    to = put_tag(to, 1, entry);
    to = put_tag(to, 1, 1);
    *to++ = 'x';
    to = put_tag(to, 2, value);
    to = put_tag(to, 2, list);
    to = put_tag(to, 1, packed);
    for (int i = 0; i < width; i++, to += sizeof(float)) {
        float number = (float)(noise(record, i) % 1000);
        memcpy(to, &number, sizeof number);
    }
    return (size_t)(to - begin);
}

static void write_tfrecord(FILE *out, int64_t records, int width)
{
    char *data = bel_xmalloc((size_t)width * sizeof(float) + 64);
    for (int64_t record = 0; record < records; record++) {
        size_t size = put_example(data, record, width);
        const uint64_t length = size; // needs a little-endian machine
        write_little_endian(out, length, 8);
        write_little_endian(out, bel_crc32c_masked(&length, sizeof length), 4);
        fwrite(data, 1, size, out);
        write_little_endian(out, bel_crc32c_masked(data, size), 4);
    }
    bel_free(data);
}

static int make(const char *kind, const char *path, int64_t records, int width)
{
    char *labels_path = bel_strf("%s.labels", path);
    bool idx = strcmp(kind, "idx") == 0;
    FILE *out = fopen(path, "wb"), *labels = idx ? fopen(labels_path, "wb") : NULL;
    bel_free(labels_path);
    if (out == NULL || (idx && labels == NULL)) {
        fprintf(stderr, "bench_shuffle: cannot write %s\n", path);
        return 1;
    }
    if (idx) write_idx(out, labels, records, width);
    if (strcmp(kind, "csv") == 0) write_csv(out, records, width);
    if (strcmp(kind, "tfrecord") == 0) write_tfrecord(out, records, width);
    bool written = fclose(out) == 0;
    if (labels != NULL) written = fclose(labels) == 0 && written;
    if (!written) fprintf(stderr, "bench_shuffle: cannot write %s\n", path);
    return written ? 0 : 1;
}

// --- Opening -------------------------------------------------------------------------------------

// The description of the table's columns is made once. Its cost is part of the first opening.
typedef struct data_file {
    const char *kind, *path;
    bel_columns *columns;
} data_file;

// The width of the one feature follows from the file's first record.
static int64_t example_width(const char *path)
{
    FILE *in = fopen(path, "rb");
    unsigned char head[8] = {0};
    size_t got = in == NULL ? 0 : fread(head, 1, sizeof head, in);
    if (in != NULL) fclose(in);
    uint64_t size = 0;
    for (size_t i = got; i-- > 0;)
        size = size << 8 | head[i];
    char *data = bel_xmalloc((size_t)size + 128);
    int64_t width = 1;
    while (width * (int64_t)sizeof(float) < (int64_t)size &&
           put_example(data, 0, (int)width) < size)
        width++;
    bel_free(data);
    return width;
}

static bel_status *describe(data_file *file, bel_dataset **out_data)
{
    const bel_csv_options numbers = {.size = sizeof numbers,
                                     .paths = &file->path,
                                     .path_count = 1,
                                     .label_column = "label",
                                     .class_count = CLASSES};
    if (strcmp(file->kind, "csv") == 0) *out_data = bel_dataset_from_csv(&numbers);
    if (strcmp(file->kind, "table") == 0) {
        bel_csv_options table = {.size = sizeof table, .paths = &file->path, .path_count = 1};
        if (file->columns == NULL)
            BEL_TRY(bel_columns_infer(
                &table,
                &(bel_columns_options){.size = sizeof(bel_columns_options), .label = "label"},
                &file->columns));
        table.table = file->columns;
        *out_data = bel_dataset_from_csv(&table);
    }
    if (strcmp(file->kind, "idx") == 0) {
        char *labels = bel_strf("%s.labels", file->path);
        *out_data = bel_dataset_from_idx(file->path, labels, 1.0 / 255, CLASSES);
        bel_free(labels);
    }
    if (strcmp(file->kind, "tfrecord") == 0) {
        const bel_example_feature x = {.key = "x",
                                       .field = "x",
                                       .dtype = BEL_DTYPE_F32,
                                       .shape = BEL_SHAPE(example_width(file->path))};
        *out_data =
            bel_dataset_from_tfrecord(&(bel_tfrecord_options){.size = sizeof(bel_tfrecord_options),
                                                              .paths = &file->path,
                                                              .path_count = 1,
                                                              .features = &x,
                                                              .feature_count = 1});
    }
    return NULL;
}

static bel_status *open_file(data_file *file, bool shuffled, int64_t batch, bel_input **out_input)
{
    bel_dataset *data = NULL;
    BEL_TRY(describe(file, &data));
    if (shuffled) bel_dataset_shuffle(data, 0, 7);
    bel_dataset_repeat(data, BEL_REPEAT_FOREVER);
    bel_dataset_batch(data, batch);
    bel_status *status = bel_input_open(data, NULL, out_input);
    bel_dataset_destroy(data);
    return status;
}

// --- Reading -------------------------------------------------------------------------------------

// State of reading blocks of one order; each chunk continues after the one before.
typedef struct reading {
    const char *order;
    bel_input *input;
    bel_batch *batch;
    int64_t next;
    double ns[MOST_CHUNKS]; // cost of a record, for each chunk
} reading;

static bel_status *read_chunk(reading *r, int chunk)
{
    int64_t records = 0;
    int64_t begun = bel_clock_processor_ns(CLOCK_THREAD_CPUTIME_ID);
    while (records < CHUNK) {
        BEL_TRY(bel_input_read(r->input, r->next++, r->batch));
        records += r->batch->example_count;
    }
    int64_t taken = bel_clock_processor_ns(CLOCK_THREAD_CPUTIME_ID) - begun;
    if (chunk >= 0) r->ns[chunk] = (double)taken / (double)records;
    return NULL;
}

// Returns the numbers of a record: all elements of the fields that are not the label.
static int64_t numbers_of(const reading *r)
{
    int64_t elements = 0;
    for (int f = 0; f < r->batch->field_count; f++)
        if (!bel_input_field_is_label(r->input, f))
            elements += bel_shape_elements(&r->batch->fields[f].shape);
    return elements / r->batch->example_count;
}

static bel_status *read_both(const data_file *file, reading *both, double seconds)
{
    int chunks = 0;
    BEL_TRY(read_chunk(&both[0], -1)); // allocates the batches
    BEL_TRY(read_chunk(&both[1], -1));
    int64_t end_ns = bel_clock_ns() + (int64_t)(seconds * 1e9);
    for (; chunks < MOST_CHUNKS && (chunks < 5 || bel_clock_ns() < end_ns); chunks++)
        for (int i = 0; i < 2; i++)
            BEL_TRY(read_chunk(&both[(chunks + i) % 2], chunks));
    bench_spread ratio = bench_ratio_of(both[1].ns, both[0].ns, chunks);
    for (int i = 0; i < 2; i++) {
        bench_spread ns = bench_spread_of(both[i].ns, chunks);
        printf("{\"bench\":\"shuffle\",\"kind\":\"%s\",\"order\":\"%s\",\"ns\":%.1f,"
               "\"quartiles\":[%.1f,%.1f],\"chunks\":%d}\n",
               file->kind, both[i].order, ns.median, ns.low, ns.high, chunks);
    }
    printf("{\"bench\":\"shuffle\",\"kind\":\"%s\",\"shuffled_over_in_order\":%.2f,"
           "\"ratio_quartiles\":[%.2f,%.2f]}\n",
           file->kind, ratio.median, ratio.low, ratio.high);
    bench_figuref(&ratio, "shuffle.%s.%lld", file->kind, (long long)numbers_of(&both[0]));
    return NULL;
}

static bel_status *measure(data_file *file, int64_t batch, double seconds)
{
    static reading both[2] = {{.order = "in order"}, {.order = "shuffled"}};
    double wall = (double)bel_clock_ns() * 1e-9, cpu = bench_processor_seconds();
    bel_status *status = open_file(file, true, batch, &both[1].input);
    wall = (double)bel_clock_ns() * 1e-9 - wall;
    cpu = bench_processor_seconds() - cpu;
    if (status == NULL) {
        printf("{\"bench\":\"shuffle\",\"kind\":\"%s\",\"start_seconds\":%.3f,"
               "\"start_cpu_seconds\":%.3f}\n",
               file->kind, wall, cpu);
        if (seconds > 0) status = open_file(file, false, batch, &both[0].input);
    }
    for (int i = 0; i < 2 && status == NULL && seconds > 0; i++)
        both[i].batch = bel_batch_create(both[i].input);
    if (status == NULL && seconds > 0) status = read_both(file, both, seconds);
    for (int i = 0; i < 2; i++) {
        bel_batch_destroy(both[i].batch);
        bel_input_destroy(both[i].input);
    }
    bel_columns_destroy(file->columns);
    return status;
}

int main(int argc, char **argv)
{
    if (argc == 6 && strcmp(argv[1], "make") == 0)
        return make(argv[2], argv[3], atoll(argv[4]), atoi(argv[5]));
    if (argc != 5) {
        fprintf(stderr, "usage: bench_shuffle make csv|idx|tfrecord FILE RECORDS WIDTH\n"
                        "       bench_shuffle csv|table|idx|tfrecord FILE BATCH SECONDS\n");
        return 2;
    }
    unsetenv("HOME"); // else a cache would keep the inferred columns for the next run
    unsetenv("XDG_CACHE_HOME");
    data_file file = {.kind = argv[1], .path = argv[2]};
    return bench_end(measure(&file, atoll(argv[3]), strtod(argv[4], NULL)));
}
