// One write call a line, so that lines of two masters never mix.
#include "master/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/str.h"

static bel_status *append(const char *path, const bel_str *line, bool sync)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (descriptor < 0) return bel_file_error(errno, "open", path);
    ssize_t wrote = write(descriptor, line->text, line->length);
    bool good = wrote == (ssize_t)line->length && (!sync || fsync(descriptor) == 0);
    bel_status *status = good ? NULL : bel_file_error(wrote < 0 ? errno : ENOSPC, "write", path);
    close(descriptor);
    return status;
}

bel_status *bel_journal_write(const char *model_dir, const char *event, uint32_t generation,
                              int64_t step, const char *text)
{
    bel_str line = {0};
    bel_str_printf(&line,
                   "{\"time\":%.3f,\"event\":\"%s\",\"generation\":%u,\"step\":%lld,\"text\":",
                   bel_clock_wall(), event, generation, (long long)step);
    bel_json_write_string(&line, text);
    bel_str_puts(&line, "}\n");
    char *path = bel_path_join(model_dir, BEL_JOURNAL_FILE);
    bel_status *status = append(path, &line, strcmp(event, "generation") == 0);
    bel_free(path);
    bel_str_deinit(&line);
    return status;
}

static uint32_t generation_of(const char *line, size_t length)
{
    bel_json *json = NULL;
    int64_t generation = 0;
    bel_status *status = bel_json_parse(line, length, BEL_JOURNAL_FILE, &json);
    if (status == NULL) (void)bel_json_i64(bel_json_root(json), "generation", &generation);
    bel_status_ignore(status); // a line that was not finished
    bel_json_destroy(json);
    return generation > 0 && generation < UINT32_MAX ? (uint32_t)generation : 0;
}

bel_status *bel_journal_generation(const char *model_dir, uint32_t *out_generation)
{
    char *path = bel_path_join(model_dir, BEL_JOURNAL_FILE), *text = NULL;
    size_t size = 0;
    bel_status *status = bel_file_read(path, &text, &size);
    bel_free(path);
    *out_generation = 0;
    if (bel_status_code(status) == BEL_NOT_FOUND) {
        bel_status_ignore(status); // the first master of this model
        return NULL;
    }
    if (status != NULL) return status;
    const char *next = text;
    while (size > 0) {
        const char *newline = memchr(next, '\n', size);
        size_t length = newline != NULL ? (size_t)(newline - next) : size;
        uint32_t generation = generation_of(next, length);
        if (generation > *out_generation) *out_generation = generation;
        length += newline != NULL;
        next += length;
        size -= length;
    }
    bel_free(text);
    return NULL;
}
