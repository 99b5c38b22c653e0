// Verb plan: what a step of a training would cost with other numbers of workers, before any is
// started. The layout and the program are those of the training flags, the counts are the
// protocol's, and the rates are measured on this machine or kept from an earlier plan
// (calibration.h). Nothing is written to the training's --model_dir.
#define _XOPEN_SOURCE 700 // mkdtemp
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/isa.h"
#include "base/linux_processor.h"
#include "base/log.h"
#include "base/thread.h"
#include "command/results.h"
#include "command/verbs.h"
#include "launch/engine/registry.h"
#include "plan/place.h"
#include "plan/plan.h"
#include "ps/layout/mirror_place.h"
#include "setup/setup.h"
#include "train/distribute.h"
#include "trainable/measure.h"

enum { PROCESSOR_TEXT = 128 };

typedef struct planning {
    const bel_options *options;
    char scratch[96]; // folder, removed at the end
    char *folder;     // has the figures
    bel_words words;  // the training's, with --model_dir in the scratch folder
    bel_cluster *cluster;
    size_t host_count; // the file's, for workers
    bel_setup *setup;  // the trainable's
    bel_trainable trainable;
    bel_plan_sizes sizes;
    int64_t *shard_bytes;
    bel_place_links links;
    bel_plan_report report;
} planning;

// --- Refusals ------------------------------------------------------------------------------------

// Training flags with which a step is no exchange of all workers' gradients of one batch.
static bel_status *check_training(const bel_options *training)
{
    const char *mode = bel_options_string(training, "mode");
    static const struct {
        const char *flag;
        int64_t only;
    } counts[] = {{"replicas_to_aggregate", 0}, {"accumulate_steps", 1}, {"local_steps", 1}};
    if (strcmp(mode, "sync") != 0)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "plan cannot model --mode %s, only sync", mode);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        int64_t value = bel_options_int(training, counts[i].flag);
        if (value == counts[i].only) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT, "plan cannot model --%s %lld, only %lld",
                       counts[i].flag, (long long)value, (long long)counts[i].only);
    }
    if (bel_setup_card_count(training) > 0)
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "plan cannot model GPUs; hint: --device cpu plans for processors");
    return NULL;
}

static bel_status *check_model(const bel_trainable *t)
{
    const char *what = NULL;
    if (t->layout->table_count > 0) what = "tables, whose bytes depend on the ids of a batch";
    if (t->layout->exchanges) what = "models whose replicas exchange values within a step";
    if (what == NULL) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "plan cannot model %s", what);
}

// --- The training --------------------------------------------------------------------------------

static bel_status *take_words(planning *p)
{
    size_t count, own = bel_options_own_argument_count(p->options);
    const char *const *words = bel_options_arguments(p->options, &count);
    if (own > 0 || (count > 0 && words[0][0] != '-'))
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "unexpected argument \"%s\"; expected training flags after --", words[0]);
    char *folder = bel_strf("--model_dir=%s/model", p->scratch);
    bel_words_add(&p->words, "belfry");
    bel_words_add(&p->words, "train_and_evaluate");
    for (size_t i = 0; i < count; i++)
        bel_words_add(&p->words, words[i]);
    bel_words_add(&p->words, folder);
    bel_free(folder);
    bel_words_add(&p->words, "--quiet"); // the model's lines would come with each measurement
    bel_words_add(&p->words, bel_options_string(p->options, "log_format")[0] == 'j'
                                 ? "--log_format=json"
                                 : "--log_format=text");
    return NULL;
}

static bel_status *take_cluster(planning *p)
{
    const char *config = bel_options_string(p->options, "config");
    if (config != NULL) {
        BEL_TRY(bel_cluster_read(config, &p->cluster));
    } else {
        p->cluster = bel_cluster_create(1, 1, 0);
    }
    p->host_count = p->cluster->roles[BEL_ROLE_WORKER].host_count;
    bel_cluster_changes changes = BEL_NO_CLUSTER_CHANGES;
    if (bel_options_is_given(p->options, "parameter_servers"))
        changes.ps_count = (int)bel_options_int(p->options, "parameter_servers");
    BEL_TRY(bel_cluster_change(p->cluster, &changes));
    if (p->cluster->roles[BEL_ROLE_PS].count > 0) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "plan cannot model workers that hold the parameters; hint: "
                   "--parameter_servers 1");
}

// Makes the plan of processes for a number of workers. Fewer workers than hosts are on the first
// ones.
static bel_status *deal_workers(planning *p, int workers, bel_distribution *out_distribution)
{
    bel_cluster_changes changes = BEL_NO_CLUSTER_CHANGES;
    bel_cluster_role *role = &p->cluster->roles[BEL_ROLE_WORKER];
    int count = changes.worker_count = workers - (p->cluster->master_trains ? 1 : 0);
    role->host_count = (size_t)count < p->host_count ? (size_t)count : p->host_count;
    BEL_TRY(bel_cluster_change(p->cluster, &changes));
    BEL_TRY(bel_distribution_init(out_distribution, &p->words, NULL, p->cluster));
    if (!out_distribution->asks) return NULL;
    bel_distribution_deinit(out_distribution);
    return BEL_ERR(BEL_INVALID_ARGUMENT, "--help and --print_config belong before --");
}

static bool shares_memory(const planning *p)
{
    bool grpc = p->trainable.estimator->config.lane == BEL_LANE_GRPC;
    return !grpc && !p->links.apart && !p->links.hosts;
}

// Whether a server's state outlives its process, and its host: docs/operations.md.
static void find_kept(planning *p)
{
    const bel_trainable *t = &p->trainable;
    const bel_cluster_role *servers = &p->cluster->roles[BEL_ROLE_PS];
    int shards = t->layout->shard_count, hosts = (int)servers->host_count;
    bool holds = bel_trainable_why_no_hold(t) == NULL, local = !p->links.hosts && !p->links.apart;
    bool copies = holds && servers->copies > 0 && shards > 1;
    bool spread =
        hosts > 1 && bel_mirror_together(shards, hosts, bel_mirror_distance(shards, hosts)) < 0;
    p->report.facts.kept = copies || (holds && local);
    p->report.facts.copied = copies && (p->links.apart || spread);
}

// For the time and money of an epoch, and the time to recover.
static void find_facts(planning *p)
{
    const bel_trainable *t = &p->trainable;
    const bel_run_config *config = &t->estimator->config;
    bel_plan_facts *facts = &p->report.facts;
    double most = 0, state = 1; // arrays of the state: values and slots
    if (p->sizes.parameters > 0)
        state += (double)p->sizes.slot_elements / (double)p->sizes.parameters;
    for (int k = 0; k < t->layout->shard_count; k++)
        if ((double)p->shard_bytes[k] > most) most = (double)p->shard_bytes[k];
    facts->price = bel_options_double(p->options, "price");
    facts->epoch_records = (double)bel_input_epoch_records(t->input);
    facts->silence_secs = p->cluster->silence_timeout_secs;
    facts->state_bytes = most * state;
    find_kept(p);
    facts->save_steps = (double)config->save_checkpoints_steps;
    facts->save_secs = facts->save_steps > 0 ? 0 : config->save_checkpoints_secs;
}

// Builds the model, once: its layout depends only on the number of shards.
static bel_status *build_model(planning *p, const bel_distribution *distribution)
{
    const bel_options *training = distribution->training;
    BEL_TRY(check_training(training));
    BEL_TRY(bel_setup_for_looking(training, &p->setup));
    const bel_train_spec train = {
        .size = sizeof train, .input_fn = p->setup->input_fn, .input_user = p->setup->input_user};
    BEL_TRY(bel_estimator_place(p->setup->estimator, 1, NULL, distribution->plan->shard_count, 1));
    BEL_TRY(bel_trainable_init(&p->trainable, p->setup->estimator, &train));
    BEL_TRY(check_model(&p->trainable));
    BEL_TRY(bel_trainable_measure(&p->trainable, &p->sizes, &p->shard_bytes));
    p->sizes.data_bytes = bel_flag_inputs_bytes(training);
    p->report.shards = p->trainable.layout->shard_count;
    p->report.parameters = p->sizes.parameters;
    find_facts(p);
    return NULL;
}

// --- Figures -------------------------------------------------------------------------------------

static bel_status *find_machine(planning *p)
{
    bel_figure list[BEL_FIGURES_MOST];
    bel_machine_figures *machine = &p->report.machine;
    size_t count = bel_machine_list(machine, list);
    bool anew = bel_options_bool(p->options, "calibrate");
    if (anew || !bel_calibration_read(p->folder, "machine", list, count)) {
        BEL_TRY(bel_machine_measure(p->scratch, machine));
        BEL_TRY(bel_calibration_write(p->folder, "machine", list, count));
    }
    double file_ns = machine->file_byte_ns, link_ns = p->links.byte_ns;
    bool links = p->links.apart || p->links.hosts;
    p->report.facts.state_ns = links && link_ns > file_ns ? link_ns : file_ns;
    return NULL;
}

// Steps of another model, of other kernels or with other threads have another name. Free with
// bel_free.
static char *steps_name(const planning *p, int threads, int together)
{
    const bel_settings *settings = &p->trainable.settings;
    const char *isa = bel_isa_name(bel_isa_get());
    uint64_t hash = bel_hash64(isa, strlen(isa));
    for (int i = 0; i < settings->count; i++) {
        hash = bel_hash64_more(hash, settings->names[i], strlen(settings->names[i]) + 1);
        hash = bel_hash64_more(hash, settings->values[i], strlen(settings->values[i]) + 1);
    }
    return bel_strf("steps-%016llx-%d-%d", (unsigned long long)hash, threads, together);
}

// Finds the steps of workers that are together on a host, with that many threads each. No more are
// measured than this machine has cores for.
static bel_status *find_steps(planning *p, const bel_options *training, int threads, int together,
                              const bel_step_figures **out_figures)
{
    bel_plan_report *report = &p->report;
    int cores = bel_available_cores();
    if (threads > cores) threads = cores;
    if (together > cores / threads) together = cores / threads;
    for (int i = 0; i < report->measured_count; i++) {
        *out_figures = &report->measured[i].figures;
        if (report->measured[i].threads == threads && report->measured[i].workers == together)
            return NULL;
    }
    if (report->measured_count == BEL_PLAN_MOST_MEASURED)
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "the workers have more than %d different numbers of threads",
                       BEL_PLAN_MOST_MEASURED);
    bel_plan_measured *measured = &report->measured[report->measured_count];
    bel_figure list[BEL_FIGURES_MOST];
    size_t count = bel_steps_list(&measured->figures, list);
    char *name = steps_name(p, threads, together);
    bool anew = bel_options_bool(p->options, "calibrate");
    bel_status *status = NULL;
    measured->threads = threads;
    measured->workers = together;
    measured->kept = !anew && bel_calibration_read(p->folder, name, list, count);
    if (!measured->kept) {
        status = bel_plan_measure_steps(training, threads, together, &measured->figures);
        if (status == NULL) status = bel_calibration_write(p->folder, name, list, count);
        bel_status *removed = bel_dir_remove(bel_options_string(training, "model_dir"));
        bel_status_ignore(removed); // the whole scratch folder is removed at the end
    }
    bel_free(name);
    if (status == NULL) report->measured_count++;
    *out_figures = &measured->figures;
    return status;
}

// --- Rows ----------------------------------------------------------------------------------------

static void fill_memory(const planning *p, const bel_plan *plan, bel_plan_row *row)
{
    for (int i = 0; i < plan->process_count; i++) {
        double bytes = bel_plan_memory(plan, i, &p->sizes);
        double *most = &row->memory_bytes[plan->processes[i].role];
        if (bytes > *most) *most = bytes;
    }
}

// Returns the most reporters of a shard; 0: the job has no relays, for the master's reasons
// (master/backend/remote_relays.c).
static int fan_in_of(const planning *p)
{
    const bel_trainable *t = &p->trainable;
    bool asked = t->estimator->config.fan_in > 0;
    if (shares_memory(p) || bel_trainable_why_no_relays(t) != NULL) return 0;
    if (!asked && bel_trainable_why_no_hold(t) != NULL) return 0;
    return bel_trainable_fan_in(t);
}

// The master's host counts if it has a name; otherwise it is one of the others'.
static void fill_row(planning *p, const bel_plan *plan, const bel_place *place, bel_plan_row *row)
{
    row->workers = plan->worker_count;
    row->threads = place->threads;
    row->relays = place->relay_count;
    row->relay_levels = place->deal.levels;
    row->hosts = place->deal.host_count;
    row->all = bel_place_all(place);
    row->cost = bel_cost_of(&place->deal, &p->report.machine.rates);
    row->outlook =
        bel_plan_outlook_of(&p->report.facts, row->cost.step_ns, (double)row->examples, row->hosts);
    fill_memory(p, plan, row);
}

static bel_status *predict(planning *p, const bel_distribution *distribution, bel_plan_row *row)
{
    bel_place place;
    bel_plan *plan = distribution->plan;
    const bel_trainable *t = &p->trainable;
    const bel_step_figures *one, *own;
    const bel_place_config config = {.layout = t->layout,
                                     .links = p->links,
                                     .stats = t->stats,
                                     .rounding = bel_trainable_rounding(t),
                                     .grpc = t->estimator->config.lane == BEL_LANE_GRPC,
                                     .fan_in = fan_in_of(p)};
    bel_place_init(&place, plan, &config);
    bel_status *status = find_steps(p, distribution->training, 1, 1, &one);
    if (status == NULL)
        status = find_steps(p, distribution->training, place.threads, place.together, &own);
    if (status == NULL) {
        bel_place_set_steps(&place, own->compute_ns, one->input_ns, one->pass_ns);
        p->report.facts.start_ns = one->start_ns;
        row->examples = (int64_t)own->examples * plan->replica_count;
        if (p->report.one_process_ns == 0)
            p->report.one_process_ns = own->compute_ns + own->pass_ns;
        fill_row(p, plan, &place, row);
    }
    bel_place_deinit(&place);
    return status;
}

static bel_status *add_row(planning *p, int workers, bel_plan_row *row)
{
    bel_distribution distribution;
    BEL_TRY(deal_workers(p, workers, &distribution));
    bel_status *status = p->setup == NULL ? build_model(p, &distribution) : NULL;
    if (status == NULL) status = predict(p, &distribution, row);
    bel_distribution_deinit(&distribution);
    return status;
}

// One worker first, in any case: the speed-up is over one process on one machine.
static bel_status *add_rows(planning *p)
{
    size_t word_count;
    const char *const *words = bel_options_list(p->options, "workers", &word_count);
    bel_plan_row first = {0};
    int *list, count;
    BEL_TRY(bel_plan_read_workers(words, word_count, &list, &count));
    p->report.rows = bel_xcalloc((size_t)count, sizeof *p->report.rows);
    bel_status *status = add_row(p, 1, &first);
    for (int i = 0; i < count && status == NULL; i++)
        status = add_row(p, list[i], &p->report.rows[p->report.row_count++]);
    bel_free(list);
    return status;
}

// --- The verb ------------------------------------------------------------------------------------

// Says what relays need, or why many workers have none.
static void add_relay_assumptions(planning *p)
{
    bel_plan_report *r = &p->report;
    int most = r->row_count > 0 ? r->rows[r->row_count - 1].workers : 0;
    const bel_trainable *t = &p->trainable;
    if (most > 0 && r->rows[r->row_count - 1].relays > 0)
        bel_plan_assume(r, "memory of a worker is without that of its relays: a sum of all "
                           "parameters and up to 32 MiB for reports each");
    if (most <= bel_trainable_fan_in(t) || fan_in_of(p) > 0) return;
    const char *why = bel_trainable_why_no_relays(t);
    if (why == NULL) why = shares_memory(p) ? "lanes share memory" : bel_trainable_why_no_hold(t);
    bel_plan_assume(r, "each parameter server takes the reports of all workers, without relays: %s",
                    why);
}

static void add_assumptions(planning *p)
{
    bel_plan_report *r = &p->report;
    const bel_place_links *links = &p->links;
    bel_plan_assume(r,
                    "every host has this processor, and the cores of its machine in --config or "
                    "else this machine's %d",
                    bel_available_cores());
    if (links->apart) {
        bel_plan_assume(r, "each worker and each parameter server has a separate host");
    } else if (!links->hosts) {
        bel_plan_assume(r, "all processes share this host's cores and memory, and no link limits "
                           "them; hint: --bandwidth plans for separate hosts");
    }
    if (links->apart || links->hosts)
        bel_plan_assume(r,
                        "a host's link carries %s a second each way at the same time, no switch "
                        "limits them, and the latency is %s",
                        bel_options_text(p->options, "bandwidth"),
                        bel_options_text(p->options, "latency"));
    if (r->facts.price > 0)
        bel_plan_assume(r,
                        "a host costs %g an hour, computing or not; %s the cost of storage and "
                        "traffic is omitted",
                        r->facts.price,
                        links->hosts   ? "the master's is one of them;"
                        : links->apart ? "the master is on one of the others;"
                                       : "all processes are on one;");
    const char *kept = "the job goes back to the newest checkpoint, as the state of a killed "
                       "parameter server is not kept";
    if (r->facts.kept) kept = "the state of a killed parameter server is kept";
    bel_plan_assume(r,
                    "a killed process starts again on its host at once, and a new host is ready; "
                    "%s; a state is read at %.3g GB/s",
                    kept, r->facts.state_ns > 0 ? 1 / r->facts.state_ns : 0);
    if (p->cluster->roles[BEL_ROLE_PS].copies > 0 && !r->facts.copied)
        bel_plan_assume(r, "copies of parameter servers do not help against the loss of a host: "
                           "state and copy may be on the same one, or the model has no copy");
    add_relay_assumptions(p);
    for (int i = 0; i < r->measured_count; i++) {
        if (r->measured[i].figures.load <= bel_available_cores()) continue;
        bel_plan_assume(r,
                        "this machine was busy while it was measured (load %.1f); hint: "
                        "--calibrate measures anew",
                        r->measured[i].figures.load);
        break;
    }
    bel_plan_assume(r, "the exchange begins when all gradients are computed, although some of it "
                       "overlaps; a worker with more threads than this machine has cores is as "
                       "fast as this machine");
    bel_plan_assume(r, "not modelled: gRPC's window of 1 MiB for a round trip, slow input, "
                       "checkpoints, evaluations, norms over several shards, TLS, other load, "
                       "workers of unequal speed");
}

static bel_status *prepare(planning *p)
{
    const bel_options *options = p->options;
    BEL_TRY(bel_plan_read_bandwidth(bel_options_string(options, "bandwidth"), &p->links.byte_ns));
    BEL_TRY(bel_plan_read_latency(bel_options_string(options, "latency"), &p->links.latency_ns));
    BEL_TRY(take_cluster(p));
    p->links.hosts = bel_place_names_hosts(p->cluster);
    p->links.apart = !p->links.hosts && bel_options_is_given(options, "bandwidth");
    if (!p->links.hosts && !p->links.apart && bel_options_is_given(options, "latency"))
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--latency has no effect on one host; hint: give --bandwidth, or hosts in "
                       "--config");
    const char *base = getenv("TMPDIR");
    char *folder =
        bel_strf("%s/belfry-plan-XXXXXX", base != NULL && base[0] == '/' ? base : "/tmp");
    bool made = strlen(folder) < sizeof p->scratch && mkdtemp(folder) != NULL;
    if (made) memcpy(p->scratch, folder, strlen(folder) + 1);
    bel_status *status =
        made ? NULL
             : BEL_ERR(BEL_UNAVAILABLE,
                       "cannot make the folder %s, whose path may have up to %zu bytes", folder,
                       sizeof p->scratch - 1);
    bel_free(folder);
    if (status == NULL) status = bel_state_folder("plan", &p->folder);
    if (status == NULL) status = take_words(p);
    return status;
}

static bel_status *print(planning *p)
{
    char processor[PROCESSOR_TEXT];
    bel_str text = {0};
    bel_linux_processor_name(processor, sizeof processor);
    p->report.processor = processor;
    add_assumptions(p);
    if (bel_options_bool(p->options, "json")) {
        bel_plan_report_json(&p->report, &text);
    } else {
        bel_plan_report_text(&p->report, &text);
    }
    const char *page = bel_options_string(p->options, "report");
    bel_status *status = bel_results_write(text.text);
    if (status == NULL && page != NULL) status = bel_plan_report_page(&p->report, page);
    bel_str_deinit(&text);
    return status;
}

static void finish(planning *p)
{
    if (p->scratch[0] != '\0') bel_status_ignore(bel_dir_remove(p->scratch)); // among /tmp's files
    for (int i = 0; i < p->report.assumption_count; i++)
        bel_free(p->report.assumptions[i]);
    bel_free(p->report.rows);
    bel_free(p->shard_bytes);
    bel_trainable_deinit(&p->trainable);
    bel_setup_destroy(p->setup);
    if (p->cluster != NULL) p->cluster->roles[BEL_ROLE_WORKER].host_count = p->host_count;
    bel_cluster_destroy(p->cluster);
    bel_words_deinit(&p->words);
    bel_free(p->folder);
}

bel_status *bel_verb_plan(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code; // 0
    planning p = {.options = options};
    bel_status *status = prepare(&p);
    if (status == NULL) {
        bel_log_write(BEL_LOG_INFO,
                      "measures this machine and some seconds of training, unless an "
                      "earlier plan has kept the figures in %s",
                      p.folder);
        status = find_machine(&p);
    }
    if (status == NULL) status = add_rows(&p);
    if (status == NULL) status = print(&p);
    finish(&p);
    return status;
}
