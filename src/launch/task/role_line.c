// Log lines are JSON objects from base/log.c and the command's main function. Other lines are shown
// too, as warnings, because they often have the reason of a process's death. Both kinds lose their
// control characters before they reach a terminal; the log file has the original bytes.
//
// A line of an unknown level counts as debug, and absent or null figures stay NAN. So a line of
// another version of Belfry is shown as well as possible and never refused.
#include "launch/task/role_line.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

// --- Progress -----------------------------------------------------------------------------------

// False: not a progress object, or one without steps.
static bool read_progress(const bel_json_value *object, bel_progress *out_progress)
{
    const char *event;
    bel_progress progress = {.loss = NAN, .examples_per_second = NAN, .eta_seconds = NAN};
    bool ok = bel_json_string(object, "event", &event) && strcmp(event, "progress") == 0 &&
              bel_json_i64(object, "step", &progress.step) &&
              bel_json_i64(object, "last_step", &progress.last_step);
    if (!ok) return false;
    // Unchanged if absent, or if null because they were not finite.
    (void)bel_json_i64(object, "workers", &progress.workers);
    (void)bel_json_f64(object, "loss", &progress.loss);
    (void)bel_json_f64(object, "examples_per_second", &progress.examples_per_second);
    (void)bel_json_f64(object, "eta_seconds", &progress.eta_seconds);
    *out_progress = progress;
    return true;
}

static bel_json *parse_object(const char *bytes, size_t length)
{
    bel_json *json = NULL;
    if (length == 0 || bytes[0] != '{') return NULL;
    bel_status_ignore(bel_json_parse(bytes, length, "line", &json)); // then it is a foreign line
    return json;
}

bool bel_progress_parse(const char *json, bel_progress *out_progress)
{
    bel_json *parsed = parse_object(json, strlen(json));
    bool ok = parsed != NULL && read_progress(bel_json_root(parsed), out_progress);
    bel_json_destroy(parsed);
    return ok;
}

void bel_progress_write(const bel_progress *progress, bel_str *out)
{
    char eta[32];
    bel_str_printf(out, "step %lld", (long long)progress->step);
    if (progress->last_step >= 0) bel_str_printf(out, "/%lld", (long long)progress->last_step);
    bel_str_printf(out, "  loss = %.5g", progress->loss);
    if (!isnan(progress->examples_per_second)) {
        bel_str_printf(out, "  %.0f examples/s", progress->examples_per_second);
    }
    if (progress->workers > 1) {
        bel_str_printf(out, "  %lld workers", (long long)progress->workers);
    }
    if (!isnan(progress->eta_seconds)) {
        bel_str_printf(out, "  ETA %s", bel_seconds_text(progress->eta_seconds, eta));
    }
}

// Appends without control characters, which a terminal would interpret: those of ASCII and, as
// UTF-8, of Latin-1.
static void put_clean(bel_str *out, const char *bytes, size_t length)
{
    bel_str_puts(out, "");
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        bool of_two = byte == 0xc2 && i + 1 < length && (unsigned char)bytes[i + 1] < 0xa0;
        bool control = (byte < 0x20 && byte != '\t') || byte == 0x7f || of_two;
        bel_str_append(out, control ? "?" : &bytes[i], 1);
        i += of_two;
    }
}

// --- Reading ------------------------------------------------------------------------------------

static const char *const level_names[] = {"error", "warning", "info", "debug"};

// False: an object, but not Belfry's.
static bool read_object(const bel_json_value *object, bel_role_line *line)
{
    const char *level, *message, *code, *event;
    if (!bel_json_string(object, "level", &level)) return false;
    line->level = BEL_LOG_DEBUG;
    for (int i = 0; i < 4; i++)
        if (strcmp(level, level_names[i]) == 0) line->level = (bel_log_level)i;
    if (!bel_json_f64(object, "time", &line->time)) line->time = 0;
    if (read_progress(object, &line->progress)) {
        line->kind = BEL_ROLE_LINE_PROGRESS;
        bel_progress_write(&line->progress, &line->text);
        return true;
    }
    if (!bel_json_string(object, "message", &message)) return false;
    line->kind = BEL_ROLE_LINE_MESSAGE;
    if (bel_json_string(object, "code", &code)) line->kind = BEL_ROLE_LINE_ERROR;
    if (!bel_json_string(object, "event", &event)) event = "";
    if (strcmp(event, "lost") == 0) {
        (void)bel_json_i64(object, "pid", &line->lost_pid); // without one no process is killed
    }
    line->begins = strcmp(event, "begins") == 0;
    line->leaves = strcmp(event, "leaves") == 0;
    line->carries = strcmp(event, "carries") == 0;
    if (strcmp(event, "carried") == 0) (void)bel_json_i64(object, "pid", &line->carried_pid);
    if (strcmp(event, "killed") == 0) (void)bel_json_i64(object, "signal", &line->carried_signal);
    if (strcmp(event, "crash") == 0) { // without them it is an ordinary error
        (void)bel_json_i64(object, "signal", &line->crash_signal);
        (void)bel_json_i64(object, "step", &line->crash_step);
        (void)bel_json_i64(object, "block", &line->crash_block);
    }
    put_clean(&line->text, message, strlen(message));
    return true;
}

// Keeps a line unchanged, except for a carriage return at its end.
static void read_foreign(const char *bytes, size_t length, bel_role_line *line)
{
    line->kind = BEL_ROLE_LINE_FOREIGN;
    line->level = BEL_LOG_WARN;
    bool returns = length > 0 && bytes[length - 1] == '\r';
    put_clean(&line->text, bytes, length - returns);
}

void bel_role_line_init(bel_role_line *out_line, const char *bytes, size_t length)
{
    memset(out_line, 0, sizeof *out_line);
    bel_json *json = parse_object(bytes, length);
    if (json == NULL || !read_object(bel_json_root(json), out_line)) {
        read_foreign(bytes, length, out_line);
    }
    bel_json_destroy(json);
}

void bel_role_line_deinit(bel_role_line *line)
{
    bel_str_deinit(&line->text);
}

// --- Writing ------------------------------------------------------------------------------------

void bel_role_line_write(const bel_role_line *line, const char *name, bel_str *out)
{
    if (name != NULL) bel_str_printf(out, "[%s] ", name);
    bool plain = line->kind == BEL_ROLE_LINE_FOREIGN || line->kind == BEL_ROLE_LINE_PROGRESS ||
                 line->level == BEL_LOG_INFO;
    if (!plain) bel_str_printf(out, "%s: ", level_names[line->level]);
    bel_str_append(out, line->text.text, line->text.length);
    bel_str_puts(out, "\n");
}

// Inserts the name after the opening brace of the original object.
void bel_role_line_write_json(const bel_role_line *line, const char *bytes, size_t length,
                              const char *name, bel_str *out)
{
    bel_str_puts(out, "{\"process\":");
    bel_json_write_string(out, name);
    if (line->kind != BEL_ROLE_LINE_FOREIGN) { // an object with at least a level
        bel_str_puts(out, ",");
        bel_str_append(out, bytes + 1, length - 1);
    } else {
        bel_str_puts(out, ",\"level\":\"warning\",\"message\":");
        bel_json_write_string(out, line->text.text);
        bel_str_puts(out, "}");
    }
    bel_str_puts(out, "\n");
}
