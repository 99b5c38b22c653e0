// Datasets of each kind of source. A description is checked here as far as possible before anything
// is opened. Texts and lists are copied; memory fields, `user` and descriptions of columns stay the
// caller's. If a CSV source has such a description, its other options are neither read nor checked.
#include <math.h>
#include <string.h>

#include "base/sized.h"
#include "input/dataset/dataset_build.h"
#include "input/table/holdout.h"

static bel_status *check_scale(double scale)
{
    if (isfinite(scale)) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "dataset: expected a finite scale, got %g", scale);
}

static bel_status *check_class_count(int64_t class_count)
{
    if (class_count >= 0) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "dataset: expected a class_count of 0 (any) or more, got %lld",
                   (long long)class_count);
}

static bel_status *check_csv_columns(const bel_csv_options *options)
{
    for (int i = 0; options->columns != NULL && i < options->column_count; i++) {
        const bel_csv_column *column = &options->columns[i];
        if (column->name == NULL || column->name[0] == '\0') {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "csv: typed column %d has no name", i);
        }
        if (column->dtype != BEL_DTYPE_F32 && column->dtype != BEL_DTYPE_I32 &&
            column->dtype != BEL_DTYPE_I64 && column->dtype != BEL_DTYPE_STRING) {
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "csv: column \"%s\": expected f32, i32, i64 or string, got %s",
                           column->name, bel_dtype_name(column->dtype));
        }
    }
    return NULL;
}

static bel_status *check_paths(const char *source, const char *const *paths, int count)
{
    if (paths == NULL || count < 1) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: expected at least one path, got none", source);
    }
    for (int i = 0; i < count; i++) {
        if (paths[i] != NULL) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: path %d is NULL", source, i);
    }
    return NULL;
}

static bel_status *check_id_lists(const bel_csv_options *options)
{
    enum { MOST_IDS = 1 << 20 };
    bool beside = options->id_list_most != 0 || options->id_list_separator != '\0' ||
                  options->id_list_weights;
    if (options->id_list_column_count == 0 && beside) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "csv: id_list_most, id_list_separator and id_list_weights go with "
                       "id_list_columns");
    }
    if (options->columns != NULL && options->id_list_column_count > 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "csv: id_list_columns do not go with columns");
    }
    for (int i = 0; i < options->id_list_column_count; i++) {
        if (options->id_list_columns[i] == NULL)
            return BEL_ERR(BEL_INVALID_ARGUMENT, "csv: id list column %d is NULL", i);
    }
    if (options->id_list_most < 0 || options->id_list_most > MOST_IDS) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "csv: expected an id_list_most in 0..%d, got %lld",
                       MOST_IDS, (long long)options->id_list_most);
    }
    char separator = options->id_list_separator;
    bool taken = separator == '"' || separator == '\n' || separator == '\r' ||
                 (separator == ':' && options->id_list_weights);
    if (!taken) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "csv: expected an id_list_separator that is no quote, line break or, with "
                   "weights, ':', got character %d",
                   separator);
}

static bel_status *check_vector(const bel_csv_options *options)
{
    bel_dtype dtype = options->vector_dtype;
    bool whole = dtype == BEL_DTYPE_I32 || dtype == BEL_DTYPE_I64;
    if (!whole && dtype != BEL_DTYPE_F32 && dtype != BEL_DTYPE_F64) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "csv: expected numbers in F32, F64, I32 or I64, got %s",
                       bel_dtype_name(dtype));
    }
    if (!whole || options->scale == 0 || options->scale == 1) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "csv: numbers that go into %s are not scaled, got a scale of %g",
                   bel_dtype_name(dtype), options->scale);
}

static bel_status *check_follow(const bel_csv_options *options)
{
    double secs = options->follow_secs;
    if (!isfinite(secs) || secs < 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "csv: expected a finite follow_secs of at least 0, got %g", secs);
    }
    if (secs == 0) return NULL;
    if (options->path_count != 1) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "csv: expected one file with follow_secs, got %d",
                       options->path_count);
    }
    if (options->holdout.share == 0 && options->holdout.fold_count == 0) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "csv: a holdout chooses among all rows, and a file that is followed has no last "
                   "one");
}

static bel_status *check_csv(const bel_csv_options *options)
{
    if (options == NULL) return check_paths("csv", NULL, 0);
    BEL_TRY(check_paths("csv", options->paths, options->path_count));
    BEL_TRY(bel_holdout_check(&options->holdout));
    BEL_TRY(check_follow(options));
    if (options->table != NULL) return NULL; // other options are not read
    if (options->delimiter != '\0' && strchr("\"\r\n+-.0123456789eE", options->delimiter) != NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "csv: a quote, a line break or a character of numbers cannot be the "
                       "delimiter");
    }
    if (options->column_names != NULL && (!options->no_header || options->column_name_count < 1)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "csv: column_names goes with no_header and a "
                                             "column_name_count of at least 1");
    }
    for (int i = 0; options->column_names != NULL && i < options->column_name_count; i++) {
        if (options->column_names[i] == NULL) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "csv: column name %d is NULL", i);
        }
    }
    if (options->columns != NULL && options->column_count < 1) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "csv: expected a column_count of at least 1, got %d",
                       options->column_count);
    }
    if (options->columns != NULL && options->id_column_count > 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "csv: id_columns do not go with columns");
    }
    if (options->columns != NULL && options->length_column != NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "csv: length_column does not go with columns");
    }
    for (int i = 0; i < options->id_column_count; i++) {
        if (options->id_columns[i] == NULL) {
            return BEL_ERR(BEL_INVALID_ARGUMENT, "csv: id column %d is NULL", i);
        }
    }
    BEL_TRY(check_id_lists(options));
    BEL_TRY(check_csv_columns(options));
    BEL_TRY(check_scale(options->scale));
    BEL_TRY(check_vector(options));
    return check_class_count(options->class_count);
}

bel_dataset *bel_dataset_from_csv(const bel_csv_options *options)
{
    bel_source_description source = {.kind = BEL_SOURCE_CSV};
    bel_status *status = bel_sized_take(&source.csv, sizeof source.csv, options, "bel_csv_options");
    if (status == NULL) status = check_csv(&source.csv);
    if (source.csv.delimiter == '\0') source.csv.delimiter = ',';
    if (source.csv.scale == 0) source.csv.scale = 1;
    if (source.csv.vector_name == NULL) source.csv.vector_name = "x";
    if (source.csv.id_list_most == 0) source.csv.id_list_most = 16;
    if (source.csv.id_list_separator == '\0') source.csv.id_list_separator = '|';
    return bel_dataset_create(&source, status);
}

bel_dataset *bel_dataset_from_idx(const char *images_path, const char *labels_path, double scale,
                                  int64_t class_count)
{
    bel_status *status = NULL;
    if (images_path == NULL) {
        status = BEL_ERR(BEL_INVALID_ARGUMENT, "idx: expected a path of images, got NULL");
    }
    if (status == NULL) status = check_scale(scale);
    if (status == NULL) status = check_class_count(class_count);
    bel_source_description source = {
        .kind = BEL_SOURCE_IDX,
        .idx = {images_path, labels_path, scale == 0 ? 1 : scale, class_count},
    };
    return bel_dataset_create(&source, status);
}

bel_dataset *bel_dataset_from_text(const char *const *paths, int path_count)
{
    bel_status *status = check_paths("text", paths, path_count);
    bel_source_description source = {.kind = BEL_SOURCE_TEXT, .text = {paths, path_count}};
    return bel_dataset_create(&source, status);
}

static bel_status *check_feature(const bel_example_feature *feature, int index)
{
    if (feature->key == NULL || feature->key[0] == '\0') {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "tfrecord: feature %d has no key", index);
    }
    bel_dtype dtype = feature->dtype;
    if (dtype == BEL_DTYPE_STRING) return NULL;
    if (dtype != BEL_DTYPE_F32 && dtype != BEL_DTYPE_I64 && dtype != BEL_DTYPE_U8) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "tfrecord: feature \"%s\": expected f32, i64, u8 or string, got %s",
                       feature->key, bel_dtype_name(dtype));
    }
    const bel_shape *shape = &feature->shape;
    bool open = shape->rank > 0 && shape->dims[0] == -1, possible = true;
    int64_t elements = 1;
    if (shape->rank < 0 || shape->rank >= BEL_MAX_RANK) possible = false;
    for (int32_t i = open ? 1 : 0; possible && i < shape->rank; i++)
        possible =
            shape->dims[i] >= 1 && !__builtin_mul_overflow(elements, shape->dims[i], &elements);
    char text[BEL_SHAPE_TEXT];
    if (!possible || elements > INT32_MAX) {
        return BEL_ERR(
            BEL_INVALID_ARGUMENT,
            "tfrecord: feature \"%s\": expected a closed shape of at most %d dimensions, "
            "or one with -1 in front, got %s",
            feature->key, BEL_MAX_RANK - 1, bel_shape_text(shape, text));
    }
    if (!open || feature->missing == NULL) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "tfrecord: feature \"%s\": with an open shape a record without it has no rows, "
                   "so `missing` is not read",
                   feature->key);
}

static const char *field_of(const bel_example_feature *feature)
{
    return feature->field == NULL ? feature->key : feature->field;
}

static bel_status *check_tfrecord(const bel_tfrecord_options *options)
{
    if (options == NULL) return check_paths("tfrecord", NULL, 0);
    BEL_TRY(check_paths("tfrecord", options->paths, options->path_count));
    if (options->features == NULL) return NULL;
    if (options->feature_count < 1) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "tfrecord: expected a feature_count of at least 1, got %d",
                       options->feature_count);
    }
    for (int i = 0; i < options->feature_count; i++) {
        const bel_example_feature *feature = &options->features[i];
        BEL_TRY(check_feature(feature, i));
        for (int j = 0; j < i; j++) {
            if (strcmp(field_of(feature), field_of(&options->features[j])) != 0) continue;
            return BEL_ERR(BEL_INVALID_ARGUMENT, "tfrecord: two features become field \"%s\"",
                           field_of(feature));
        }
    }
    return NULL;
}

bel_dataset *bel_dataset_from_tfrecord(const bel_tfrecord_options *options)
{
    bel_source_description source = {.kind = BEL_SOURCE_TFRECORD};
    bel_tfrecord_options *copy = &source.tfrecord;
    bel_status *status = bel_sized_take(copy, sizeof *copy, options, "bel_tfrecord_options");
    if (status == NULL) status = check_tfrecord(copy);
    return bel_dataset_create(&source, status);
}

static bel_status *check_tokens(const bel_token_options *options)
{
    BEL_TRY(check_paths("tokens", options->paths, options->path_count));
    BEL_TRY(bel_holdout_check(&options->holdout));
    if (options->format != BEL_TOKENS_IDS && options->tokenizer == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "tokens: texts need a tokenizer, got NULL");
    }
    if (options->vocabulary < 0 || options->context < 1 || options->context > INT32_MAX) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "tokens: expected a context from 1 on and a vocabulary from 0 on, got %lld "
                       "and %lld",
                       (long long)options->context, (long long)options->vocabulary);
    }
    if (options->format == BEL_TOKENS_TEXT || options->format == BEL_TOKENS_JSONL ||
        options->format == BEL_TOKENS_IDS) {
        return NULL;
    }
    return BEL_ERR(BEL_INVALID_ARGUMENT, "tokens: expected a format of bel_token_format, got %d",
                   (int)options->format);
}

bel_dataset *bel_dataset_from_tokens(const bel_token_options *options)
{
    bel_source_description source = {.kind = BEL_SOURCE_TOKENS};
    bel_token_options *copy = &source.tokens;
    bel_status *status = bel_sized_take(copy, sizeof *copy, options, "bel_token_options");
    if (status == NULL) status = check_tokens(copy);
    if (copy->key == NULL) copy->key = "text";
    bel_dataset *dataset = bel_dataset_create(&source, status);
    if (copy->tokenizer != NULL)
        bel_dataset_labels(dataset, (const char *const[]){BEL_TOKEN_BYTES_FIELD}, 1);
    return dataset;
}

static bel_status *check_count(const char *source, int64_t record_count)
{
    if (record_count >= 0 || record_count == BEL_REPEAT_FOREVER) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "%s: expected a record_count of 0 or more, or %d for no end, got %lld", source,
                   BEL_REPEAT_FOREVER, (long long)record_count);
}

bel_dataset *bel_dataset_from_function(bel_make_fn *make, void *user, int64_t record_count)
{
    bel_status *status = check_count("function", record_count);
    if (status == NULL && make == NULL) {
        status = BEL_ERR(BEL_INVALID_ARGUMENT, "function: expected a function, got NULL");
    }
    bel_source_description source = {
        .kind = BEL_SOURCE_GENERATOR,
        .generator = {.make = make, .user = user, .record_count = record_count},
    };
    return bel_dataset_create(&source, status);
}

bel_dataset *bel_dataset_from_generator(const bel_generator *generator, void *user,
                                        int64_t record_count)
{
    bel_status *status = check_count("generator", record_count);
    bel_source_description source = {
        .kind = BEL_SOURCE_GENERATOR,
        .generator = {.user = user, .record_count = record_count},
    };
    bel_generator *steps = &source.generator.steps;
    if (status == NULL) status = bel_sized_take(steps, sizeof *steps, generator, "bel_generator");
    if (status == NULL && (steps->begin == NULL || steps->next == NULL)) {
        status = BEL_ERR(BEL_INVALID_ARGUMENT, "generator: expected begin and next, got NULL");
    }
    return bel_dataset_create(&source, status);
}

bel_dataset *bel_dataset_from_memory(const bel_memory_field *fields, int field_count)
{
    bel_status *status = NULL;
    if (fields == NULL || field_count < 1) {
        status = BEL_ERR(BEL_INVALID_ARGUMENT, "memory: expected at least one field, got none");
    }
    bel_source_description source = {
        .kind = BEL_SOURCE_MEMORY,
        .memory = {fields, field_count},
    };
    return bel_dataset_create(&source, status);
}

bel_dataset *bel_dataset_from_memory_table(const bel_memory_table *rows, const bel_columns *columns,
                                           bool unlabeled)
{
    bel_status *status = NULL;
    if (rows == NULL || columns == NULL) {
        status = BEL_ERR(BEL_INVALID_ARGUMENT, "table in memory: expected rows and columns, got "
                                               "NULL");
    }
    bel_source_description source = {
        .kind = BEL_SOURCE_MEMORY_TABLE,
        .memory_table = {rows, columns, unlabeled},
    };
    return bel_dataset_create(&source, status);
}
