// Shared part of the targets. Files are in memory where possible. They are unlinked at once and
// opened as /proc/self/fd, so a run that dies leaves no file. They stay open and are rewritten, as
// creating one for each input would take most of the time.
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

int LLVMFuzzerInitialize(int *argument_count, char ***arguments)
{
    (void)argument_count, (void)arguments;
    bel_log_configure(BEL_LOG_ERROR, BEL_LOG_TEXT);
    return 0;
}

void fuzz_expect(bool holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "fuzz: expected: %s\n", what);
    abort();
}

const char *fuzz_folder(void)
{
    const char *folder = getenv("TMPDIR");
    if (folder != NULL && folder[0] != '\0') return folder;
    return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

static int make_file(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/belfry-fuzz-XXXXXX", fuzz_folder());
    int file = mkstemp(path);
    fuzz_expect(file >= 0 && unlink(path) == 0, "a separate file in $TMPDIR");
    return file;
}

const char *fuzz_file(int number, const uint8_t *data, size_t size)
{
    static struct {
        int file;
        char path[64];
    } files[FUZZ_FILES];
    if (files[number].path[0] == '\0') {
        files[number].file = make_file();
        snprintf(files[number].path, sizeof files[number].path, "/proc/self/fd/%d",
                 files[number].file);
    }
    bool written = ftruncate(files[number].file, 0) == 0 &&
                   (size == 0 || pwrite(files[number].file, data, size, 0) == (ssize_t)size);
    fuzz_expect(written, "room for the file");
    return files[number].path;
}

bool fuzz_is_good(bel_status *status)
{
    if (status == NULL) return true;
    if (getenv("FUZZ_ERRORS") != NULL) fprintf(stderr, "fuzz: %s\n", bel_status_message(status));
    fuzz_expect(strlen(bel_status_message(status)) > 0, "an error that says something");
    fuzz_expect(bel_status_code(status) != BEL_OK, "an error with a code");
    bel_status_destroy(status);
    return false;
}

uint64_t fuzz_take(fuzz_input *input, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes && input->left > 0; i++, input->left--)
        value |= (uint64_t)*input->at++ << (8 * i);
    return value;
}

const uint8_t *fuzz_take_bytes(fuzz_input *input, size_t wanted, size_t *out_count)
{
    const uint8_t *bytes = input->at;
    *out_count = wanted < input->left ? wanted : input->left;
    input->at += *out_count;
    input->left -= *out_count;
    return bytes;
}
