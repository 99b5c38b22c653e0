// Verbs jobs submit training, list, describe, cancel, resume, remove. Checks come before the job
// has a record: of its cluster, its flags, its plan, and that its files are readable. Then the
// engine starts the job, and returns when it runs.
//
// Paths in the record are absolute, because it is read from any folder. The job's words stay as
// typed, and its processes run in the folder of the submission. The record is read again after the
// start, because the supervisor owns it from then on.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/program.h"
#include "base/str.h"
#include "base/yaml.h"
#include "command/results.h"
#include "command/verbs.h"
#include "jobs/job_text.h"
#include "launch/engine/engine.h"
#include "setup/inputs.h"
#include "train/distribute.h"

// --- Arguments ----------------------------------------------------------------------------------

static bel_status *read_job(const bel_options *options, bel_job_record **out_record)
{
    const char *name = NULL;
    BEL_TRY(bel_job_take_name(options, false, &name));
    return bel_engine_read_job(name, out_record);
}

// --- Submitting ---------------------------------------------------------------------------------

static bel_status *find_engine(const char *name, const bel_engine **out_engine)
{
    *out_engine = bel_engine_find(name != NULL ? name : "");
    if (*out_engine != NULL) return NULL;
    bel_str list = {0};
    for (int i = 0; bel_engine_at(i) != NULL; i++)
        bel_str_printf(&list, "%s%s", i > 0 ? ", " : "", bel_engine_at(i)->name);
    bel_status *status = BEL_ERR(BEL_INVALID_ARGUMENT,
                                 "--engine %s: there is no such engine; "
                                 "expected one of: %s",
                                 name != NULL ? name : "", list.text);
    bel_str_deinit(&list);
    return status;
}

// Reads the record again: the supervisor has written it, and the job may even be finished.
static bel_status *print_submitted(const char *name, bool json)
{
    bel_job_record *record;
    BEL_TRY(bel_registry_read(name, &record));
    bel_status *status = NULL;
    bel_str text = {0};
    if (record->state == BEL_JOB_FAILED && record->started_at == 0) {
        status = BEL_ERR(BEL_ABORTED, "job %s did not start: %s", name, record->message);
    } else if (json) {
        bel_job_write_json(record, &text);
    } else {
        bel_str_printf(&text, "job %s is %s; to watch it: belfry jobs stream-logs %s\n", name,
                       bel_job_state_name(record->state), name);
    }
    if (status == NULL) status = bel_results_write(text.text);
    bel_str_deinit(&text);
    bel_job_record_destroy(record);
    return status;
}

// Starts a job that this process has put in state QUEUED.
static bel_status *jobs_start(const char *name, const bel_engine *engine, const bel_plan *plan)
{
    bel_job_record *record;
    BEL_TRY(bel_registry_read(name, &record));
    bel_status *status = engine->submit(record, plan);
    bel_job_record_destroy(record);
    return status;
}

// Prefixes each line of `text` with `mark`.
static void append_marked(const char *text, const char *mark, bel_str *out)
{
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        bel_str_puts(out, mark);
        bel_str_append(out, text, length);
        bel_str_puts(out, "\n");
        text += length + (text[length] == '\n' ? 1 : 0);
    }
}

// Prints the plan, and the engine's input.
static bel_status *jobs_show(const bel_job_record *asked, const bel_engine *engine,
                             const bel_plan *plan)
{
    bel_str head = {0}, text = {0};
    bel_plan_write(plan, NULL, &head);
    bel_str_printf(&head, "\nengine %s:\n", engine->name);
    append_marked(head.text, engine->comment != NULL ? engine->comment : "", &text);
    bel_str_deinit(&head);
    bel_status *status = engine->show(asked, plan, &text);
    if (status == NULL) status = bel_results_write(text.text);
    bel_str_deinit(&text);
    return status;
}

// Checks that the engine can express the job, so that an error comes before the record is written.
static bel_status *check_shown(const bel_job_record *asked, const bel_engine *engine,
                               const bel_plan *plan)
{
    bel_str text = {0};
    bel_status *status = engine->show(asked, plan, &text);
    bel_str_deinit(&text);
    return status;
}

// Waits for the job's end. The job continues if this command is interrupted.
static bel_status *wait_for_end(const char *name, int *out_exit_code)
{
    BEL_TRY(bel_results_flush()); // output of the start
    for (int round = 0;; round++) {
        bel_job_record *record;
        BEL_TRY(bel_job_follow(name, round, &record));
        bool ended = bel_job_state_is_final(record->state);
        bel_status *status = NULL;
        if (ended) {
            bool well = record->state == BEL_JOB_SUCCEEDED;
            *out_exit_code = record->exit_code != 0 || well ? record->exit_code : 1;
            if (!well) {
                status = BEL_ERR(BEL_ABORTED, "job %s is %s%s%s", name,
                                 bel_job_state_name(record->state),
                                 record->message[0] != '\0' ? ": " : "", record->message);
            }
        }
        bel_job_record_destroy(record);
        if (ended) return status;
    }
}

static bel_status *stream_logs(const char *name, int *out_exit_code)
{
    bel_words verb = {0};
    bel_words_add(&verb, "jobs");
    bel_words_add(&verb, "stream-logs");
    bel_words_add(&verb, name);
    bel_status *status = bel_command_run((int)verb.count, verb.items, out_exit_code);
    bel_words_deinit(&verb);
    return status;
}

// Makes the record of a submission.
static bel_job_record *make_record(const bel_options *options, const char *name,
                                   const bel_engine *engine, const char *cluster_text,
                                   const char *model_dir, const bel_words *words)
{
    bel_job_record *asked = bel_xcalloc(1, sizeof *asked);
    const char *config = bel_options_string(options, "config");
    asked->name = bel_xstrdup(name);
    asked->engine = bel_xstrdup(engine->name);
    asked->model_dir = bel_absolute_path(model_dir);
    asked->directory = bel_absolute_path(".");
    asked->config = config != NULL ? bel_absolute_path(config) : bel_xstrdup("");
    asked->cluster = bel_xstrdup(cluster_text);
    asked->changes = bel_cluster_changes_from_flags(options);
    asked->program = bel_xstrdup(words->program != NULL ? words->program : "");
    asked->argument_count = words->count - 1; // without the program's name
    asked->arguments = bel_xcalloc(words->count, sizeof *asked->arguments);
    for (size_t i = 1; i < words->count; i++)
        asked->arguments[i - 1] = bel_xstrdup(words->items[i]);
    return asked;
}

// Prints a submitted job, and then streams its logs or waits for its end, as flags say.
static bel_status *jobs_stay(const bel_options *options, const char *name, int *out_exit_code)
{
    BEL_TRY(print_submitted(name, bel_options_bool(options, "json")));
    if (bel_options_bool(options, "stream_logs")) BEL_TRY(stream_logs(name, out_exit_code));
    return bel_options_bool(options, "wait") ? wait_for_end(name, out_exit_code) : NULL;
}

static bel_status *jobs_submit(const bel_options *options, const char *name,
                               const bel_engine *engine, const bel_cluster *cluster,
                               const char *cluster_text, const bel_words *words, int *out_exit_code)
{
    bel_distribution distribution;
    const char *job_dir = bel_options_string(options, "job_dir");
    BEL_TRY(bel_distribution_init(&distribution, words, job_dir, cluster));
    if (distribution.asks) {
        bel_distribution_deinit(&distribution);
        return bel_words_run(words, options, out_exit_code);
    }
    bel_status *missing = engine->far ? NULL : bel_flag_inputs_check(distribution.training);
    if (missing != NULL) {
        bel_distribution_deinit(&distribution);
        return missing;
    }
    bel_engine_place(engine, distribution.plan);
    bel_job_record *asked =
        make_record(options, name, engine, cluster_text, distribution.model_dir, words);
    bool dry = bel_options_bool(options, "dry_run");
    bel_status *status = bel_registry_folder(name, &asked->folder);
    if (status == NULL && !dry) status = check_shown(asked, engine, distribution.plan);
    if (status == NULL) {
        status = dry ? jobs_show(asked, engine, distribution.plan)
                     : bel_registry_add(asked, bel_options_bool(options, "replace"));
    }
    if (status == NULL && !dry) status = jobs_start(name, engine, distribution.plan);
    bel_job_record_destroy(asked);
    bel_distribution_deinit(&distribution);
    if (status != NULL || dry) return status;
    return jobs_stay(options, name, out_exit_code);
}

// gcloud's "standard-1" is STANDARD_1 in a file. Free with bel_free.
static char *tier_name(const bel_options *options)
{
    const char *given = bel_options_string(options, "scale_tier");
    char *name = given != NULL ? bel_xstrdup(given) : NULL;
    for (char *c = name; c != NULL && *c != '\0'; c++)
        *c = *c == '-' ? '_' : *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
    return name;
}

// Reads the text of --config. --scale_tier adds its tier if the file has none; without a file the
// tier is the whole text. *out_source names the text in errors. Free both with bel_free, also after
// an error.
static bel_status *read_config(const char *config, const char *tier, char **out_text,
                               char **out_source)
{
    size_t length = 0;
    char *changed = NULL;
    *out_text = NULL;
    *out_source = bel_xstrdup(config != NULL ? config : "--scale_tier");
    if (config == NULL && (tier == NULL || strcmp(tier, "CUSTOM") == 0)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "--config is needed: the cluster file that says which processes to start");
    }
    if (config == NULL) {
        *out_text = bel_strf("scaleTier: %s\n", tier);
        return NULL;
    }
    BEL_TRY(bel_yaml_read_text(config, out_text, &length));
    if (tier == NULL) return NULL;
    BEL_TRY(bel_ai_platform_add_tier(*out_text, length, config, tier, &changed));
    if (changed == NULL) return NULL;
    bel_free(*out_text);
    bel_free(*out_source);
    *out_text = changed;
    *out_source = bel_strf("%s with scaleTier: %s in front", config, tier);
    return NULL;
}

// Reads the cluster, whose file must have the tier of --scale_tier.
static bel_status *read_cluster(const bel_options *options, char **out_text,
                                bel_cluster **out_cluster)
{
    const char *config = bel_options_string(options, "config");
    char *tier = tier_name(options), *text, *source;
    bel_cluster *cluster = NULL;
    bel_status *status = read_config(config, tier, &text, &source);
    if (status == NULL) status = bel_cluster_parse(text, strlen(text), source, &cluster);
    const char *of_file = status == NULL ? cluster->scale_tier : NULL;
    if (status == NULL && tier != NULL && (of_file == NULL || strcmp(tier, of_file) != 0)) {
        status = BEL_ERR(BEL_INVALID_ARGUMENT, "--scale_tier %s: %s %s%s", tier, config,
                         of_file != NULL ? "has scaleTier: " : "has no scaleTier",
                         of_file != NULL ? of_file : "");
        bel_cluster_destroy(cluster);
    }
    bel_free(source);
    bel_free(tier);
    if (status == NULL) {
        *out_text = text;
        *out_cluster = cluster;
    } else {
        bel_free(text);
    }
    return status;
}

bel_status *bel_verb_jobs_submit(const bel_options *options, int *out_exit_code)
{
    const char *name = NULL;
    const bel_engine *engine;
    bel_cluster *cluster;
    BEL_TRY(bel_job_take_name(options, true, &name));
    BEL_TRY(find_engine(bel_options_string(options, "engine"), &engine));
    char *text; // read once: the job gets the text that was checked
    BEL_TRY(read_cluster(options, &text, &cluster));
    bel_words words = {0};
    const bel_cluster_changes changes = bel_cluster_changes_from_flags(options);
    bel_status *status = bel_cluster_change(cluster, &changes);
    if (status == NULL) status = engine->check(cluster);
    if (status == NULL) status = bel_words_from_flags(&words, options, 1);
    if (status == NULL)
        status = jobs_submit(options, name, engine, cluster, text, &words, out_exit_code);
    bel_words_deinit(&words);
    bel_cluster_destroy(cluster);
    bel_free(text);
    return status;
}

// --- Showing and cancelling ---------------------------------------------------------------------

bel_status *bel_verb_jobs_list(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code;
    bel_job_record **records;
    size_t count;
    BEL_TRY(bel_registry_list(&records, &count));
    for (size_t i = 0; i < count; i++)
        bel_engine_look(records[i]);
    bel_str text = {0};
    bel_str_puts(&text, "");
    if (bel_options_bool(options, "json")) {
        for (size_t i = 0; i < count; i++)
            bel_job_write_json(records[i], &text);
    } else {
        bel_jobs_write_list(records, count, &text);
    }
    bel_status *status = bel_results_write(text.text);
    bel_str_deinit(&text);
    for (size_t i = 0; i < count; i++)
        bel_job_record_destroy(records[i]);
    bel_free(records);
    return status;
}

bel_status *bel_verb_jobs_describe(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code;
    bel_job_record *record;
    BEL_TRY(read_job(options, &record));
    bel_str text = {0};
    (bel_options_bool(options, "json") ? bel_job_write_json : bel_job_write_facts)(record, &text);
    bel_status *status = bel_results_write(text.text);
    bel_str_deinit(&text);
    bel_job_record_destroy(record);
    return status;
}

// Resumes the job as submitted, from the newest checkpoint.
static bel_status *resume(const bel_options *options, const bel_job_record *record,
                          int *out_exit_code)
{
    const bel_engine *engine;
    bel_cluster *cluster;
    bel_words words = {0};
    bel_distribution distribution;
    BEL_TRY(find_engine(record->engine, &engine));
    BEL_TRY(bel_job_record_cluster(record, &cluster));
    bel_words_from_record(&words, record);
    bel_status *status = engine->check(cluster); // this may be a different host
    if (status == NULL) {
        status = bel_distribution_init(&distribution, &words, record->model_dir, cluster);
    }
    if (status == NULL) {
        bel_engine_place(engine, distribution.plan);
        status = bel_registry_requeue(record->name);
        if (status == NULL) status = jobs_start(record->name, engine, distribution.plan);
        bel_distribution_deinit(&distribution);
    }
    bel_words_deinit(&words);
    bel_cluster_destroy(cluster);
    return status != NULL ? status : jobs_stay(options, record->name, out_exit_code);
}

bel_status *bel_verb_jobs_resume(const bel_options *options, int *out_exit_code)
{
    bel_job_record *record;
    BEL_TRY(read_job(options, &record));
    bel_status *status = NULL;
    if (record->directory[0] != '\0' && chdir(record->directory) != 0) {
        status = bel_file_error(errno, "enter", record->directory);
    }
    if (status == NULL) status = resume(options, record, out_exit_code);
    bel_job_record_destroy(record);
    return status;
}

bel_status *bel_verb_jobs_remove(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code;
    bel_job_record *record; // its errors precede any change
    BEL_TRY(read_job(options, &record));
    bel_status *status = bel_registry_remove(record->name);
    bel_job_record_destroy(record);
    return status;
}

bel_status *bel_verb_jobs_cancel(const bel_options *options, int *out_exit_code)
{
    (void)out_exit_code;
    bel_job_record *record;
    BEL_TRY(read_job(options, &record));
    const bel_engine *engine;
    bel_status *status = find_engine(record->engine, &engine);
    if (status == NULL) status = engine->cancel(record);
    if (status == NULL) {
        bool once = engine->far; // the engine kills processes that do not end
        char *text = bel_strf("job %s was asked to save and end%s\n", record->name,
                              once ? "" : "; asked again, it is killed");
        status = bel_results_write(text);
        bel_free(text);
    }
    bel_job_record_destroy(record);
    return status;
}
