// Fuzz target for tables: a description of columns and a file that is read by it; or only a file,
// whose guessed description must survive its text form, and read the file. The first byte chooses.
// For a description the next two are its length.
#include <string.h>

#include "base/alloc.h"
#include "belfry/columns.h"
#include "fuzz/read_all.h"

static void read_with(const bel_columns *columns, const char *path, unsigned way)
{
    bel_columns *again = NULL;
    const char *text = bel_columns_text(columns);
    fuzz_expect(fuzz_is_good(bel_columns_parse(text, "again", &again)), "its text is read");
    fuzz_expect(strcmp(text, bel_columns_text(again)) == 0, "the same description");
    bel_columns_destroy(again);
    bel_csv_options options = {.size = sizeof options,
                               .paths = &path,
                               .path_count = 1,
                               .table = columns,
                               .unlabeled = (way & 2) != 0,
                               .holdout = {.share = (way & 4) != 0 ? 0.5 : 0}};
    bel_dataset *dataset = bel_dataset_from_csv(&options);
    if (way & 8) bel_dataset_skip_bad_records(dataset, 2);
    fuzz_read_all(dataset, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input = {data, size};
    unsigned way = (unsigned)fuzz_take(&input, 1);
    size_t count = 0;
    const uint8_t *bytes;
    char *description = NULL;
    if (way & 1) {
        size_t length = (size_t)fuzz_take(&input, 2);
        bytes = fuzz_take_bytes(&input, length, &count);
        description = bel_xstrndup((const char *)bytes, count);
    }
    bytes = fuzz_take_bytes(&input, size, &count);
    const char *path = fuzz_file(0, bytes, count);
    const bel_csv_options csv = {
        .size = sizeof csv, .paths = &path, .path_count = 1, .no_header = (way & 16) != 0};
    const bel_columns_options options = {
        .size = sizeof options, .no_label = (way & 32) != 0, .num_threads = 1};
    bel_columns *columns = NULL;
    bel_status *status = description != NULL
                             ? bel_columns_parse(description, "description", &columns)
                             : bel_columns_infer(&csv, &options, &columns);
    if (fuzz_is_good(status)) {
        read_with(columns, path, way);
        bel_columns_destroy(columns);
    }
    bel_free(description);
    return 0;
}
