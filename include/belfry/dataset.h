/// Input pipelines. A dataset is a source of records and a list of stages behind it; it is only a
/// description until the trainer opens it. Errors stick to it and are reported when it is opened,
/// so that calls can follow each other without checks:
///
/// ```c
/// bel_dataset *data = bel_dataset_from_csv(&(bel_csv_options){
///     .paths = (const char *[]){"train.csv"}, .path_count = 1, .label_column = "digit",
///     .class_count = 10, .scale = 1.0 / 16});
/// bel_dataset_shuffle(data, 0, 42);
/// bel_dataset_repeat(data, BEL_REPEAT_FOREVER);
/// bel_dataset_batch(data, 64);
/// ```
///
/// A record is a set of named fields, each a tensor. The field "label" (BEL_LABEL_FIELD) becomes
/// the labels of the model function, all others its features. A batch of n records gives each field
/// a leading dimension n.
///
/// **Positions.** Before `map`, stages work on record numbers, never on records: shuffle permutes
/// numbers with a permutation keyed by (seed, epoch), so that any batch can be computed from its
/// number alone. That is how training resumes in the middle of an epoch, and how workers read
/// different batches without talking to each other (docs/input.md).
///
/// Thread rule: a dataset is built by one thread; opened datasets are read by many.
#ifndef BELFRY_DATASET_H
#define BELFRY_DATASET_H

#include "belfry/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bel_dataset bel_dataset;

#define BEL_LABEL_FIELD "label"
#define BEL_ID_FIELD "ids"
#define BEL_LENGTH_FIELD "length"

/// A record being read or mapped: fields by name, in the order in which they were added.
/// Memory belongs to the record and lives until it is in its batch.
typedef struct bel_record bel_record;

/// The field, or NULL. A string field has dtype BEL_DTYPE_STRING, shape [length] and a zero byte
/// behind its text.
BEL_API const bel_tensor *bel_record_get(const bel_record *record, const char *name);

/// Adds a field and returns its zeroed memory to fill; replaces a field of the same name. NULL for
/// an impossible shape: the record then fails by itself.
BEL_API void *bel_record_add(bel_record *record, const char *name, bel_dtype dtype,
                             const bel_shape *shape);

/// Where the record came from, e.g. "train.csv:17", for error messages.
BEL_API const char *bel_record_origin(const bel_record *record);

/// --- Sources -----------------------------------------------------------------------------------

/// One typed column of a CSV file that becomes a field of its own.
typedef struct bel_csv_column {
    const char *name; ///< The column's name in the header, also the field's name.
    bel_dtype dtype;  ///< F32, I32, I64 or STRING.
} bel_csv_column;

/// How to read CSV (RFC 4180: quotes, doubled quotes, line breaks inside quotes, CR LF or LF).
/// Files whose names end in .gz are unpacked. Zero-initialise, then set what you need.
typedef struct bel_csv_options {
    const char *const *paths; ///< The files, read one after another.
    int path_count;
    char delimiter; ///< 0 means ','.
    bool no_header; ///< The first line is data; columns are then named "0", "1" …
    const char *const *column_names; ///< With no_header: names instead; NULL keeps the numbers.
    int column_name_count;
    const char *label_column;      ///< Becomes field "label" (I64); NULL: no label.
    int64_t class_count;           ///< If > 0, labels outside [0, class_count) are errors.
    const char *const *id_columns; ///< Without `columns`: each value, whatever its text, is hashed
    int id_column_count;       ///< with the column's name into an id for tables; I64, field "ids".
    const char *length_column; ///< Without `columns`: the steps of a sequence; I64, field "length".
    const char *vector_name;   ///< Name of the field that gathers all number columns; NULL: "x".
    double scale;              ///< Numbers of that field are multiplied by it; 0 means 1.
    const bel_csv_column
        *columns; ///< If given: these columns become fields, and no vector is made.
    int column_count;
} bel_csv_options;

/// CSV. Without `columns`, every column but label, length and ids is a number and goes into one F32
/// field `vector_name` of shape [columns]; the ids, in the order in which they are named, into an
/// I64 field "ids" of shape [id columns]. Errors name file:line:column. Errors when opened:
/// NOT_FOUND (file), DATA_LOSS (ragged row, open quote, empty file, label that is no class),
/// INVALID_ARGUMENT (no such column). When read: DATA_LOSS (text in a number column).
BEL_API bel_dataset *bel_dataset_from_csv(const bel_csv_options *options);

/// IDX (the MNIST format), plain or .gz: unsigned bytes. Fields: "x", F32 [rows × columns …
/// flattened to one dimension], each byte multiplied by `scale` (0 means 1); "label", I64, when
/// `labels_path` is not NULL. `class_count` as above. Errors (when opened): NOT_FOUND; DATA_LOSS:
/// wrong magic, fewer bytes than the header promises, images and labels of different counts,
/// truncated gz, label out of range.
BEL_API bel_dataset *bel_dataset_from_idx(const char *images_path, const char *labels_path,
                                          double scale, int64_t class_count);

/// A field in memory: `data` holds all records, shape [record_count, …].
typedef struct bel_memory_field {
    const char *name;
    bel_tensor data;
} bel_memory_field;

/// Records in memory. All fields have the same leading dimension. The data is not copied: it must
/// outlive every use of the dataset.
BEL_API bel_dataset *bel_dataset_from_memory(const bel_memory_field *fields, int field_count);

/// --- Stages before map: they renumber -----------------------------------------------------------

/// Keeps records whose number modulo `count` is `index`.
BEL_API void bel_dataset_shard(bel_dataset *dataset, int64_t count, int64_t index);
BEL_API void bel_dataset_take(bel_dataset *dataset, int64_t count); ///< At most the first `count`.
BEL_API void bel_dataset_skip(bel_dataset *dataset, int64_t count); ///< All but the first `count`.

/// Permutes the records of each epoch inside consecutive windows of `buffer_size` records; 0 means
/// one window over everything. The order is a function of (seed, epoch, window).
BEL_API void bel_dataset_shuffle(bel_dataset *dataset, int64_t buffer_size, uint64_t seed);

enum { BEL_REPEAT_FOREVER = -1 };

/// Goes over the records `count` times. Each pass is an epoch: shuffle before repeat orders every
/// epoch anew. May also stand behind map.
BEL_API void bel_dataset_repeat(bel_dataset *dataset, int64_t count);

/// Keeps the records for which `keep` says true, judged on raw fields. Runs once over all records
/// when the dataset is opened; must come before repeat.
typedef bool bel_filter_fn(void *user, const bel_record *record);
BEL_API void bel_dataset_filter(bel_dataset *dataset, bel_filter_fn *keep, void *user);

/// --- map and what follows: nothing renumbers ----------------------------------------------------

/// Changes a record in place: reads fields, adds or replaces fields. With *out_skip set to true the
/// record is left out and its batch is one shorter. Called from several threads at once.
typedef bel_status *bel_map_fn(void *user, bel_record *record, bool *out_skip);

/// Applies `map` to every record; several maps apply in order. `drop` names raw fields that are
/// removed afterwards (NULL-terminated list, or NULL).
BEL_API void bel_dataset_map(bel_dataset *dataset, bel_map_fn *map, void *user,
                             const char *const *drop);

/// Batches of `batch_size` records. Every field must have one shape for all records.
BEL_API void bel_dataset_batch(bel_dataset *dataset, int64_t batch_size);

/// Batches whose fields are padded at the end of each dimension with zeros up to the longest record
/// of the batch. `padded_shapes` fixes dimensions of named fields: -1 means the field's own
/// longest, -2 and below the longest over all fields with that number; a fixed one must hold every
/// record (else DATA_LOSS names the record).
typedef struct bel_padded_shape {
    const char *field;
    bel_shape shape;
} bel_padded_shape;
BEL_API void bel_dataset_padded_batch(bel_dataset *dataset, int64_t batch_size,
                                      const bel_padded_shape *padded_shapes, int shape_count);

/// How many batches are kept ready (default 2; 0: none, they are read when asked for), made by how
/// many threads (default 1).
BEL_API void bel_dataset_prefetch(bel_dataset *dataset, int depth, int thread_count);

/// Frees a dataset; accepts NULL. An opened input keeps what it needs.
BEL_API void bel_dataset_destroy(bel_dataset *dataset);

#ifdef __cplusplus
}
#endif

#endif
