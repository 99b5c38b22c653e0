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
// One folder is one run in TensorBoard. Training writes into model_dir, its evaluations into
// model_dir/eval or model_dir/eval_<name>, an evaluation by hand into model_dir/evaluate or
// model_dir/evaluate_<name>, summaries of replica 0 into model_dir/replica_0. Every process that
// opens a folder gets a separate file; TensorBoard reads all files of a folder and merges them.
//
// Every session begins with bel_event_file_session_start, including the first. TensorBoard takes
// the first mark of a folder as the beginning. At each later one (a restart, a rollback) it
// discards its values of that step and later ones, so that curves do not overlap.
//
// Bytes that cannot be written (the disk is full) are kept and tried again by the next flush, up to
// 4 MiB; later events are dropped. Calls in the training loop need no check: a flush, a sync and
// the close report unwritten data.
//
// Thread rule: thread-compatible; one thread at a time uses a file.
//
// docs/formats/events.md defines the format.
#ifndef BELFRY_ESTIMATOR_EVENT_FILE_H
#define BELFRY_ESTIMATOR_EVENT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

typedef struct bel_event_file bel_event_file;

// Creates `<dir>/events.out.tfevents.<10-digit seconds>.<4-digit count>.<hostname>`, whose name
// sorts after those of all event files in the folder, and writes the version record. Creates the
// folder if it is missing. Errors: those of files. Close with bel_event_file_close.
bel_status *bel_event_file_open(const char *dir, bel_event_file **out_file) BEL_MUST_USE;

// The same at a given time (seconds since 1970) instead of the clock's.
bel_status *bel_event_file_open_at(const char *dir, double wall_time,
                                   bel_event_file **out_file) BEL_MUST_USE;

// Adds a value of `tag` (UTF-8; slashes group: "accuracy/top1") at a step. `wall_time` is in
// seconds since 1970. NaN and infinities are kept; TensorBoard marks them.
void bel_event_file_scalar(bel_event_file *file, double wall_time, int64_t step, const char *tag,
                           float value);

// Counts of numbers in ranges. Everything is borrowed.
typedef struct bel_histogram {
    double min, max, count, sum, sum_squares;
    const double *limits;  // upper ends of the buckets, ascending
    const double *buckets; // count in each
    int bucket_count;
} bel_histogram;
void bel_event_file_histogram(bel_event_file *file, double wall_time, int64_t step, const char *tag,
                              const bel_histogram *histogram);

typedef struct bel_event_image {
    int height, width, channels; // 1: gray, 3: RGB, 4: RGBA
    const void *png;
    size_t png_bytes;
} bel_event_image;
void bel_event_file_image(bel_event_file *file, double wall_time, int64_t step, const char *tag,
                          const bel_event_image *image);

// Text is shown as Markdown.
void bel_event_file_text(bel_event_file *file, double wall_time, int64_t step, const char *tag,
                         const char *text);

// Adds a table of numbers [rows, columns], which TensorBoard keeps and does not draw.
void bel_event_file_numbers(bel_event_file *file, double wall_time, int64_t step, const char *tag,
                            const double *numbers, int rows, int columns);

// Marks that a session starts at `step`: values of earlier sessions for it and later steps are
// void. Must come before the session's scalars.
void bel_event_file_session_start(bel_event_file *file, int64_t step);

// Writes all events so far, so that TensorBoard sees them. Events are kept in memory until then, or
// until they reach 64 KiB. Returns the error of the last write.
bel_status *bel_event_file_flush(bel_event_file *file) BEL_MUST_USE;

// The same, and to disk: decisions based on the events survive a crash of the machine.
bel_status *bel_event_file_sync(bel_event_file *file) BEL_MUST_USE;

// Flushes, syncs and frees, also after an error. Accepts NULL.
bel_status *bel_event_file_close(bel_event_file *file) BEL_MUST_USE;

const char *bel_event_file_path(const bel_event_file *file);

// --- Reading -------------------------------------------------------------------------------------

#define BEL_EVENT_FILE_PREFIX "events.out.tfevents."

// An event; its pointers are valid during the call.
typedef struct bel_event {
    int64_t step;
    bool starts;     // a session starts at `step`
    const char *tag; // tag of a scalar or a table of numbers; NULL: neither
    float value;
    const double *numbers; // [rows, columns]; NULL: a scalar
    int rows, columns;
} bel_event;

// Calls `each` for every START, scalar and table of numbers in the bytes of a file, in order. Stops
// at its end or at the first record that is incomplete or does not match its checksums. Skips other
// events.
void bel_event_file_parse(const char *data, size_t size,
                          void (*each)(void *context, const bel_event *event), void *context);

#endif
