// The mark is one line of text. A file that cannot be read counts as a mark: it is an error for a
// training, and a warning for readers. It is read with stdio, as small programs that learn have no
// code for packed files.
#include "checkpoint/damage.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"

bel_status *bel_ckpt_damage_write(const char *model_dir, const char *what)
{
    char *path = bel_path_join(model_dir, BEL_DAMAGE_FILE);
    char *text = bel_strf("%s%s", what, what[0] != '\0' ? "\n" : "");
    bel_status *status = bel_file_write_atomic(path, text, strlen(text));
    bel_free(text);
    bel_free(path);
    return status;
}

bel_status *bel_ckpt_damage_read(const char *model_dir, char **out_what)
{
    char line[4096] = "";
    char *path = bel_path_join(model_dir, BEL_DAMAGE_FILE);
    FILE *file = fopen(path, "re");
    bel_status *status = NULL;
    if (file == NULL && errno != ENOENT) status = bel_file_error(errno, "open", path);
    if (file != NULL && fgets(line, sizeof line, file) == NULL && ferror(file))
        status = bel_file_error(errno, "read", path);
    if (file != NULL) (void)fclose(file);
    bel_free(path);
    BEL_TRY(status);
    size_t length = strcspn(line, "\n");
    *out_what = length > 0 ? bel_xstrndup(line, length) : NULL;
    return NULL;
}

// Folders that were warned of; for the life of the process.
static pthread_mutex_t warned_mutex = PTHREAD_MUTEX_INITIALIZER;
static bel_str warned; // a line for each

static bool is_new(const char *model_dir)
{
    char *line = bel_strf("\n%s\n", model_dir);
    pthread_mutex_lock(&warned_mutex);
    bool is = warned.text == NULL || strstr(warned.text, line) == NULL;
    if (is) bel_str_puts(&warned, line);
    pthread_mutex_unlock(&warned_mutex);
    bel_free(line);
    return is;
}

void bel_ckpt_damage_warn(const char *folder)
{
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    while (length > 0 && folder[length - 1] != '/')
        length--;
    while (length > 1 && folder[length - 1] == '/')
        length--;
    char *model_dir = length > 0 ? bel_xstrndup(folder, length) : bel_xstrdup(".");
    char *what = NULL;
    bel_status *status = bel_ckpt_damage_read(model_dir, &what);
    if ((status != NULL || what != NULL) && is_new(model_dir)) {
        bel_log_write(BEL_LOG_WARN, "%s: its checkpoints may be wrong: %s", model_dir,
                      status != NULL ? bel_status_message(status) : what);
    }
    bel_status_ignore(status); // reported
    bel_free(what);
    bel_free(model_dir);
}
