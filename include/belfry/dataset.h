/// Input pipelines. A dataset is a source of records and a list of stages behind it; it is only a
/// description until the trainer opens it, so calls can follow each other without checks:
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
/// A record is a set of named fields, each a tensor. The field "label" (BEL_LABEL_FIELD), and those
/// that bel_dataset_labels names, become the labels of the model function, all others its features.
/// A batch of n records gives each field a leading dimension n.
///
/// **Positions.** Before `map`, stages work on record numbers, never on records: shuffle permutes
/// numbers with a permutation keyed by (seed, epoch), so that any batch can be computed from its
/// number alone. That is how training resumes in the middle of an epoch, and how workers read
/// different batches without talking to each other (docs/input.md).
///
/// **Errors.** No call here returns one. The first mistake sticks to the dataset, later calls on it
/// do nothing, and whoever opens it (bel_train_and_evaluate, bel_evaluate, bel_predict) gets the
/// error before anything is read: INVALID_ARGUMENT for a description that is wrong (a NULL or a
/// number out of range, a stage in an impossible place), and what the source's comment says. A
/// dataset needs one batch stage.
///
/// **Ownership.** Texts and lists are copied by the call that gets them. Functions, their `user`
/// and the elements of memory fields are kept as pointers, and must stay until the call that
/// trains, evaluates or predicts has returned. A dataset is freed by bel_dataset_destroy; one that
/// an input function hands out (bel_input_fn) is freed by the library.
///
/// **Thread rule.** A dataset is built by one thread. Opened, it is read by many: `map` functions
/// run on several threads at once, in an order that is not told, and read what `user` points to;
/// what they change there they lock. `filter` functions run on one thread, at opening.
#ifndef BELFRY_DATASET_H
#define BELFRY_DATASET_H

#include "belfry/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/// The description of an input; opaque.
typedef struct bel_dataset bel_dataset;

/// What the columns of a table are (columns.h); opaque.
typedef struct bel_columns bel_columns;

#define BEL_LABEL_FIELD "label"          ///< The labels of the model function.
#define BEL_ID_FIELD "ids"               ///< What bel_csv_options.id_columns become.
#define BEL_ID_LIST_FIELD "id_lists"     ///< What bel_csv_options.id_list_columns become.
#define BEL_ID_WEIGHT_FIELD "id_weights" ///< Their weights, with bel_csv_options.id_list_weights.
#define BEL_LENGTH_FIELD "length"        ///< What bel_csv_options.length_column becomes.
#define BEL_TEXT_FIELD "text"            ///< The lines of bel_dataset_from_text.
#define BEL_RECORD_FIELD "record"        ///< The bytes of a TFRecord file's record.

enum { BEL_REPEAT_FOREVER = -1 }; ///< Of bel_dataset_repeat, and of sources without an end.

/// A record being filtered or mapped: fields by name, in the order in which they were added. It and
/// its memory belong to the library and are valid during the call of the function that gets it; a
/// record is seen by one thread at a time.
typedef struct bel_record bel_record;

/// The field, or NULL where there is none of this name. A string field has dtype BEL_DTYPE_STRING,
/// shape [length] and a zero byte behind its text. A map may write to a field's elements in place.
BEL_API const bel_tensor *bel_record_get(const bel_record *record, const char *name);

/// For maps: adds a field and returns its zeroed memory to fill; replaces a field of the same name,
/// in its place. The name is copied. dtype: F32, F64, I32, I64, U8, BOOL or STRING (rank 1). shape:
/// closed, up to 7 dimensions. NULL for anything else: the map then fails with INVALID_ARGUMENT,
/// unless it returns an error of its own.
BEL_API void *bel_record_add(bel_record *record, const char *name, bel_dtype dtype,
                             const bel_shape *shape);

/// Where the record came from, e.g. "train.csv:17". Errors of maps have it in front already.
BEL_API const char *bel_record_origin(const bel_record *record);

/// The record's number in its source, from 0 on, and the epoch in which it is read: how many passes
/// of all repeats came before it, 0 for filters. Random choices of a map are made from a seed and
/// these two, as those of augmentation (features.h) are: each epoch has others, every run the same.
BEL_API int64_t bel_record_number(const bel_record *record);
BEL_API int64_t bel_record_epoch(const bel_record *record);

/// The path of the file that the record came from, as the source was given it: what relative paths
/// in the record are relative to. "" where there is no such file. Lives as long as the record.
BEL_API const char *bel_record_file(const bel_record *record);

/// The path of the file that the STRING field `field` names: a relative one begins at `folder`, or,
/// where that is NULL, at the folder of the file that the record came from (bel_record_file). NULL:
/// there is no such text field, its text is empty, or there is a zero byte in it. Lives as long as
/// the record.
BEL_API const char *bel_record_path(const bel_record *record, const char *field,
                                    const char *folder);

/// --- Sources -----------------------------------------------------------------------------------
///
/// **Paths** may be patterns: `*`, `?` and `[…]` stand for what they do in a shell, unless there is
/// a file of that very name. The files that match are read sorted by the bytes of their names, in
/// the place of the pattern. NOT_FOUND (when opened): no file matches, with the pattern.

/// One typed column of a CSV file that becomes a field of its own.
typedef struct bel_csv_column {
    const char *name; ///< The column's name in the header, also the field's name.
    bel_dtype dtype;  ///< F32, I32, I64 or STRING.
} bel_csv_column;

/// Rows that are held out of a training, to evaluate on. Which they are follows from the rows,
/// their labels and the seed alone: of each class (each value of the label) the same share as far
/// as whole rows go, in a random order. Where no column is named as the label, all rows are alike.
typedef struct bel_holdout {
    double share;   ///< of the rows, in (0, 1); 0 with fold_count, or where all rows are read
    int fold;       ///< in place of a share: part `fold` of `fold_count` ≥ 2, from 0 on
    int fold_count; ///< all parts together hold each row once; 0: a share
    uint64_t seed;
    bool held; ///< true: the rows that are held out; false: the others
} bel_holdout;

/// How to read CSV (RFC 4180: quotes, doubled quotes, line breaks inside quotes, CR LF or LF).
/// Files whose names end in .gz are unpacked. Zero-initialise, then set what you need.
typedef struct bel_csv_options {
    const char *const *paths; ///< The files or patterns, read one after another.
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
    const char *const
        *id_list_columns;     ///< Without `columns`: each value is a list of ids, "3|17|4",
    int id_list_column_count; ///< hashed as those of id_columns are; I64, field "id_lists".
    int64_t id_list_most;     ///< So many ids a value may have; 0 means 16.
    char id_list_separator;   ///< 0 means '|'.
    bool id_list_weights;     ///< Ids may have weights, "3:0.5|17"; F32, field "id_weights".
    bool last_is_label;       ///< Without label_column: the last column is it, whatever its name.
    bel_holdout holdout;      ///< Zeros: all rows. Not of pipes, which can be read once.
    /// A description of the columns (columns.h), which must stay; then of the rest of these options
    /// paths, holdout and what is below alone are read. With `unlabelled` rows need no label, as
    /// for prediction.
    const bel_columns *table;
    bool unlabelled;
    bool
        unchanged; ///< With `table`: files that bel_columns_infer has made it of in this process are
                   ///< as they were then, or DATA_LOSS.
    bool unchecked; ///< With `table`: cells are not looked at when it is opened; a wrong one is an
                    ///< error when its row is read.
    /// Type of the field `vector_name`: F32, F64, I32 or I64. Of whole numbers each cell is read
    /// exactly, others are errors, and `scale` must be 1.
    bel_dtype vector_dtype;
} bel_csv_options;

/// CSV, with a record for each row. Without `columns`, every column but label, length and ids is a
/// number and goes into one field `vector_name` of shape [columns], F32 or `vector_dtype`; the ids,
/// in the order in which they are named, into an I64 field "ids" of shape [id columns]; lists of
/// ids into an I64 field "id_lists" of shape [list columns, id_list_most], filled up with
/// BEL_NO_ID, for bel_embedding_bag; an empty value is a list without ids. Weights go into an F32
/// field of the same shape: what follows the last ':' of an item, 1 without one, 0 where no id is.
/// The length goes into an I64 field "length" of shape []. With `columns` each of these becomes a
/// field of shape [] (STRING: [length]) and others are left out. Later files of a model are bound
/// to the columns of its training by name (docs/input.md). Errors name file:line:column. When
/// opened: NOT_FOUND (file), DATA_LOSS (ragged row, open quote, no rows, label that is no class,
/// text in a number column, a list with too many ids or an empty one), INVALID_ARGUMENT (no such
/// column, another one than in training). Of files above 64 MiB the numbers of the first and last
/// rows are looked at then, all others when they are read (DATA_LOSS), as is a file that has become
/// shorter; numbers for prediction only when they are read.
BEL_API bel_dataset *bel_dataset_from_csv(const bel_csv_options *options);

/// IDX (the MNIST format), plain or .gz: unsigned bytes in up to 4 dimensions, the first of which
/// counts the records. Fields: "x", F32, all other dimensions flattened to one [rows · columns …],
/// each byte multiplied by `scale` (0 means 1); "label", I64 [], when `labels_path` is not NULL.
/// `class_count` as above. A pattern must match one file. Errors (when opened): NOT_FOUND;
/// DATA_LOSS: wrong magic, other bytes than unsigned ones, a size that is not the header's, images
/// and labels of different counts, truncated gz, label out of range.
BEL_API bel_dataset *bel_dataset_from_idx(const char *images_path, const char *labels_path,
                                          double scale, int64_t class_count);

/// Lines of text: one STRING field "text" (BEL_TEXT_FIELD) of shape [length] for each line, without
/// its LF or CR LF; blank lines are records, too. Bytes are kept as they are but for a byte-order
/// mark at the beginning of a file. Files whose names end in .gz are unpacked. `paths`: the files
/// or patterns, read one after another. Text cannot be in a batch: a map turns it into numbers and
/// names it in its drop list. Errors: NOT_FOUND, DATA_LOSS (no line in any file) when opened;
/// DATA_LOSS when a file has become shorter since.
BEL_API bel_dataset *bel_dataset_from_text(const char *const *paths, int path_count);

/// One feature of a tf.train.Example that becomes a field.
typedef struct bel_example_feature {
    const char *key;   ///< Its name in the Example.
    const char *field; ///< The field's name; NULL: the same.
    /// F32: a float_list. I64: an int64_list. STRING: a bytes_list of one, whose bytes are the
    /// text. U8: the same, whose bytes are the elements (decoded images, for instance).
    bel_dtype dtype;
    /// Closed: as many elements as every record has, row-major; a scalar is one. Or with -1 as
    /// first dimension: as many rows as a record has; a padded batch takes those. Not used for
    /// STRING.
    bel_shape shape;
    /// What records without the feature have: NULL: an error, but no rows where the shape is open;
    /// else one value of the dtype, for all elements of a closed shape (STRING: a text that ends
    /// with a zero byte). Copied.
    const void *missing;
} bel_example_feature;

/// Records of TFRecord files, which may be packed as a whole by gzip or zlib: what a file is shows
/// by its first bytes. Zero-initialise, then set what you need.
typedef struct bel_tfrecord_options {
    const char *const *paths; ///< The files or patterns, read one after another.
    int path_count;
    const bel_example_feature *features; ///< What records hold; NULL: they are not looked into.
    int feature_count;
} bel_tfrecord_options;

/// With `features`, each record is a tf.train.Example, and those features are its fields; others
/// are left out. Without, its bytes are one STRING field "record" (BEL_RECORD_FIELD), for a map to
/// take apart. An index of records is made when opened, 8 bytes each, so they are read in any
/// order; checksums (CRC-32C) of lengths are looked at then, those of data whenever it is read.
/// Errors: NOT_FOUND (file); INVALID_ARGUMENT (an impossible feature); DATA_LOSS, with file and
/// record: a file that is none or that ends within a record, a checksum that does not fit, data
/// that is no Example, a feature that is missing, of another kind or of another size. Of files
/// above 64 MiB, only the first and last records are looked into when opened.
BEL_API bel_dataset *bel_dataset_from_tfrecord(const bel_tfrecord_options *options);

/// A field in memory: `data` holds all records, shape [record_count, …].
typedef struct bel_memory_field {
    const char *name;
    bel_tensor data;
} bel_memory_field;

/// Records in memory. All fields have the same leading dimension; any type but STRING. The data is
/// not copied: it must stay, unchanged, until the last call that uses the dataset has returned.
/// Errors (when opened), INVALID_ARGUMENT: no field, two of one name, other counts of records, open
/// shapes, no data.
BEL_API bel_dataset *bel_dataset_from_memory(const bel_memory_field *fields, int field_count);

/// Makes record `number` of an empty record, with bel_record_add. What it makes must depend on the
/// number alone, or the same run gives other bits. Called from several threads at once, and at
/// opening for the first record, from which names and shapes of the fields are learnt.
typedef bel_status *bel_make_fn(void *user, int64_t number, bel_record *record);

/// Records that a function makes by their number: `record_count` of them (≥ 0), or
/// BEL_REPEAT_FOREVER, which is one epoch without an end. The fingerprint holds their number and
/// the first record, as functions cannot be compared.
BEL_API bel_dataset *bel_dataset_from_function(bel_make_fn *make, void *user, int64_t record_count);

/// Records that can only be made one behind the other. What is made must depend on epoch and place
/// alone. Several are in use at a time, also of one epoch, each by one thread at a time.
typedef struct bel_generator {
    /// Begins an epoch; *out_state is given to the other functions. An error begins nothing.
    bel_status *(*begin)(void *user, int64_t epoch, void **out_state);
    /// Makes the next record of an empty record, with bel_record_add, or sets *out_end (false
    /// before) where there is none.
    bel_status *(*next)(void *user, void *state, bel_record *record, bool *out_end);
    /// Frees what begin has made, also in the middle of an epoch. NULL: there is nothing to free.
    void (*end)(void *user, void *state);
} bel_generator;

/// Records of a sequential generator, `record_count` in each epoch (0: they are counted when the
/// dataset is opened, by going through epoch 0 once; BEL_REPEAT_FOREVER: one epoch without an end).
/// A record is reached by going through those before it, so a batch in the middle of an epoch,
/// where a run goes on, costs what is in front of it, and each worker makes the records of all.
/// Reading backwards begins the epoch anew: behind shuffle each record would, so put a
/// bel_dataset_cache with a file in between. Errors (when read): those of the functions; DATA_LOSS:
/// an epoch has fewer records.
BEL_API bel_dataset *bel_dataset_from_generator(const bel_generator *generator, void *user,
                                                int64_t record_count);

/// --- Datasets made of datasets ------------------------------------------------------------------
///
/// They take datasets without batch stage, which are freed by the call (one that is named twice,
/// once), and are datasets like any other: stages, maps and a batch stage follow, or a further one
/// of these. Each epoch of what comes out reads the datasets anew, so a shuffle inside one has
/// another order in each. `count`: 1 … 32,767. Errors in datasets are those of the new one. When
/// opened, INVALID_ARGUMENT: fields that do not go together, or a dataset that is repeated forever
/// (but for zip): repeat what comes out.

/// The records of the first, then those of the second, and so on. All have the same fields.
BEL_API bel_dataset *bel_dataset_concatenate(bel_dataset *const *datasets, int count);

/// Record i has the fields of record i of all datasets, no two of which have one of the same name.
/// Ends with the shortest. Where a map of one skips its record, there is none.
BEL_API bel_dataset *bel_dataset_zip(bel_dataset *const *datasets, int count);

/// Takes records in turn, `block_length` (≥ 1) at a time, from the first `cycle_length` datasets
/// (0: all); where one has ended the next is opened in its place. The order is exactly that of
/// tf.data's interleave: when a dataset ends within its block the turn passes on, and the next
/// dataset is opened when the turn comes round again. All have the same fields.
BEL_API bel_dataset *bel_dataset_interleave(bel_dataset *const *datasets, int count,
                                            int cycle_length, int64_t block_length);

/// Draws each record from a dataset by chance, dataset i with probability weights[i] / Σ weights
/// (each > 0); of a dataset, records come in its own order. With a `record_count` of 0 an epoch has
/// each record of all datasets once, and one that has none left is out of the draws; with another,
/// an epoch has that many records, and a dataset that ends begins anew: small ones come more often
/// than once, of large ones an epoch may see a part, so shuffle them. The draws are a function of
/// (seed, epoch); a list of 8 bytes a record is made for each epoch. All have the same fields.
BEL_API bel_dataset *bel_dataset_sample(bel_dataset *const *datasets, const double *weights,
                                        int count, int64_t record_count, uint64_t seed);

/// Adds a field `field`, I64 [], with the record's place among those that come here, counted from
/// `start`: before repeat each epoch counts anew, behind it all epochs together; before shuffle it
/// numbers the records themselves. Also behind map; stages that renumber may follow.
BEL_API void bel_dataset_enumerate(bel_dataset *dataset, const char *field, int64_t start);

/// Windows of `size` (≥ 1) records as records: window w has records w · shift + i · stride, i = 0 …
/// size - 1; every field gets a leading dimension. shift 0: `size`, so windows do not overlap;
/// shift and stride are at least 1. With `drop_remainder` all windows are whole; without, there is
/// one for each w · shift that is a record, and the last ones have as many as there are, which a
/// padded batch takes. A window with a record that a map left out is left out. Also behind map;
/// stages that renumber may follow. Errors (when opened or read): INVALID_ARGUMENT: text, or a
/// field of 7 dimensions; DATA_LOSS: records of other shapes in one window.
BEL_API void bel_dataset_window(bel_dataset *dataset, int64_t size, int64_t shift, int64_t stride,
                                bool drop_remainder);

/// How many records (≥ 0) a record becomes, and making one of them, `part` of 0 … count - 1, from
/// it in place, like a map. Both must depend on the record alone.
typedef int64_t bel_flat_count_fn(void *user, const bel_record *record);
typedef bel_status *bel_flat_map_fn(void *user, bel_record *record, int64_t part, bool *out_skip);

/// Records become several, or none: first all parts of the first record, and so on. `count` is
/// called once for each record when the dataset is opened, in each process, and a list of 8 bytes a
/// record is kept; `map` is called on several threads at once, whenever a part is read. `drop` as
/// in bel_dataset_map. Also behind map, before shuffle and repeat; stages that renumber may follow.
BEL_API void bel_dataset_flat_map(bel_dataset *dataset, bel_flat_count_fn *count,
                                  bel_flat_map_fn *map, void *user, const char *const *drop);

/// Keeps records as they come out of what is before, so that expensive maps run once for each.
/// `path` NULL: in memory of each process, a record when it is first read, up to `most_bytes` (0:
/// no limit); those that find no room are made again whenever they are read. A path: in that file,
/// all records when the dataset is opened, unless it is there already; processes of one host share
/// it, and one of them writes it (`most_bytes` is then 0). A file of other data or stages is made
/// anew, but what a map does cannot be compared: remove the file when you change one. Also behind
/// map, before shuffle and repeat; stages that renumber may follow. Errors (when opened):
/// ALREADY_EXISTS: the file is no cache, and is left alone; those of writing it; DATA_LOSS (when
/// read): it is damaged.
BEL_API void bel_dataset_cache(bel_dataset *dataset, const char *path, int64_t most_bytes);

/// --- Stages before map: they renumber -----------------------------------------------------------

/// Keeps records whose number modulo `count` (≥ 1) is `index`, 0 … count - 1. Workers of a job need
/// no shard: each reads its own batches by itself.
BEL_API void bel_dataset_shard(bel_dataset *dataset, int64_t count, int64_t index);
/// Keeps at most the first `count` (≥ 0) records, and all but the first `count`.
BEL_API void bel_dataset_take(bel_dataset *dataset, int64_t count);
BEL_API void bel_dataset_skip(bel_dataset *dataset, int64_t count);

/// Permutes the records of each epoch inside consecutive windows of `buffer_size` records; 0 means
/// one window over everything, which costs no more than a small one. The order is a function of
/// (seed, epoch, window). Behind an endless repeat the window must be given.
BEL_API void bel_dataset_shuffle(bel_dataset *dataset, int64_t buffer_size, uint64_t seed);

/// Shuffles as tf.data does: a buffer of `buffer_size` (≥ 1) records slides over the stream; each
/// record that comes out is one of the buffer's by chance, and the next of the stream takes its
/// place. So a record comes out buffer_size - 1 places too early at most, and on average not much
/// later than it went in: records that lie far apart do not meet. Prefer bel_dataset_shuffle, which
/// mixes whole windows and needs no memory: this one makes a list of 8 bytes a record for each
/// epoch, a function of (seed, epoch). Not behind an endless repeat.
BEL_API void bel_dataset_shuffle_sliding(bel_dataset *dataset, int64_t buffer_size, uint64_t seed);

/// Goes over the records `count` times (≥ 1, or BEL_REPEAT_FOREVER). Each pass is an epoch: shuffle
/// before repeat orders every epoch anew. May also stand behind map. Training on an endless input
/// needs max_steps, evaluation on one needs steps; prediction on one never ends. Error (when
/// opened): there are no records.
BEL_API void bel_dataset_repeat(bel_dataset *dataset, int64_t count);

/// Keeps the records for which `keep` says true, judged on raw fields, before any map. Runs once
/// over all records when the dataset is opened, in each process; must come before shuffle and
/// repeat.
typedef bool bel_filter_fn(void *user, const bel_record *record);
BEL_API void bel_dataset_filter(bel_dataset *dataset, bel_filter_fn *keep, void *user);

/// Puts records of like length into one batch, so that little is padded. `length` gives a record's
/// length, judged on raw fields like a filter: it is called once for each record, when the dataset
/// is opened, in each process. Lengths below boundaries[0] are one bucket, those from boundaries[i]
/// on and below boundaries[i + 1] one each, those from the last one on the last; boundaries rise. A
/// bucket that has a whole batch gives it out; at the end of an epoch each gives what it has, as a
/// shorter batch. All batches have the batch stage's size, and no batch spans epochs. Behind
/// shuffle; behind it come only repeat and map. Each epoch's order is a list of 8 bytes a record.
typedef int64_t bel_length_fn(void *user, const bel_record *record);
BEL_API void bel_dataset_bucket_by_length(bel_dataset *dataset, bel_length_fn *length, void *user,
                                          const int64_t *boundaries, int boundary_count);

/// --- map and what follows: nothing renumbers ----------------------------------------------------

/// Changes a record in place: reads fields, adds or replaces fields. With *out_skip (false before)
/// set to true the record is left out and its batch is one shorter. What it makes must depend on
/// the record, its number and its epoch alone, or the same run gives other bits. Called from
/// several threads at once, and at opening for the first record, from which names and shapes of the
/// fields are learnt. NULL, or an error that ends the step, with the record's origin in front; its
/// ownership passes on.
typedef bel_status *bel_map_fn(void *user, bel_record *record, bool *out_skip);

/// Applies `map` to every record; several maps apply in order. `drop` names fields that are removed
/// afterwards (NULL-terminated list, or NULL); text cannot be in a batch, so it is dropped. Errors
/// (when opened or read), INVALID_ARGUMENT: a field of the list is not there; all records were
/// skipped.
BEL_API void bel_dataset_map(bel_dataset *dataset, bel_map_fn *map, void *user,
                             const char *const *drop);

/// bel_dataset_map with a `user` that the dataset owns: `destroy` (NULL: nothing to do) is called
/// for it once, when neither the dataset nor what was opened from it needs it any more, on the
/// thread that ends the last of them; at once where the dataset refuses the map. `identity`
/// (copied; NULL: none) is a text that is another one whenever the map makes other fields: training
/// that goes on from a checkpoint with another is refused, like one with other data.
BEL_API void bel_dataset_map_owned(bel_dataset *dataset, bel_map_fn *map, void *user,
                                   void (*destroy)(void *user), const char *identity,
                                   const char *const *drop);

/// Says that maps read the files that the STRING field `field` of their first one's records names,
/// found like bel_record_path does it; features.h's maps say so themselves. When the dataset is
/// opened, in each process, the files' sizes are looked at, of more than 65,536 records so many at
/// even distances: they are part of what training that goes on from a checkpoint compares, and of
/// what a cache compares. (Contents are not: a file that was replaced by one of its size shows
/// not.) A file that is missing is none of this call's business. Before or behind map.
BEL_API void bel_dataset_named_files(bel_dataset *dataset, const char *field, const char *folder);

/// Batches of `batch_size` (1 … 2^31 - 1) records, across epochs; the last one has what is left.
/// Every field must have one type and shape for all records: DATA_LOSS (when read) names one that
/// differs.
BEL_API void bel_dataset_batch(bel_dataset *dataset, int64_t batch_size);

/// Batches whose fields are padded at the end of each dimension, with zeros or
/// bel_dataset_pad_value, up to the longest record of the batch. `padded_shapes` fixes dimensions
/// of named fields: -1 means the field's own longest, -2 and below the longest over all fields with
/// that number; a fixed one must hold every record (else DATA_LOSS names the record). Shapes are
/// those of a record, without the batch; a field that is not named, and that comes out of a map, is
/// open in every dimension.
typedef struct bel_padded_shape {
    const char *field;
    bel_shape shape;
} bel_padded_shape;
BEL_API void bel_dataset_padded_batch(bel_dataset *dataset, int64_t batch_size,
                                      const bel_padded_shape *padded_shapes, int shape_count);

/// Behind bel_dataset_padded_batch: `field` is padded with `value` in place of zeros, e.g. -1 for
/// labels that a loss leaves out. Once for each field. Errors (when opened), INVALID_ARGUMENT: no
/// such field, or a value that the field's dtype does not have; F16 and BF16 are padded with zeros
/// alone.
BEL_API void bel_dataset_pad_value(bel_dataset *dataset, const char *field, double value);

/// Fields of a batch that are labels beside "label", of any types: model functions get them by
/// bel_context_label, and in PREDICT not at all. Anywhere in the description; calls add up. A name
/// that no field has is no error, since what is predicted from may lack its labels.
BEL_API void bel_dataset_labels(bel_dataset *dataset, const char *const *names, int count);

/// Behind the batch stage: up to `most` (0: none) records that cannot be read, or whose map fails,
/// are left out, each counted and named in a warning when it is first met; one more is the error. A
/// bad record keeps its position and leaves its batch one shorter, so all other batches stay what
/// they are. Each process counts those that it meets; a record that comes in every epoch counts
/// once. Bad are errors DATA_LOSS, INVALID_ARGUMENT, NOT_FOUND, OUT_OF_RANGE and UNKNOWN of a
/// record: a row of CSV with too few fields, a checksum that does not fit, a file that a map does
/// not find. A file that is missing or has no structure at all is an error as before.
BEL_API void bel_dataset_skip_bad_records(bel_dataset *dataset, int64_t most);

/// How many batches are kept ready (at most 1,024; 0: none, they are read when asked for), made by
/// how many threads (at most 1,024). BEL_PREFETCH_AUTO is the default of both. Of batches: 4 at
/// first, and twice as many whenever they ran out though all had been ready before, which is what
/// reading that is now fast and now slow needs, up to 64 and as long as they take no more than
/// 256 MiB (for each tower of a worker). Of threads: 1; for a tower on a GPU as many as it has of
/// the processor's, up to 4, where records are read from CSV, IDX or memory without a map and a
/// sliding shuffle. Behind the batch stage. Changes the speed and nothing else.
enum { BEL_PREFETCH_AUTO = -1 };
BEL_API void bel_dataset_prefetch(bel_dataset *dataset, int depth, int thread_count);

/// Frees a dataset; accepts NULL. What was opened from it keeps what it needs.
BEL_API void bel_dataset_destroy(bel_dataset *dataset);

#ifdef __cplusplus
}
#endif

#endif
