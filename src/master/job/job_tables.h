// Tables of report.html: the participants of the job, and the data that were read.
#ifndef BELFRY_MASTER_JOB_JOB_TABLES_H
#define BELFRY_MASTER_JOB_JOB_TABLES_H

#include "master/job/job.h"
#include "report/report.h"

enum { BEL_JOB_TABLES = 5 };

typedef struct bel_job_tables {
    bel_report_table tables[BEL_JOB_TABLES]; // their cells and sentences are owned
    int count;
    struct {
        char *sentence, **cells;
        size_t cell_count, capacity;
    } texts[BEL_JOB_TABLES]; // texts of each table
} bel_job_tables;

// Makes the tables of a running or finished (`over`) job. When finished, notes of the read data are
// checked, if they were taken (config.audit_input) and are few enough for a quick check. Faults
// that it finds are also warnings. Free with bel_job_tables_deinit.
void bel_job_tables_make(const bel_job *job, bool over, bel_job_tables *out_tables);
void bel_job_tables_deinit(bel_job_tables *tables);

#endif
