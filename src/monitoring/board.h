// The board: what the master knows of all processes of its job, as of now. Thread-compatible.
#ifndef BELFRY_MONITORING_BOARD_H
#define BELFRY_MONITORING_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"
#include "belfry/status.h"
#include "monitoring/numbers.h"

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
    bool is_process;  // memory is counted here: not of a thread, nor of a shard beside a worker
    int64_t noted_ns; // when the values were heard; 0: never
    double values[BEL_NUMBER_COUNT];
    double rates[BEL_NUMBER_COUNT]; // of those that count, per second; NAN: not known
    int64_t step;
    char *doing;                 // "waits for version 7 of shard 1"; NULL: not known
    bel_device_numbers *devices; // of a worker
    int device_count;
} bel_board_row;

typedef struct bel_board {
    double time; // of the newest look, seconds since 1970
    int64_t step, examples;
    int64_t last_step;                // -1: a loop of the program's own decides
    double loss, examples_per_second; // NAN: not known
    int64_t restarts, losses;
    bel_board_row *rows; // the master, workers, shards, evaluators
    int row_count;
    size_t row_capacity;
    int64_t rated_ns, rated_examples; // the last look at the rate of examples
} bel_board;

// A row for the master, each worker, shard and evaluator.
bel_board *bel_board_create(int worker_count, int shard_count, int evaluator_count);
void bel_board_destroy(bel_board *board); // NULL is fine

bel_board_row *bel_board_find(bel_board *board, bel_board_role role, int index); // NULL: none

// A worker has a row from now on (`here`), or none; where that is so already nothing happens.
void bel_board_seat(bel_board *board, int worker, bool here);

// True when the number is one of this row's: of its role, or of its process.
bool bel_board_has(const bel_board_row *row, bel_number number);

// Takes values that were heard at noted_ns, of those numbers that the row's role has; rates come
// from what was noted before. Nothing happens when noted_ns is not later.
void bel_board_note(bel_board_row *row, const double values[BEL_NUMBER_COUNT], int64_t noted_ns);

// Only COUNTED, STALE and DROPPED, which shard 0 knows of a worker.
void bel_board_note_reports(bel_board_row *row, const double values[BEL_NUMBERS_BY_WORKER]);

// What a worker's towers run on: takes a copy.
void bel_board_note_devices(bel_board_row *row, const bel_device_numbers *devices, int count);

void bel_board_set_doing(bel_board_row *row, int64_t step, const char *doing);

// Where the job stands; gives the rate of examples as well, once a second or less often.
void bel_board_set_step(bel_board *board, int64_t step, double loss, int64_t examples,
                        int64_t now_ns);

// Appends which worker holds the others up: "worker 2 is the slowest: compute 40.0 ms of 52.1
// (others 12.3)". True when a worker's own time (input and compute) of a step is more than 1.5
// times the median of the others', and a millisecond more. `recent`: in the last second, rather
// than overall.
bool bel_board_write_slowest(const bel_board *board, bool recent, bel_str *out);

// Where the mean step's time goes, in milliseconds: means over the workers and all their steps, as
// far as they are known. Its parts are the whole step.
typedef struct bel_board_split {
    double input, compute, push; // the worker's own
    double apply;                // from the step's last report to its version, at the slowest shard
    double pull; // messages on their way: reports, parameters where they are sent, rows of tables
    double wait; // for other workers' reports
    double other;
    bool shards_known; // else wait is all of apply, pull and wait
} bel_board_split;

// False: no worker has made a step.
bool bel_board_split_step(const bel_board *board, bel_board_split *out_split);

// --- board_text.c: for people and Prometheus -----------------------------------------------------

// The text exposition format, version 0.0.4.
void bel_board_write_metrics(const bel_board *board, bel_str *out);

// A table of workers and one of shards, and which worker is the slowest.
void bel_board_write_table(const bel_board *board, bel_str *out);

// --- board_json.c: as a file ---------------------------------------------------------------------

#define BEL_BOARD_FILE "board.json" // in the model's folder

void bel_board_write_json(const bel_board *board, bel_str *out);

// DATA_LOSS: the text, of `source`, is no board.
bel_status *bel_board_parse(const char *text, size_t length, const char *source,
                            bel_board **out_board) BEL_MUST_USE;

#endif
