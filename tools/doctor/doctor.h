// Report of verb doctor's checks. doctor.c has the checks of a machine, doctor_cluster.c those of a
// cluster file and its hosts.
#ifndef BELFRY_TOOLS_DOCTOR_DOCTOR_H
#define BELFRY_TOOLS_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

typedef enum bel_doctor_level { BEL_DOCTOR_OK, BEL_DOCTOR_WARN, BEL_DOCTOR_FAIL } bel_doctor_level;

// In JSON the whole report is one object.
typedef struct bel_doctor {
    bel_str out;
    bool json;
    int check_count, fail_count;
    const char *folder;    // existing folder for the disk checks
    const char *model_dir; // as given; NULL: not given
} bel_doctor;

// Adds a line. `fix`: NULL if there is nothing to do. `name` has at most ten letters.
void bel_doctor_report(bel_doctor *doctor, bel_doctor_level level, const char *name,
                       const char *text, const char *fix);

// Returns the memory of this machine in bytes; false if /proc does not have it.
bool bel_doctor_memory(uint64_t *out_total);

// Checks this host, and every other host of the cluster file at `path`. Takes at most 20 s, and 10
// s more for each further 32 hosts.
void bel_doctor_check_cluster(bel_doctor *doctor, const char *path);

// Checks a model folder in a store: writes an object below `url`, reads, lists and removes it. It
// takes some 10 s if the store does not answer.
void bel_doctor_check_store(bel_doctor *doctor, const char *url);

// Checks that data at `url`, an object or a folder of a store, can be listed, or read from a web
// server.
void bel_doctor_check_data(bel_doctor *doctor, const char *url);

#endif
