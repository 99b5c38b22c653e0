// Measured figures of this machine, kept for later plans in $XDG_STATE_HOME/belfry/plan: rates of
// lanes and sums, and steps of models. A file is a flat object of JSON with the version, the way of
// measuring, the processor, and the load at the time. Figures of another version, way or processor
// do not count.
#ifndef BELFRY_TOOLS_PLAN_CALIBRATION_H
#define BELFRY_TOOLS_PLAN_CALIBRATION_H

#include <stdbool.h>
#include <stddef.h>

#include "plan/cost_model.h"

typedef struct bel_figure {
    const char *name;
    double *value;
} bel_figure;

// A machine's figures.
typedef struct bel_machine_figures {
    bel_cost_rates rates;
    double file_byte_ns; // a byte of a checkpoint is read
    double load;         // average load of a minute when they were measured
} bel_machine_figures;

// Steps of a worker with one replica, in one process with others like it. Times of workers with one
// thread are processor time, so that other load of the machine does not count.
typedef struct bel_step_figures {
    double compute_ns; // median of the time until the replica has reported
    double pass_ns;    // median of the rest of a step: the update
    double input_ns;   // mean processor time of all other threads in a step, for each worker
    double start_ns;   // from nothing to the first step
    double examples;   // examples of a full batch
    double steps;      // measured
    double load;
} bel_step_figures;

// The way of measuring. A change of what a figure contains raises it.
enum { BEL_CALIBRATION_WAY = 3 };

// Lists the figures of a struct, for the two functions below; returns their number.
enum { BEL_FIGURES_MOST = 16 };
size_t bel_machine_list(bel_machine_figures *machine, bel_figure out_list[BEL_FIGURES_MOST]);
size_t bel_steps_list(bel_step_figures *steps, bel_figure out_list[BEL_FIGURES_MOST]);

// Reads the figures of that name. Returns false if the file is absent, is of another version, way
// or processor, or lacks a number from 0 on: the figures are then to be measured.
bool bel_calibration_read(const char *folder, const char *name, const bel_figure *list,
                          size_t count);

// Writes them, for all later plans of this user. Errors: the folder's or the file's.
bel_status *bel_calibration_write(const char *folder, const char *name, const bel_figure *list,
                                  size_t count) BEL_MUST_USE;

// Returns the average load of the last minute; 0: unknown.
double bel_machine_load(void);

// Measures lanes, sums and files for about a second, with two threads of this process, and files in
// `scratch`. Errors: those of lanes.
bel_status *bel_machine_measure(const char *scratch, bel_machine_figures *out_machine) BEL_MUST_USE;

#endif
