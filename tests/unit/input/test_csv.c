// CSV: the records read, and the exact file:line:column of every error.
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/hash.h"
#include "base/str.h"
#include "belfry/graph.h"
#include "unit/input/test_fixture.h"

// One file "a.csv" in a separate folder, and the options to open it.
typedef struct csv_case {
    char *folder;
    char *path;
    const char *paths[2];
    bel_csv_options options;
} csv_case;

static void case_init(csv_case *it, const char *text)
{
    it->folder = bel_test_folder();
    it->path = bel_test_file(it->folder, "a.csv", text, strlen(text));
    it->paths[0] = it->path;
    it->options =
        (bel_csv_options){.size = sizeof(bel_csv_options), .paths = it->paths, .path_count = 1};
}

static void case_deinit(csv_case *it)
{
    bel_free(it->path);
    bel_test_remove_folder(it->folder);
}

static bel_dataset *case_dataset(const csv_case *it)
{
    bel_dataset *dataset = bel_dataset_from_csv(&it->options);
    bel_dataset_batch(dataset, 64);
    return dataset;
}

// Opens the dataset and reads its only block.
static bel_status *read_all(bel_dataset *dataset, bel_input **out_input, bel_batch **out_batch)
{
    bel_status *status = open_and_destroy(dataset, out_input);
    if (status != NULL) return status;
    *out_batch = bel_batch_create(*out_input);
    status = bel_input_read(*out_input, 0, *out_batch);
    if (status == NULL) return NULL;
    bel_batch_destroy(*out_batch);
    bel_input_destroy(*out_input);
    return status;
}

static void assert_floats(const bel_tensor *tensor, const float *expected, int64_t rows,
                          int64_t columns)
{
    bel_shape shape = BEL_SHAPE(rows, columns);
    assert_int_equal(tensor->dtype, BEL_DTYPE_F32);
    assert_true(bel_shape_equal(&tensor->shape, &shape));
    assert_memory_equal(tensor->data, expected, (size_t)(rows * columns) * sizeof *expected);
}

// Checks that `text` with a header "a,b,y" reads as `rows` records of x [2] and label.
static void assert_reads(const char *text, const float *x, const int64_t *labels, int64_t rows)
{
    csv_case it;
    case_init(&it, text);
    it.options.label_column = "y";
    bel_input *input = NULL;
    bel_batch *batch = NULL;
    BEL_ASSERT_OK(read_all(case_dataset(&it), &input, &batch));
    assert_int_equal(batch->example_count, rows);
    assert_int_equal(bel_input_epoch_records(input), rows);
    assert_floats(batch_field(input, batch, "x"), x, rows, 2);
    const bel_tensor *label = batch_field(input, batch, BEL_LABEL_FIELD);
    assert_int_equal(label->dtype, BEL_DTYPE_I64);
    assert_int_equal(label->shape.rank, 1);
    assert_memory_equal(label->data, labels, (size_t)rows * sizeof *labels);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    case_deinit(&it);
}

static void test_reads_every_way_to_write_it(void **state)
{
    (void)state;
    static const float x[] = {1, 2.5F, -3, 4e2F};
    static const int64_t labels[] = {7, 0};
    assert_reads("a,b,y\n1,2.5,7\n-3,4e2,0\n", x, labels, 2);
    assert_reads("a,b,y\n1,2.5,7\n-3,4e2,0", x, labels, 2);
    assert_reads("a,b,y\r\n1,2.5,7\r\n-3,4e2,0\r\n", x, labels, 2);
    assert_reads("a,b,y\r\n1,2.5,7\r\n-3,4e2,0", x, labels, 2);
    assert_reads("a,b,y\n1,2.5,7\n-3,4e2,0\n\n\n", x, labels, 2);
    assert_reads("a,b,y\r\n1,2.5,7\r\n-3,4e2,0\r\n\r\n", x, labels, 2);
    assert_reads("\xEF\xBB\xBF"
                 "a,b,y\n1,2.5,7\n-3,4e2,0\n",
                 x, labels, 2);
    assert_reads("\"a\",\"b\",\"y\"\n\"1\",2.5,\"7\"\n-3,\"4e2\",\"0\"\n", x, labels, 2);
    assert_reads("a,b,y\n 1 ,\t2.5, 7\n-3 , 4e2 ,0 \n", x, labels, 2);
    assert_reads("a,b,y\n+1,2.50000000000000000000000,7\n-3.0e0,400,+0\n", x, labels, 2);
}

static void test_vector_skips_the_label_wherever_it_is(void **state)
{
    (void)state;
    static const float x[] = {1, 2, 3, 4};
    static const int64_t labels[] = {9, 8};
    assert_reads("y,a,b\n9,1,2\n8,3,4\n", x, labels, 2);
    assert_reads("a,y,b\n1,9,2\n3,8,4\n", x, labels, 2);
}

static void test_scale_name_and_delimiter(void **state)
{
    (void)state;
    csv_case it;
    case_init(&it, "a;b\n16;8\n");
    it.options.delimiter = ';';
    it.options.scale = 1.0 / 16;
    it.options.vector_name = "pixels";
    bel_input *input = NULL;
    bel_batch *batch = NULL;
    BEL_ASSERT_OK(read_all(case_dataset(&it), &input, &batch));
    static const float expected[] = {1, 0.5F};
    assert_int_equal(bel_input_field_count(input), 1);
    assert_string_equal(bel_input_field_name(input, 0), "pixels");
    assert_floats(&batch->fields[0], expected, 1, 2);
    bel_dtype dtype;
    bel_shape shape, open_shape = BEL_SHAPE(BEL_DIM_BATCH, 2);
    bel_input_field_spec(input, 0, &dtype, &shape);
    assert_int_equal(dtype, BEL_DTYPE_F32);
    assert_true(bel_shape_equal(&shape, &open_shape));
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    case_deinit(&it);
}

static void test_without_a_header(void **state)
{
    (void)state;
    static const char *const names[] = {"u", "v", "w"};
    for (int named = 0; named <= 1; named++) {
        csv_case it;
        case_init(&it, "1,2,3\n4,5,6\n");
        it.options.no_header = true;
        it.options.column_names = named ? names : NULL;
        it.options.column_name_count = named ? 3 : 0;
        it.options.label_column = named ? "v" : "1";
        bel_input *input = NULL;
        bel_batch *batch = NULL;
        BEL_ASSERT_OK(read_all(case_dataset(&it), &input, &batch));
        static const float expected[] = {1, 3, 4, 6};
        assert_floats(batch_field(input, batch, "x"), expected, 2, 2);
        bel_batch_destroy(batch);
        bel_input_destroy(input);
        case_deinit(&it);
    }
}

// --- Typed columns -------------------------------------------------------------------------------

// Collects the content of a record's text field.
static bel_status *collect_text(void *user, bel_record *record, bool *out_skip)
{
    (void)out_skip;
    const bel_tensor *text = bel_record_get(record, "text");
    if (text == NULL || text->dtype != BEL_DTYPE_STRING || text->shape.rank != 1) {
        return BEL_ERR(BEL_UNKNOWN, "no text");
    }
    const char *bytes = text->data;
    if (bytes[text->shape.dims[0]] != '\0') return BEL_ERR(BEL_UNKNOWN, "no zero byte");
    bel_str_append(user, bytes, (size_t)text->shape.dims[0]);
    bel_str_puts(user, "|");
    return NULL;
}

static void test_typed_columns(void **state)
{
    (void)state;
    static const bel_csv_column columns[] = {{"big", BEL_DTYPE_I64},
                                             {"text", BEL_DTYPE_STRING},
                                             {"f", BEL_DTYPE_F32},
                                             {"i", BEL_DTYPE_I32}};
    static const char *const drop[] = {"text", NULL};
    csv_case it;
    case_init(&it, "i,text,unused,f,big\n"
                   "-5,\"say \"\"hi\"\",\nthere\",x,1.5,9000000000\n"
                   "6,\"\",\"y,y\",2,-1\n"
                   "7, plain ,,3,0\n");
    it.options.columns = columns;
    it.options.column_count = 4;
    bel_str texts = {0};
    bel_dataset *dataset = bel_dataset_from_csv(&it.options);
    bel_dataset_map(dataset, collect_text, &texts, drop);
    bel_dataset_batch(dataset, 3);
    bel_input *input = NULL;
    bel_batch *batch = NULL;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    bel_str_deinit(&texts); // opening mapped the first record
    batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    assert_string_equal(texts.text, "say \"hi\",\nthere|| plain |");
    assert_int_equal(bel_input_field_count(input), 3);
    static const int32_t i32s[] = {-5, 6, 7};
    static const int64_t i64s[] = {9000000000, -1, 0};
    static const float f32s[] = {1.5F, 2, 3};
    assert_memory_equal(batch_field(input, batch, "i")->data, i32s, sizeof i32s);
    assert_memory_equal(batch_field(input, batch, "big")->data, i64s, sizeof i64s);
    assert_memory_equal(batch_field(input, batch, "f")->data, f32s, sizeof f32s);
    assert_int_equal(batch_field(input, batch, "f")->shape.rank, 1);
    bel_str_deinit(&texts);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    case_deinit(&it);
}

static void test_text_cannot_be_in_a_batch(void **state)
{
    (void)state;
    static const bel_csv_column columns[] = {{"text", BEL_DTYPE_STRING}};
    csv_case it;
    case_init(&it, "text\nabc\n");
    it.options.columns = columns;
    it.options.column_count = 1;
    BEL_ASSERT_FAILS(open_failing(case_dataset(&it)), BEL_INVALID_ARGUMENT, "\"text\"");
    case_deinit(&it);
}

// --- Several files, packed files -----------------------------------------------------------------

static bel_status *note_origin(void *user, bel_record *record, bool *out_skip)
{
    (void)out_skip;
    const char *origin = bel_record_origin(record);
    const char *slash = strrchr(origin, '/');
    bel_str_puts(user, slash == NULL ? origin : slash + 1);
    bel_str_puts(user, " ");
    return NULL;
}

static void test_several_files_and_origins(void **state)
{
    (void)state;
    csv_case it;
    case_init(&it, "a,b\n1,\"2\n\"\n3,4\n");
    char *second = bel_test_file(it.folder, "b.csv", "a,b\n5,6\n7,8", 11);
    it.paths[1] = second;
    it.options.path_count = 2;
    static const bel_csv_column columns[] = {{"a", BEL_DTYPE_F32}};
    it.options.columns = columns;
    it.options.column_count = 1;
    bel_str origins = {0};
    bel_dataset *dataset = bel_dataset_from_csv(&it.options);
    bel_dataset_map(dataset, note_origin, &origins, NULL);
    bel_dataset_batch(dataset, 4);
    bel_input *input = NULL;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    bel_str_deinit(&origins);
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    // The first record of a.csv spans two lines.
    assert_string_equal(origins.text, "a.csv:2 a.csv:4 b.csv:2 b.csv:3 ");
    static const float expected[] = {1, 3, 5, 7};
    assert_memory_equal(batch->fields[0].data, expected, sizeof expected);
    bel_str_deinit(&origins);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    bel_free(second);
    case_deinit(&it);
}

// Rows are found by number and lines by row, with line breaks in the header, in adjacent rows and
// in the last one. Errors name the place inside the row.
static void test_lines_of_rows(void **state)
{
    (void)state;
    csv_case it;
    case_init(&it, "\"a\nb\",t\n1,x\n2,\"y\n\n\"\n3,\"\n\"\n4,z\n5,\"\"\n6,\"\n\"\n");
    static const bel_csv_column columns[] = {{"a\nb", BEL_DTYPE_F32}};
    it.options.columns = columns;
    it.options.column_count = 1;
    bel_str origins = {0};
    bel_dataset *dataset = bel_dataset_from_csv(&it.options);
    bel_dataset_map(dataset, note_origin, &origins, NULL);
    bel_dataset_batch(dataset, 6);
    bel_input *input = NULL;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    bel_str_deinit(&origins);
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    assert_string_equal(origins.text, "a.csv:3 a.csv:4 a.csv:7 a.csv:9 a.csv:10 a.csv:11 ");
    bel_str_deinit(&origins);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    case_deinit(&it);
}

static void assert_headers_differ(const char *second_text, const char *part)
{
    csv_case it;
    case_init(&it, "a,b\n1,2\n");
    char *second = bel_test_file(it.folder, "b.csv", second_text, strlen(second_text));
    it.paths[1] = second;
    it.options.path_count = 2;
    BEL_ASSERT_FAILS(open_failing(case_dataset(&it)), BEL_DATA_LOSS, part);
    bel_free(second);
    case_deinit(&it);
}

static void test_headers_must_agree(void **state)
{
    (void)state;
    assert_headers_differ("a,c\n1,2\n", "b.csv:1:3: ");
    assert_headers_differ("b,a\n1,2\n", "b.csv:1:1: ");
    assert_headers_differ("a\n1\n", "b.csv:1:1: ");
    assert_headers_differ("a,b\n1,2\n3\n", "b.csv:3:2: expected 2 fields, got 1");
}

static void write_packed(const char *path, const char *text)
{
    gzFile file = gzopen(path, "wb");
    assert_int_equal(gzputs(file, text), strlen(text));
    gzclose(file);
}

static void test_packed_file(void **state)
{
    (void)state;
    csv_case it;
    case_init(&it, "");
    char *path = bel_strf("%s/a.csv.gz", it.folder);
    write_packed(path, "a,b\n1,2\n3,4\n");
    it.paths[0] = path;
    bel_dataset *dataset = bel_dataset_from_csv(&it.options);
    bel_dataset_batch(dataset, 1);
    bel_input *input = NULL;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 1, batch));
    static const float expected[] = {3, 4};
    assert_floats(&batch->fields[0], expected, 1, 2);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    write_packed(path, "a,b\n1,2\n3,x\n");
    dataset = bel_dataset_from_csv(&it.options);
    bel_dataset_batch(dataset, 1);
    BEL_ASSERT_FAILS(open_and_destroy(dataset, &input), BEL_DATA_LOSS, "a.csv.gz:3:3: ");
    bel_free(path);
    case_deinit(&it);
}

// Without the check, a mapped file that became shorter would cause a bus error.
static void test_shortened_file(void **state)
{
    (void)state;
    csv_case it;
    case_init(&it, "a,b\n1,2\n3,4\n");
    bel_dataset *dataset = bel_dataset_from_csv(&it.options);
    bel_dataset_batch(dataset, 1);
    bel_input *input = NULL;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    assert_int_equal(truncate(it.paths[0], 6), 0);
    BEL_ASSERT_FAILS(bel_input_read(input, 1, batch), BEL_DATA_LOSS,
                     "it had 12 bytes when it was opened, and has 6 now");
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    case_deinit(&it);
}

// Writes to a file in place show through its mapping. A new time stamp does not make the data new.
static void test_rewritten_file(void **state)
{
    (void)state;
    csv_case it;
    case_init(&it, "a,b\n1,2\n3,4\n");
    bel_dataset *dataset = bel_dataset_from_csv(&it.options);
    bel_dataset_batch(dataset, 1);
    bel_input *input = NULL;
    BEL_ASSERT_OK(open_and_destroy(dataset, &input));
    bel_batch *batch = bel_batch_create(input);
    const struct timespec times[] = {{.tv_sec = 1}, {.tv_sec = 1}};
    assert_int_equal(utimensat(AT_FDCWD, it.paths[0], times, 0), 0);
    BEL_ASSERT_OK(bel_input_read(input, 0, batch));
    int descriptor = open(it.paths[0], O_WRONLY | O_CLOEXEC);
    assert_true(descriptor >= 0);
    assert_int_equal(pwrite(descriptor, "9", 1, 4), 1);
    close(descriptor);
    BEL_ASSERT_FAILS(bel_input_read(input, 1, batch), BEL_DATA_LOSS,
                     "it was written to while it was read");
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    case_deinit(&it);
}

// --- Errors --------------------------------------------------------------------------------------

typedef struct error_case {
    const char *text;
    const char *place; // "file:line:column: "
    const char *part;
} error_case;

static void assert_error(const error_case *it, bool when_opened)
{
    csv_case file;
    case_init(&file, it->text);
    file.options.label_column = "y";
    file.options.class_count = 10;
    char *place = bel_strf("%s%s", file.path, it->place);
    bel_input *input = NULL;
    bel_batch *batch = NULL;
    bel_status *status = when_opened ? open_failing(case_dataset(&file))
                                     : read_all(case_dataset(&file), &input, &batch);
    assert_non_null(status);
    const char *message = bel_status_message(status);
    bool right = bel_status_code(status) == BEL_DATA_LOSS &&
                 strncmp(message, place, strlen(place)) == 0 && strstr(message, it->part) != NULL;
    if (!right) fail_msg("expected %s… %s, got %s", place, it->part, message);
    bel_status_destroy(status);
    bel_free(place);
    case_deinit(&file);
}

static void test_structure_and_labels_are_checked_when_opened(void **state)
{
    (void)state;
    static const error_case cases[] = {
        {"", ": ", "empty"},
        {"\n\n", ": ", "empty"},
        {"a,y\n", ": ", "none"},
        {"a,y\n1,2\n3\n", ":3:2: ", "expected 2 fields, got 1"},
        {"a,y\n1,2,\n", ":2:5: ", "expected 2 fields, got 3"},
        {"a,y\n1,2,3,4\n", ":2:5: ", "expected 2 fields, got 4"},
        {"a,y\n1,2\n\n3,4\n", ":3:1: ", "expected 2 fields, got 1 (a blank line)"},
        {"a,y\n1,2\n\"3,4\n", ":3:1: ", "closing quote"},
        {"a,y\n1,\"2\n5,6\n", ":2:3: ", "closing quote"},
        {"a,\"y\n", ":1:3: ", "closing quote"},
        {"a,y\n1\"2,3\n", ":2:2: ", "quote"},
        {"a,y\n\"1\"2,3\n", ":2:4: ", "after the closing quote"},
        {"a,y\n\"1\n\",3\n4,10\n",
         ":4:3: ", "label \"y\": expected an integer in 0..9, got \"10\""},
        {"a,y\n1,-1\n", ":2:3: ", "got \"-1\""},
        {"a,y\n1,2.0\n", ":2:3: ", "got \"2.0\""},
        {"a,y\n1,\n", ":2:3: ", "got an empty field"},
        {"a,y\n1,cat\n", ":2:3: ", "got \"cat\""},
        {"a,y\n1,99999999999999999999\n", ":2:3: ", "got \"99999999999999999999\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_error(&cases[i], true);
}

static void test_numbers_are_checked_when_read(void **state)
{
    (void)state;
    static const error_case cases[] = {
        {"a,y\n1,2\nabc,4\n", ":3:1: ", "column \"a\": expected a number, got \"abc\""},
        {"y,a,b\n1,2,3\n1,2,3x\n", ":3:5: ", "column \"b\": expected a number, got \"3x\""},
        {"a,b,y\n1,,3\n", ":2:3: ", "column \"b\": expected a number, got an empty field"},
        {"a,y\n\"x\ny\",2\n1 2,3\n", ":2:2: ", "got \"x\\ny\""},
        {"a,y\nnan,2\n", ":2:1: ", "got \"nan\""},
        {"a,y\n1e39,2\n", ":2:1: ", "f32"},
        {"a,y\n1e999,2\n", ":2:1: ", "got \"1e999\""},
        {"a,y\n0x10,2\n", ":2:1: ", "got \"0x10\""},
        {"y,a\n1,2\n3,4\r5\n", ":3:3: ", "expected a number"},
        {"y,a,b\n1,2,\"3\"\n3,4,\"\nx\"\n", ":3:6: ", "expected a number, got \"\\nx\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_error(&cases[i], false);
}

// Names given to other columns make the data different.
static uint64_t fingerprint_with(const char *const *names)
{
    csv_case it;
    case_init(&it, "1,2\n3,4\n");
    bel_csv_column column = {"a", BEL_DTYPE_F32};
    it.options.no_header = true;
    it.options.column_names = names;
    it.options.column_name_count = 2;
    it.options.columns = &column;
    it.options.column_count = 1;
    bel_input *input = NULL;
    BEL_ASSERT_OK(open_and_destroy(case_dataset(&it), &input));
    uint64_t fingerprint = bel_input_fingerprint(input);
    bel_input_destroy(input);
    case_deinit(&it);
    return fingerprint;
}

static void test_names_are_compared(void **state)
{
    (void)state;
    uint64_t first = fingerprint_with((const char *const[]){"a", "b"});
    assert_int_equal(fingerprint_with((const char *const[]){"a", "c"}), first);
    assert_int_not_equal(fingerprint_with((const char *const[]){"b", "a"}), first);
}

static bel_status *read_typed(const char *text, bel_dtype dtype)
{
    csv_case it;
    case_init(&it, text);
    bel_csv_column column = {"n", dtype};
    it.options.columns = &column;
    it.options.column_count = 1;
    bel_input *input = NULL;
    bel_batch *batch = NULL;
    bel_status *status = read_all(case_dataset(&it), &input, &batch);
    case_deinit(&it);
    if (status != NULL) return status;
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    return NULL;
}

static void test_typed_numbers_are_checked(void **state)
{
    (void)state;
    BEL_ASSERT_OK(read_typed("m,n\n0,2147483647\n", BEL_DTYPE_I32));
    BEL_ASSERT_FAILS(read_typed("m,n\n0,2147483648\n", BEL_DTYPE_I32), BEL_DATA_LOSS,
                     "a.csv:2:3: ");
    BEL_ASSERT_FAILS(read_typed("m,n\n0,1.5\n", BEL_DTYPE_I64), BEL_DATA_LOSS, "a.csv:2:3: ");
    BEL_ASSERT_FAILS(read_typed("m,n\n0,\n", BEL_DTYPE_F32), BEL_DATA_LOSS, "a.csv:2:3: ");
    BEL_ASSERT_FAILS(read_typed("m,n\n0,1e39\n", BEL_DTYPE_F32), BEL_DATA_LOSS, "a.csv:2:3: ");
}

// Integers reach the batch exactly, whichever type they have.
static void test_vectors_are_exact(void **state)
{
    (void)state;
    csv_case it;
    case_init(&it, "a,b\n9007199254740993,-2\n20000001,7.0\n");
    it.options.vector_dtype = BEL_DTYPE_I64;
    bel_input *input = NULL;
    bel_batch *batch = NULL;
    BEL_ASSERT_OK(read_all(case_dataset(&it), &input, &batch));
    const bel_tensor *x = batch_field(input, batch, "x");
    assert_int_equal(x->dtype, BEL_DTYPE_I64);
    const int64_t *values = x->data;
    assert_true(values[0] == 9007199254740993 && values[1] == -2);
    assert_true(values[2] == 20000001 && values[3] == 7);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    it.options.vector_dtype = BEL_DTYPE_I32;
    BEL_ASSERT_FAILS(read_all(case_dataset(&it), &input, &batch), BEL_DATA_LOSS,
                     "a.csv:2:1: column \"a\": expected a 32-bit integer");
    it.options.vector_dtype = BEL_DTYPE_I64;
    it.options.scale = 2;
    BEL_ASSERT_FAILS(read_all(case_dataset(&it), &input, &batch), BEL_INVALID_ARGUMENT,
                     "are not scaled");
    case_deinit(&it);
}

// Opens a file that is not CSV; the error names its kind.
static bel_status *open_bytes(const char *bytes, size_t size)
{
    csv_case it;
    case_init(&it, "");
    bel_free(bel_test_file(it.folder, "a.csv", bytes, size));
    bel_status *status = open_failing(case_dataset(&it));
    case_deinit(&it);
    return status;
}

static void test_other_files(void **state)
{
    (void)state;
    BEL_ASSERT_FAILS(open_bytes("\xFF\xFEx\0\n\0", 6), BEL_DATA_LOSS,
                     "a.csv: expected CSV in UTF-8");
    BEL_ASSERT_FAILS(open_bytes("x\0\n\0001\0\n", 7), BEL_DATA_LOSS, "a.csv:1:2: expected text");
    BEL_ASSERT_FAILS(open_bytes("x,y\r1,2\r", 8), BEL_DATA_LOSS, "its lines end with only CR");
    BEL_ASSERT_FAILS(open_bytes("x,y\n1,2\0\n", 9), BEL_DATA_LOSS,
                     "a.csv:2:4: expected text, got a zero byte");
}

static void test_wrong_options(void **state)
{
    (void)state;
    csv_case it;
    case_init(&it, "pixel,digit,a,a\n1,2,3,4\n");
    it.options.label_column = "digt";
    BEL_ASSERT_FAILS(open_failing(case_dataset(&it)), BEL_INVALID_ARGUMENT,
                     "no column \"digt\"; did you mean \"digit\"?");
    it.options.label_column = "a";
    BEL_ASSERT_FAILS(open_failing(case_dataset(&it)), BEL_INVALID_ARGUMENT, "\"a\"");
    it.options.label_column = NULL;
    it.options.class_count = -1;
    BEL_ASSERT_FAILS(open_failing(case_dataset(&it)), BEL_INVALID_ARGUMENT, "class_count");
    it.options.class_count = 0;
    it.options.delimiter = '.'; // could be part of a number
    BEL_ASSERT_FAILS(open_failing(case_dataset(&it)), BEL_INVALID_ARGUMENT, "delimiter");
    it.options.delimiter = ',';
    it.options.path_count = 0;
    BEL_ASSERT_FAILS(open_failing(case_dataset(&it)), BEL_INVALID_ARGUMENT, "path");
    it.options.path_count = 1;
    it.paths[0] = "/nonexistent/train.csv";
    BEL_ASSERT_FAILS(open_failing(case_dataset(&it)), BEL_NOT_FOUND, "/nonexistent/train.csv");
    case_deinit(&it);
}

// Lines without quotes are skipped in one loop; a quote before them prevents that. Both ways find
// the same labels at any place, and name the same places of errors.
static void test_plain_and_quoted_rows(void **state)
{
    (void)state;
    for (int columns = 2; columns < 40; columns = columns < 6 ? columns + 1 : columns * 2) {
        for (int label = 0; label < columns; label++) {
            for (int form = 0; form < 8; form++) {
                bool quoted = (form & 1) != 0, wide = (form & 2) != 0, open_end = (form & 4) != 0;
                bel_str text = {0};
                for (int row = 0; row < 5; row++) {
                    for (int c = 0; c < columns; c++) {
                        const char *quote = quoted && c == 0 ? "\"" : "";
                        bel_str_printf(&text, "%s%s%d%s", c > 0 ? "," : "", quote, row * 7 + c,
                                       quote);
                    }
                    bel_str_puts(&text, row == 4 && open_end ? "" : wide ? "\r\n" : "\n");
                }
                csv_case it;
                char name[16];
                case_init(&it, text.text);
                (void)snprintf(name, sizeof name, "%d", label);
                it.options.no_header = true;
                it.options.columns =
                    (const bel_csv_column[]){{label == 0 ? "1" : "0", BEL_DTYPE_I64}};
                it.options.column_count = 1; // no other column
                it.options.label_column = name;
                bel_input *input = NULL;
                bel_batch *batch = NULL;
                BEL_ASSERT_OK(read_all(case_dataset(&it), &input, &batch));
                const int64_t *labels = batch_field(input, batch, BEL_LABEL_FIELD)->data;
                assert_int_equal(batch->example_count, 5);
                for (int row = 0; row < 5; row++)
                    assert_int_equal(labels[row], row * 7 + label);
                bel_batch_destroy(batch);
                bel_input_destroy(input);
                it.options.class_count = 28 + label; // the last row's label is one too large
                char place[64];
                int width = 0;
                for (int c = 0; c < label; c++)
                    width += 28 + c < 100 ? 3 : 4;
                (void)snprintf(place, sizeof place, "a.csv:5:%d: label",
                               width + 1 + (quoted ? label == 0 ? 1 : 2 : 0));
                BEL_ASSERT_FAILS(open_failing(case_dataset(&it)), BEL_DATA_LOSS, place);
                case_deinit(&it);
                bel_str_deinit(&text);
            }
        }
    }
}

// A caller that reads all records at once meets a wrong value while it reads, not at opening.
// Opening always checks the structure.
static void test_reading_at_once(void **state)
{
    (void)state;
    csv_case it;
    case_init(&it, "a,b\n1,2\n3,x\n");
    BEL_ASSERT_FAILS(open_failing(case_dataset(&it)), BEL_DATA_LOSS, "a.csv:3:3");
    bel_dataset *dataset = case_dataset(&it);
    bel_input *input;
    BEL_ASSERT_OK(bel_input_open(dataset, &(bel_input_use){.at_once = true}, &input));
    bel_batch *batch = bel_batch_create(input);
    BEL_ASSERT_FAILS(bel_input_read(input, 0, batch), BEL_DATA_LOSS, "a.csv:3:3");
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    bel_dataset_destroy(dataset);
    case_deinit(&it);
}

// By default the last column is the label, whatever its name. A given name has precedence.
static void test_last_column_as_label(void **state)
{
    (void)state;
    static const float vectors[] = {1, 2, 3, 4};
    static const int64_t last[] = {0, 1}, first[] = {1, 3};
    bel_input *input = NULL;
    bel_batch *batch = NULL;
    csv_case it;
    case_init(&it, "a,b,c\n1,2,0\n3,4,1\n");
    it.options.last_is_label = true;
    BEL_ASSERT_OK(read_all(case_dataset(&it), &input, &batch));
    assert_memory_equal(batch_field(input, batch, "x")->data, vectors, sizeof vectors);
    assert_memory_equal(batch_field(input, batch, "label")->data, last, sizeof last);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    it.options.label_column = "a";
    BEL_ASSERT_OK(read_all(case_dataset(&it), &input, &batch));
    assert_memory_equal(batch_field(input, batch, "label")->data, first, sizeof first);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    case_deinit(&it);
}

// Ids are equal if column and text are, however the text is written, and follow the order of
// id_columns. The other columns are numbers.
static void test_ids(void **state)
{
    (void)state;
    static const char *const names[] = {"to", "from"};
    csv_case it;
    case_init(&it, "from,hour,to,y\nGVA,7,ZRH,1\n ZRH ,8,\"GVA\",0\n\"a\"\"b\",9,GVA,1\n");
    it.options.label_column = "y";
    it.options.id_columns = names;
    it.options.id_column_count = 2;
    bel_input *input = NULL;
    bel_batch *batch = NULL;
    BEL_ASSERT_OK(read_all(case_dataset(&it), &input, &batch));
    static const float hours[] = {7, 8, 9};
    assert_floats(batch_field(input, batch, "x"), hours, 3, 1);
    const bel_tensor *ids = batch_field(input, batch, BEL_ID_FIELD);
    bel_shape shape = BEL_SHAPE(3, 2);
    assert_int_equal(ids->dtype, BEL_DTYPE_I64);
    assert_true(bel_shape_equal(&ids->shape, &shape));
    const int64_t(*id)[2] = ids->data;
    assert_true(id[1][0] == id[2][0]); // to GVA
    assert_true(id[0][0] != id[1][0]);
    assert_true(id[0][0] != id[1][1]); // to and from ZRH
    assert_true(id[0][1] != id[1][1] && id[0][1] != id[2][1] && id[1][1] != id[2][1]);
    // Ids are the same on all machines and in all versions: the low half of XXH3's 128 bits of the
    // text. The seed is the 64-bit hash of the column's name (numbers from Python's xxhash).
    assert_true(id[0][1] == INT64_C(4914565814921413005) &&
                id[2][1] == INT64_C(2512480872385303196));
    bel_batch_destroy(batch);
    bel_input_destroy(input);

    static const char *const wrong[][2] = {{"to", "hours"}, {"to", "to"}, {"y", "to"}};
    static const char *const parts[] = {"\"hours\"; did you mean \"hour\"?", "\"to\" is asked",
                                        "\"y\" is asked"};
    for (int i = 0; i < 3; i++) {
        it.options.id_columns = wrong[i];
        BEL_ASSERT_FAILS(open_failing(case_dataset(&it)), BEL_INVALID_ARGUMENT, parts[i]);
    }
    case_deinit(&it);
}

static int64_t hash_in(const char *column, const char *text)
{
    if (text == NULL) return BEL_NO_ID;
    uint64_t seed = bel_hash64(column, strlen(column));
    return (int64_t)bel_hash128_of(text, strlen(text), seed).low;
}

static const char list_rows[] = "tag,x,word,one\n"
                                "a|b:c ,1, a:2.5|b : -1|c,a\n"
                                ",2,\"\",b\n"
                                "\"a\"\"|b\",3,a:1e1,c\n";

// Lists of ids: hashed like single ids, padded, in the order of id_list_columns, however the value
// is quoted.
static void test_id_lists(void **state)
{
    (void)state;
    csv_case it;
    case_init(&it, list_rows);
    it.options.id_list_columns = (const char *const[]){"word", "tag"};
    it.options.id_list_column_count = 2;
    it.options.id_list_most = 3;
    it.options.id_columns = (const char *const[]){"one"};
    it.options.id_column_count = 1;
    bel_input *input;
    bel_batch *batch;
    BEL_ASSERT_OK(read_all(case_dataset(&it), &input, &batch));
    const bel_tensor *lists = batch_field(input, batch, BEL_ID_LIST_FIELD);
    bel_shape expected_shape = BEL_SHAPE(3, 2, 3);
    assert_true(bel_shape_equal(&lists->shape, &expected_shape));
    static const char *const words[3][3] = {{"a:2.5", "b : -1", "c"}, {NULL}, {"a:1e1"}};
    static const char *const tags[3][3] = {{"a", "b:c"}, {NULL}, {"a\"", "b"}};
    const int64_t *got = lists->data;
    for (int row = 0; row < 3; row++) {
        for (int i = 0; i < 3; i++, got++)
            assert_int_equal(*got, hash_in("word", words[row][i]));
        for (int i = 0; i < 3; i++, got++)
            assert_int_equal(*got, hash_in("tag", tags[row][i]));
    }
    const int64_t *one = batch_field(input, batch, BEL_ID_FIELD)->data;
    assert_int_equal(one[2], hash_in("one", "c"));
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    case_deinit(&it);
}

// A weight follows the last ':'. The default is 1; places without an id have 0.
static void test_weights_of_ids(void **state)
{
    (void)state;
    csv_case it;
    case_init(&it, list_rows);
    it.options.id_list_columns = (const char *const[]){"word"};
    it.options.id_list_column_count = 1;
    it.options.id_list_most = 3;
    it.options.id_list_weights = true;
    it.options.id_columns = (const char *const[]){"one", "tag"};
    it.options.id_column_count = 2;
    bel_input *input;
    bel_batch *batch;
    BEL_ASSERT_OK(read_all(case_dataset(&it), &input, &batch));
    static const char *const words[] = {"a", "b", "c", NULL, NULL, NULL, "a", NULL, NULL};
    static const float weights[] = {2.5f, -1, 1, 0, 0, 0, 10, 0, 0};
    const int64_t *got = batch_field(input, batch, BEL_ID_LIST_FIELD)->data;
    for (int i = 0; i < 9; i++)
        assert_int_equal(got[i], hash_in("word", words[i]));
    const bel_tensor *w = batch_field(input, batch, BEL_ID_WEIGHT_FIELD);
    bel_shape expected_shape = BEL_SHAPE(3, 1, 3);
    assert_true(bel_shape_equal(&w->shape, &expected_shape));
    assert_memory_equal(w->data, weights, sizeof weights);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    case_deinit(&it);
}

static void assert_bad_list(const char *value, bool weighted, const char *part)
{
    csv_case it;
    char *text = bel_strf("tags,x\na,1\n%s,2\n", value);
    case_init(&it, text);
    it.options.id_list_columns = (const char *const[]){"tags"};
    it.options.id_list_column_count = 1;
    it.options.id_list_most = 2;
    it.options.id_list_weights = weighted;
    BEL_ASSERT_FAILS(open_failing(case_dataset(&it)), BEL_DATA_LOSS, part);
    case_deinit(&it);
    bel_free(text);
}

static void test_bad_id_lists(void **state)
{
    (void)state;
    assert_bad_list("a|b|c", false,
                    "a.csv:3:1: column \"tags\": expected at most 2 ids with '|' between them, got "
                    "\"a|b|c\"");
    assert_bad_list("a|", false, "got \"a|\"");
    assert_bad_list("|", false, "got \"|\"");
    assert_bad_list("a:x", true, "each as id or id:weight, with '|' between them, got \"a:x\"");
    assert_bad_list("a:1e99", true, "got \"a:1e99\"");
    assert_bad_list(":1", true, "got \":1\"");
    csv_case it;
    case_init(&it, "tags,x\na,1\n");
    it.options.id_list_weights = true;
    BEL_ASSERT_FAILS(open_failing(case_dataset(&it)), BEL_INVALID_ARGUMENT, "go with");
    it.options.id_list_columns = (const char *const[]){"tags"};
    it.options.id_list_column_count = 1;
    it.options.id_list_separator = ':';
    BEL_ASSERT_FAILS(open_failing(case_dataset(&it)), BEL_INVALID_ARGUMENT, "character 58");
    it.options.id_list_separator = ';';
    it.options.id_list_most = -1;
    BEL_ASSERT_FAILS(open_failing(case_dataset(&it)), BEL_INVALID_ARGUMENT, "got -1");
    case_deinit(&it);
}

static void test_what_does_not_go_with_follow_secs(void **state)
{
    (void)state;
    csv_case it;
    case_init(&it, "a,b\n1,2\n");
    const double wrong[] = {-1, NAN, INFINITY};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        it.options.follow_secs = wrong[i];
        BEL_ASSERT_FAILS(open_failing(case_dataset(&it)), BEL_INVALID_ARGUMENT, "follow_secs");
    }
    it.options.follow_secs = 1;
    it.options.holdout = (bel_holdout){.share = 0.5};
    BEL_ASSERT_FAILS(open_failing(case_dataset(&it)), BEL_INVALID_ARGUMENT, "holdout");
    it.options.holdout = (bel_holdout){.fold_count = 2};
    BEL_ASSERT_FAILS(open_failing(case_dataset(&it)), BEL_INVALID_ARGUMENT, "holdout");
    case_deinit(&it);
}

// length_column is a separate field and not a number of the vector.
static void test_length(void **state)
{
    (void)state;
    csv_case it;
    case_init(&it, "a,steps,b,y\n1,2,3,0\n4, 0 ,6,1\n");
    it.options.label_column = "y";
    it.options.length_column = "steps";
    it.options.scale = 2;
    bel_input *input = NULL;
    bel_batch *batch = NULL;
    BEL_ASSERT_OK(read_all(case_dataset(&it), &input, &batch));
    static const float numbers[] = {2, 6, 8, 12};
    assert_floats(batch_field(input, batch, "x"), numbers, 2, 2);
    const bel_tensor *lengths = batch_field(input, batch, BEL_LENGTH_FIELD);
    assert_int_equal(lengths->dtype, BEL_DTYPE_I64);
    assert_int_equal(((const int64_t *)lengths->data)[0], 2);
    assert_int_equal(((const int64_t *)lengths->data)[1], 0);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    it.options.length_column = "y";
    BEL_ASSERT_FAILS(open_failing(case_dataset(&it)), BEL_INVALID_ARGUMENT, "asked for twice");
    it.options.length_column = "step";
    BEL_ASSERT_FAILS(open_failing(case_dataset(&it)), BEL_INVALID_ARGUMENT, "did you mean");
    case_deinit(&it);
}

// Reads the example data of this repository.
static void test_digits(void **state)
{
    (void)state;
    bel_dataset *dataset = bel_dataset_from_csv(&(bel_csv_options){
        .size = sizeof(bel_csv_options),
        .paths = (const char *[]){"examples/data/digits-train.csv"},
        .path_count = 1,
        .label_column = "digit",
        .class_count = 10,
        .scale = 1.0 / 16,
    });
    bel_dataset_batch(dataset, 2);
    bel_input *input = NULL;
    bel_batch *batch = NULL;
    BEL_ASSERT_OK(read_all(dataset, &input, &batch));
    assert_int_equal(bel_input_epoch_records(input), 1438);
    const float *x = batch_field(input, batch, "x")->data;
    assert_true(x[2] == 5.0F / 16 && x[64 + 3] == 12.0F / 16);
    const int64_t *labels = batch_field(input, batch, BEL_LABEL_FIELD)->data;
    assert_true(labels[0] == 0 && labels[1] == 1);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_every_way_to_write_it),
        cmocka_unit_test(test_vector_skips_the_label_wherever_it_is),
        cmocka_unit_test(test_scale_name_and_delimiter),
        cmocka_unit_test(test_without_a_header),
        cmocka_unit_test(test_typed_columns),
        cmocka_unit_test(test_text_cannot_be_in_a_batch),
        cmocka_unit_test(test_several_files_and_origins),
        cmocka_unit_test(test_lines_of_rows),
        cmocka_unit_test(test_headers_must_agree),
        cmocka_unit_test(test_packed_file),
        cmocka_unit_test(test_shortened_file),
        cmocka_unit_test(test_rewritten_file),
        cmocka_unit_test(test_structure_and_labels_are_checked_when_opened),
        cmocka_unit_test(test_numbers_are_checked_when_read),
        cmocka_unit_test(test_typed_numbers_are_checked),
        cmocka_unit_test(test_vectors_are_exact),
        cmocka_unit_test(test_names_are_compared),
        cmocka_unit_test(test_other_files),
        cmocka_unit_test(test_wrong_options),
        cmocka_unit_test(test_plain_and_quoted_rows),
        cmocka_unit_test(test_reading_at_once),
        cmocka_unit_test(test_last_column_as_label),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_id_lists),
        cmocka_unit_test(test_weights_of_ids),
        cmocka_unit_test(test_bad_id_lists),
        cmocka_unit_test(test_what_does_not_go_with_follow_secs),
        cmocka_unit_test(test_length),
        cmocka_unit_test(test_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
