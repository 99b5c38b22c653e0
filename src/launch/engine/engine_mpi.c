// Engine "mpi": like ssh (engine_ssh.c), but mpirun reaches the hosts, with any of its methods of
// starting daemons (tested: ssh). Each process is an mpirun of one rank, so that one can die and be
// restarted while the others continue; in a larger mpirun that is impossible. No MPI message is
// sent. The engine needs Open MPI's launcher, which forwards standard input.
//
// Nothing is copied: as usual with MPI, belfry and the job's program have the same path on every
// host.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/linux_host.h"
#include "base/linux_process.h"
#include "base/log.h"
#include "base/str.h"
#include "launch/engine/detached.h"
#include "launch/engine/engines.h"

typedef struct mpi_reach {
    bel_reach reach;
    const bel_plan *plan;
    char *belfry, *peer;
} mpi_reach;

// BELFRY_MPIRUN replaces the program; it must accept Open MPI's arguments.
static const char *mpirun_program(void)
{
    const char *program = getenv("BELFRY_MPIRUN");
    return program != NULL && program[0] != '\0' ? program : "mpirun";
}

// Most attempts to reach a host are short, so that a recovered connection is found soon; some are
// long enough for a slow host. These are ssh's options; mpirun starts its daemons by ssh unless the
// user configured another method.
static void add_patience(bel_reach_words *words, bool quick)
{
    const char *own = getenv("OMPI_MCA_plm_rsh_args");
    if (own != NULL) return;
    bel_reach_words_add(words, "--mca");
    bel_reach_words_add(words, "plm_rsh_args");
    bel_reach_words_take(words, bel_strf("-oBatchMode=yes -oConnectTimeout=%d "
                                         "-oServerAliveInterval=5 -oServerAliveCountMax=3",
                                         quick ? 1 : 10));
}

// --quiet: the supervisor handles a rank's exit code, and mpirun would print twelve lines about it.
// A dead connection is detected after 15 s, as with ssh.
static char **words_of(const bel_reach *reach, const bel_task *task)
{
    static const char *const settings[][2] = {{"oob_tcp_keepalive_time", "5"},
                                              {"oob_tcp_keepalive_intvl", "5"},
                                              {"oob_tcp_keepalive_probes", "2"}};
    static const char *const fixed[] = {"--quiet", "--bind-to", "none", "-np", "1", "--host"};
    const mpi_reach *m = (const mpi_reach *)reach;
    const char *host = bel_plan_host(m->plan, task);
    if (host == NULL || bel_linux_host_is_here(host)) return NULL;
    bel_reach_words words = {0};
    bel_reach_words_add(&words, mpirun_program());
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        bel_reach_words_add(&words, "--mca");
        bel_reach_words_add(&words, settings[i][0]);
        bel_reach_words_add(&words, settings[i][1]);
    }
    add_patience(&words, task->incarnation % 8 != 0);
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        bel_reach_words_add(&words, fixed[i]);
    bel_reach_words_add(&words, host);
    bel_reach_words_add(&words, m->belfry);
    bel_reach_words_add(&words, "carry");
    return words.items;
}

static void engine_mpi_destroy(bel_reach *reach)
{
    mpi_reach *m = (mpi_reach *)reach;
    bel_free(m->belfry);
    bel_free(m->peer);
    bel_free(m);
}

static bel_status *engine_mpi_check(const bel_cluster *cluster)
{
    return bel_reach_check(cluster, bel_engine_mpi.name);
}

static bel_status *engine_mpi_reach(const bel_job_record *record, const bel_plan *plan,
                                    bel_reach **out_reach)
{
    BEL_TRY(engine_mpi_check(plan->cluster));
    size_t count;
    const char **hosts = bel_reach_hosts(plan->cluster, &count);
    mpi_reach *m = bel_xcalloc(1, sizeof *m);
    m->plan = plan;
    m->belfry = bel_linux_program();
    m->peer = bel_reach_peer(hosts[0]);
    m->reach = (bel_reach){.words = words_of,
                           .destroy = engine_mpi_destroy,
                           .peer = m->peer,
                           .program = record->program};
    bel_free(hosts);
    *out_reach = &m->reach;
    bel_log_write(BEL_LOG_WARN,
                  "mpirun passes on the job's secret in clear: use a network that only "
                  "this job's hosts can see");
    return NULL;
}

static bel_status *engine_mpi_show(const bel_job_record *record, const bel_plan *plan, bel_str *out)
{
    mpi_reach m = {.reach = {.words = words_of}, .plan = plan, .belfry = bel_linux_program()};
    bel_reach_show(&m.reach, record->name, plan, out);
    bel_free(m.belfry);
    return NULL;
}

static bel_status *engine_mpi_submit(bel_job_record *record, const bel_plan *plan)
{
    enum { START_SECS = 30 };
    (void)plan; // the supervisor creates it
    return bel_detached_submit(record, START_SECS);
}

const bel_engine bel_engine_mpi = {
    .name = "mpi",
    .check = engine_mpi_check,
    .show = engine_mpi_show,
    .submit = engine_mpi_submit,
    .cancel = bel_detached_cancel,
    .reach = engine_mpi_reach,
};
