// Opened datasets: random access to batches by block number, and prefetch in a given order.
//
// The stream before `map` is numbered from 0 through all epochs and cut into blocks of one batch.
// Block b holds stream positions [b · batch_size, (b + 1) · batch_size); a block may span epochs.
// The content of block b depends only on the dataset's description and on b.
#ifndef BELFRY_INPUT_BATCH_INPUT_H
#define BELFRY_INPUT_BATCH_INPUT_H

#include "belfry/dataset.h"
#include "input/order/positions.h"
#include "input/table/column_names.h"

// An opened dataset. Immutable after open, so thread-safe.
typedef struct bel_input bel_input;

// Facts about an input, besides its fields, labels and batch size. bel_input_names and so on give
// them.
typedef struct bel_input_facts {
    const bel_column_names *names;
    const bel_columns *table;
    const char *file;
    const double *scales; // by field
    int64_t epoch_records, records, epochs;
    uint64_t fingerprint;
} bel_input_facts;

// Context of opening a dataset. It must live until bel_input_open returns; NULL: unset.
typedef struct bel_input_use {
    const bel_column_names *like; // as in source.h
    bool at_once;                 // as in source.h
    // The dataset has the fields, labels and batch size of an input in another process, on a host
    // with the data. These are the facts about that input; what they point to must outlive this
    // one. Blocks cannot be read. NULL: the dataset is the input.
    const bel_input_facts *facts;
} bel_input_use;
// Opens files, checks structure, builds offset indexes. Reports the dataset's first error.
// INVALID_ARGUMENT: no batch stage, or stages in an impossible order. Other errors: see dataset.h.
bel_status *bel_input_open(const bel_dataset *dataset, const bel_input_use *use,
                           bel_input **out_input) BEL_MUST_USE;
void bel_input_destroy(bel_input *input);

// Names of the source's columns, which live as long as the input; NULL: no names.
const bel_column_names *bel_input_names(const bel_input *input);

// Path of the first record's file; NULL: no file.
const char *bel_input_file(const bel_input *input);

// Description of its columns, which the program owns; NULL: no description.
const bel_columns *bel_input_table(const bel_input *input);

// Fields of a batch: name, dtype, and shape with BEL_DIM_BATCH first (and BEL_DIM_TIME - k for
// other open dimensions). Known from the source, or by mapping the first record.
int bel_input_field_count(const bel_input *input);
const char *bel_input_field_name(const bel_input *input, int field);
int bel_input_find_field(const bel_input *input, const char *name); // -1: absent
bool bel_input_field_is_label(const bel_input *input, int field);
void bel_input_field_spec(const bel_input *input, int field, bel_dtype *out_dtype,
                          bel_shape *out_shape);

// Factor between the numbers in the files and those in the field; 1 if a map makes them.
double bel_input_field_scale(const bel_input *input, int field);

int64_t bel_input_batch_size(const bel_input *input);
int64_t bel_input_epoch_records(const bel_input *input); // records of one epoch, before map

int64_t bel_input_records(const bel_input *input); // all epochs; INT64_MAX: endless

// Makes block 0 begin with record `origin`, from 0 to batch_size - 1 (base/input_segment.h). Call
// it before blocks are read.
void bel_input_set_origin(bel_input *input, int64_t origin);

// Seconds without a new step's records after which training on a growing file ends; 0: all records
// are there.
double bel_input_follow_secs(const bel_input *input);

// Looks at a growing file, if needed: sets *out_missing to the number of records of blocks up to
// `block` that are not there yet; 0 for other inputs. Errors: those of reading the file. Any
// thread.
bel_status *bel_input_look(const bel_input *input, int64_t block,
                           int64_t *out_missing) BEL_MUST_USE;

// Whether rows that a look lacks are being read: a large file has appeared. A wait for them is no
// sign that none come. False for other inputs. Any thread.
bool bel_input_reads(const bel_input *input);

// Whether an error of bel_input_look stays: a bad row, or a file that is not as it was. Another one
// may pass, such as that of a file system that cannot be reached now.
static inline bool bel_input_error_stays(bel_code code)
{
    return code == BEL_DATA_LOSS || code == BEL_INVALID_ARGUMENT || code == BEL_OUT_OF_RANGE ||
           code == BEL_RESOURCE_EXHAUSTED;
}

// Lets reading of a followed file begin at `block`: `mark` is that of the records before it, which
// the next look compares with the file, and they are not read. NULL before the first one. Call it
// while no reader has begun, after bel_input_set_origin. DATA_LOSS: no mark, or one of other
// blocks.
bel_status *bel_input_begin(const bel_input *input, int64_t block, const char *mark) BEL_MUST_USE;

// Reader of a followed file. Records before the blocks of all readers are forgotten, so that
// memory does not grow with the file. It must stay where it is between join and leave.
typedef struct bel_input_reader {
    int64_t block; // it reads no earlier one again
    struct bel_input_reader *next;
} bel_input_reader;

// Adds a reader that has passed no block. Both do nothing for other inputs. Any thread.
void bel_input_join(const bel_input *input, bel_input_reader *reader);
void bel_input_leave(const bel_input *input, bel_input_reader *reader);
// Tells that the reader is done with the blocks before `block`, which never decreases. INT64_MAX:
// it reads none.
void bel_input_pass(const bel_input *input, bel_input_reader *reader, int64_t block);

// Appends a text that tells the records before `block` of a followed file from those of another
// file; nothing before the first one. Checkpoints have it. DATA_LOSS: the records are not there, or
// were passed.
bel_status *bel_input_mark(const bel_input *input, int64_t block, bel_str *out_text) BEL_MUST_USE;

// Appends where a last record of a followed file begins that is not whole yet; nothing without one.
void bel_input_unfinished(const bel_input *input, bel_str *out_text);

// The path of the file that is followed.
const char *bel_input_followed(const bel_input *input);

// Number of blocks: only full ones, or also the last, partial one. INT64_MAX: repeated forever.
int64_t bel_input_block_count(const bel_input *input, bool with_partial);

// Fingerprint of the data and the description: content, stages, seeds, batch size. Resume compares
// it. Pathnames are not part of it.
uint64_t bel_input_fingerprint(const bel_input *input);

// Number of epochs by which the last stage repeats the data, or BEL_REPEAT_FOREVER; 0: the last
// stage is no repeat.
int64_t bel_input_epochs(const bel_input *input);

// Fingerprint of the same input with `epochs` instead. Blocks have the same records in both, as far
// as both have records. 0: unknown, as only facts are here and theirs are another number.
uint64_t bel_input_fingerprint_of_epochs(const bel_input *input, int64_t epochs);

// A batch and its memory, which is reused by the next read into it.
typedef struct bel_batch {
    int64_t block;         // the block number
    int64_t example_count; // records in it; may be below batch_size at the end or after skips
    int field_count;
    bel_tensor *fields; // in the order of bel_input_field_*; leading dimension example_count
    const bel_position *positions; // positions read for it, in order, those left out included
    int64_t position_count;
    struct bel_batch_memory *memory;
} bel_batch;

bel_batch *bel_batch_create(const bel_input *input);
void bel_batch_destroy(bel_batch *batch);

// Reads block `block` into `batch`. Steady state allocates nothing for fixed-shape fields. Errors:
// those of the source and of user maps, prefixed with the record's origin. FAILED_PRECONDITION:
// only facts are here.
bel_status *bel_input_read(const bel_input *input, int64_t block, bel_batch *batch) BEL_MUST_USE;

// Call after the last block. Waits until the bytes of all objects in stores that were read before
// their copies were whole are compared with their checksums, for at most `most_secs` or until the
// job is asked to end. Logs one line if they could not be. ABORTED: some do not match.
bel_status *bel_input_finish(const bel_input *input, double most_secs) BEL_MUST_USE;

// Returns one line about an object of the input whose bytes did not match their checksum after they
// could be read; NULL: none is known to be so. It does not wait. Free with bel_free.
char *bel_input_damage(const bel_input *input);

// Observer of the memory of batches' fields: it is called after allocation and before release, by
// the threads that read and by the one that stops them.
typedef struct bel_batch_watch {
    void (*note)(void *context, const void *memory, size_t bytes, bool there);
    void *context;
} bel_batch_watch;

// Reads ahead in the order next(context, 0), next(context, 1) …. BEL_BLOCK_EMPTY gives a batch
// without examples; any other negative number ends the order. `depth` and `thread_count` come from
// the dataset's prefetch stage. Errors are delivered in order, at the block where they happened.
// Reading threads call `order`, one at a time.
enum { BEL_BLOCK_END = -1, BEL_BLOCK_EMPTY = -2 };
typedef int64_t bel_block_order(void *context, int64_t index);
// `watch` is copied; NULL: no observer. `threads`: number of threads that make batches if the
// dataset leaves it open and no map would run on them.
typedef struct bel_prefetch bel_prefetch;
bel_status *bel_prefetch_start(const bel_input *input, bel_block_order *order, void *context,
                               int held, const bel_batch_watch *watch, int threads,
                               bel_prefetch **out_prefetch) BEL_MUST_USE;

// Lets bel_prefetch_take end with CANCELLED while it waits for records of a file that grows, once
// `cancelled` returns true. Call it before the first take; the consumer's thread asks.
typedef bool bel_prefetch_cancelled(const void *context);
void bel_prefetch_cancel_by(bel_prefetch *prefetch, bel_prefetch_cancelled *cancelled,
                            const void *context);

// Takes the next batch in order, or NULL at the end. It stays valid until `held` more are taken.
// Bound to one consuming thread.
bel_status *bel_prefetch_take(bel_prefetch *prefetch, const bel_batch **out_batch) BEL_MUST_USE;

// The batch that the next take will give, if it is ready; else NULL. Call it on the consumer's
// thread.
const bel_batch *bel_prefetch_peek(bel_prefetch *prefetch);

// Bytes of all its batches, including those being read, as of their last reading. Any thread.
int64_t bel_prefetch_bytes(bel_prefetch *prefetch);
// Current maximum number of ready batches.
int bel_prefetch_depth(bel_prefetch *prefetch);

int bel_prefetch_threads(const bel_prefetch *prefetch); // 0: bel_prefetch_take makes batches

// Stops the threads and frees everything, at any time.
void bel_prefetch_stop(bel_prefetch *prefetch);

#endif
