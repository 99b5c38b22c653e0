// Identity of a rank: the variables of each launcher, and the address at which ranks of several
// hosts meet. label: native
#include <stdlib.h>
#include <string.h>

#include "base/launcher.h"
#include "base/number.h"
#include "support/bel_test.h"
#include "support/ranks.h"

enum { MOST = 64 };

typedef struct place {
    int rank, size, local_rank, local_size;
} place;

// Sets variables, "NAME=value NAME=value", in a child instead of those of bel_start_rank.
static void become(const char *words)
{
    char text[512], *rest = NULL;
    unsetenv("BELFRY_RANK");
    unsetenv("BELFRY_ADDRESS");
    unsetenv("BELFRY_JOB");
    bel_snprintf(text, sizeof text, "%s", words);
    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(word, '=');
        *equals = '\0';
        setenv(word, equals + 1, 1);
    }
}

static const char *words, *expected_error, *expected_host;
static place expected;
static int expected_port;

static int find(int rank, int size)
{
    bel_launch launch;
    (void)rank, (void)size;
    become(words);
    if (expected_error != NULL) {
        NEED_FAILS(bel_launch_find(MOST, &launch), BEL_INVALID_ARGUMENT, expected_error);
        return 0;
    }
    NEED_OK(bel_launch_find(MOST, &launch));
    NEED(launch.rank == expected.rank);
    NEED(launch.size == expected.size);
    NEED(launch.local_rank == expected.local_rank);
    NEED(launch.local_size == expected.local_size);
    NEED(strcmp(launch.host, expected_host) == 0);
    NEED(launch.port == expected_port || expected_port == -1);
    return 0;
}

static void is(const char *variables, place where, const char *host, int port)
{
    words = variables;
    expected_error = NULL;
    expected = where;
    expected_host = host;
    expected_port = port;
    bel_run_ranks(find, 1, 1);
}

static void is_refused(const char *variables, const char *error)
{
    words = variables;
    expected_error = error;
    bel_run_ranks(find, 1, 1);
}

static void launchers_are_told_apart(void **state)
{
    (void)state;
    is("X=1", (place){0, 1, 0, 1}, "", 0);
    is("BELFRY_RANK=1 BELFRY_SIZE=3 BELFRY_LOCAL_RANK=1 BELFRY_LOCAL_SIZE=3 "
       "BELFRY_JOB=j RANK=9",
       (place){1, 3, 1, 3}, "", 0);
    is("OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1 "
       "OMPI_COMM_WORLD_LOCAL_SIZE=4 PMIX_NAMESPACE=j BELFRY_ADDRESS=[fe80::1]:7000 "
       "SLURM_PROCID=1",
       (place){5, 8, 1, 4}, "fe80::1", 7000);
    is("RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=a.example "
       "MASTER_PORT=29500",
       (place){3, 4, 1, 2}, "a.example", 29501);
    is("RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=a.example "
       "MASTER_PORT=29500 "
       "BELFRY_ADDRESS=b:1",
       (place){3, 4, 1, 2}, "b", 1);
}

// Hydra names the ranks of a host but no job. Slurm's PMI2 plugin names neither, Slurm names both.
static void pmi_is_read(void **state)
{
    (void)state;
    is("PMI_RANK=1 PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 BELFRY_JOB=j BELFRY_ADDRESS=a:7",
       (place){1, 4, 1, 2}, "a", 7);
    is("PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2", (place){1, 2, 1, 2}, "", 0);
    is("PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 SLURM_STEP_ID=0 SLURM_PROCID=0",
       (place){1, 2, 1, 2}, "", 0);
    is("PMI_RANK=1 PMI_SIZE=2 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_JOB_ID=7 SLURM_STEP_ID=0 "
       "SLURM_LOCALID=0 SLURM_NODEID=1 SLURM_STEP_TASKS_PER_NODE=1(x2) SLURM_STEP_NODELIST=a,b",
       (place){1, 2, 0, 1}, "a", -1);
    is_refused("PMI_RANK=0 PMI_SIZE=4 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=2",
               "environment variable BELFRY_JOB: expected a word that names the job");
}

static void slurms_steps_are_read(void **state)
{
    (void)state;
    is("SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=4 SLURM_JOB_ID=7", (place){0, 1, 0, 1}, "", 0);
#define STEP "SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=6 SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_LOCALID=1 "
    is(STEP "SLURM_NODEID=1 SLURM_STEP_TASKS_PER_NODE=2(x3) SLURM_STEP_NODELIST=n[03-05]",
       (place){3, 6, 1, 2}, "n03", -1);
    is(STEP "SLURM_NODEID=1 SLURM_STEP_TASKS_PER_NODE=2,4 SLURM_STEP_NODELIST=a,b",
       (place){3, 6, 1, 4}, "a", -1);
    is(STEP "SLURM_NODEID=2 SLURM_STEP_TASKS_PER_NODE=1(x2),4 SLURM_STEP_NODELIST=rack[7,9]-x",
       (place){3, 6, 1, 4}, "rack7", -1);
    is_refused(STEP "SLURM_NODEID=3 SLURM_STEP_TASKS_PER_NODE=2(x3)",
               "SLURM_STEP_TASKS_PER_NODE: expected tasks of node 3, got 2(x3)");
    is_refused(STEP "SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=many", "expected tasks of node 0");
    is_refused(STEP "SLURM_STEP_TASKS_PER_NODE=6", "SLURM_NODEID: expected from 0 to");
}

static void what_makes_no_rank_is_refused(void **state)
{
    (void)state;
    is_refused("RANK=3 WORLD_SIZE=3", "environment variable RANK: expected from 0 to 2, got 3");
    is_refused("RANK=0 WORLD_SIZE=many",
               "environment variable WORLD_SIZE: expected from 1 to 64, got many");
    is_refused("OMPI_COMM_WORLD_RANK=0 RANK=0",
               "environment variable OMPI_COMM_WORLD_SIZE: expected from 1 to 64, got nothing");
    is_refused("RANK=0 WORLD_SIZE=2 LOCAL_RANK=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=1",
               "environment variable LOCAL_RANK: expected from 0 to 1, got 2");
    is_refused("RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2",
               "environment variable MASTER_PORT: expected a word that names the job");
    is_refused("RANK=0 WORLD_SIZE=2 MASTER_PORT=70000 MASTER_ADDR=a",
               "environment variable MASTER_PORT: expected from 1 to 65534, got 70000");
    is_refused("RANK=0 WORLD_SIZE=2 MASTER_PORT=1 BELFRY_ADDRESS=a",
               "environment variable BELFRY_ADDRESS: expected HOST:PORT of rank 0, got a");
    is_refused("RANK=0 WORLD_SIZE=2 MASTER_PORT=1 BELFRY_ADDRESS=a:0", "expected HOST:PORT");
    is_refused("RANK=0 WORLD_SIZE=2 MASTER_PORT=1 BELFRY_ADDRESS=:80", "expected HOST:PORT");
}

static int choose_device(int rank, int size)
{
    bel_ddl *ddl;
    (void)rank, (void)size;
    bel_ddl_options options;
    bel_ddl_options_init(&options, sizeof options);
    options.device = 5;
    options.pci = false;
    NEED_OK(bel_ddl_init(&options, &ddl));
    NEED(bel_ddl_place_of(ddl).device == 5);
    NEED(getenv("CUDA_DEVICE_ORDER") == NULL);
    NEED_OK(bel_ddl_finalize(ddl));
    setenv("BELFRY_DDL_OPTIONS", "device=3,pci=true", 1);
    NEED_OK(bel_ddl_init(&options, &ddl));
    NEED(bel_ddl_place_of(ddl).device == 3);
    NEED(strcmp(getenv("CUDA_DEVICE_ORDER"), "PCI_BUS_ID") == 0);
    NEED_OK(bel_ddl_finalize(ddl));
    return 0;
}

static void devices_are_by_local_rank_or_wish(void **state)
{
    (void)state;
    unsetenv("CUDA_DEVICE_ORDER");
    bel_run_ranks(choose_device, 1, 1);
}

// Starts ranks as torchrun does.
static int be_torchruns(int rank, int size)
{
    char text[160];
    bel_snprintf(text, sizeof text,
                 "RANK=%d LOCAL_RANK=%d WORLD_SIZE=%d LOCAL_WORLD_SIZE=%d TORCHELASTIC_RUN_ID=%s",
                 rank, rank, size, size, getenv("BELFRY_JOB"));
    become(text);
    return bel_spread_values(rank, size);
}

static void torchruns_variables_make_ranks(void **state)
{
    (void)state;
    bel_run_ranks(be_torchruns, 2, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launchers_are_told_apart),
        cmocka_unit_test(pmi_is_read),
        cmocka_unit_test(slurms_steps_are_read),
        cmocka_unit_test(what_makes_no_rank_is_refused),
        cmocka_unit_test(devices_are_by_local_rank_or_wish),
        cmocka_unit_test(torchruns_variables_make_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
