// Settings of a run as texts: the parser of the command's flags for other programs and the command
// itself. Each row is a setting; bel_estimator_create checks ranges. Words and defaults are also in
// the command's table, and a test compares the two.
#include "estimator/run_flags.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/str.h"
#include "belfry/run.h"

typedef enum form {
    TEXT,   // const char *; empty: NULL
    INT,    // int
    WHOLE,  // int64_t or uint64_t
    MIB,    // int64_t, bytes
    SECS,   // double
    SWITCH, // bool
    CHOICE, // an enumeration: its index in the words
    TOWERS, // towers of a worker, which must be on GPUs; 0: one that need not
} form;

typedef struct row {
    const char *name;
    form form;
    size_t offset;
    const char *words; // words of a CHOICE
} row;

#define ROW(name, form, field, words)                                                              \
    {                                                                                              \
        name, form, offsetof(bel_run_config, field), words                                         \
    }
static const row rows[] = {
    ROW("model_dir", TEXT, model_dir, NULL),
    ROW("seed", WHOLE, seed, NULL),
    ROW("num_workers", INT, worker_count, NULL),
    ROW("num_gpus", TOWERS, tower_count, NULL),
    ROW("device", CHOICE, device, "auto|cpu|cuda"),
    ROW("gpus", TEXT, gpus, NULL),
    ROW("virtual_devices", SWITCH, virtual_devices, NULL),
    ROW("gpu_math", CHOICE, gpu_math, "exact|f32|tf32|bf16"),
    ROW("update_device", CHOICE, update_device, "auto|cpu|cuda"),
    ROW("memory_limit", MIB, memory_limit, NULL),
    ROW("parameter_server_count", INT, shard_count, NULL),
    ROW("num_threads", INT, thread_count, NULL),
    ROW("executor", CHOICE, executor, "sync|async"),
    ROW("precision", CHOICE, precision, "f32|bf16"),
    ROW("products", CHOICE, products, "belfry|openblas"),
    ROW("activation_memory", MIB, activation_memory, NULL),
    ROW("table_memory", MIB, table_memory, NULL),
    ROW("stage_memory", MIB, stage_memory, NULL),
    ROW("save_checkpoints_steps", WHOLE, save_checkpoints_steps, NULL),
    ROW("save_checkpoints_secs", SECS, save_checkpoints_secs, NULL),
    ROW("keep_checkpoint_max", INT, keep_checkpoint_max, NULL),
    ROW("keep_checkpoint_every_n_hours", SECS, keep_checkpoint_every_n_hours, NULL),
    ROW("save_summary_steps", WHOLE, save_summary_steps, NULL),
    ROW("log_step_count_steps", WHOLE, log_step_count_steps, NULL),
    ROW("train_metrics", SWITCH, train_metrics, NULL),
    ROW("report", SWITCH, report, NULL),
    ROW("averages", SWITCH, averages, NULL),
    ROW("allow_changes", SWITCH, allow_changes, NULL),
    ROW("stall_timeout", SECS, stall_timeout_secs, NULL),
    ROW("lane", CHOICE, lane, "auto|shm|grpc"),
    ROW("mode", CHOICE, aggregation, "sync|async|bounded"),
    ROW("replicas_to_aggregate", INT, replicas_to_aggregate, NULL),
    ROW("accumulate_steps", INT, accumulate_steps, NULL),
    ROW("max_staleness", INT, max_staleness, NULL),
    ROW("average", CHOICE, average, "examples|replicas|sum"),
    ROW("scale_learning_rate", CHOICE, scale_learning_rate, "none|linear|always"),
    ROW("drop_remainder", SWITCH, drop_remainder, NULL),
    ROW("elastic_rescale", SWITCH, elastic_rescale, NULL),
    ROW("chief_trains", SWITCH, chief_trains, NULL),
    ROW("evaluate_on_workers", SWITCH, evaluate_on_workers, NULL),
    ROW("audit_input", SWITCH, audit_input, NULL),
    ROW("check_replicas", WHOLE, check_replicas, NULL),
    ROW("metrics_port", INT, metrics_port, NULL),
    ROW("metrics_address", TEXT, metrics_address, NULL),
    ROW("trace", TEXT, trace_file, NULL),
};
#undef ROW
enum { ROWS = sizeof rows / sizeof rows[0] };

const char *bel_run_flag(size_t index)
{
    return index < ROWS ? rows[index].name : NULL;
}

static const row *find(const char *name, size_t length)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strlen(rows[i].name) == length && strncmp(rows[i].name, name, length) == 0)
            return &rows[i];
    return NULL;
}

void bel_run_flag_word(const char *name, int value, bel_str *out)
{
    const char *word = find(name, strlen(name))->words;
    while (value-- > 0)
        word = strchr(word, '|') + 1;
    bel_str_append(out, word, strcspn(word, "|"));
}

// --- Texts to values -----------------------------------------------------------------------------

static bel_status *malformed(const row *r, const char *expected, const char *text)
{
    return BEL_ERR(BEL_INVALID_ARGUMENT, "--%s: expected %s, got \"%s\"", r->name, expected, text);
}

static bel_status *set_whole(const row *r, bel_run_config *config, void *field, const char *text)
{
    int64_t low = r->form == WHOLE || r->form == MIB ? INT64_MIN : INT_MIN;
    int64_t high = r->form == WHOLE ? INT64_MAX : r->form == MIB ? INT64_MAX >> 20 : INT_MAX;
    char *rest;
    errno = 0;
    long long value = strtoll(text, &rest, 10);
    if (rest == text || *rest != '\0' || errno != 0 || value < low || value > high)
        return malformed(r, "an integer", text);
    if (r->form == WHOLE) *(int64_t *)field = value;
    if (r->form == MIB) *(int64_t *)field = value < 0 ? value : value << 20;
    if (r->form == INT) *(int *)field = (int)value;
    if (r->form == TOWERS) {
        *(int *)field = value == 0 ? 1 : (int)value;
        config->gpu_count = (int)value;
    }
    return NULL;
}

static bel_status *set_seconds(const row *r, double *field, const char *text)
{
    char *rest;
    double value = bel_strtod(text, &rest);
    if (rest == text || *rest != '\0' || !isfinite(value)) return malformed(r, "a number", text);
    *field = value;
    return NULL;
}

static bel_status *set_word(const row *r, void *field, const char *text)
{
    const char *words = r->form == SWITCH ? "false|true" : r->words;
    int number = bel_list_find(words, "|", text);
    if (number < 0) return malformed(r, words, text);
    if (r->form == SWITCH) {
        *(bool *)field = number == 1;
    } else {
        *(int *)field = number;
    }
    return NULL;
}

static bel_status *set(bel_run_config *config, const row *r, const char *text)
{
    void *field = (char *)config + r->offset;
    switch (r->form) {
    case TEXT: *(const char **)field = text[0] != '\0' ? text : NULL; return NULL;
    case SECS: return set_seconds(r, field, text);
    case SWITCH:
    case CHOICE: return set_word(r, field, text);
    default: return set_whole(r, config, field, text);
    }
}

bel_status *bel_run_config_set(bel_run_config *config, const char *name, const char *text)
{
    const row *r = find(name, strlen(name));
    if (r != NULL) return set(config, r, text);
    return BEL_ERR(BEL_INVALID_ARGUMENT, "there is no setting \"%s\" of a run", name);
}

// --- Arguments -----------------------------------------------------------------------------------

// Parses "--NAME=VALUE" or "--NAME VALUE", and for a switch "--NAME" and "--no_NAME". *out_used:
// number of consumed arguments; 0: no such flag.
static bel_status *take_flag(bel_run_config *config, int count, char **arguments, int *out_used)
{
    *out_used = 0;
    if (strncmp(arguments[0], "--", 2) != 0) return NULL;
    const char *name = arguments[0] + 2, *value = strchr(name, '=');
    size_t length = value != NULL ? (size_t)(value - name) : strlen(name);
    const row *r = find(name, length);
    bool refused = r == NULL && value == NULL && strncmp(name, "no_", 3) == 0;
    if (refused) r = find(name + 3, length - 3);
    if (r == NULL || (refused && r->form != SWITCH)) return NULL;
    *out_used = 1;
    if (value != NULL) return set(config, r, value + 1);
    if (r->form == SWITCH) return set(config, r, refused ? "false" : "true");
    if (count < 2) return BEL_ERR(BEL_INVALID_ARGUMENT, "--%s: its value is missing", r->name);
    *out_used = 2;
    return set(config, r, arguments[1]);
}

bel_status *bel_run_config_flags(bel_run_config *config, int *count, char **arguments)
{
    int left = 0;
    for (int i = 0; i < *count;) {
        int used = 0;
        if (strcmp(arguments[i], "--") == 0) { // no flags follow
            while (i < *count)
                arguments[left++] = arguments[i++];
            break;
        }
        if (i > 0) BEL_TRY(take_flag(config, *count - i, arguments + i, &used));
        if (used == 0) arguments[left++] = arguments[i++];
        i += used;
    }
    *count = left;
    arguments[left] = NULL;
    return NULL;
}

// `argument` begins with "--" and may end with "=VALUE".
static bel_status *unknown_flag(const char *argument)
{
    const char *names[ROWS];
    for (size_t i = 0; i < ROWS; i++)
        names[i] = rows[i].name;
    char *name = bel_xstrndup(argument + 2, strcspn(argument + 2, "="));
    int nearest = bel_nearest_name(name, names, ROWS);
    bel_status *status = BEL_ERR(BEL_INVALID_ARGUMENT, "--%s: there is no such flag%s%s%s", name,
                                 nearest < 0 ? "" : "; did you mean --",
                                 nearest < 0 ? "" : names[nearest], nearest < 0 ? "" : "?");
    bel_free(name);
    return status;
}

bel_status *bel_refuse_flags(int count, char *const *arguments)
{
    for (int i = 1; i < count && strcmp(arguments[i], "--") != 0; i++)
        if (strncmp(arguments[i], "--", 2) == 0) return unknown_flag(arguments[i]);
    return NULL;
}
