// Printer of results: the only code that writes to stdout, so that a failed write (a full disk, a
// closed pipe) becomes the command's error. stdout is buffered: most failures appear at the flush
// in main. Both forms have the same names in the same order. Numbers are written as in JSON, with
// null if they are not finite.
#include "command/results.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

// Printer of values in either form.
typedef struct printer {
    bel_str text;
    bool json;
} printer;

static void put_name(printer *p, const char *name)
{
    if (p->json) {
        bel_str_puts(&p->text, p->text.length == 0 ? "{" : ",");
        bel_json_write_string(&p->text, name);
        bel_str_puts(&p->text, ":");
    } else {
        bel_str_printf(&p->text, "%s ", name);
    }
}

static void put_end(printer *p)
{
    if (!p->json) bel_str_puts(&p->text, "\n");
}

static void put_number(printer *p, const char *name, double value)
{
    put_name(p, name);
    bel_json_write_number(&p->text, value);
    put_end(p);
}

static void put_whole(printer *p, const char *name, int64_t value)
{
    put_name(p, name);
    bel_str_printf(&p->text, "%lld", (long long)value);
    put_end(p);
}

// Prints the step of the evaluated version; null: there was no evaluation.
static void put_evaluation_step(printer *p, int64_t step)
{
    if (step >= 0) {
        put_whole(p, "evaluation_step", step);
    } else {
        put_number(p, "evaluation_step", NAN);
    }
}

static void put_text(printer *p, const char *name, const char *value)
{
    put_name(p, name);
    if (p->json) {
        bel_json_write_string(&p->text, value);
    } else {
        bel_str_puts(&p->text, value);
    }
    put_end(p);
}

static bel_status *stdout_error(void)
{
    return BEL_ERR(BEL_UNKNOWN, "cannot write to stdout: %s", strerror(errno));
}

bel_status *bel_results_write(const char *text)
{
    return fputs(text, stdout) >= 0 ? NULL : stdout_error();
}

bel_status *bel_results_write_bytes(const void *bytes, size_t size)
{
    return fwrite(bytes, 1, size, stdout) == size ? NULL : stdout_error();
}

bel_status *bel_results_flush(void)
{
    return fflush(stdout) == 0 ? NULL : stdout_error();
}

bel_status *bel_results_print(const bel_result *result, bool trained, bool evaluated, bool json)
{
    printer p = {.json = json};
    put_whole(&p, "global_step", result->global_step);
    if (trained && evaluated) put_evaluation_step(&p, result->evaluation_step);
    put_number(&p, "loss", result->loss);
    if (evaluated) {
        put_number(&p, "batch_mean_loss", result->batch_mean_loss);
        for (int i = 0; i < result->metric_count; i++)
            put_number(&p, result->metrics[i].name, result->metrics[i].value);
        put_whole(&p, "examples", result->examples);
    }
    if (trained) {
        put_number(&p, "train_seconds", result->train_seconds);
        put_number(&p, "examples_per_second", result->examples_per_second);
        put_text(&p, "digest", result->digest);
        put_name(&p, "interrupted");
        bel_str_puts(&p.text, result->interrupted ? "true" : "false");
        put_end(&p);
    }
    if (json) bel_str_puts(&p.text, "}\n");
    bel_status *status = bel_results_write(p.text.text);
    bel_str_deinit(&p.text);
    return status;
}
