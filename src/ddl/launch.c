#include "ddl/launch.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/str.h"

// The variables of one launcher. The first launcher whose rank is set is the one: that of a script
// of the user's own, then those that start processes from within others' jobs.
typedef struct launcher {
    const char *rank, *size;
    const char *local_rank, *local_size; // NULL: it does not say
    const char *hosts;                   // how many there are; NULL: it does not say
    const char *within; // is set where processes are started as ranks; NULL: always
    const char *job[3]; // together they name the job
} launcher;

static const launcher launchers[] = {
    {"BELFRY_DDL_RANK", "BELFRY_DDL_SIZE", NULL, NULL, NULL, NULL, {"BELFRY_DDL_JOB"}},
    {"OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     NULL,
     NULL,
     {"PMIX_NAMESPACE", "OMPI_MCA_orte_hnp_uri", "OMPI_MCA_ess_base_jobid"}},
    {"RANK",
     "WORLD_SIZE",
     "LOCAL_RANK",
     "LOCAL_WORLD_SIZE",
     NULL,
     NULL,
     {"MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}},
    {"SLURM_PROCID",
     "SLURM_NTASKS",
     "SLURM_LOCALID",
     NULL,
     "SLURM_STEP_NUM_NODES",
     "SLURM_STEP_ID",
     {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
};

static bel_status *read_number(const char *name, int low, int high, int *out)
{
    const char *text = getenv(name);
    int64_t value;
    if (text != NULL && bel_parse_i64(text, strlen(text), &value) && value >= low &&
        value <= high) {
        *out = (int)value;
        return NULL;
    }
    return BEL_ERR(BEL_INVALID_ARGUMENT, "environment variable %s: expected from %d to %d, got %s",
                   name, low, high, text == NULL ? "nothing" : text);
}

static bel_status *read_place(const launcher *l, bel_ddl_place *out)
{
    BEL_TRY(read_number(l->size, 1, BEL_DDL_MAX_RANKS, &out->size));
    BEL_TRY(read_number(l->rank, 0, out->size - 1, &out->rank));
    out->local_rank = out->rank;
    out->local_size = out->size;
    if (l->local_rank != NULL) BEL_TRY(read_number(l->local_rank, 0, INT_MAX, &out->local_rank));
    if (l->local_size != NULL) BEL_TRY(read_number(l->local_size, 1, INT_MAX, &out->local_size));
    int hosts = 1;
    if (l->hosts != NULL && getenv(l->hosts) != NULL)
        BEL_TRY(read_number(l->hosts, 1, INT_MAX, &hosts));
    if (hosts == 1 && out->local_size == out->size) return NULL;
    return BEL_ERR(BEL_UNIMPLEMENTED,
                   "%d ranks on several hosts: all ranks must be on one (%s, %s)", out->size,
                   l->size, l->local_size != NULL ? l->local_size : l->hosts);
}

static bel_status *read_job(const launcher *l, char out[BEL_DDL_JOB_TEXT])
{
    size_t length = (size_t)bel_snprintf(out, BEL_DDL_JOB_TEXT, "%s", l->rank);
    bool named = false;
    for (size_t i = 0; i < sizeof l->job / sizeof l->job[0] && l->job[i] != NULL; i++) {
        const char *text = getenv(l->job[i]);
        if (text == NULL) continue;
        named = true;
        if (length + strlen(text) + 2 > BEL_DDL_JOB_TEXT)
            return BEL_ERR(BEL_INVALID_ARGUMENT, "environment variable %s: too long", l->job[i]);
        length += (size_t)bel_snprintf(out + length, BEL_DDL_JOB_TEXT - length, "\n%s", text);
    }
    if (named) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "environment variable %s: expected a word that names the job, as %s is set",
                   l->job[0], l->rank);
}

// In a batch script of Slurm some of srun's variables are set; it is alone.
bel_status *bel_ddl_find_launch(bel_ddl_launch *out)
{
    *out = (bel_ddl_launch){.place = {.size = 1, .local_size = 1}};
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        const launcher *l = &launchers[i];
        if (getenv(l->rank) == NULL) continue;
        if (l->within != NULL && getenv(l->within) == NULL) continue;
        BEL_TRY(read_place(l, &out->place));
        return out->place.size > 1 ? read_job(l, out->job) : NULL;
    }
    return NULL;
}
