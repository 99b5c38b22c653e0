// The text is assembled from pieces that are indented when they are inserted, since a pod is the
// same in both kinds. External text is in double quotes, which JSON and YAML share. Kubernetes
// expands $(NAME) in command lines and in variables, so every $ of the user's is doubled. Only
// $(POD_IP) is written for expansion.
//
// Restarts. A pod that is taken away (its node is drained or lost) is replaced and not counted. A
// pod that was killed, or failed, is replaced until the role's limit (backoffLimit) is reached;
// then the whole JobSet is restarted from the newest checkpoint (maxRestarts). Exit codes 2 and 3
// are errors in settings and data, which would repeat, so they end the job.
#include "launch/engine/kubernetes_manifest.h"

#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"

enum {
    PORT = 7077,            // for every listener; each pod has a separate address
    TFJOB_PORT = 2222,      // TFJob's
    LONGEST_NAME = 40,      // with ROLE, numbers and a suffix pods have 63 characters
    GRACE_SECS = 120,       // from SIGTERM to SIGKILL: enough for a checkpoint
    PROBE_SECS = 5,         // between checks whether a process listens
    STARTUP_SECS = 600,     // for a process to start listening
    MOST_BACKOFF = 1 << 30, // largest value of a 32-bit field
};

static const char secret_folder[] = "/var/run/secrets/belfry";

static const bel_role order[] = {BEL_ROLE_MASTER, BEL_ROLE_PS, BEL_ROLE_WORKER, BEL_ROLE_EVALUATOR};
enum { ROLES = sizeof order / sizeof order[0] };

// --- Checks --------------------------------------------------------------------------------------

const char *bel_kubernetes_kind(const bel_cluster *cluster)
{
    return cluster->kubernetes.tfjob ? "tfjob" : "jobset";
}

const char *bel_kubernetes_label(const char *kind)
{
    return strcmp(kind, "tfjob") == 0 ? "training.kubeflow.org/job-name"
                                      : "jobset.sigs.k8s.io/jobset-name";
}

bel_status *bel_kubernetes_check(const bel_cluster *cluster)
{
    const bel_cluster_kubernetes *k = &cluster->kubernetes;
    const char *source = cluster->source;
    if (k->image == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: kubernetes.image is missing: the image with belfry, or with the "
                       "program, from which pods are made",
                       source);
    }
    if (k->volume_claim == NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: kubernetes.volume_claim is missing: the claim of a volume for the "
                       "model's folder, which all pods share",
                       source);
    }
    for (int r = 0; r < BEL_ROLE_COUNT; r++) {
        if (cluster->roles[r].host_count == 0) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: host %s of the %s role: Kubernetes chooses the nodes; leave hosts out",
                       source, cluster->roles[r].hosts[0], bel_role_name((bel_role)r));
    }
    if (cluster->secret_file != NULL) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: security.secret_file is a file of this host; leave it out, or keep the "
                       "secret in Kubernetes and name it in kubernetes.secret",
                       source);
    }
    if (cluster->tls_ca == NULL) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "%s: security.tls: pods have addresses that no certificate names", source);
}

// True if a folder is the volume's mount or inside it.
static bool is_below(const char *folder, const char *mount)
{
    size_t length = strlen(mount);
    bool begins = strncmp(folder, mount, length) == 0;
    return begins && (folder[length] == '\0' || folder[length] == '/');
}

static bel_status *check_record(const bel_job_record *record, const bel_cluster *cluster)
{
    const char *mount = cluster->kubernetes.mount;
    size_t length = strlen(record->name);
    if (length > LONGEST_NAME || !bel_is_dns_label(record->name, length)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "job name \"%s\": Kubernetes has names of small letters, digits and -, at "
                       "most %d of them for a job",
                       record->name, LONGEST_NAME);
    }
    if (is_below(record->model_dir, mount)) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "the model's folder %s is not on the volume, which pods see at %s; hint: "
                   "--job_dir %s/%s",
                   record->model_dir, mount, mount, record->name);
}

// --- Pieces --------------------------------------------------------------------------------------

// Inserts lines that were written without indentation, indented.
static void put_indented(const bel_str *lines, int columns, bel_str *out)
{
    const char *text = lines->text;
    while (text != NULL && *text != '\0') {
        size_t length = strcspn(text, "\n") + 1;
        bel_str_printf(out, "%*s", columns, "");
        bel_str_append(out, text, length);
        text += length;
    }
}

// Appends a quoted text; in commands and variables $ is escaped.
static void put_plain(const char *text, bel_str *out)
{
    bel_str doubled = {0};
    bel_str_puts(&doubled, "");
    for (; *text != '\0'; text++)
        bel_str_append(&doubled, *text == '$' ? "$$" : text, *text == '$' ? 2 : 1);
    bel_json_write_string(out, doubled.text);
    bel_str_deinit(&doubled);
}

static void put_variable(const char *name, const char *value, bel_str *out)
{
    bel_str_printf(out, "- name: %s\n  value: ", name);
    put_plain(value, out);
    bel_str_puts(out, "\n");
}

static void put_labels(const bel_job_record *record, const char *role, bel_str *out)
{
    bel_str_printf(out,
                   "labels:\n"
                   "  app.kubernetes.io/name: belfry\n"
                   "  app.kubernetes.io/instance: \"%s\"\n"
                   "  app.kubernetes.io/managed-by: belfry\n",
                   record->name);
    if (role != NULL) bel_str_printf(out, "  app.kubernetes.io/component: %s\n", role);
}

// Appends the object's head: kind, name, labels.
static void put_head(const bel_job_record *record, const bel_cluster *cluster, const char *version,
                     const char *kind, const char *suffix, bel_str *out)
{
    bel_str labels = {0};
    put_labels(record, NULL, &labels);
    bel_str_printf(out,
                   "apiVersion: %s\n"
                   "kind: %s\n"
                   "metadata:\n"
                   "  name: \"%s%s\"\n"
                   "  namespace: \"%s\"\n",
                   version, kind, record->name, suffix, cluster->kubernetes.name_space);
    put_indented(&labels, 2, out);
    bel_str_deinit(&labels);
}

// --- A pod ---------------------------------------------------------------------------------------

// Returns the first process of a role; NULL: no process.
static const bel_plan_process *first_of(const bel_plan *plan, bel_role role, int *out_number)
{
    for (int i = 0; i < plan->process_count; i++) {
        if (plan->processes[i].role != role) continue;
        *out_number = i;
        return &plan->processes[i];
    }
    return NULL;
}

static bool listens(const bel_plan_process *process)
{
    return process->role == BEL_ROLE_MASTER || process->has_shard;
}

// Threads of a tower: the machine's cores, if known, as a pod has them for itself; otherwise the
// process uses the cores that the node gives it.
static int threads_of(const bel_plan *plan, const bel_plan_process *process)
{
    int cores = plan->cluster->roles[process->role].machine.cores, towers = process->towers;
    if (process->role == BEL_ROLE_PS) return 1;
    if (cores == 0) return 0;
    return towers > 1 && cores > towers ? cores / towers : towers > 1 ? 1 : cores;
}

// BELFRY_TASK as text: each pod is a separate host.
static void put_task(const bel_job_record *record, const bel_plan *plan, int number, bel_str *out)
{
    const bel_plan_process *process = &plan->processes[number];
    bel_task *task = bel_plan_task(plan, record->name, number);
    bel_str text = {0};
    bool trains = process->towers > 0;
    task->local_rank = trains ? 0 : -1;
    task->local_size = trains ? 1 : 0;
    task->thread_count = threads_of(plan, process);
    task->foreign = true;
    task->master_address = bel_strf("%s-master-0-0.%s:%d", record->name, record->name, PORT);
    task->listen_address = bel_strf("$(POD_IP):%d", listens(process) ? PORT : 0);
    bel_task_write(task, &text);
    bel_str_puts(out, "- name: BELFRY_TASK\n  value: ");
    bel_json_write_string(out, text.text);
    bel_str_puts(out, "\n");
    bel_str_deinit(&text);
    bel_task_destroy(task);
}

static void put_environment(const bel_job_record *record, const bel_plan *plan, int number,
                            bel_str *out)
{
    const bel_cluster *cluster = plan->cluster;
    bel_str_puts(out, "env:\n");
    for (size_t i = 0; i < cluster->environment_count; i++) {
        const char *item = cluster->environment[i];
        char *name = bel_xstrndup(item, strcspn(item, "="));
        put_variable(name, item + strlen(name) + 1, out);
        bel_free(name);
    }
    if (!cluster->kubernetes.tfjob) {
        static const char from[] = "- name: %s\n"
                                   "  valueFrom:\n"
                                   "    fieldRef:\n"
                                   "      fieldPath: %s\n";
        bel_str_printf(out, from, "POD_IP", "status.podIP");
        bel_str_printf(out, from, "BELFRY_TASK_INDEX",
                       "metadata.annotations['batch.kubernetes.io/job-completion-index']");
        put_task(record, plan, number, out);
    }
    char *secret = bel_strf("%s/secret", secret_folder);
    put_variable("BELFRY_SECRET_FILE", secret, out);
    put_variable(BEL_MODEL_DIR_VARIABLE, record->model_dir, out);
    put_variable("BELFRY_LOG_FORMAT", "json", out);
    bel_free(secret);
}

static void put_command(const bel_job_record *record, const bel_cluster *cluster, bel_str *out)
{
    bool own = record->program == NULL || record->program[0] == '\0';
    bel_str_puts(out, "command:\n- ");
    put_plain(own ? "belfry" : record->program, out);
    bel_str_puts(out, "\n");
    for (size_t i = 0; i < record->argument_count; i++) {
        bel_str_puts(out, "- ");
        put_plain(record->arguments[i], out);
        bel_str_puts(out, "\n");
    }
    bool tell = own && cluster->kubernetes.tfjob && !cluster->master_trains;
    if (tell) bel_str_puts(out, "- \"--no_chief_trains\"\n");
}

// The resources of the role's machine, as request and as limit.
static void put_resources(const bel_plan *plan, const bel_plan_process *process, bel_str *out)
{
    const bel_cluster_machine *machine = &plan->cluster->roles[process->role].machine;
    int gpus = plan->cluster->kubernetes.gpus && process->towers > 0 ? machine->devices : 0;
    static const char *const parts[] = {"requests", "limits"};
    if (machine->cores == 0 && machine->memory_bytes == 0 && gpus == 0) return;
    bel_str_puts(out, "resources:\n");
    for (int i = 0; i < 2; i++) {
        bel_str_printf(out, "  %s:\n", parts[i]);
        if (machine->cores > 0) bel_str_printf(out, "    cpu: \"%d\"\n", machine->cores);
        if (machine->memory_bytes > 0) {
            bel_str_printf(out, "    memory: \"%lld\"\n", (long long)machine->memory_bytes);
        }
        if (gpus > 0) bel_str_printf(out, "    nvidia.com/gpu: \"%d\"\n", gpus);
    }
}

static void put_port(const bel_plan *plan, const bel_plan_process *process, bel_str *out)
{
    bool tfjob = plan->cluster->kubernetes.tfjob;
    int port = tfjob ? TFJOB_PORT : PORT;
    if (!listens(process) && !tfjob) return;
    bel_str_printf(out, "ports:\n- name: %s\n  containerPort: %d\n",
                   tfjob ? "tfjob-port" : "belfry", port);
    if (!listens(process)) return;
    bel_str_printf(out,
                   "startupProbe:\n"
                   "  tcpSocket:\n"
                   "    port: %d\n"
                   "  periodSeconds: %d\n"
                   "  failureThreshold: %d\n"
                   "readinessProbe:\n"
                   "  tcpSocket:\n"
                   "    port: %d\n"
                   "  periodSeconds: %d\n",
                   port, PROBE_SECS, STARTUP_SECS / PROBE_SECS, port, PROBE_SECS);
}

static void put_container(const bel_job_record *record, const bel_plan *plan, int number,
                          bel_str *out)
{
    const bel_plan_process *process = &plan->processes[number];
    const bel_cluster_kubernetes *k = &plan->cluster->kubernetes;
    const char *folder = record->directory;
    bool on_volume = folder != NULL && is_below(folder, k->mount);
    bel_str_printf(out, "name: %s\nimage: \"%s\"\nworkingDir: ", k->tfjob ? "tensorflow" : "belfry",
                   k->image);
    bel_json_write_string(out, on_volume ? folder : k->mount);
    bel_str_puts(out, "\n");
    put_command(record, plan->cluster, out);
    put_environment(record, plan, number, out);
    put_resources(plan, process, out);
    put_port(plan, process, out);
    bel_str_printf(out,
                   "securityContext:\n"
                   "  allowPrivilegeEscalation: false\n"
                   "  capabilities:\n"
                   "    drop: [ALL]\n"
                   "volumeMounts:\n"
                   "- name: models\n"
                   "  mountPath: \"%s\"\n"
                   "- name: secret\n"
                   "  mountPath: %s\n"
                   "  readOnly: true\n",
                   k->mount, secret_folder);
}

// The secret's file is owned by root and group-readable (fsGroup): 256 is mode 0400.
static void put_pod_spec(const bel_job_record *record, const bel_plan *plan, int number,
                         bel_str *out)
{
    const bel_cluster_kubernetes *k = &plan->cluster->kubernetes;
    bel_str container = {0};
    put_container(record, plan, number, &container);
    if (!k->tfjob) bel_str_puts(out, "restartPolicy: Never\n");
    bel_str_printf(out, "terminationGracePeriodSeconds: %d\n", GRACE_SECS);
    if (k->service_account != NULL) {
        bel_str_printf(out, "serviceAccountName: \"%s\"\n", k->service_account);
    } else {
        bel_str_puts(out, "automountServiceAccountToken: false\n");
    }
    bel_str_printf(out,
                   "enableServiceLinks: false\n"
                   "securityContext:\n"
                   "  runAsNonRoot: true\n"
                   "  runAsUser: %d\n"
                   "  runAsGroup: %d\n"
                   "  fsGroup: %d\n"
                   "  fsGroupChangePolicy: OnRootMismatch\n"
                   "  seccompProfile:\n"
                   "    type: RuntimeDefault\n"
                   "containers:\n"
                   "- ",
                   k->user, k->user, k->user);
    size_t before = out->length;
    put_indented(&container, 2, out);
    memmove(out->text + before, out->text + before + 2, out->length - before - 1); // after "- "
    out->length -= 2;
    bel_str_deinit(&container);
    bel_str_printf(out,
                   "volumes:\n"
                   "- name: models\n"
                   "  persistentVolumeClaim:\n"
                   "    claimName: \"%s\"\n"
                   "- name: secret\n"
                   "  secret:\n"
                   "    secretName: \"%s%s\"\n"
                   "    defaultMode: 256\n"
                   "    items:\n"
                   "    - key: secret\n"
                   "      path: secret\n",
                   k->volume_claim, k->secret != NULL ? k->secret : record->name,
                   k->secret != NULL ? "" : "-secret");
}

// Appends "template:" with its content.
static void put_template(const bel_job_record *record, const bel_plan *plan, int number,
                         bel_str *out)
{
    bel_str labels = {0}, spec = {0};
    put_labels(record, bel_role_name(plan->processes[number].role), &labels);
    put_pod_spec(record, plan, number, &spec);
    bel_str_puts(out, "template:\n  metadata:\n");
    put_indented(&labels, 4, out);
    bel_str_puts(out, "  spec:\n");
    put_indented(&spec, 4, out);
    bel_str_deinit(&labels);
    bel_str_deinit(&spec);
}

// --- Objects -------------------------------------------------------------------------------------

static void put_secret(const bel_job_record *record, const bel_cluster *cluster, const char *secret,
                       bel_str *out)
{
    put_head(record, cluster, "v1", "Secret", "-secret", out);
    bel_str_printf(out, "type: Opaque\nstringData:\n  secret: \"%s\"\n---\n", secret);
}

// Appends a replicated job: the pods of a role.
static void put_role(const bel_job_record *record, const bel_plan *plan, bel_role role,
                     bel_str *out)
{
    int number, count = plan->cluster->roles[role].count, restarts = plan->cluster->restarts;
    if (first_of(plan, role, &number) == NULL) return;
    int64_t backoff = (int64_t)restarts * count;
    bel_str pods = {0};
    put_template(record, plan, number, &pods);
    bel_str_printf(out,
                   "  - name: %s\n"
                   "    replicas: 1\n"
                   "    template:\n"
                   "      spec:\n"
                   "        parallelism: %d\n"
                   "        completions: %d\n"
                   "        completionMode: Indexed\n"
                   "        backoffLimit: %lld\n"
                   "        podFailurePolicy:\n"
                   "          rules:\n"
                   "          - action: Ignore\n"
                   "            onPodConditions:\n"
                   "            - type: DisruptionTarget\n"
                   "              status: \"True\"\n"
                   "          - action: FailJob\n"
                   "            onExitCodes:\n"
                   "              containerName: belfry\n"
                   "              operator: In\n"
                   "              values: [2, 3]\n",
                   bel_role_name(role), count, count,
                   (long long)(backoff < MOST_BACKOFF ? backoff : MOST_BACKOFF));
    put_indented(&pods, 8, out);
    bel_str_deinit(&pods);
}

static void put_jobset(const bel_job_record *record, const bel_plan *plan, bel_str *out)
{
    put_head(record, plan->cluster, "jobset.x-k8s.io/v1alpha2", "JobSet", "", out);
    bel_str_printf(out,
                   "spec:\n"
                   "  suspend: false\n"
                   "  network:\n"
                   "    enableDNSHostnames: true\n"
                   "    subdomain: \"%s\"\n"
                   "    publishNotReadyAddresses: true\n"
                   "  successPolicy:\n"
                   "    operator: All\n"
                   "    targetReplicatedJobs: [master]\n"
                   "  failurePolicy:\n"
                   "    maxRestarts: %d\n"
                   "    rules:\n"
                   "    - name: mistake\n"
                   "      action: FailJobSet\n"
                   "      onJobFailureReasons: [PodFailurePolicy]\n"
                   "  replicatedJobs:\n",
                   record->name, plan->cluster->restarts);
    for (int i = 0; i < ROLES; i++)
        put_role(record, plan, order[i], out);
}

static void put_tfjob(const bel_job_record *record, const bel_plan *plan, bel_str *out)
{
    static const char *const names[BEL_ROLE_COUNT] = {[BEL_ROLE_MASTER] = "Chief",
                                                      [BEL_ROLE_PS] = "PS",
                                                      [BEL_ROLE_WORKER] = "Worker",
                                                      [BEL_ROLE_EVALUATOR] = "Evaluator"};
    put_head(record, plan->cluster, "kubeflow.org/v1", "TFJob", "", out);
    bel_str_printf(out,
                   "spec:\n"
                   "  runPolicy:\n"
                   "    cleanPodPolicy: Running\n"
                   "    backoffLimit: %d\n"
                   "    suspend: false\n"
                   "  tfReplicaSpecs:\n",
                   plan->cluster->restarts);
    for (int i = 0; i < ROLES; i++) {
        int number;
        bel_str pods = {0};
        if (first_of(plan, order[i], &number) == NULL) continue;
        put_template(record, plan, number, &pods);
        bel_str_printf(out, "    %s:\n      replicas: %d\n      restartPolicy: ExitCode\n",
                       names[order[i]], plan->cluster->roles[order[i]].count);
        put_indented(&pods, 6, out);
        bel_str_deinit(&pods);
    }
}

bel_status *bel_kubernetes_write(const bel_job_record *record, const bel_plan *plan,
                                 const char *secret, bel_str *out)
{
    const bel_cluster *cluster = plan->cluster;
    BEL_TRY(check_record(record, cluster));
    if (cluster->kubernetes.secret == NULL) put_secret(record, cluster, secret, out);
    if (cluster->kubernetes.tfjob) {
        put_tfjob(record, plan, out);
    } else {
        put_jobset(record, plan, out);
    }
    return NULL;
}
