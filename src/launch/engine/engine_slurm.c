// Engine "slurm": one Slurm job. Its batch script is `belfry supervise` on the first node, beside
// the master. Every other process is a separate step started by srun. So one can die and be
// restarted, on any node with room, while the others continue. The records' folder and belfry are
// on a file system that all nodes see.
//
// Roles with different machines are components of the job (hetjob); roles with the same machine
// share one. The script sets all that nodes might configure. It asks Slurm to requeue the job when
// a node is lost, which resumes from the newest checkpoint, and to send SIGTERM a minute before the
// time limit. (--no-kill would keep a job that lost a node. But it would also keep it after the
// loss of the first node, when no process is left to end it.) Steps do not count memory (--mem=0),
// because they all share the job's memory on a node.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/linux_process.h"
#include "base/number.h"
#include "base/program.h"
#include "base/str.h"
#include "launch/engine/detached.h"
#include "launch/engine/engines.h"

enum { ASK_SECS = 60 };

// --- Components ----------------------------------------------------------------------------------

static const bel_role order[] = {BEL_ROLE_MASTER, BEL_ROLE_PS, BEL_ROLE_WORKER, BEL_ROLE_EVALUATOR};
enum { ROLES = sizeof order / sizeof order[0] };

// Cores of one process: its machine's, or one per thread.
static int cores_of(const bel_plan *plan, bel_role role)
{
    int cores = plan->cluster->roles[role].machine.cores;
    for (int i = 0; i < plan->process_count && cores == 0; i++) {
        const bel_plan_process *p = &plan->processes[i];
        if (p->role == role) return p->towers > 1 ? p->towers : 1;
    }
    return cores > 0 ? cores : 1;
}

static int gpus_of(const bel_cluster *cluster, bel_role role)
{
    return cluster->slurm.gpus ? cluster->roles[role].machine.devices : 0;
}

// True if processes of both roles need the same from a node.
static bool alike(const bel_plan *plan, bel_role a, bel_role b)
{
    const bel_cluster_role *x = &plan->cluster->roles[a], *y = &plan->cluster->roles[b];
    bool same = cores_of(plan, a) == cores_of(plan, b) &&
                x->machine.memory_bytes == y->machine.memory_bytes &&
                gpus_of(plan->cluster, a) == gpus_of(plan->cluster, b) &&
                x->host_count == y->host_count;
    for (size_t i = 0; i < x->host_count && same; i++)
        same = strcmp(x->hosts[i], y->hosts[i]) == 0;
    return same;
}

// Returns a role's component; for BEL_ROLE_COUNT the number of components. A role opens a component
// if no earlier role is like it.
static int component_of(const bel_plan *plan, bel_role role)
{
    int components[ROLES] = {0}, count = 0;
    for (int i = 0; i < ROLES; i++) {
        if (plan->cluster->roles[order[i]].count == 0) continue;
        components[i] = -1;
        for (int k = 0; k < i && components[i] < 0; k++) {
            bool there = plan->cluster->roles[order[k]].count > 0;
            if (there && alike(plan, order[i], order[k])) components[i] = components[k];
        }
        if (components[i] < 0) components[i] = count++;
        if (order[i] == role) return components[i];
    }
    return count;
}

// --- The script ----------------------------------------------------------------------------------

// Writes the component that `role` opened.
static void write_component(const bel_plan *plan, bel_role role, bel_str *out)
{
    const bel_cluster *cluster = plan->cluster;
    const bel_cluster_role *r = &cluster->roles[role];
    const bel_cluster_slurm *slurm = &cluster->slurm;
    int cores = cores_of(plan, role), tasks = 0, component = component_of(plan, role);
    for (int i = 0; i < ROLES; i++)
        if (component_of(plan, order[i]) == component) tasks += cluster->roles[order[i]].count;
    bel_str_printf(out, "#SBATCH --ntasks=%d --cpus-per-task=%d", tasks, cores);
    if (r->machine.memory_bytes > 0) {
        int64_t mib = (r->machine.memory_bytes / cores + (1 << 20) - 1) >> 20;
        bel_str_printf(out, " --mem-per-cpu=%lldM", (long long)mib);
    }
    if (gpus_of(cluster, role) > 0) {
        bel_str_printf(out, " --gpus-per-task=%d", gpus_of(cluster, role));
    }
    for (size_t i = 0; i < r->host_count; i++)
        bel_str_printf(out, "%s%s", i == 0 ? " --nodelist=" : ",", r->hosts[i]);
    bel_str_puts(out, "\n#SBATCH --requeue");
    if (slurm->partition != NULL) bel_str_printf(out, " --partition=%s", slurm->partition);
    if (slurm->account != NULL) bel_str_printf(out, " --account=%s", slurm->account);
    if (slurm->minutes > 0) bel_str_printf(out, " --time=%d", slurm->minutes);
    for (size_t i = 0; i < slurm->option_count; i++)
        bel_str_printf(out, " %s", slurm->options[i]);
    bel_str_puts(out, "\n");
}

// Words of #SBATCH lines are split at unquoted spaces.
static bel_status *check_text(const char *text, const char *what)
{
    if (strpbrk(text, "\"'\\\n") == NULL) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "%s %s: a batch script cannot name it", what, text);
}

static bel_status *write_script(const bel_job_record *record, const bel_plan *plan, bel_str *out)
{
    char folder[4096], *program = bel_linux_program();
    bel_status *status = getcwd(folder, sizeof folder) != NULL
                             ? check_text(folder, "folder")
                             : BEL_ERR(BEL_FAILED_PRECONDITION, "the current folder has no path");
    if (status == NULL) status = check_text(record->folder, "folder");
    if (status == NULL && strchr(record->folder, '%') != NULL) { // Slurm replaces it by numbers
        status =
            BEL_ERR(BEL_INVALID_ARGUMENT, "folder %s: expected one without %%", record->folder);
    }
    if (status == NULL) status = check_text(program, "program");
    bel_str_printf(out,
                   "#!/bin/sh\n"
                   "#SBATCH --job-name=%s --export=ALL --signal=B:TERM@60\n"
                   "#SBATCH --chdir=\"%s\"\n"
                   "#SBATCH --output=\"%s/logs/supervisor.log\" --open-mode=append\n",
                   record->name, folder, record->folder);
    for (int i = 0, written = 0; i < ROLES; i++) {
        bool opens =
            plan->cluster->roles[order[i]].count > 0 && component_of(plan, order[i]) == written;
        if (!opens) continue;
        if (written++ > 0) bel_str_puts(out, "#SBATCH hetjob\n");
        write_component(plan, order[i], out);
    }
    bel_str_printf(out, "exec '%s' supervise %s\n", program, record->name);
    bel_free(program);
    return status;
}

// --- Submitting ----------------------------------------------------------------------------------

// Submits; Slurm answers "17", or "17;cluster" if there are several clusters.
static bel_status *hand_in(const bel_job_record *record, const bel_plan *plan)
{
    char *path = bel_path_join(record->folder, "job.sbatch"), *text = NULL;
    char program[] = "sbatch", parsable[] = "--parsable";
    char *const arguments[] = {program, parsable, path, NULL};
    bel_str script = {0};
    bel_status *status = write_script(record, plan, &script);
    if (status == NULL) status = bel_file_write_atomic(path, script.text, script.length);
    if (status == NULL) status = bel_program_ask(arguments, NULL, ASK_SECS, &text);
    if (status == NULL) {
        text[strcspn(text, ";\n")] = '\0';
        status = bel_registry_set_engine_id(record, text);
    }
    bel_str_deinit(&script);
    bel_free(text);
    bel_free(path);
    return status;
}

static bel_status *engine_slurm_submit(bel_job_record *record, const bel_plan *plan)
{
    bel_status *status = hand_in(record, plan);
    if (status != NULL) bel_job_record_failure(record, status);
    return status;
}

// --- Looking and cancelling ----------------------------------------------------------------------

// Asks for Slurm's state of the job, such as PENDING; "" if Slurm no longer knows the job. Free
// with bel_free.
static bel_status *ask_state(const bel_job_record *record, char **out_state)
{
    char program[] = "squeue", quiet[] = "--noheader", form[] = "--format=%T %r", which[] = "--job";
    char *const arguments[] = {program, quiet, form, which, record->engine_id, NULL};
    bel_status *status = bel_program_ask(arguments, NULL, ASK_SECS, out_state);
    bool unknown = status != NULL && strstr(bel_status_message(status), "Invalid job id") != NULL;
    if (unknown) {
        bel_status_ignore(status); // it was long ago
        *out_state = bel_xstrdup("");
        return NULL;
    }
    if (status == NULL) (*out_state)[strcspn(*out_state, "\n")] = '\0'; // the first component's
    return status;
}

static bool is_pending(const char *state)
{
    return strncmp(state, "PENDING", strlen("PENDING")) == 0;
}

// True if Slurm still handles the job. Slurm may restart a stopped job (scontrol requeue,
// preemption), which shows once its processes are gone.
static bool is_live(const char *state)
{
    static const char *const over[] = {"CANCELLED",  "COMPLETED", "FAILED",
                                       "TIMEOUT",    "NODE_FAIL", "PREEMPTED",
                                       "OUT_OF_MEM", "BOOT_FAIL", "DEADLINE"};
    for (size_t i = 0; i < sizeof over / sizeof over[0]; i++)
        if (strncmp(state, over[i], strlen(over[i])) == 0) return false;
    return state[0] != '\0';
}

// Updates a job that Slurm has, or has again, and whose own process does not write its status. A
// job that Slurm no longer has and that recorded no end is recorded as ended.
static bel_status *engine_slurm_look(bel_job_record *record)
{
    char *state;
    BEL_TRY(ask_state(record, &state));
    bel_job_state before = record->state;
    bel_status *status = NULL;
    if (state[0] == '\0' && before != BEL_JOB_CANCELLED) {
        char *message = bel_strf("Slurm has no job %s any more; belfry jobs resume %s continues "
                                 "from the newest checkpoint",
                                 record->engine_id, record->name);
        status = bel_registry_conclude(record, BEL_JOB_FAILED, message);
        bel_free(message);
    } else if (is_pending(state) || (state[0] != '\0' && before == BEL_JOB_LOST)) {
        record->state = BEL_JOB_QUEUED;
        bel_free(record->message);
        record->message = bel_strf("Slurm's job %s: %s", record->engine_id, state);
    } else if (before == BEL_JOB_CANCELLED && is_live(state)) {
        record->state = BEL_JOB_RUNNING;
        bel_free(record->message);
        record->message = bel_strf("it has saved and stopped, and Slurm's job %s is there: %s",
                                   record->engine_id, state);
    }
    bel_free(state);
    return status;
}

// Removes a waiting job from the queue. A running job gets the signal that its supervisor would get
// on this host, so that it saves.
static bel_status *engine_slurm_cancel(const bel_job_record *record)
{
    char *state, *text = NULL;
    BEL_TRY(ask_state(record, &state));
    bool waits = is_pending(state), gone = state[0] == '\0';
    bel_free(state);
    if (gone) {
        return BEL_ERR(BEL_FAILED_PRECONDITION,
                       "job %s is %s, and Slurm has no job %s: there is nothing to cancel",
                       record->name, bel_job_state_name(record->state), record->engine_id);
    }
    char program[] = "scancel", term[] = "--signal=TERM", batch[] = "--batch";
    char *const ask[] = {program, term, batch, record->engine_id, NULL};
    char *const take[] = {program, record->engine_id, NULL};
    bel_status *status = bel_program_ask(waits ? take : ask, NULL, ASK_SECS, &text);
    bel_free(text);
    if (status != NULL || !waits) return status;
    bel_job_record *now;
    BEL_TRY(bel_registry_read(record->name, &now));
    status = bel_registry_conclude(now, BEL_JOB_CANCELLED, "cancelled while it waited");
    bel_job_record_destroy(now);
    return status;
}

// --- Reaching the nodes --------------------------------------------------------------------------

typedef struct slurm_reach {
    bel_reach reach;
    const bel_plan *plan;
    char *program; // belfry's
    char *peer;
} slurm_reach;

// Starts a step of one task, on any node of the component with room.
static char **words_of(const bel_reach *reach, const bel_task *task)
{
    const slurm_reach *s = (const slurm_reach *)reach;
    const bel_cluster *cluster = s->plan->cluster;
    if (task->role == BEL_ROLE_MASTER) return NULL;
    static const char *const fixed[] = {"--nodes=1", "--ntasks=1",           "--exact",
                                        "--mem=0",   "--kill-on-bad-exit=0", "--unbuffered"};
    bel_reach_words words = {0};
    int gpus = gpus_of(cluster, task->role);
    bel_reach_words_add(&words, "srun");
    if (component_of(s->plan, BEL_ROLE_COUNT) > 1) {
        bel_reach_words_take(&words, bel_strf("--het-group=%d", component_of(s->plan, task->role)));
    }
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        bel_reach_words_add(&words, fixed[i]);
    bel_reach_words_take(&words, bel_strf("--cpus-per-task=%d", cores_of(s->plan, task->role)));
    if (gpus > 0) bel_reach_words_take(&words, bel_strf("--gpus-per-task=%d", gpus));
    bel_reach_words_take(&words,
                         bel_strf("--job-name=%s-%d", bel_role_name(task->role), task->index));
    bel_reach_words_add(&words, s->program);
    bel_reach_words_add(&words, "carry");
    return words.items;
}

static void engine_slurm_destroy(bel_reach *reach)
{
    slurm_reach *s = (slurm_reach *)reach;
    bel_free(s->program);
    bel_free(s->peer);
    bel_free(s);
}

// Returns the value of "KEY=value" in a line of words; NULL: absent. Free with bel_free.
static char *find_value(const char *line, size_t length, const char *key)
{
    size_t key_length = strlen(key);
    for (size_t i = 0; i + key_length < length; i++) {
        bool begins = i == 0 || line[i - 1] == ' ';
        if (!begins || strncmp(line + i, key, key_length) != 0) continue;
        const char *value = line + i + key_length;
        return bel_xstrndup(value, strcspn(value, " \n"));
    }
    return NULL;
}

// Lists all nodes of the job, for scontrol. Free with bel_free.
static bel_status *list_nodes(int components, char **out_list)
{
    bel_str list = {0};
    for (int c = 0; c < components; c++) {
        char name[64] = "SLURM_JOB_NODELIST";
        if (components > 1) bel_snprintf(name, sizeof name, "SLURM_JOB_NODELIST_HET_GROUP_%d", c);
        const char *nodes = getenv(name);
        if (nodes == NULL) {
            bel_str_deinit(&list);
            return BEL_ERR(BEL_FAILED_PRECONDITION,
                           "environment variable %s is not set: a job of Slurm's is supervised "
                           "only by its batch script",
                           name);
        }
        bel_str_printf(&list, "%s%s", c > 0 ? "," : "", nodes);
    }
    *out_list = list.text;
    return NULL;
}

// Finds the address of another node, as Slurm knows it, because node names need not be host names.
// Without another node, this one's.
static bel_status *find_peer(int components, char **out_peer)
{
    char *nodes = NULL, *text = NULL, *address = NULL;
    BEL_TRY(list_nodes(components, &nodes));
    char program[] = "scontrol", line[] = "--oneliner", show_word[] = "show", node[] = "node";
    char *const arguments[] = {program, line, show_word, node, nodes, NULL};
    const char *own = getenv("SLURMD_NODENAME");
    bel_status *status = bel_program_ask(arguments, NULL, ASK_SECS, &text);
    for (const char *at = text; at != NULL && *at != '\0'; at += strspn(at, "\n")) {
        size_t length = strcspn(at, "\n");
        char *name = find_value(at, length, "NodeName="),
             *its = find_value(at, length, "NodeAddr=");
        bool other = name != NULL && (own == NULL || strcmp(name, own) != 0);
        bool wanted = its != NULL && (address == NULL || other);
        if (wanted) {
            bel_free(address);
            address = its;
        } else {
            bel_free(its);
        }
        bel_free(name);
        if (other && wanted) break;
        at += length;
    }
    if (status == NULL && address == NULL) {
        status = BEL_ERR(BEL_ABORTED, "scontrol names no address of %s", nodes);
    }
    if (status == NULL) *out_peer = bel_strf("%s:6818", address); // the port has no effect
    bel_free(address);
    bel_free(text);
    bel_free(nodes);
    return status;
}

static bel_status *engine_slurm_reach(const bel_job_record *record, const bel_plan *plan,
                                      bel_reach **out_reach)
{
    char *peer;
    BEL_TRY(find_peer(component_of(plan, BEL_ROLE_COUNT), &peer));
    slurm_reach *s = bel_xcalloc(1, sizeof *s);
    *s = (slurm_reach){
        .reach = {.words = words_of,
                  .destroy = engine_slurm_destroy,
                  .peer = peer,
                  .program = record->program},
        .plan = plan,
        .program = bel_linux_program(),
        .peer = peer,
    };
    *out_reach = &s->reach;
    return NULL;
}

// --- The engine ----------------------------------------------------------------------------------

// Hosts are nodes, and Slurm knows them.
static bel_status *engine_slurm_check(const bel_cluster *cluster)
{
    if (!cluster->slurm.gpus) return NULL;
    for (int i = 0; i < ROLES; i++)
        if (cluster->roles[order[i]].count > 0 && gpus_of(cluster, order[i]) > 0) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "%s: slurm.gpus is true, and no machine of a role has devices; hint: machines: "
                   "{big: {devices: 2}}, workers: {machine: big}",
                   cluster->source);
}

// Shows the script, and the command of one process of each role.
static bel_status *engine_slurm_show(const bel_job_record *record, const bel_plan *plan,
                                     bel_str *out)
{
    slurm_reach s = {.plan = plan, .program = bel_linux_program()};
    bel_status *status = write_script(record, plan, out);
    for (int i = 1; i < ROLES; i++) {
        const bel_task task = {.role = order[i], .index = 0};
        if (plan->cluster->roles[order[i]].count == 0) continue;
        char **words = words_of(&s.reach, &task);
        bel_str_printf(out, "# each %s:", bel_role_name(order[i]));
        for (size_t k = 0; words[k] != NULL; k++)
            bel_str_printf(out, " %s", words[k]);
        bel_str_puts(out, "\n");
        bel_reach_words_free(words);
    }
    bel_free(s.program);
    return status;
}

const bel_engine bel_engine_slurm = {
    .name = "slurm",
    .check = engine_slurm_check,
    .show = engine_slurm_show,
    .submit = engine_slurm_submit,
    .cancel = engine_slurm_cancel,
    .look = engine_slurm_look,
    .reach = engine_slurm_reach,
    .apart = true,
    .fixed_size = true,
};
