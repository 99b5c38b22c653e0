// The belfry command: finds the verb, reads its flags, sets up the log, and turns what comes back
// into one line on stderr and an exit code (docs/command.md).
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "flags.h"
#include "results.h"
#include "verbs.h"

typedef struct verb {
    const char *name; // of one word or several
    unsigned use;
    const char *arguments;
    const char *summary;
    bel_verb_fn *run;
} verb;

static const verb verbs[] = {
    {"train_and_evaluate", BEL_VERB_TRAIN_AND_EVALUATE, "[flags]",
     "train, evaluating along the way and at the end", bel_verb_train},
    {"train", BEL_VERB_TRAIN, "[flags]", "train without evaluating", bel_verb_train},
    {"evaluate", BEL_VERB_EVALUATE, "[flags]", "loss and metrics of a checkpoint",
     bel_verb_evaluate},
    {"predict", BEL_VERB_PREDICT, "[flags]", "one line for each example", bel_verb_predict},
    {"local train", BEL_VERB_LOCAL_TRAIN, "[flags] -- [training flags]",
     "the processes of a cluster on this host", bel_verb_local_train},
    {"inspect", BEL_VERB_INSPECT, "FOLDER [flags]", "what a checkpoint holds, and its digest",
     bel_verb_inspect},
    {"doctor", BEL_VERB_DOCTOR, "[flags]", "whether this machine is fit to train", bel_verb_doctor},
    {"version", BEL_VERB_VERSION, "[flags]", "versions of belfry and of its kernels",
     bel_verb_version},
};

enum { VERB_COUNT = sizeof verbs / sizeof verbs[0] };

// --- Help ---------------------------------------------------------------------------------------

static bel_status *print_usage(void)
{
    bel_str text = {0};
    bel_str_puts(&text, "belfry trains models with parameter servers, on one machine or many.\n\n"
                        "usage: belfry VERB [flags]\n\n");
    for (size_t i = 0; i < VERB_COUNT; i++)
        bel_str_printf(&text, "  %-20s %s\n", verbs[i].name, verbs[i].summary);
    bel_str_printf(&text, "  %-20s %s\n", "help [VERB]", "this text, or the flags of a verb");
    bel_str_puts(&text, "\nExample:\n"
                        "  belfry train_and_evaluate --train_files train.csv --eval_files "
                        "eval.csv \\\n      --model_dir runs/first --train_steps 1000\n");
    bel_status *status = bel_results_write(text.text);
    bel_str_deinit(&text);
    return status;
}

static bel_status *print_help(const verb *v, const bel_options *options)
{
    bel_str text = {0};
    bel_str_printf(&text, "belfry %s %s: %s\n", v->name, v->arguments, v->summary);
    bel_options_help(options, &text);
    bel_status *status = bel_results_write(text.text);
    bel_str_deinit(&text);
    return status;
}

static bel_status *print_config(const bel_options *options)
{
    bel_str text = {0};
    bel_options_dump(options, &text);
    bel_status *status = bel_results_write(text.text);
    bel_str_deinit(&text);
    return status;
}

// --- Verbs --------------------------------------------------------------------------------------

// How many arguments the name takes when they begin with it; 0 when they do not.
static int match_name(const char *name, int count, char *const *arguments)
{
    for (int i = 0; i < count; i++) {
        size_t length = strlen(arguments[i]);
        if (strncmp(name, arguments[i], length) != 0) return 0;
        name += length;
        if (*name == '\0') return i + 1;
        if (*name++ != ' ') return 0;
    }
    return 0;
}

static const verb *find_verb(int count, char *const *arguments, int *out_words)
{
    for (size_t i = 0; i < VERB_COUNT; i++) {
        *out_words = match_name(verbs[i].name, count, arguments);
        if (*out_words > 0) return &verbs[i];
    }
    return NULL;
}

static bel_status *unknown_verb(const char *name)
{
    const char *names[VERB_COUNT + 1];
    for (size_t i = 0; i < VERB_COUNT; i++)
        names[i] = verbs[i].name;
    names[VERB_COUNT] = "help";
    int nearest = bel_nearest_name(name, names, VERB_COUNT + 1);
    if (nearest < 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "unknown verb %s; belfry help lists all verbs", name);
    }
    return BEL_ERR(BEL_INVALID_ARGUMENT, "unknown verb %s; did you mean %s?", name, names[nearest]);
}

static void configure_log(const bel_options *options)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    const char *name = bel_options_string(options, "log_level");
    bel_log_level level = BEL_LOG_INFO;
    for (int i = 0; i < 4; i++)
        if (strcmp(name, names[i]) == 0) level = (bel_log_level)i;
    if (bel_options_bool(options, "quiet") && level > BEL_LOG_WARN) level = BEL_LOG_WARN;
    bool json = strcmp(bel_options_string(options, "log_format"), "json") == 0;
    bel_log_configure(level, json ? BEL_LOG_JSON : BEL_LOG_TEXT);
}

static bel_status *run_with_options(const verb *v, bel_options *options, int count,
                                    char *const *arguments, int *out_exit_code)
{
    bel_status *status = bel_options_parse(options, count, arguments);
    configure_log(options); // so that also an error of the flags has the form that is asked for
    if (status != NULL) return status;
    if (bel_options_bool(options, "help")) return print_help(v, options);
    const char *config_file = bel_options_string(options, "config_file");
    if (config_file != NULL) {
        BEL_TRY(bel_options_read_yaml(options, config_file));
        configure_log(options);
    }
    if (bel_options_bool(options, "print_config")) return print_config(options);
    size_t argument_count;
    const char *const *extra = bel_options_arguments(options, &argument_count);
    bool takes_arguments = (v->use & (BEL_VERB_INSPECT | BEL_VERB_LOCAL_TRAIN)) != 0;
    if (argument_count > 0 && !takes_arguments) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "unexpected argument \"%s\"; flags begin with --",
                       extra[0]);
    }
    return v->run(options, out_exit_code);
}

// `arguments` begin with the verb's name.
static bel_status *run_verb(int count, char *const *arguments, bool help, int *out_exit_code)
{
    static char help_flag[] = "--help";
    char *const help_arguments[] = {help_flag};
    int words;
    const verb *v = find_verb(count, arguments, &words);
    if (v == NULL) return unknown_verb(arguments[0]);
    bel_options *options = bel_flags_create(v->use);
    bel_status *status =
        help ? run_with_options(v, options, 1, help_arguments, out_exit_code)
             : run_with_options(v, options, count - words, arguments + words, out_exit_code);
    bel_options_destroy(options);
    return status;
}

static bel_status *run(int count, char *const *arguments, int *out_exit_code)
{
    static char version[] = "version";
    char *const version_arguments[] = {version};
    if (count < 2) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "expected a verb; belfry help lists all verbs");
    }
    const char *name = arguments[1];
    bool is_help =
        strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0;
    if (is_help && count == 2) return print_usage();
    if (is_help) return run_verb(count - 2, arguments + 2, true, out_exit_code);
    if (strcmp(name, "--version") == 0) return run_verb(1, version_arguments, false, out_exit_code);
    return run_verb(count - 1, arguments + 1, false, out_exit_code);
}

// --- The end ------------------------------------------------------------------------------------

// One line, whatever bytes a file's name or a text of the user brought into the message.
static void print_error(const bel_status *status)
{
    bel_str line = {0};
    const char *message = bel_status_message(status);
    if (bel_log_get_format() == BEL_LOG_JSON) {
        bel_str_printf(&line, "{\"time\":%.3f,\"level\":\"error\",\"code\":\"%s\",\"message\":",
                       bel_clock_wall(), bel_code_name(bel_status_code(status)));
        bel_json_write_string(&line, message);
        bel_str_puts(&line, "}\n");
    } else {
        bel_str_puts(&line, bel_log_is_interactive() ? "\r\033[K" : ""); // over a progress line
        bel_str_puts(&line, "belfry: ");
        for (const char *c = message; *c != '\0'; c++)
            bel_str_append(&line, (unsigned char)*c < 0x20 || *c == 0x7f ? "?" : c, 1);
        bel_str_puts(&line, "\n");
    }
    fputs(line.text, stderr);
    bel_str_deinit(&line);
    bel_log_write(BEL_LOG_DEBUG, "raised at %s", bel_status_trace(status));
}

int main(int argument_count, char **arguments)
{
    int exit_code = 0;
    bel_status *status = run(argument_count, arguments, &exit_code);
    if (status == NULL) status = bel_results_flush();
    if (status != NULL) {
        print_error(status);
        if (exit_code == 0) exit_code = bel_status_exit_code(status); // else it is a job's
        bel_status_destroy(status);
    }
    return exit_code;
}
