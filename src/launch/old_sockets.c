// Whether somebody listens is asked by connecting: a file of a socket outlives its process.
#include "launch/old_sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"

static bool is_old(const char *folder)
{
    enum { AGE_SECS = 600 };
    struct stat about;
    return lstat(folder, &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == geteuid() &&
           time(NULL) - about.st_mtime > AGE_SECS;
}

// True when it does, or when that cannot be told.
static bool somebody_listens(const char *path)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof name.sun_path) return true;
    memcpy(name.sun_path, path, strlen(path));
    int descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
    if (descriptor < 0) return true;
    (void)fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
    bool nobody = connect(descriptor, (const struct sockaddr *)&name, sizeof name) != 0 &&
                  errno == ECONNREFUSED;
    close(descriptor);
    return !nobody;
}

static void look_at(const char *folder)
{
    char **names;
    size_t count;
    if (!is_old(folder)) return;
    bel_status *status = bel_dir_list(folder, &names, &count);
    if (status != NULL) {
        bel_status_ignore(status); // then it stays
        return;
    }
    bool used = false;
    for (size_t i = 0; i < count; i++) {
        char *path = bel_path_join(folder, names[i]);
        used = used || somebody_listens(path);
        bel_free(path);
        bel_free(names[i]);
    }
    bel_free(names);
    if (!used) bel_status_ignore(bel_dir_remove(folder)); // it is tried again
}

void bel_old_sockets_remove(const char *base)
{
    char **names;
    size_t count;
    bel_status *status = bel_dir_list(base, &names, &count);
    if (status != NULL) {
        bel_status_ignore(status); // making the own folder says what is wrong
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (strncmp(names[i], BEL_SOCKETS_PREFIX, strlen(BEL_SOCKETS_PREFIX)) == 0) {
            char *folder = bel_path_join(base, names[i]);
            look_at(folder);
            bel_free(folder);
        }
        bel_free(names[i]);
    }
    bel_free(names);
}
