// Blocks are found by their lines, because a wrong file is the usual mistake, and its name is what
// the user needs. The library checks their content. A private key's text must be cleared before its
// memory is freed.
#include "base/pem.h"

#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"

// True if the text has a line `-----BEGIN … what` and an END line after it.
static bool holds_block(const char *text, const char *what)
{
    static const char begin[] = "-----BEGIN ";
    for (const char *line = strstr(text, begin); line != NULL; line = strstr(line + 1, begin)) {
        const char *end = line + strcspn(line, "\r\n"), *found = strstr(line, what);
        if (found != NULL && found < end && strstr(end, "-----END ") != NULL) return true;
    }
    return false;
}

// Through a volatile pointer, as a compiler leaves out writes to memory that is freed next.
void bel_pem_free(char *text)
{
    for (volatile char *at = text; at != NULL && *at != '\0'; at++)
        *at = '\0';
    bel_free(text);
}

bel_status *bel_pem_read(const char *path, const char *what, char **out_text)
{
    char *text;
    size_t size;
    BEL_TRY_CTX(bel_file_read(path, &text, &size), "TLS");
    if (holds_block(text, what)) {
        *out_text = text;
        return NULL;
    }
    bel_pem_free(text);
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "TLS: %s holds no %s in PEM form: expected lines from \"-----BEGIN %s-----\" to "
                   "\"-----END %s-----\"",
                   path, what, what, what);
}

bel_status *bel_pem_check(const char *path, const char *what)
{
    char *text;
    BEL_TRY(bel_pem_read(path, what, &text));
    bel_pem_free(text);
    return NULL;
}
