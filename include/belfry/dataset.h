/// Input pipelines. A dataset is a source of records, followed by a list of stages. It is only a
/// description until the trainer opens it, so calls can follow each other without checks:
///
/// ```c
/// const bel_csv_options csv = {
///     .size = sizeof csv, .paths = (const char *[]){"train.csv"}, .path_count = 1,
///     .label_column = "digit", .class_count = 10, .scale = 1.0 / 16};
/// bel_dataset *data = bel_dataset_from_csv(&csv);
/// bel_dataset_shuffle(data, 0, 42);
/// bel_dataset_repeat(data, BEL_REPEAT_FOREVER);
/// bel_dataset_batch(data, 64);
/// ```
///
/// A record is a set of named fields, each a tensor. The field "label" (BEL_LABEL_FIELD), and those
/// that bel_dataset_labels names, become the labels of the model function. All other fields become
/// its features. A batch of n records gives each field a leading dimension n.
///
/// **Positions.** Before `map`, stages work on record numbers, never on records. Shuffle permutes
/// numbers with a permutation keyed by (seed, epoch), so any batch can be computed from its number
/// only. Training can therefore resume in the middle of an epoch, and workers read different
/// batches without communicating (docs/input.md).
///
/// **Errors.** No call here returns an error. The first mistake sticks to the dataset, and later
/// calls on it do nothing. The call that opens the dataset (bel_train_and_evaluate, bel_evaluate,
/// bel_predict) returns the error before it reads anything. INVALID_ARGUMENT: an invalid
/// description (NULL, a number out of range, a stage in an impossible place, no batch stage). Each
/// source's comment lists its other errors.
///
/// **Ownership.** Calls copy texts and lists. They keep functions, their `user` and the elements of
/// memory fields as pointers, which must stay valid until the call that trains, evaluates or
/// predicts has returned. bel_dataset_destroy frees a dataset; the library frees one that an input
/// function returns (bel_input_fn).
///
/// **Thread rule.** One thread builds a dataset. Many threads read an opened dataset: `map`
/// functions run on several threads at once, in no fixed order. They may read what `user` points
/// to, and must lock what they change there. `filter` functions run on one thread, at opening.
#ifndef BELFRY_DATASET_H
#define BELFRY_DATASET_H

#include "belfry/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Description of an input; opaque.
typedef struct bel_dataset bel_dataset;

/// Description of the columns of a table (columns.h); opaque.
typedef struct bel_columns bel_columns;

#define BEL_LABEL_FIELD "label"          ///< Labels of the model function.
#define BEL_ID_FIELD "ids"               ///< Field for bel_csv_options.id_columns.
#define BEL_ID_LIST_FIELD "id_lists"     ///< Field for bel_csv_options.id_list_columns.
#define BEL_ID_WEIGHT_FIELD "id_weights" ///< Weights of these ids, with id_list_weights.
#define BEL_LENGTH_FIELD "length"        ///< Field for bel_csv_options.length_column.
#define BEL_TEXT_FIELD "text"            ///< Lines of bel_dataset_from_text.
#define BEL_RECORD_FIELD "record"        ///< Bytes of a TFRecord file's record.

enum { BEL_REPEAT_FOREVER = -1 }; ///< For bel_dataset_repeat, and for sources without an end.

/// Record that is being filtered or mapped: fields by name, in the order in which they were added.
/// The record and its memory belong to the library and are valid during the call of the function
/// that gets it. One thread at a time uses a record.
typedef struct bel_record bel_record;

/// Returns the field of this name; NULL if it does not exist. A string field has dtype
/// BEL_DTYPE_STRING, shape [length] and a zero byte after its text. A map may write to a field's
/// elements in place.
BEL_API const bel_tensor *bel_record_get(const bel_record *record, const char *name);

/// For maps: adds a field and returns its zeroed memory to fill. A field of the same name is
/// replaced and keeps its position. The name is copied. dtype: F32, F64, I32, I64, U8, BOOL or
/// STRING (rank 1). shape: closed, up to 7 dimensions. Returns NULL for anything else; the map then
/// fails with INVALID_ARGUMENT, unless it returns another error.
BEL_API void *bel_record_add(bel_record *record, const char *name, bel_dtype dtype,
                             const bel_shape *shape);

/// Returns the record's origin, e.g. "train.csv:17". Errors of maps already start with it.
BEL_API const char *bel_record_origin(const bel_record *record);

/// Returns the record's number in its source, from 0 on. Derive the random choices of a map from a
/// seed, this number and the epoch, as augmentation (features.h) does: each epoch then has other
/// choices, and every run has the same.
BEL_API int64_t bel_record_number(const bel_record *record);
/// Returns the epoch in which the record is read: the number of passes of all repeats before it. 0
/// for filters.
BEL_API int64_t bel_record_epoch(const bel_record *record);

/// Returns the path of the record's file, as the caller gave it to the source. Relative paths in
/// the record are relative to this file. "" if there is no such file. Lives as long as the record.
BEL_API const char *bel_record_file(const bel_record *record);

/// Returns the path of the file that the STRING field `field` names. A relative path begins at
/// `folder`, or, if that is NULL, at the folder of the record's file (bel_record_file). NULL: there
/// is no such text field, or its text is empty or contains a zero byte. Lives as long as the
/// record.
BEL_API const char *bel_record_path(const bel_record *record, const char *field,
                                    const char *folder);

/// --- Sources -----------------------------------------------------------------------------------
///
/// **Paths** may be patterns: `*`, `?` and `[…]` have their meaning in a shell, unless a file of
/// that very name exists. Matching files are read at the pattern's position in the list, sorted by
/// the bytes of their names. NOT_FOUND (when opened): no file matches the pattern, which the
/// message names.

/// One typed column of a CSV file that becomes a separate field.
typedef struct bel_csv_column {
    const char *name; ///< The column's name in the header, also the field's name.
    bel_dtype dtype;  ///< F32, I32, I64 or STRING.
} bel_csv_column;

/// Rows that are held out of a training, to evaluate on. The choice depends only on the rows, their
/// labels and the seed. It is stratified: each class (each value of the label) loses the same share
/// of its rows, to the nearest row, in a random order. Without a label column all rows form one
/// class.
typedef struct bel_holdout {
    double share;   ///< share of the rows, in (0, 1); 0 with fold_count, or to read all rows
    int fold;       ///< instead of a share: part `fold` of `fold_count` ≥ 2, from 0 on
    int fold_count; ///< all parts together hold each row once; 0: use `share`
    uint64_t seed;
    bool held; ///< true: the held-out rows; false: the others
} bel_holdout;

/// Options for CSV (RFC 4180: quotes, doubled quotes, line breaks inside quotes, CR LF or LF).
/// Files whose names end in .gz are unpacked. Set `size` and the fields you need.
typedef struct bel_csv_options {
    size_t size;              ///< sizeof(bel_csv_options): fields after it count as 0
    const char *const *paths; ///< Files or patterns, read one after another.
    int path_count;
    char delimiter;                  ///< 0 means ','.
    bool no_header;                  ///< The first line is data, and columns are named "0", "1" …
    const char *const *column_names; ///< With no_header: names of the columns; NULL: the numbers.
    int column_name_count;
    const char *label_column;      ///< Becomes field "label" (I64); NULL: no label.
    int64_t class_count;           ///< If > 0, labels outside [0, class_count) are errors.
    const char *const *id_columns; ///< Without `columns`: each value, whatever its text, is hashed
    int id_column_count;       ///< with the column's name to an id for tables; I64, field "ids".
    const char *length_column; ///< Without `columns`: the steps of a sequence; I64, field "length".
    const char *vector_name;   ///< Name of the field that holds all number columns; NULL: "x".
    double scale;              ///< Numbers of that field are multiplied by it; 0 means 1.
    const bel_csv_column
        *columns; ///< If given, these columns become fields, and there is no vector field.
    int column_count;
    const char *const
        *id_list_columns;     ///< Without `columns`: each value is a list of ids, "3|17|4",
    int id_list_column_count; ///< hashed like those of id_columns; I64, field "id_lists".
    int64_t id_list_most;     ///< Maximal number of ids in a value; 0 means 16.
    char id_list_separator;   ///< 0 means '|'.
    bool id_list_weights;     ///< Ids may have weights, "3:0.5|17"; F32, field "id_weights".
    bool last_is_label;       ///< Without label_column: the last column is the label.
    bel_holdout holdout;      ///< Zeros: all rows. Not for pipes, which can be read only once.
    /// Description of the columns (columns.h), which must stay valid. With it only paths, holdout
    /// and the fields below apply.
    const bel_columns *table;
    bool unlabeled; ///< With `table`: rows need no label, as for prediction.
    /// With `table`: fails with DATA_LOSS if a file changed since bel_columns_infer made `table`
    /// from it in this process.
    bool unchanged;
    /// With `table`: opening does not check cells; an invalid one is an error when its row is read.
    bool unchecked;
    /// Type of the field `vector_name`: F32, F64, I32 or I64. With an integer type each cell is
    /// read exactly, other text is an error, and `scale` must be 1.
    bel_dtype vector_dtype;
    /// Above 0: the one file grows while it is read (docs/follow.md). A row is a record as soon as
    /// its line feed is there. With a pattern, files or objects appear with rising names, each
    /// whole. Training takes steps whose records are all there, and ends when no row came for this
    /// number of seconds. Only maps and a batch may follow. Neither a holdout nor several paths go
    /// with it.
    double follow_secs;
} bel_csv_options;

/// Makes a dataset of CSV files, with a record for each row.
///
/// Without `columns`, every column but label, length and ids is a number. Numbers go into one field
/// `vector_name` of shape [columns], F32 or `vector_dtype`. Ids go into an I64 field "ids" of shape
/// [id columns], in the order of id_columns. Lists of ids go into an I64 field "id_lists" of shape
/// [list columns, id_list_most], padded with BEL_NO_ID, for bel_embedding_bag; an empty value is a
/// list without ids. Weights go into an F32 field of the same shape: the number after the last ':'
/// of an item, 1 without one, 0 for padding. The length goes into an I64 field "length" of shape
/// [].
///
/// With `columns`, each of these columns becomes a field of shape [] (STRING: [length]), and others
/// are left out. Later files of a model are bound to the columns of its training by name
/// (docs/input.md).
///
/// Errors name file:line:column. When opened: NOT_FOUND: no such file. DATA_LOSS: ragged row, open
/// quote, no rows, label that is no class, text in a number column, a list with too many ids or an
/// empty one. INVALID_ARGUMENT: no such column, or another one than in training. In files above 64
/// MiB, opening checks only the numbers of the first and last rows; the others are checked when
/// they are read (DATA_LOSS), as is a file that has become shorter. Numbers for prediction are
/// checked only when they are read.
BEL_API bel_dataset *bel_dataset_from_csv(const bel_csv_options *options);

/// Makes a dataset of IDX files (the MNIST format), plain or .gz: unsigned bytes in up to 4
/// dimensions. The first dimension counts the records. Fields: "x", F32, with all other dimensions
/// flattened to one [rows · columns …] and each byte multiplied by `scale` (0 means 1); "label",
/// I64 [], when `labels_path` is not NULL. `class_count` as in bel_csv_options. A pattern must
/// match one file. Errors (when opened): NOT_FOUND; DATA_LOSS: wrong magic, elements other than
/// unsigned bytes, a size that differs from the header's, different counts of images and labels,
/// truncated gz, label out of range.
BEL_API bel_dataset *bel_dataset_from_idx(const char *images_path, const char *labels_path,
                                          double scale, int64_t class_count);

/// Makes a dataset of lines of text: one STRING field "text" (BEL_TEXT_FIELD) of shape [length] for
/// each line, without its LF or CR LF. Blank lines are records, too. Bytes stay as they are, except
/// that a byte-order mark at the beginning of a file is removed. Files whose names end in .gz are
/// unpacked. `paths`: the files or patterns, read one after another. Text cannot be in a batch, so
/// a map turns it into numbers and names it in its drop list. Errors: NOT_FOUND, DATA_LOSS (no line
/// in any file) when opened; DATA_LOSS when a file has become shorter since.
BEL_API bel_dataset *bel_dataset_from_text(const char *const *paths, int path_count);

/// One feature of a tf.train.Example that becomes a field.
typedef struct bel_example_feature {
    const char *key;   ///< Name of the feature in the Example.
    const char *field; ///< Name of the field; NULL: the same.
    /// F32: a float_list. I64: an int64_list. STRING: a bytes_list of one text. U8: a bytes_list of
    /// one value whose bytes are the elements (decoded images, for instance).
    bel_dtype dtype;
    /// Shape of the field, row-major. Closed: the number of elements that every record has; a
    /// scalar has one. With -1 as first dimension: the number of rows varies by record, which a
    /// padded batch accepts. Not used for STRING.
    bel_shape shape;
    /// Value for records without the feature: one value of the dtype, for all elements of a closed
    /// shape (STRING: a text that ends with a zero byte). NULL: an error, or no rows if the shape
    /// is open. Copied.
    const void *missing;
} bel_example_feature;

/// Options for TFRecord files, which may be compressed as a whole by gzip or zlib. A file's first
/// bytes show its format. Set `size` and the fields you need.
typedef struct bel_tfrecord_options {
    size_t size;              ///< sizeof(bel_tfrecord_options): fields after it count as 0
    const char *const *paths; ///< Files or patterns, read one after another.
    int path_count, feature_count;
    const bel_example_feature *features; ///< Features to parse; NULL: records are not parsed.
} bel_tfrecord_options;

/// Makes a dataset of TFRecord files. With `features`, each record is a tf.train.Example, those
/// features are its fields, and others are left out. Without, the record's bytes are one STRING
/// field "record" (BEL_RECORD_FIELD), which a map parses. Opening builds an index of records, 8
/// bytes each, so they can be read in any order. Opening checks the checksums (CRC-32C) of lengths;
/// each read checks those of data.
///
/// Errors: NOT_FOUND (file). INVALID_ARGUMENT (an impossible feature). DATA_LOSS, with file and
/// record: not a TFRecord file, a file that ends within a record, a wrong checksum, data that is no
/// Example, a feature that is missing, of another kind or of another size. In files above 64 MiB,
/// opening parses only the first and last records.
BEL_API bel_dataset *bel_dataset_from_tfrecord(const bel_tfrecord_options *options);

/// Field in memory: `data` holds all records, shape [record_count, …].
typedef struct bel_memory_field {
    const char *name;
    bel_tensor data;
} bel_memory_field;

/// Makes a dataset of records in memory. All fields have the same leading dimension and any type
/// but STRING. The data is not copied: it must stay, unchanged, until the last call that uses the
/// dataset has returned. Errors (when opened), INVALID_ARGUMENT: no field, two of one name,
/// different counts of records, open shapes, no data.
BEL_API bel_dataset *bel_dataset_from_memory(const bel_memory_field *fields, int field_count);

/// Fills the empty `record` with record `number`, by bel_record_add. The result must depend only on
/// the number, or two runs give different bits. Several threads call it at once. Opening calls it
/// for the first record, to learn the names and shapes of the fields.
typedef bel_status *bel_make_fn(void *user, int64_t number, bel_record *record);

/// Makes a dataset of records that a function makes from their numbers: `record_count` of them (≥
/// 0), or BEL_REPEAT_FOREVER, which is one epoch without an end. Functions cannot be compared, so
/// the dataset's fingerprint contains only the number of records and the first record.
BEL_API bel_dataset *bel_dataset_from_function(bel_make_fn *make, void *user, int64_t record_count);

/// Generator of records that can only be made one after another. Records must depend only on epoch
/// and position. Several states are in use at a time, also for one epoch, each by one thread at a
/// time.
typedef struct bel_generator {
    size_t size; ///< sizeof(bel_generator): fields after it count as NULL
    /// Begins an epoch; *out_state is passed to the other functions. After an error no epoch has
    /// begun.
    bel_status *(*begin)(void *user, int64_t epoch, void **out_state);
    /// Fills the empty `record` with the next record, by bel_record_add. Sets *out_end (false
    /// before the call) at the end.
    bel_status *(*next)(void *user, void *state, bel_record *record, bool *out_end);
    /// Frees the state of `begin`, also in the middle of an epoch. NULL: there is nothing to free.
    void (*end)(void *user, void *state);
} bel_generator;

/// Makes a dataset of a sequential generator, with `record_count` records in each epoch. 0: opening
/// counts them by going through epoch 0 once. BEL_REPEAT_FOREVER: one epoch without an end. A
/// record is reached through all records before it: a run that resumes in the middle of an epoch
/// makes all earlier records of that epoch, and each worker makes the records of all workers.
/// Reading backwards restarts the epoch. After a shuffle each record would restart it, so put a
/// bel_dataset_cache with a file in between. Errors (when read): those of the functions; DATA_LOSS:
/// an epoch has fewer records.
BEL_API bel_dataset *bel_dataset_from_generator(const bel_generator *generator, void *user,
                                                int64_t record_count);

/// --- Datasets made of datasets ------------------------------------------------------------------
///
/// These calls combine datasets without a batch stage, and free them (a dataset that is named twice
/// is freed once). The result is a dataset like any other: stages, maps, a batch stage or another
/// of these calls can follow. Each epoch of the result reads the datasets anew, so a shuffle inside
/// one has another order in each epoch. `count`: 1 … 32,767. An error of an input is an error of
/// the result. When opened, INVALID_ARGUMENT: incompatible fields, or a dataset that is repeated
/// forever (except for zip); repeat the result instead.

/// Concatenates datasets: the records of the first, then those of the second, and so on. All have
/// the same fields.
BEL_API bel_dataset *bel_dataset_concatenate(bel_dataset *const *datasets, int count);

/// Combines records with the same number: record i has the fields of record i of all datasets. No
/// two datasets may have a field of the same name. Ends with the shortest dataset. If a map of one
/// skips its record, the combined record is skipped.
BEL_API bel_dataset *bel_dataset_zip(bel_dataset *const *datasets, int count);

/// Interleaves datasets: takes `block_length` (≥ 1) records in turn from each of the first
/// `cycle_length` datasets (0: all). When one ends, the next dataset replaces it. The order is
/// exactly that of tf.data's interleave: when a dataset ends within its block the turn passes on,
/// and the next dataset is opened when the turn comes round again. All have the same fields.
BEL_API bel_dataset *bel_dataset_interleave(bel_dataset *const *datasets, int count,
                                            int cycle_length, int64_t block_length);

/// Samples datasets: draws each record from dataset i with probability weights[i] / Σ weights (each
/// > 0). Records of one dataset keep their order. With `record_count` 0, an epoch has each record
/// of all datasets once, and an exhausted dataset is no longer drawn. With another count, an epoch
/// has that many records, and a dataset that ends restarts: small datasets repeat, and an epoch may
/// see a part of a large one, so shuffle those. The draws are a function of (seed, epoch). Each
/// epoch has a list of 8 bytes a record. All datasets have the same fields.
BEL_API bel_dataset *bel_dataset_sample(bel_dataset *const *datasets, const double *weights,
                                        int count, int64_t record_count, uint64_t seed);

/// Adds a field `field`, I64 [], with the record's position in the stream at this stage, counted
/// from `start`. Before repeat each epoch restarts the count; after repeat it continues over all
/// epochs. Before shuffle it numbers the records themselves. May follow map; stages that renumber
/// may follow it.
BEL_API void bel_dataset_enumerate(bel_dataset *dataset, const char *field, int64_t start);

/// Makes windows of `size` (≥ 1) records: window w has records w · shift + i · stride, i = 0 … size
/// - 1, and every field gets a leading dimension. shift 0: `size`, so windows do not overlap. shift
/// and stride are at least 1. With `drop_remainder` all windows are full. Without it there is a
/// window for each w · shift that is a record; the last windows have fewer records, which a padded
/// batch accepts. A window is left out if a map skipped one of its records. May follow map; stages
/// that renumber may follow it. Errors (when opened or read): INVALID_ARGUMENT: text, or a field of
/// 7 dimensions; DATA_LOSS: records of different shapes in one window.
BEL_API void bel_dataset_window(bel_dataset *dataset, int64_t size, int64_t shift, int64_t stride,
                                bool drop_remainder);

/// Returns the number of records (≥ 0) that a record becomes. Must depend only on the record.
typedef int64_t bel_flat_count_fn(void *user, const bel_record *record);
/// Makes part `part`, 0 … count - 1, from the record in place, like a map. Must depend only on the
/// record and the part.
typedef bel_status *bel_flat_map_fn(void *user, bel_record *record, int64_t part, bool *out_skip);

/// Replaces each record by 0 or more records: first all parts of the first record, and so on.
/// Opening calls `count` once for each record, in each process, and keeps a list of 8 bytes a
/// record. `map` is called on several threads at once, each time a part is read. `drop` as in
/// bel_dataset_map. May follow map; must come before shuffle and repeat; stages that renumber may
/// follow it.
BEL_API void bel_dataset_flat_map(bel_dataset *dataset, bel_flat_count_fn *count,
                                  bel_flat_map_fn *map, void *user, const char *const *drop);

/// Caches the records of the stages before it, so that expensive maps run once for each. May follow
/// map; must come before shuffle and repeat; stages that renumber may follow it.
///
/// `path` NULL: each process keeps a record in memory when it is first read, up to `most_bytes` (0:
/// no limit). Records that do not fit are made again each time they are read.
///
/// A path: the cache is that file, with all records. Opening writes it unless it exists. Processes
/// of one host share it, and one of them writes it (`most_bytes` is then 0). A file of other data
/// or stages is made anew. Maps cannot be compared: remove the file when you change one. Errors
/// (when opened): ALREADY_EXISTS: the file is no cache, and stays as it is; those of writing it;
/// DATA_LOSS (when read): it is damaged.
BEL_API void bel_dataset_cache(bel_dataset *dataset, const char *path, int64_t most_bytes);

/// --- Stages before map: they renumber -----------------------------------------------------------

/// Keeps records whose number modulo `count` (≥ 1) is `index`, 0 … count - 1. Workers of a job need
/// no shard: they automatically read different batches.
BEL_API void bel_dataset_shard(bel_dataset *dataset, int64_t count, int64_t index);
/// Keeps at most the first `count` (≥ 0) records.
BEL_API void bel_dataset_take(bel_dataset *dataset, int64_t count);
/// Drops the first `count` (≥ 0) records.
BEL_API void bel_dataset_skip(bel_dataset *dataset, int64_t count);

/// Permutes the records of each epoch inside consecutive windows of `buffer_size` records. 0 means
/// one window over everything, which costs no more than a small one. The order is a function of
/// (seed, epoch, window). After an endless repeat `buffer_size` must be above 0.
BEL_API void bel_dataset_shuffle(bel_dataset *dataset, int64_t buffer_size, uint64_t seed);

/// Shuffles as tf.data does: a buffer of `buffer_size` (≥ 1) records slides over the stream. Each
/// output record is drawn from the buffer, and the next record of the stream replaces it. A record
/// moves at most buffer_size - 1 positions forward, and on average not much further back, so
/// records that are far apart do not mix. Prefer bel_dataset_shuffle, which mixes full windows and
/// needs no memory. This one makes a list of 8 bytes a record for each epoch, a function of (seed,
/// epoch). Not after an endless repeat.
BEL_API void bel_dataset_shuffle_sliding(bel_dataset *dataset, int64_t buffer_size, uint64_t seed);

/// Repeats the records `count` times (≥ 1, or BEL_REPEAT_FOREVER). Each pass is an epoch: a shuffle
/// before repeat orders every epoch anew. May follow map. Training on an endless input needs
/// max_steps, and evaluation on one needs steps; prediction on one never ends. Error (when opened):
/// there are no records.
BEL_API void bel_dataset_repeat(bel_dataset *dataset, int64_t count);

/// Returns true to keep a record, judged on raw fields, before any map.
typedef bool bel_filter_fn(void *user, const bel_record *record);
/// Keeps the records for which `keep` returns true. Opening runs it once over all records, in each
/// process. Must come before shuffle and repeat.
BEL_API void bel_dataset_filter(bel_dataset *dataset, bel_filter_fn *keep, void *user);

/// Returns a record's length, judged on raw fields like a filter.
typedef int64_t bel_length_fn(void *user, const bel_record *record);
/// Batches records of similar length together, to reduce padding. Opening calls `length` once for
/// each record, in each process. Rising `boundaries` separate the buckets: lengths below
/// boundaries[0], lengths in [boundaries[i], boundaries[i + 1]), and lengths from the last boundary
/// on. A bucket with a full batch emits it. At the end of an epoch each bucket emits its rest, as a
/// shorter batch. All batches have the batch stage's size, and no batch spans epochs. May follow
/// shuffle; only repeat and map may follow it. Each epoch's order is a list of 8 bytes a record.
BEL_API void bel_dataset_bucket_by_length(bel_dataset *dataset, bel_length_fn *length, void *user,
                                          const int64_t *boundaries, int boundary_count);

/// --- map and what follows: nothing renumbers ----------------------------------------------------

/// Changes a record in place: reads, adds or replaces fields. If it sets *out_skip (false before
/// the call) to true, the record is skipped and its batch is one shorter. The result must depend
/// only on the record, its number and its epoch, or two runs give different bits. Several threads
/// call it at once. Opening calls it for the first record, to learn the names and shapes of the
/// fields. Returns NULL, or an error that ends the step; the library takes ownership and puts the
/// record's origin before its message.
typedef bel_status *bel_map_fn(void *user, bel_record *record, bool *out_skip);

/// Applies `map` to every record; several maps apply in order. `drop` names fields that are removed
/// afterwards (NULL-terminated list, or NULL). Text must be dropped, as it cannot be in a batch.
/// Errors (when opened or read), INVALID_ARGUMENT: a field of the list does not exist; all records
/// were skipped.
BEL_API void bel_dataset_map(bel_dataset *dataset, bel_map_fn *map, void *user,
                             const char *const *drop);

/// Like bel_dataset_map, with a `user` that the dataset owns. `destroy` (NULL: nothing to do) is
/// called for it once, when neither the dataset nor anything opened from it needs it, on the thread
/// that ends the last of them. If the dataset refuses the map, `destroy` is called at once.
/// `identity` (copied; NULL: none) is a text that must change when the map makes other fields.
/// Training that resumes from a checkpoint with another identity is refused, as with other data.
BEL_API void bel_dataset_map_owned(bel_dataset *dataset, bel_map_fn *map, void *user,
                                   void (*destroy)(void *user), const char *identity,
                                   const char *const *drop);

/// Declares that maps read the files that the STRING field `field` of their input names, resolved
/// like bel_record_path. The maps of features.h declare this automatically. Opening reads the
/// files' sizes, in each process; of more than 65,536 records it samples 65,536 at even distances.
/// A checkpoint and a cache both record these sizes and are compared with them. Contents are not
/// compared: a file replaced by one of the same size is not detected. This call does not report
/// missing files. May come before or after map.
BEL_API void bel_dataset_named_files(bel_dataset *dataset, const char *field, const char *folder);

/// Makes batches of `batch_size` (1 … 2^31 - 1) records, across epochs; the last batch has the
/// rest. Every field must have one type and shape for all records: DATA_LOSS (when read) names one
/// that differs.
BEL_API void bel_dataset_batch(bel_dataset *dataset, int64_t batch_size);

/// Shape of a field in padded batches, without the batch dimension. -1: the field's own longest; -2
/// and below: the longest over all fields with that number. A fixed dimension must hold every
/// record, or DATA_LOSS names the record.
typedef struct bel_padded_shape {
    const char *field;
    bel_shape shape;
} bel_padded_shape;
/// Makes batches whose fields are padded at the end of each dimension, with zeros or
/// bel_dataset_pad_value, up to the longest record of the batch. `padded_shapes` fixes dimensions
/// of named fields. Any other field that a map makes is open in every dimension.
BEL_API void bel_dataset_padded_batch(bel_dataset *dataset, int64_t batch_size,
                                      const bel_padded_shape *padded_shapes, int shape_count);

/// Pads `field` with `value` instead of zeros, e.g. -1 for labels that a loss ignores. Must follow
/// bel_dataset_padded_batch, once for each field. Errors (when opened), INVALID_ARGUMENT: no such
/// field, or a value that the field's dtype cannot represent; F16 and BF16 are padded only with
/// zeros.
BEL_API void bel_dataset_pad_value(bel_dataset *dataset, const char *field, double value);

/// Names fields of a batch that are labels besides "label", of any types. Model functions get them
/// by bel_context_label, but not in PREDICT. May be called at any stage; calls add up. A name
/// without a field is no error, since input for prediction may lack labels.
BEL_API void bel_dataset_labels(bel_dataset *dataset, const char *const *names, int count);

/// Skips up to `most` (0: none) records that cannot be read or whose map fails. Must follow the
/// batch stage. Each is counted, and a warning names it when it is first met; one more is the
/// error. A bad record keeps its position and leaves its batch one shorter, so all other batches
/// stay the same. Each process counts the records that it meets; a record that recurs in every
/// epoch counts once. Bad records have the errors DATA_LOSS, INVALID_ARGUMENT, NOT_FOUND,
/// OUT_OF_RANGE and UNKNOWN: a row of CSV with too few fields, a wrong checksum, a file that a map
/// does not find. A file that is missing or has no structure at all is still an error.
BEL_API void bel_dataset_skip_bad_records(bel_dataset *dataset, int64_t most);

/// Sets the number of batches that are kept ready (at most 1,024; 0: batches are read when needed),
/// and the number of threads that make them (at most 1,024). Must follow the batch stage. Changes
/// only the speed.
///
/// BEL_PREFETCH_AUTO is the default of both. Depth: 4 at first. It doubles when batches run out
/// although all had been ready before, which suits input of varying speed. The limits are 64
/// batches and 256 MiB (for each tower of a worker). Threads: 1. A tower on a GPU uses its share of
/// the processor's threads, up to 4, if records are read from CSV, IDX or memory without a map and
/// a sliding shuffle.
enum { BEL_PREFETCH_AUTO = -1 };
BEL_API void bel_dataset_prefetch(bel_dataset *dataset, int depth, int thread_count);

/// Frees a dataset; accepts NULL. Objects opened from it keep the data that they need.
BEL_API void bel_dataset_destroy(bel_dataset *dataset);

#ifdef __cplusplus
}
#endif

#endif
