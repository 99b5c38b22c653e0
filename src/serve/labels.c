// The labels file. All lines are read before any label counts, so a wrong line changes nothing. A
// label must be a name that every protocol can carry: in gRPC it is in the field of the number, and
// in REST it is a part of the path.
#include "serve/labels.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

enum { WORDS = 3 };

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

static bel_status *read_line(bel_labels *labels, size_t *capacity, const char *line, size_t length,
                             const char *path, int number)
{
    const char *words[WORDS + 1];
    size_t lengths[WORDS + 1];
    int64_t version = -1;
    int count = split(line, length, words, lengths);
    if (count == 0) return NULL;
    bool newest = count == WORDS && lengths[2] == 6 && memcmp(words[2], "newest", 6) == 0;
    if (count != WORDS ||
        (!newest && (!bel_parse_i64(words[2], lengths[2], &version) || version < 0))) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "%s:%d: expected a model, a label, and a version or \"newest\"", path,
                       number);
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
                       .line = number};
    bool is_new = bel_labels_find(labels, label.model, label.name, lengths[1]) == NULL;
    labels->items = bel_xgrow(labels->items, capacity, labels->count + 1, sizeof *labels->items);
    labels->items[labels->count++] = label;
    if (is_new) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "%s:%d: the model %s has a label %s already", path, number,
                   label.model, label.name);
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

bool bel_labels_have(const bel_labels *labels, const char *model, int64_t number)
{
    bool has = false;
    for (size_t i = 0; labels != NULL && i < labels->count; i++)
        has = has ||
              (labels->items[i].number == number && strcmp(labels->items[i].model, model) == 0);
    return has;
}
