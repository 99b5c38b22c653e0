// The two checks, in one place for all processes that are given secrets: the supervisor
// (secret_file, tls.key) and a process that takes them from its environment. Group members may read
// a file, as deployments share keys by group; others may not. The mode that counts is that of the
// file behind a link. A file that cannot be looked at is left to the code that opens it, which has
// the better message.
#include "launch/secrets.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

bel_status *bel_secret_check(const char *secret, const char *source)
{
    size_t length = strlen(secret);
    bool prints = true;
    for (size_t i = 0; i < length; i++)
        prints = prints && secret[i] > 0x20 && secret[i] < 0x7f;
    bool fits = length >= BEL_SECRET_LEAST_BYTES && length <= BEL_SECRET_MOST_BYTES;
    if (fits && prints) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "%s: expected one line of %d to %d ASCII characters without spaces, got %zu%s; "
                   "hint: openssl rand -hex 32 makes one",
                   source, BEL_SECRET_LEAST_BYTES, BEL_SECRET_MOST_BYTES, length,
                   prints ? "" : ", and others among them");
}

bel_status *bel_private_file_check(const char *path, const char *what)
{
    struct stat about;
    if (path == NULL || stat(path, &about) != 0 || (about.st_mode & S_IRWXO) == 0) return NULL;
    return BEL_ERR(
        BEL_INVALID_ARGUMENT,
        "%s %s: every user of this host may read or write it (mode %04o); hint: chmod 600 "
        "%s",
        what, path, (unsigned)(about.st_mode & 07777), path);
}
