// ONNX's own cases, as Debian's libonnx-testdata has them, on the plain and on the fast kernels.
//
// A case passes, or is skipped because Belfry says that it lacks something (code UNIMPLEMENTED), or
// fails. Skipped ones are listed by what Belfry said. Fewer passes than stored here are a failure.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "onnx/onnx_case.h"

typedef struct suite {
    const char *folder;
    int least; // that pass
    int passed, close, bound, failed, skipped;
} suite;

// Cases by the reason for which they were skipped.
typedef struct reason {
    char *text;
    bel_str cases;
    int count;
} reason;

typedef struct reasons {
    reason *items;
    size_t count, capacity;
} reasons;

// What the message says behind the node's label.
static const char *reason_text(const char *message)
{
    const char *end = strstr(message, "): ");
    return strncmp(message, "node ", 5) == 0 && end != NULL ? end + 3 : message;
}

// The operator in a node's label, with a blank, or nothing.
static char *operator_of(const char *message)
{
    const char *open = strstr(message, "\" ("), *end = strstr(message, "): ");
    bool labelled = strncmp(message, "node ", 5) == 0 && open != NULL && end != NULL && open < end;
    return labelled ? bel_strf("%.*s: ", (int)(end - open - 3), open + 3) : bel_strf("%s", "");
}

static void add_reason(reasons *list, const char *message, const char *name)
{
    char *operator= operator_of(message), *text = bel_strf("%s%s", operator, reason_text(message));
    size_t i = 0;
    while (i < list->count && strcmp(list->items[i].text, text) != 0)
        i++;
    if (i == list->count) {
        list->items = bel_xgrow(list->items, &list->capacity, list->count + 1, sizeof *list->items);
        list->items[list->count++] = (reason){.text = bel_xstrdup(text)};
    }
    bel_str_printf(&list->items[i].cases, " %s", name);
    list->items[i].count++;
    bel_free(operator);
    bel_free(text);
}

static int by_count(const void *a, const void *b)
{
    const reason *p = a, *q = b;
    return p->count != q->count ? (p->count < q->count) - (p->count > q->count)
                                : strcmp(p->text, q->text);
}

static void print_and_free(reasons *list)
{
    if (list->count > 0) qsort(list->items, list->count, sizeof *list->items, by_count);
    for (size_t i = 0; i < list->count; i++) {
        reason *item = &list->items[i];
        printf("  %3d  %s\n      %s\n", item->count, item->text, item->cases.text);
        bel_free(item->text);
        bel_str_deinit(&item->cases);
    }
    bel_free(list->items);
}

// On both kinds of kernels; optimizers have one.
static bel_status *run_case(const char *folder, int *out_bound, onnx_match *out_match)
{
    onnx_case opened;
    onnx_match plain = ONNX_DIFFERS, fast = ONNX_DIFFERS;
    BEL_TRY(onnx_case_open(folder, &opened));
    bel_status *status = NULL;
    *out_bound = 0;
    if (onnx_is_optimizer(&opened)) {
        status = onnx_optimizer_run(&opened, &plain);
        fast = plain;
    } else {
        BEL_TRY_GOTO(status, out, onnx_case_run(&opened, true, out_bound, &plain));
        status = onnx_case_run(&opened, false, out_bound, &fast);
        if (status != NULL) status = bel_status_wrap(status, __FILE__, __LINE__, "fast kernels");
    }
    *out_match = plain < fast ? plain : fast;
out:
    onnx_case_close(&opened);
    return status;
}

static void run_named(suite *s, const char *name, reasons *skipped)
{
    char *folder = bel_strf("%s/%s/%s", ONNX_DATA, s->folder, name);
    int bound;
    onnx_match match;
    bel_status *status = run_case(folder, &bound, &match);
    if (status == NULL) {
        s->passed++;
        s->close += match == ONNX_CLOSE;
        s->bound += bound > 0;
    } else if (bel_status_code(status) == BEL_UNIMPLEMENTED) {
        s->skipped++;
        add_reason(skipped, bel_status_message(status), name);
    } else {
        s->failed++;
        printf("FAILED %s/%s: %s\n", s->folder, name, bel_status_message(status));
    }
    bel_status_destroy(status);
    bel_free(folder);
}

// False when a case failed or too few passed.
static bool run_suite(suite *s, const char *only)
{
    char *folder = bel_path_join(ONNX_DATA, s->folder), **names;
    size_t count;
    bel_status *status = bel_dir_list(folder, &names, &count);
    bel_free(folder);
    if (status != NULL) {
        fprintf(stderr, "%s\nhint: tools/install-deps installs libonnx-testdata\n",
                bel_status_message(status));
        bel_status_destroy(status);
        return false;
    }
    reasons skipped = {.items = NULL};
    for (size_t i = 0; i < count; i++) {
        if (only == NULL || strcmp(only, names[i]) == 0) run_named(s, names[i], &skipped);
        bel_free(names[i]);
    }
    bel_free(names);
    printf("%s: %d passed (%d of them within 1e-5; %d with inputs bound as constants), "
           "%d skipped, %d failed\n",
           s->folder, s->passed, s->close, s->bound, s->skipped, s->failed);
    print_and_free(&skipped);
    bool fewer = only == NULL && s->passed < s->least;
    if (fewer)
        printf("FAILED %s: %d passed, expected at least %d\n", s->folder, s->passed, s->least);
    return s->failed == 0 && !fewer;
}

int main(int argc, char **argv)
{
    suite suites[] = {{.folder = "node", .least = 0},
                      {.folder = "simple", .least = 0},
                      {.folder = "pytorch-operator", .least = 0},
                      {.folder = "pytorch-converted", .least = 0}};
    bool fine = true;
    for (size_t i = 0; i < sizeof suites / sizeof suites[0]; i++)
        fine = run_suite(&suites[i], argc > 1 ? argv[1] : NULL) && fine;
    return fine ? 0 : 1;
}
