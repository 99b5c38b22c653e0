// Files that records name: their paths, and their bytes up to a limit.
#ifndef BELFRY_FEATURES_RECORD_FILE_H
#define BELFRY_FEATURES_RECORD_FILE_H

#include "belfry/features.h"

typedef struct bel_str bel_str; // base/str.h

enum { BEL_FEATURE_MAX_BYTES = 1 << 28 }; // when options have 0

// Copies options with their texts; deinit frees them.
void bel_file_options_copy(const bel_file_options *from, bel_file_options *out_copy);
void bel_file_options_deinit(bel_file_options *options);

// Appends the path that the record names to `out_path`. INVALID_ARGUMENT: no such text field.
// DATA_LOSS: the path is empty, or contains a zero byte.
bel_status *bel_record_file_path(const bel_record *record, const bel_file_options *options,
                                 bel_str *out_path) BEL_MUST_USE;

// Reads all bytes of a file of at most max_bytes (0: BEL_FEATURE_MAX_BYTES) and appends one zero
// byte; free with bel_free. DATA_LOSS: it is larger, or no file with bytes.
bel_status *bel_feature_file_read(const char *path, int64_t max_bytes, uint8_t **out_data,
                                  size_t *out_size) BEL_MUST_USE;

// The field that a map drops, as a list for bel_dataset_map.
typedef struct bel_drop_list {
    const char *names[2];
} bel_drop_list;

static inline bel_drop_list bel_drop_path(const bel_file_options *options)
{
    const char *field = options->path_field;
    return (bel_drop_list){{field == NULL ? "path" : field, NULL}};
}

#endif
