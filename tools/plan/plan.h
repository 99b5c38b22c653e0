// Shared by the files of `belfry plan`: a prediction for each number of workers, and its text.
#ifndef BELFRY_TOOLS_PLAN_PLAN_H
#define BELFRY_TOOLS_PLAN_PLAN_H

#include "base/options.h"
#include "base/str.h"
#include "plan/calibration.h"
#include "wire/role.h"

// A number of workers, and what a step of them costs.
typedef struct bel_plan_row {
    int workers, threads; // threads of a worker's tower
    int64_t examples;     // a step's
    bel_cost cost;
    bel_lane_counts all;                 // all lanes', in a step
    double memory_bytes[BEL_ROLE_COUNT]; // the role's largest process; 0: absent
} bel_plan_row;

// A measurement of the model's step: of one of several workers on this machine at the same time.
typedef struct bel_plan_measured {
    int threads, workers; // threads of each
    bool kept;            // by an earlier plan
    bel_step_figures figures;
} bel_plan_measured;

enum { BEL_PLAN_MOST_MEASURED = 64 };

typedef struct bel_plan_report {
    const char *processor;
    int shards;
    int64_t parameters;
    bel_machine_figures machine;
    bel_plan_measured measured[BEL_PLAN_MOST_MEASURED];
    int measured_count;
    double one_process_ns; // a step of one worker in one process, on one machine
    bel_plan_row *rows;
    int row_count;
    char *assumptions[8];
    int assumption_count;
} bel_plan_report;

// Writes the table and the assumptions, or one object of JSON.
void bel_plan_report_text(const bel_plan_report *report, bel_str *out);
void bel_plan_report_json(const bel_plan_report *report, bel_str *out);

// Adds an assumption, a line for people.
void bel_plan_assume(bel_plan_report *report, const char *format, ...) BEL_PRINTF(2, 3);

// Reads "1,2,8" and "1..1000", which is 1, 2, 4 … 512, 1000. Ascending, each once. Free *out_list
// with bel_free. INVALID_ARGUMENT: another text, or a number outside [1, 1024].
bel_status *bel_plan_read_workers(const char *const *words, size_t word_count, int **out_list,
                                  int *out_count) BEL_MUST_USE;

// Reads "10Gb" as nanoseconds for a byte (units Mb, Gb), and "50us" as nanoseconds (units us, ms).
// INVALID_ARGUMENT: another text, or a number that is not above 0 (a latency: below 0).
bel_status *bel_plan_read_bandwidth(const char *text, double *out_byte_ns) BEL_MUST_USE;
bel_status *bel_plan_read_latency(const char *text, double *out_ns) BEL_MUST_USE;

// Trains the model of these training flags for some seconds in one process, in the folder of their
// --model_dir: workers of one replica and `threads` threads. INVALID_ARGUMENT: the data end before
// enough steps; CANCELLED: a signal; errors of the training.
bel_status *bel_plan_measure_steps(const bel_options *training, int threads, int workers,
                                   bel_step_figures *out_figures) BEL_MUST_USE;

#endif
