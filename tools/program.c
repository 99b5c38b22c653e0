// What is run here has its output on stderr, as stdout is for results alone.
#include "program.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/linux_process.h"
#include "base/str.h"

char *bel_absolute_path(const char *path)
{
    if (path[0] == '/') return bel_xstrdup(path);
    for (size_t size = 256;; size *= 2) {
        char *folder = bel_xmalloc(size);
        bool fits = getcwd(folder, size) != NULL;
        bool hopeless = !fits && errno != ERANGE;
        char *joined = fits ? bel_path_join(folder, path) : NULL;
        bel_free(folder);
        if (fits) return joined;
        if (hopeless) return bel_xstrdup(path);
    }
}

static bool is_executable(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

// NULL: in none of the folders. An empty one is the current one.
static char *find_in_path(const char *name)
{
    const char *rest = getenv("PATH");
    while (rest != NULL && *rest != '\0') {
        size_t length = strcspn(rest, ":");
        char *folder = length > 0 ? bel_xstrndup(rest, length) : bel_xstrdup(".");
        char *path = bel_path_join(folder, name);
        bel_free(folder);
        if (is_executable(path)) return path;
        bel_free(path);
        rest += length + (rest[length] == ':');
    }
    return NULL;
}

bel_status *bel_program_find(const char *name, char **out_path)
{
    bool named = strchr(name, '/') != NULL;
    char *found = named ? bel_xstrdup(name) : find_in_path(name);
    if (found == NULL) return BEL_ERR(BEL_NOT_FOUND, "there is no program %s in $PATH", name);
    bel_status *status = NULL;
    if (!bel_file_exists(found)) {
        status = BEL_ERR(BEL_NOT_FOUND, "there is no program %s", name);
    } else if (!is_executable(found)) {
        status = BEL_ERR(BEL_PERMISSION_DENIED, "%s is no executable file", name);
    } else {
        *out_path = bel_absolute_path(found);
    }
    bel_free(found);
    return status;
}

bel_status *bel_program_run(char *const *arguments, int most_secs)
{
    char *path;
    BEL_TRY(bel_program_find(arguments[0], &path));
    fflush(stdout);
    bel_linux_process process;
    bel_linux_spawn spawn = {
        .program = path, .arguments = arguments, .standard = {-1, STDERR_FILENO, STDERR_FILENO}};
    bel_status *status = bel_linux_process_spawn(&spawn, &process);
    bel_free(path);
    BEL_TRY(status);
    bel_linux_end end;
    if (!bel_linux_process_wait(&process, most_secs * 1000, &end)) {
        bel_linux_process_signal(&process, SIGKILL, true);
        (void)bel_linux_process_wait(&process, 1000, &end); // else it is left behind
        return BEL_ERR(BEL_DEADLINE_EXCEEDED, "%s took more than %d s, and was killed",
                       arguments[0], most_secs);
    }
    if (end.code == 0) return NULL;
    bel_str line = {0};
    for (int i = 0; arguments[i] != NULL; i++)
        bel_str_printf(&line, "%s%s", i > 0 ? " " : "", arguments[i]);
    status = BEL_ERR(BEL_ABORTED, "exit code %d of: %s", end.code, line.text);
    bel_str_deinit(&line);
    return status;
}

bel_status *bel_program_become(const char *path, char *const *arguments)
{
    fflush(stdout);
    execv(path, arguments);
    return bel_file_error(errno, "run", path);
}
