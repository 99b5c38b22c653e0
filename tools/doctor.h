// What the checks of verb doctor write to. doctor.c has those of a machine, doctor_cluster.c those
// of a cluster file and its hosts.
#ifndef BELFRY_TOOLS_DOCTOR_H
#define BELFRY_TOOLS_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

typedef enum bel_doctor_level { BEL_DOCTOR_OK, BEL_DOCTOR_WARN, BEL_DOCTOR_FAIL } bel_doctor_level;

// In JSON the whole is one object.
typedef struct bel_doctor {
    bel_str out;
    bool json;
    int check_count, fail_count;
    const char *folder;    // of the disk checks: it exists
    const char *model_dir; // as it was given; NULL: it was not
} bel_doctor;

// Adds a line; `fix` is NULL where there is nothing to do. `name` has ten letters at most.
void bel_doctor_report(bel_doctor *doctor, bel_doctor_level level, const char *name,
                       const char *text, const char *fix);

// Bytes of memory of this machine; false where /proc does not say.
bool bel_doctor_memory(uint64_t *out_total);

// This host against the cluster file at `path`, and every other host that it names. Takes 20 s at
// most, and 10 more for each further 32 hosts.
void bel_doctor_check_cluster(bel_doctor *doctor, const char *path);

#endif
