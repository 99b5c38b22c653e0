// The tables of report.html: who took part in the job, and what was read of the data.
#ifndef BELFRY_MASTER_JOB_TABLES_H
#define BELFRY_MASTER_JOB_TABLES_H

#include "estimator/report.h"
#include "master/job.h"

enum { BEL_JOB_TABLES = 5 };

typedef struct bel_job_tables {
    bel_report_table tables[BEL_JOB_TABLES]; // their cells and sentences are owned
    int count;
    struct {
        char *sentence, **cells;
        size_t cell_count, capacity;
    } texts[BEL_JOB_TABLES]; // what each is made of
} bel_job_tables;

// Of a job that goes on, or is over: then notes of what was read are checked, where they were taken
// (config.audit_input) and are few enough to be looked at in passing. What the check finds to be
// wrong is a warning, too. Free with bel_job_tables_deinit.
void bel_job_tables_make(const bel_job *job, bool over, bel_job_tables *out_tables);
void bel_job_tables_deinit(bel_job_tables *tables);

#endif
