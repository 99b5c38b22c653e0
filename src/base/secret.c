// Checks of secrets, shared by all processes that have them: a supervisor (secret_file, tls.key), a
// process with a secret in its environment, ranks of the DDL calls. Group members may read a file,
// as deployments share keys by group; others may not. The mode is that of the file a link points
// to. A file that cannot be examined is left to the code that opens it, which has the better
// message.
#include "base/secret.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/linux_process.h"
#include "base/str.h"

// `source` names where it is from: "secret_file s.txt", "environment variable BELFRY_SECRET".
static bel_status *secret_check(const char *secret, const char *source)
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

// An editor leaves a newline at the end.
bel_status *bel_secret_read(const char *path, const char *what, char **out_secret)
{
    char *text;
    size_t size;
    BEL_TRY(bel_private_file_check(path, what));
    BEL_TRY_CTX(bel_file_read(path, &text, &size), "%s", what);
    while (size > 0 && strchr(" \t\r\n", text[size - 1]) != NULL)
        text[--size] = '\0';
    char *source = bel_strf("%s %s", what, path);
    bel_status *status = secret_check(text, source);
    bel_free(source);
    if (status != NULL) {
        bel_free(text);
        return status;
    }
    *out_secret = text;
    return NULL;
}

bool bel_secret_matches(const char *secret, const void *shown, size_t shown_bytes)
{
    if (strlen(secret) != shown_bytes) return false;
    unsigned difference = 0;
    for (size_t i = 0; i < shown_bytes; i++)
        difference |= (unsigned)((unsigned char)secret[i] ^ ((const unsigned char *)shown)[i]);
    return difference == 0;
}

bel_status *bel_secret_create(char **out_secret)
{
    unsigned char bytes[32];
    BEL_TRY(bel_linux_random(bytes, sizeof bytes));
    bel_str text = {0};
    for (size_t i = 0; i < sizeof bytes; i++)
        bel_str_printf(&text, "%02x", bytes[i]);
    *out_secret = text.text;
    return NULL;
}

bel_status *bel_secret_from_environment(char **out_secret)
{
    const char *secret = getenv("BELFRY_SECRET"), *path = getenv("BELFRY_SECRET_FILE");
    bool has_secret = secret != NULL && secret[0] != '\0',
         has_path = path != NULL && path[0] != '\0';
    *out_secret = NULL;
    if (has_secret && has_path) {
        return BEL_ERR(BEL_INVALID_ARGUMENT,
                       "environment variables BELFRY_SECRET and BELFRY_SECRET_FILE exclude each "
                       "other; unset one of them");
    }
    if (has_path) return bel_secret_read(path, "BELFRY_SECRET_FILE", out_secret);
    if (has_secret) BEL_TRY(secret_check(secret, "environment variable BELFRY_SECRET"));
    *out_secret = bel_xstrdup(has_secret ? secret : "");
    return NULL;
}
