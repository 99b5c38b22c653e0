// Tests of ONNX's operator cases from Debian's libonnx-testdata, on the plain and on the fast
// kernels.
//
// A case passes, or fails, or is skipped because Belfry reports a missing feature (code
// UNIMPLEMENTED). Skipped cases are listed by Belfry's message. It is a failure if fewer pass than
// the numbers stored here.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "onnx/onnx_case.h"

typedef struct suite {
    const char *folder;
    int least; // expected number of passes
    int passed, close, bound, failed, skipped;
    bel_str near; // the others that passed
} suite;

// Cases with the same reason for being skipped.
typedef struct reason {
    char *text;
    bel_str cases;
    int count;
} reason;

typedef struct reasons {
    reason *items;
    size_t count, capacity;
} reasons;

// Returns the message without the places of node, input or output.
static char *reason_text(const char *message)
{
    const char *open = strstr(message, "\" ("), *end = strstr(message, "): ");
    bool is_node = strncmp(message, "node ", 5) == 0 && open != NULL && open < end;
    if (is_node) return bel_strf("%.*s: %s", (int)(end - open - 3), open + 3, end + 3);
    const char *port = strstr(message, "put \""), *colon = strstr(message, "\": ");
    return bel_xstrdup(port != NULL && colon != NULL ? colon + 3 : message);
}

static void add_reason(reasons *list, const char *message, const char *name)
{
    char *text = reason_text(message);
    size_t i = 0;
    while (i < list->count && strcmp(list->items[i].text, text) != 0)
        i++;
    if (i == list->count) {
        list->items = bel_xgrow(list->items, &list->capacity, list->count + 1, sizeof *list->items);
        list->items[list->count++] = (reason){.text = bel_xstrdup(text)};
    }
    bel_str_printf(&list->items[i].cases, " %s", name);
    list->items[i].count++;
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

#define FRACTION "corners are aligned to a length with a fraction, and not to the resized tensor's"

// Cases whose data disagree with their model.
static const struct {
    const char *name, *why;
} wrong_cases[] = {
    {"test_adam_multiple", "the outputs were computed with an epsilon that the model does not say"},
    {"test_resize_downsample_scales_cubic_align_corners", FRACTION},
    {"test_resize_downsample_scales_linear_align_corners", FRACTION},
};

static bel_status *check_data(const char *name)
{
    for (size_t i = 0; i < sizeof wrong_cases / sizeof wrong_cases[0]; i++) {
        if (strcmp(wrong_cases[i].name, name) != 0) continue;
        return BEL_ERR(BEL_UNIMPLEMENTED, "ONNX's data: %s", wrong_cases[i].why);
    }
    return NULL;
}

// Runs a case on both kinds of kernels; optimizers have one.
static bel_status *run_case(const char *folder, int *out_bound, onnx_match *out_match)
{
    onnx_case opened;
    onnx_match plain = ONNX_DIFFERS, fast = ONNX_DIFFERS;
    BEL_TRY(onnx_case_open(folder, 0, &opened));
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
    bel_status *status = check_data(name);
    if (status == NULL) status = run_case(folder, &bound, &match);
    if (status == NULL) {
        s->passed++;
        s->close += match == ONNX_CLOSE;
        if (match != ONNX_CLOSE) bel_str_printf(&s->near, " %s", name);
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

// Returns false if a case failed or too few passed.
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
    if (s->near.length > 0) printf("  within 1e-3:%s\n", s->near.text);
    bel_str_deinit(&s->near);
    print_and_free(&skipped);
    bool fewer = only == NULL && s->passed < s->least;
    if (fewer)
        printf("FAILED %s: %d passed, expected at least %d\n", s->folder, s->passed, s->least);
    return s->failed == 0 && !fewer;
}

int main(int argc, char **argv)
{
    suite suites[] = {{.folder = "node", .least = 773},
                      {.folder = "simple", .least = 7},
                      {.folder = "pytorch-operator", .least = 35},
                      {.folder = "pytorch-converted", .least = 82}};
    bool fine = true;
    for (size_t i = 0; i < sizeof suites / sizeof suites[0]; i++)
        fine = run_suite(&suites[i], argc > 1 ? argv[1] : NULL) && fine;
    return fine ? 0 : 1;
}
