// Table of launchers, and two things that a variable's name cannot describe: Slurm's list of tasks
// by node, and the address of rank 0. Inconsistent variables are an error, never a job of one
// process: four processes that each assumed so would train four models.
#include "base/launcher.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/linux_process.h"
#include "base/number.h"
#include "base/str.h"

// Variables of one launcher. The first launcher whose rank is set applies: a user's script first,
// then launchers that start processes inside jobs of others.
typedef struct launcher {
    const char *name;
    const char *rank, *size;
    const char *local_rank, *local_size; // if neither is set, all ranks are on one host
    const char *within; // set only when processes are started as ranks; NULL: always
    const char *job[3]; // together they name the job
    bool siblings;      // ranks of a host have one parent
    bel_status *(*address)(bel_launch *out); // NULL: the launcher does not give rank 0's address
} launcher;

bel_status *bel_launch_number(const char *name, int low, int high, int *out)
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

// Parses Slurm's list "2(x3),1": two tasks on each of three hosts, one on the fourth. -1:
// malformed.
static int tasks_of_node(const char *list, int node, int most)
{
    for (const char *at = list; *at != '\0'; at += *at == ',') {
        char *end;
        long tasks = strtol(at, &end, 10), hosts = 1;
        if (end == at || tasks < 1 || tasks > most) return -1;
        if (strncmp(end, "(x", 2) == 0) hosts = strtol(end + 2, &end, 10);
        if (*end == ')') end++;
        if (hosts < 1 || (*end != ',' && *end != '\0')) return -1;
        if (node < hosts) return (int)tasks;
        node -= (int)hosts;
        at = end;
    }
    return -1;
}

static bel_status *read_local_size(const char *name, int size, int *out)
{
    if (strcmp(name, "SLURM_STEP_TASKS_PER_NODE") != 0)
        return bel_launch_number(name, 1, size, out);
    const char *text = getenv(name);
    int node = 0;
    BEL_TRY(bel_launch_number("SLURM_NODEID", 0, INT_MAX, &node));
    *out = text == NULL ? -1 : tasks_of_node(text, node, size);
    if (*out > 0 && *out <= size) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "environment variable %s: expected tasks of node %d, got %s", name, node,
                   text == NULL ? "nothing" : text);
}

static bel_status *read_place(const launcher *l, int most, bel_launch *out)
{
    BEL_TRY(bel_launch_number(l->size, 1, most, &out->size));
    BEL_TRY(bel_launch_number(l->rank, 0, out->size - 1, &out->rank));
    out->local_rank = out->rank;
    out->local_size = out->size;
    if (getenv(l->local_rank) == NULL && getenv(l->local_size) == NULL) return NULL;
    BEL_TRY(read_local_size(l->local_size, out->size, &out->local_size));
    return bel_launch_number(l->local_rank, 0, out->local_size - 1, &out->local_rank);
}

// If a launcher has no name for a job, ranks of one host use their common parent process.
static bel_status *read_job(const launcher *l, bel_launch *out)
{
    size_t length = (size_t)bel_snprintf(out->job, sizeof out->job, "%s", l->rank);
    bool named = false;
    for (size_t i = 0; i < sizeof l->job / sizeof l->job[0] && l->job[i] != NULL; i++) {
        const char *text = getenv(l->job[i]);
        if (text == NULL) continue;
        named = true;
        if (length + strlen(text) + 2 > sizeof out->job)
            return BEL_ERR(BEL_INVALID_ARGUMENT, "environment variable %s: too long", l->job[i]);
        length += (size_t)bel_snprintf(out->job + length, sizeof out->job - length, "\n%s", text);
    }
    if (named) return NULL;
    if (l->siblings && out->local_size == out->size) {
        int64_t parent = (int64_t)getppid();
        bel_snprintf(out->job + length, sizeof out->job - length, "\n%lld %lld", (long long)parent,
                     (long long)bel_linux_start_ticks(parent));
        return NULL;
    }
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "environment variable %s: expected a word that names the job, as %s is set",
                   l->job[0], l->rank);
}

// --- Address of rank 0 ---------------------------------------------------------------------------

static bel_status *set_address(const char *name, const char *host, size_t length, int64_t port,
                               bel_launch *out)
{
    if (length == 0 || length >= sizeof out->host || port < 1 || port > 65535) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "environment variable %s: expected HOST:PORT of rank 0, got %s", name,
                       getenv(name));
    }
    bel_snprintf(out->host, sizeof out->host, "%.*s", (int)length, host);
    out->port = (int)port;
    return NULL;
}

// Parses HOST:PORT, and [HOST]:PORT for an address with colons.
static bel_status *read_own_address(const char *name, const char *text, bel_launch *out)
{
    const char *colon = strrchr(text, ':');
    size_t length = colon == NULL ? 0 : (size_t)(colon - text);
    int64_t port = 0;
    if (colon != NULL && !bel_parse_i64(colon + 1, strlen(colon + 1), &port)) port = 0;
    if (length > 1 && text[0] == '[' && text[length - 1] == ']') {
        text++;
        length -= 2;
    }
    return set_address(name, text, length, port, out);
}

// torchrun's store may listen at MASTER_PORT, so ranks use the next port.
static bel_status *read_torchrun_address(bel_launch *out)
{
    const char *host = getenv("MASTER_ADDR");
    int port = 0;
    if (host == NULL) return NULL;
    BEL_TRY(bel_launch_number("MASTER_PORT", 1, 65534, &port));
    return set_address("MASTER_ADDR", host, strlen(host), port + 1, out);
}

// Rank 0 is on the first host of the step: node03 of "node[03-07,9],other". The port is derived
// from the job, below the range of clients' ports.
static bel_status *read_slurm_address(bel_launch *out)
{
    const char *list = getenv("SLURM_STEP_NODELIST");
    if (list == NULL) return NULL;
    char host[BEL_LAUNCH_HOST_TEXT];
    size_t length = strcspn(list, "[,");
    size_t digits = list[length] == '[' ? strcspn(list + length + 1, "-,]") : 0;
    if (length + digits >= sizeof host) length = digits = 0;
    bel_snprintf(host, sizeof host, "%.*s%.*s", (int)length, list, (int)digits, list + length + 1);
    enum { FIRST_PORT = 12000, PORTS = 20000 };
    int port = FIRST_PORT + (int)(bel_hash64(out->job, strlen(out->job)) % PORTS);
    return set_address("SLURM_STEP_NODELIST", host, strlen(host), port, out);
}

// --- The table -----------------------------------------------------------------------------------

static const launcher launchers[] = {
    {"a script",
     "BELFRY_RANK",
     "BELFRY_SIZE",
     "BELFRY_LOCAL_RANK",
     "BELFRY_LOCAL_SIZE",
     NULL,
     {"BELFRY_JOB"},
     false,
     NULL},
    {"Open MPI",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     NULL,
     {"PMIX_NAMESPACE", "OMPI_MCA_orte_hnp_uri", "OMPI_MCA_ess_base_jobid"},
     false,
     NULL},
    {"torchrun",
     "RANK",
     "WORLD_SIZE",
     "LOCAL_RANK",
     "LOCAL_WORLD_SIZE",
     NULL,
     {"MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"},
     false,
     read_torchrun_address},
    {"PMI",
     "PMI_RANK",
     "PMI_SIZE",
     "MPI_LOCALRANKID",
     "MPI_LOCALNRANKS",
     NULL,
     {"BELFRY_JOB"},
     true,
     NULL},
    {"Slurm",
     "SLURM_PROCID",
     "SLURM_STEP_NUM_TASKS",
     "SLURM_LOCALID",
     "SLURM_STEP_TASKS_PER_NODE",
     "SLURM_STEP_ID",
     {"SLURM_JOB_ID", "SLURM_STEP_ID"},
     false,
     read_slurm_address},
};

static bel_status *read_address(const launcher *l, bel_launch *out)
{
    const char *own = getenv("BELFRY_ADDRESS");
    if (own != NULL) return read_own_address("BELFRY_ADDRESS", own, out);
    return l->address != NULL ? l->address(out) : NULL;
}

// In a batch script of Slurm some of srun's variables are set, but it is one process.
bel_status *bel_launch_find(int most, bel_launch *out_launch)
{
    *out_launch = (bel_launch){.size = 1, .local_size = 1};
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        const launcher *l = &launchers[i];
        if (getenv(l->rank) == NULL) continue;
        if (l->within != NULL && getenv(l->within) == NULL) continue;
        // Slurm's plugin for PMI2 provides less than Slurm itself.
        bool plugin = strcmp(l->name, "PMI") == 0 && getenv("SLURM_STEP_ID") != NULL;
        if (plugin && getenv(l->local_rank) == NULL) continue;
        out_launch->name = l->name;
        BEL_TRY(read_place(l, most, out_launch));
        if (out_launch->size == 1) return NULL;
        BEL_TRY(read_job(l, out_launch));
        return read_address(l, out_launch);
    }
    return NULL;
}

static atomic_bool claimed;

void bel_launch_claim(void)
{
    atomic_store(&claimed, true);
}

bool bel_launch_is_claimed(void)
{
    return atomic_load(&claimed);
}
