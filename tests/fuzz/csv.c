// Fuzz target for CSV files, with options that the first byte chooses: a vector of all numbers,
// with a label, with ids and lists of ids, as typed columns, without a header, with bad records
// left out.
#include "fuzz/read_all.h"

static const char *const one_id[] = {"a"};
static const char *const lists[] = {"l"};
static const bel_csv_column columns[] = {
    {"a", BEL_DTYPE_F32}, {"b", BEL_DTYPE_I64}, {"l", BEL_DTYPE_I32}};

static const bel_csv_options ways[] = {
    {.delimiter = ','},
    {.label_column = "b", .class_count = 10},
    {.last_is_label = true, .scale = 0.5},
    {.id_columns = one_id, .id_column_count = 1, .length_column = "b"},
    {.id_list_columns = lists, .id_list_column_count = 1, .id_list_most = 3},
    {.id_list_columns = lists, .id_list_column_count = 1, .id_list_weights = true},
    {.columns = columns, .column_count = 3},
    {.no_header = true, .delimiter = ';'},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input = {data, size};
    unsigned first = (unsigned)fuzz_take(&input, 1);
    size_t count;
    const uint8_t *bytes = fuzz_take_bytes(&input, size, &count);
    const char *path = fuzz_file(0, bytes, count);
    bel_csv_options options = ways[first % 8];
    options.paths = &path;
    options.path_count = 1;
    bel_dataset *dataset = bel_dataset_from_csv(&options);
    if (first & 8) bel_dataset_skip_bad_records(dataset, 2);
    fuzz_read_all(dataset, false);
    return 0;
}
