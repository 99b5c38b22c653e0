// The labels file. All lines are read before any label counts, so a wrong line changes nothing. A
// label must be a name that every protocol can carry: in gRPC it is in the field of the number, and
// in REST it is a part of the path.
#include "serve/labels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/number.h"
#include "base/str.h"

enum { WORDS = 4 };

// Splits a line at white space. Returns the number of words, at most WORDS + 1; a comment has none.
static int split(const char *line, size_t length, const char *words[WORDS + 1],
                 size_t lengths[WORDS + 1])
{
    static const char space[] = " \t\r";
    int count = 0;
    for (size_t i = 0; i < length && line[i] != '#' && count <= WORDS;) {
        if (strchr(space, line[i]) != NULL) {
            i++;
            continue;
        }
        size_t begin = i;
        while (i < length && strchr(space, line[i]) == NULL)
            i++;
        words[count] = line + begin;
        lengths[count++] = i - begin;
    }
    return count;
}

// In gRPC a label is in the field of the number.
static bool has_only_digits(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] < '0' || text[i] > '9') return false;
    return true;
}

// Reads "5%" or "0.25%" in hundredths of a percent.
static bool parse_share(const char *text, size_t length, int *out_share)
{
    double percent, share;
    if (length < 2 || text[length - 1] != '%' || !bel_parse_f64(text, length - 1, &percent))
        return false;
    share = round(percent * (BEL_LABEL_SHARES / 100));
    *out_share = bel_in_interval("(0, 100]", percent) ? (int)share : 0;
    return *out_share > 0 && fabs(share - percent * (BEL_LABEL_SHARES / 100)) < 1e-6;
}

static bel_status *read_line(bel_labels *labels, size_t *capacity, const char *line, size_t length,
                             const char *path, int number)
{
    const char *words[WORDS + 1];
    size_t lengths[WORDS + 1];
    int64_t version = -1;
    int count = split(line, length, words, lengths);
    if (count == 0) return NULL;
    bool newest = count >= 3 && lengths[2] == 6 && memcmp(words[2], "newest", 6) == 0;
    int share = 0;
    if (count < 3 || count > WORDS ||
        (!newest && (!bel_parse_i64(words[2], lengths[2], &version) || version < 0))) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s:%d: expected a model, a label, a version or \"newest\", and perhaps a "
                       "share",
                       path, number);
    }
    if (count == WORDS && !parse_share(words[3], lengths[3], &share)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s:%d: expected a share of 0.01%% to 100%% with at most two decimals, got "
                       "\"%.*s\"; hint: 5%%",
                       path, number, (int)lengths[3], words[3]);
    }
    if (memchr(words[1], '/', lengths[1]) != NULL || memchr(words[1], ':', lengths[1]) != NULL ||
        has_only_digits(words[1], lengths[1])) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s:%d: expected a label without \"/\" and \":\", and not only digits, got "
                       "%.*s",
                       path, number, (int)lengths[1], words[1]);
    }
    bel_label label = {.model = bel_xstrndup(words[0], lengths[0]),
                       .name = bel_xstrndup(words[1], lengths[1]),
                       .number = version,
                       .share = share,
                       .line = number};
    bool is_new = bel_labels_find(labels, label.model, label.name, lengths[1]) == NULL;
    labels->items = bel_xgrow(labels->items, capacity, labels->count + 1, sizeof *labels->items);
    labels->items[labels->count++] = label;
    if (is_new) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "%s:%d: the model %s has a label %s already", path, number,
                   label.model, label.name);
}

static bel_status *check_shares(const bel_labels *labels, const char *path)
{
    for (size_t i = 0; i < labels->count; i++) {
        const char *model = labels->items[i].model;
        int64_t sum = 0;
        for (size_t j = 0; j < labels->count; j++)
            if (strcmp(labels->items[j].model, model) == 0) sum += labels->items[j].share;
        if (sum == 0 || sum == BEL_LABEL_SHARES) continue;
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s: the shares of model %s are %g%% together, expected 100%%", path, model,
                       (double)sum * 100 / BEL_LABEL_SHARES);
    }
    return NULL;
}

static int compare_labels(const void *a, const void *b)
{
    const bel_label *one = a, *other = b;
    int order = strcmp(one->model, other->model);
    return order != 0 ? order : strcmp(one->name, other->name);
}

bel_status *bel_labels_read(const char *path, bel_labels **out_labels)
{
    char *text;
    size_t size, capacity = 0;
    BEL_TRY(bel_file_read(path, &text, &size));
    bel_labels *labels = bel_xcalloc(1, sizeof *labels);
    bel_status *status = NULL;
    int number = 1;
    for (size_t i = 0; i < size && status == NULL; number++) {
        const char *end = memchr(text + i, '\n', size - i);
        size_t length = end != NULL ? (size_t)(end - text) - i : size - i;
        status = read_line(labels, &capacity, text + i, length, path, number);
        i += length + 1;
    }
    bel_free(text);
    // An id gets the same label whatever the order of the lines.
    if (labels->count > 0)
        qsort(labels->items, labels->count, sizeof *labels->items, compare_labels);
    if (status == NULL) status = check_shares(labels, path);
    if (status != NULL) {
        bel_labels_destroy(labels);
        return status;
    }
    *out_labels = labels;
    return NULL;
}

void bel_labels_destroy(bel_labels *labels)
{
    if (labels == NULL) return;
    for (size_t i = 0; i < labels->count; i++) {
        bel_free(labels->items[i].model);
        bel_free(labels->items[i].name);
    }
    bel_free(labels->items);
    bel_free(labels);
}

const bel_label *bel_labels_find(const bel_labels *labels, const char *model, const char *name,
                                 size_t length)
{
    for (size_t i = 0; labels != NULL && i < labels->count; i++) {
        const bel_label *l = &labels->items[i];
        if (strcmp(l->model, model) == 0 && strlen(l->name) == length &&
            memcmp(l->name, name, length) == 0)
            return l;
    }
    return NULL;
}

const bel_label *bel_labels_choose(const bel_labels *labels, const char *model, int part)
{
    for (size_t i = 0; labels != NULL && i < labels->count; i++) {
        const bel_label *label = &labels->items[i];
        if (strcmp(label->model, model) != 0) continue;
        if (part < label->share) return label;
        part -= label->share;
    }
    return NULL;
}

bool bel_labels_have(const bel_labels *labels, const char *model, int64_t number)
{
    bool has = false;
    for (size_t i = 0; labels != NULL && i < labels->count; i++)
        has = has ||
              (labels->items[i].number == number && strcmp(labels->items[i].model, model) == 0);
    return has;
}
