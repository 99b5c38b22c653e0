// TensorBoard event files: scalars, histograms, images and texts over steps, which `tensorboard
// --logdir <dir>` draws.
//
//     bel_event_file *events;
//     BEL_TRY(bel_event_file_open("model_dir", &events));
//     bel_event_file_session_start(events, 0);
//     bel_event_file_scalar(events, bel_clock_wall(), 1, "loss", 2.25f);
//     ...
//     return bel_event_file_close(events);
//
// One folder is one run in TensorBoard: training writes into model_dir, its evaluations into
// model_dir/eval or model_dir/eval_<name>, one that is made by hand into model_dir/evaluate or
// model_dir/evaluate_<name>, summaries of replica 0 into model_dir/replica_0. Every process that
// opens a folder gets a file of its own; TensorBoard reads all files of a folder and merges them.
//
// Every session begins with bel_event_file_session_start, the very first one too. TensorBoard takes
// the first mark of a folder as the beginning; at each later one (a restart, a rollback) it forgets
// what it has read about that step and later ones, so that curves do not run over each other.
//
// Bytes that could not be written (the disk is full) are kept and tried again by the next flush, up
// to 4 MiB; events beyond are dropped. Calls in the training loop need no check: a flush, a sync
// and the close report that something is not written yet.
//
// Thread rule: thread-compatible; one thread at a time uses a file.
//
// The format is described in docs/formats/events.md.
#ifndef BELFRY_ESTIMATOR_EVENT_FILE_H
#define BELFRY_ESTIMATOR_EVENT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

typedef struct bel_event_file bel_event_file;

// Creates `<dir>/events.out.tfevents.<10-digit seconds>.<4-digit count>.<hostname>`, whose name
// sorts behind those of all event files in the folder, and writes the version record. The folder is
// created when it is missing. Errors: those of files. Close with bel_event_file_close.
bel_status *bel_event_file_open(const char *dir, bel_event_file **out_file) BEL_MUST_USE;

// The same at a given time (seconds since 1970) in place of the clock's.
bel_status *bel_event_file_open_at(const char *dir, double wall_time,
                                   bel_event_file **out_file) BEL_MUST_USE;

// Adds a value of `tag` (UTF-8; slashes group: "accuracy/top1") at a step. `wall_time` is in
// seconds since 1970. NaN and infinities are kept; TensorBoard marks them.
void bel_event_file_scalar(bel_event_file *file, double wall_time, int64_t step, const char *tag,
                           float value);

// Numbers and how often each range of them came. Everything is borrowed.
typedef struct bel_histogram {
    double min, max, count, sum, sum_squares;
    const double *limits; // upper ends of the buckets, ascending; the lower one is the limit before
    const double *buckets; // how many fell into each
    int bucket_count;
} bel_histogram;
void bel_event_file_histogram(bel_event_file *file, double wall_time, int64_t step, const char *tag,
                              const bel_histogram *histogram);

typedef struct bel_event_image {
    int height, width, channels; // 1: grey, 3: RGB, 4: RGBA
    const void *png;
    size_t png_bytes;
} bel_event_image;
void bel_event_file_image(bel_event_file *file, double wall_time, int64_t step, const char *tag,
                          const bel_event_image *image);

// Text is shown as Markdown.
void bel_event_file_text(bel_event_file *file, double wall_time, int64_t step, const char *tag,
                         const char *text);

// A table of numbers [rows, columns], which TensorBoard keeps and does not draw.
void bel_event_file_numbers(bel_event_file *file, double wall_time, int64_t step, const char *tag,
                            const double *numbers, int rows, int columns);

// Marks that a session starts at `step`: what earlier sessions wrote about it and later steps is
// void. Comes before the session's scalars.
void bel_event_file_session_start(bel_event_file *file, int64_t step);

// Writes everything so far, where TensorBoard sees it. Events are kept in memory until then, or
// until 64 KiB of them have come together. An error is that of the last write.
bel_status *bel_event_file_flush(bel_event_file *file) BEL_MUST_USE;

// The same, and to disk: what is decided from it outlives a crash of the machine.
bel_status *bel_event_file_sync(bel_event_file *file) BEL_MUST_USE;

// Flushes, syncs and frees, also when it reports an error. NULL is fine.
bel_status *bel_event_file_close(bel_event_file *file) BEL_MUST_USE;

const char *bel_event_file_path(const bel_event_file *file);

// --- Reading -------------------------------------------------------------------------------------

#define BEL_EVENT_FILE_PREFIX "events.out.tfevents."

// What it points at is valid during the call.
typedef struct bel_event {
    int64_t step;
    bool starts;     // a session starts at `step`
    const char *tag; // of a scalar or a table of numbers; NULL: neither
    float value;
    const double *numbers; // [rows, columns]; NULL: a scalar
    int rows, columns;
} bel_event;

// Calls `each` for every START, scalar and table of numbers in the bytes of a file, in order, up to
// its end or to the first record that is not whole or not as its checksums say. Other events are
// passed over.
void bel_event_file_parse(const char *data, size_t size,
                          void (*each)(void *context, const bel_event *event), void *context);

#endif
