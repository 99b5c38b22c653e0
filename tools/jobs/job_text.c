// Tables and objects of jobs. Text is for people and may change. JSON is for programs: all members
// are always present, times are seconds since 1970, and `progress` is the master's object or null.
// Columns are as wide as the longest name and state, because a state may name another host. Times
// for people are local.
#include "jobs/job_text.h"

#include <poll.h>

#include <math.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/number.h"
#include "base/str.h"
#include "launch/engine/engine.h"
#include "launch/folder/scale.h"
#include "launch/folder/stored.h"
#include "launch/task/role_line.h"

static bool read_progress(const bel_job_record *record, bel_progress *out_progress)
{
    return bel_progress_parse(record->progress, out_progress);
}

static const char *step_text(const bel_job_record *record, char text[48])
{
    bel_progress p;
    if (!read_progress(record, &p)) return "-";
    if (p.last_step >= 0) {
        bel_snprintf(text, 48, "%lld/%lld", (long long)p.step, (long long)p.last_step);
    } else {
        bel_snprintf(text, 48, "%lld", (long long)p.step);
    }
    return text;
}

static const char *number_text(double value, bool whole, char text[32])
{
    if (isnan(value)) return "-";
    bel_snprintf(text, 32, whole ? "%.0f" : "%.5g", value);
    return text;
}

// Returns "RUNNING", or "RUNNING on box".
static const char *state_text(const bel_job_record *record, char text[300])
{
    bel_snprintf(text, 300, "%s%s%s", bel_job_state_name(record->state),
                 record->elsewhere ? " on " : "", record->elsewhere ? record->host : "");
    return text;
}

static int state_width(bel_job_record *const *records, size_t count)
{
    char text[300];
    size_t width = 9;
    for (size_t i = 0; i < count; i++)
        if (strlen(state_text(records[i], text)) > width) width = strlen(text);
    return (int)width;
}

static int name_width(bel_job_record *const *records, size_t count)
{
    size_t width = 4;
    for (size_t i = 0; i < count; i++)
        if (strlen(records[i]->name) > width) width = strlen(records[i]->name);
    return (int)width;
}

void bel_jobs_write_list(bel_job_record *const *records, size_t count, bel_str *out)
{
    int width = name_width(records, count), states = state_width(records, count);
    double now = bel_clock_wall();
    bel_str_printf(out, "%-*s  %-*s  %-15s  %-12s  %s\n", width, "NAME", states, "STATE", "STEP",
                   "AGE", "ENGINE");
    for (size_t i = 0; i < count; i++) {
        char state[300], step[48], age[32];
        bel_str_printf(out, "%-*s  %-*s  %-15s  %-12s  %s\n", width, records[i]->name, states,
                       state_text(records[i], state), step_text(records[i], step),
                       bel_seconds_text(now - records[i]->submitted_at, age), records[i]->engine);
    }
}

void bel_jobs_write_top(bel_job_record *const *records, size_t count, bel_str *out)
{
    static const double recent_secs = 600;
    int width = name_width(records, count), states = state_width(records, count);
    double now = bel_clock_wall();
    bel_str_printf(out, "%-*s  %-*s  %-15s  %-10s  %-10s  %s\n", width, "JOB", states, "STATE",
                   "STEP", "LOSS", "EXAMPLES/S", "ETA");
    for (size_t i = 0; i < count; i++) {
        const bel_job_record *record = records[i];
        bool running = !bel_job_state_is_final(record->state);
        if (!running && now - record->ended_at > recent_secs) continue;
        char state[300], step[48], loss[32], rate[32], eta[32];
        bel_progress p;
        if (!read_progress(record, &p)) {
            p = (bel_progress){.loss = NAN, .examples_per_second = NAN, .eta_seconds = NAN};
        }
        const char *left =
            running && !isnan(p.eta_seconds) ? bel_seconds_text(p.eta_seconds, eta) : "-";
        bel_str_printf(out, "%-*s  %-*s  %-15s  %-10s  %-10s  %s\n", width, record->name, states,
                       state_text(record, state), step_text(record, step),
                       number_text(p.loss, false, loss),
                       running ? number_text(p.examples_per_second, true, rate) : "-", left);
    }
}

// --- One job ------------------------------------------------------------------------------------

static void put_fact(bel_str *out, const char *name, const char *value)
{
    if (value != NULL && value[0] != '\0') bel_str_printf(out, "%s %s\n", name, value);
}

static void put_time(bel_str *out, const char *name, double seconds)
{
    char text[32];
    struct tm parts;
    time_t whole = (time_t)seconds;
    bool known = seconds > 0 && localtime_r(&whole, &parts) != NULL &&
                 strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts) > 0;
    if (known) put_fact(out, name, text);
}

void bel_job_write_facts(const bel_job_record *record, bel_str *out)
{
    char state[300];
    put_fact(out, "name", record->name);
    put_fact(out, "state", state_text(record, state));
    bool ended = bel_job_state_is_final(record->state) && record->state != BEL_JOB_LOST;
    if (ended) bel_str_printf(out, "exit_code %d\n", record->exit_code);
    put_fact(out, "message", record->message);
    bel_progress p;
    if (read_progress(record, &p)) {
        bel_str_puts(out, "progress ");
        bel_progress_write(&p, out);
        bel_str_puts(out, "\n");
    }
    if (read_progress(record, &p) && p.workers > 0) {
        bel_str_printf(out, "workers %lld\n", (long long)p.workers);
    }
    const bel_scale asked = bel_scale_read(record->model_dir);
    if (asked.workers > 0) bel_str_printf(out, "asked_workers %d\n", asked.workers);
    if (asked.servers > 0) bel_str_printf(out, "asked_parameter_servers %d\n", asked.servers);
    put_time(out, "submitted_at", record->submitted_at);
    put_time(out, "started_at", record->started_at);
    put_time(out, "ended_at", record->ended_at);
    put_fact(out, "engine", record->engine);
    put_fact(out, "engine_id", record->engine_id);
    put_fact(out, "config", record->config);
    char *url = bel_stored_url(record->model_dir);
    put_fact(out, "model_url", url);
    put_fact(out, "model_dir", record->model_dir);
    bel_free(url);
    bel_str_printf(out, "folder %s\nlogs %s/logs\n", record->folder, record->folder);
    bel_str_printf(out, "supervisor %lld\n", (long long)record->supervisor);
    put_fact(out, "program", record->program);
    bel_str_puts(out, "arguments");
    for (size_t i = 0; i < record->argument_count; i++)
        bel_str_printf(out, " %s", record->arguments[i]);
    bel_str_puts(out, "\n");
}

static void put_member(bel_str *out, const char *name, const char *value)
{
    bel_str_printf(out, ",\"%s\":", name);
    bel_json_write_string(out, value);
}

void bel_job_write_json(const bel_job_record *record, bel_str *out)
{
    bel_str_puts(out, "{\"name\":");
    bel_json_write_string(out, record->name);
    put_member(out, "state", bel_job_state_name(record->state));
    bel_str_printf(out, ",\"exit_code\":%d", record->exit_code);
    put_member(out, "message", record->message);
    put_member(out, "engine", record->engine);
    put_member(out, "engine_id", record->engine_id);
    put_member(out, "host", record->host);
    put_member(out, "folder", record->folder);
    char *url = bel_stored_url(record->model_dir);
    put_member(out, "model_dir", record->model_dir);
    put_member(out, "model_url", url != NULL ? url : "");
    bel_free(url);
    put_member(out, "config", record->config);
    put_member(out, "program", record->program);
    bel_str_puts(out, ",\"arguments\":[");
    for (size_t i = 0; i < record->argument_count; i++) {
        bel_str_puts(out, i > 0 ? "," : "");
        bel_json_write_string(out, record->arguments[i]);
    }
    bel_str_printf(out,
                   "],\"supervisor\":%lld,\"submitted_at\":%.3f,\"started_at\":%.3f,"
                   "\"ended_at\":%.3f,\"progress\":%s}\n",
                   (long long)record->supervisor, record->submitted_at, record->started_at,
                   record->ended_at, record->progress[0] != '\0' ? record->progress : "null");
}

// Takes the job's name, the only argument before "--".
bel_status *bel_job_take_name(const bel_options *options, bool more, const char **out_name)
{
    size_t count;
    const char *const *arguments = bel_options_arguments(options, &count);
    size_t own = bel_options_own_argument_count(options);
    if (own != 1) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected one name of a job%s, got %zu arguments",
                       more ? " before --" : "", own);
    }
    if (count > own && !more) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "unexpected argument \"%s\"", arguments[own]);
    }
    *out_name = arguments[0];
    return NULL;
}

// A queue is asked every ten seconds, because many users may do so at once. When the record has an
// end, the engine is asked once more, because it may start the job again.
bel_status *bel_job_follow(const char *name, int round, bel_job_record **out_record)
{
    enum { LOOK_MS = 200, ROUNDS = 50 };
    if (round > 0) poll(NULL, 0, LOOK_MS);
    if (round % ROUNDS == 0) return bel_engine_read_job(name, out_record);
    BEL_TRY(bel_registry_read(name, out_record));
    if (!bel_job_state_is_final((*out_record)->state)) return NULL;
    bel_job_record_destroy(*out_record);
    return bel_engine_read_job(name, out_record);
}
