// Shared by the files of `belfry plan`: a prediction for each number of workers, and its text.
#ifndef BELFRY_TOOLS_PLAN_PLAN_H
#define BELFRY_TOOLS_PLAN_PLAN_H

#include "base/options.h"
#include "base/str.h"
#include "plan/calibration.h"
#include "wire/role.h"

// Time, money and recovery, from the time of a step.
typedef struct bel_plan_outlook {
    double epoch_secs;        // 0: the data have no known number of records
    double epoch_money;       // all hosts'; 0: no price, or no known epoch
    double process_back_secs; // a killed parameter server: until the step is made again; below 0:
                              // never, as no checkpoint is made
    double host_back_secs;    // a lost host of a parameter server: until the step is made again;
                              // below 0: never, as no checkpoint is made
} bel_plan_outlook;

// A number of workers, and what a step of them costs.
typedef struct bel_plan_row {
    int workers, threads; // threads of a worker's tower
    int relays, relay_levels;
    int hosts;        // number of hosts that are paid for
    int64_t examples; // a step's
    bel_cost cost;
    bel_lane_counts all;                 // all lanes', in a step
    double memory_bytes[BEL_ROLE_COUNT]; // the role's largest process; 0: absent
    bel_plan_outlook outlook;
} bel_plan_row;

// A measurement of the model's step: of one of several workers on this machine at the same time.
typedef struct bel_plan_measured {
    int threads, workers; // threads of each
    bool kept;            // by an earlier plan
    bel_step_figures figures;
} bel_plan_measured;

// Facts of the training and its hosts for the outlook.
typedef struct bel_plan_facts {
    double price;         // a host's for an hour; 0: unset
    double epoch_records; // 0: unknown, or no end
    double silence_secs;  // after which a lost host counts as lost
    double start_ns;      // a process's, to its first step
    double state_bytes;   // the largest shard's, with slots
    double state_ns;      // a byte of it comes to another host
    double save_secs;     // between checkpoints, unless by steps; 0: never
    double save_steps;    // the same in steps; 0: by time
    bool kept;            // a killed server's state stays: in its host's memory, or as a copy
    bool copied;          // the state is on another host
} bel_plan_facts;

enum { BEL_PLAN_MOST_MEASURED = 64, BEL_PLAN_MOST_ASSUMPTIONS = 12 };

typedef struct bel_plan_report {
    const char *processor;
    int shards;
    int64_t parameters;
    bel_machine_figures machine;
    bel_plan_measured measured[BEL_PLAN_MOST_MEASURED];
    int measured_count;
    double one_process_ns; // a step of one worker in one process, on one machine
    bel_plan_facts facts;
    bel_plan_row *rows;
    int row_count;
    char *assumptions[BEL_PLAN_MOST_ASSUMPTIONS];
    int assumption_count;
} bel_plan_report;

// Examples a second of a row, and over those of one process with one worker.
double bel_plan_rate(const bel_plan_row *row);
double bel_plan_speed_up(const bel_plan_report *report, const bel_plan_row *row);

// Returns the outlook of a step of that time and number of examples, on that many hosts. A killed
// parameter server starts again on its host, a lost host's on another one. The state is kept, comes
// from its copy or from the newest checkpoint. In the latter case the steps since are made again,
// on average those of half the time between two checkpoints.
bel_plan_outlook bel_plan_outlook_of(const bel_plan_facts *facts, double step_ns, double examples,
                                     int hosts);

// Writes the table and the assumptions, or one object of JSON.
void bel_plan_report_text(const bel_plan_report *report, bel_str *out);
void bel_plan_report_json(const bel_plan_report *report, bel_str *out);

// Writes a page with the curves, in the form of a training's report.html. Errors: those of files.
bel_status *bel_plan_report_page(const bel_plan_report *report, const char *path) BEL_MUST_USE;

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
