// Board: the master's present knowledge of all processes of its job. Thread-compatible.
#ifndef BELFRY_MONITORING_BOARD_H
#define BELFRY_MONITORING_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "belfry/status.h"
#include "monitoring/numbers.h"

typedef struct bel_str bel_str; // base/str.h

typedef enum bel_board_role {
    BEL_BOARD_MASTER,
    BEL_BOARD_WORKER,
    BEL_BOARD_SHARD,
    BEL_BOARD_EVALUATOR,
    BEL_BOARD_ROLE_COUNT
} bel_board_role;

const char *bel_board_role_name(bel_board_role role); // "worker"

typedef struct bel_board_row {
    bel_board_role role;
    int index;
    bool is_process;  // memory is counted here: false for a thread, and for a shard beside a worker
    int64_t noted_ns; // time of the values; 0: no values yet
    double values[BEL_NUMBER_COUNT];
    double rates[BEL_NUMBER_COUNT]; // for counters, per second; NAN: unknown
    int64_t step;
    char *doing;                 // "waits for version 7 of shard 1"; NULL: unknown
    bel_device_numbers *devices; // a worker's
    int device_count;
} bel_board_row;

typedef struct bel_board {
    double time; // time of the newest values, seconds since 1970
    int64_t step, examples;
    int64_t last_step;                // -1: the program's own loop decides
    double loss, examples_per_second; // NAN: unknown
    int64_t restarts, losses;
    bel_board_row *rows; // the master, workers, shards, evaluators
    int row_count;
    size_t row_capacity;
    int64_t rated_ns, rated_examples; // at the last measurement of the rate of examples
} bel_board;

// Creates rows for the master, each worker, shard and evaluator.
bel_board *bel_board_create(int worker_count, int shard_count, int evaluator_count);
void bel_board_destroy(bel_board *board); // NULL is fine

bel_board_row *bel_board_find(bel_board *board, bel_board_role role, int index); // NULL: absent

// Adds (`here`) or removes a row; does nothing if that is already so.
void bel_board_seat(bel_board *board, bel_board_role role, int index, bool here);

// True if the number belongs to the row's role, or to its process.
bool bel_board_has(const bel_board_row *row, bel_number number);

// Stores the values of the numbers of the row's role, measured at noted_ns. Rates are relative to
// the previous values. Does nothing if noted_ns is not later than theirs.
void bel_board_note(bel_board_row *row, const double values[BEL_NUMBER_COUNT], int64_t noted_ns);

// Stores COUNTED, STALE and DROPPED of a worker, which only shard 0 knows.
void bel_board_note_reports(bel_board_row *row, const double values[BEL_NUMBERS_BY_WORKER]);

// Stores the devices of a worker's towers; copies them.
void bel_board_note_devices(bel_board_row *row, const bel_device_numbers *devices, int count);

void bel_board_set_doing(bel_board_row *row, int64_t step, const char *doing);

// Sets the job's position, and the rate of examples at most once a second.
void bel_board_set_step(bel_board *board, int64_t step, double loss, int64_t examples,
                        int64_t now_ns);

// Appends which worker delays the others: "worker 2 is the slowest: compute 40.0 ms of 52.1 (others
// 12.3)". True if a worker's input and compute time of a step exceeds the median of the others' by
// a factor of 1.5 and by a millisecond. `recent`: in the last second instead of overall.
bool bel_board_write_slowest(const bel_board *board, bool recent, bel_str *out);

// Parts of the mean step's time, in milliseconds: means over the workers and all their steps, as
// far as known. They add up to the whole step.
typedef struct bel_board_split {
    double input, compute, push; // the worker's
    double apply;                // from the last report to the version, for the slowest shard
    double pull;                 // message transfer: reports, sent parameters, rows of tables
    double wait;                 // for other workers' reports
    double other;
    bool shards_known; // false: wait is all of apply, pull and wait
} bel_board_split;

// False: no worker has computed a step.
bool bel_board_split_step(const bel_board *board, bel_board_split *out_split);

// --- board_text.c: for people and Prometheus -----------------------------------------------------

// Appends the text exposition format, version 0.0.4.
void bel_board_write_metrics(const bel_board *board, bel_str *out);

// Appends a table of workers, one of shards, and the slowest worker.
void bel_board_write_table(const bel_board *board, bel_str *out);

// --- board_json.c: as a file ---------------------------------------------------------------------

#define BEL_BOARD_FILE "board.json" // in the model folder

void bel_board_write_json(const bel_board *board, bel_str *out);

// DATA_LOSS: the text from `source` is not a board.
bel_status *bel_board_parse(const char *text, size_t length, const char *source,
                            bel_board **out_board) BEL_MUST_USE;

#endif
