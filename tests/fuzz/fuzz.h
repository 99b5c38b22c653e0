// Common header of the fuzz targets. A target is one file of this folder: a function that takes
// untrusted bytes and passes them to one reader of Belfry's. The reader ends with an error or with
// a consistent result, whatever the bytes are. The program that runs the target watches memory,
// time and undefined behavior: libFuzzer (tools/fuzz), or replay.c in CTest.
//
// A target keeps no state between inputs, so one input is enough to reproduce an error.
#ifndef BELFRY_TESTS_FUZZ_FUZZ_H
#define BELFRY_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

// The target. Returns 0, as libFuzzer requires.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Runs before the first input; sets the log to errors only. Called by libFuzzer and replay.c.
int LLVMFuzzerInitialize(int *argument_count, char ***arguments);

// Folder for files of a run: $TMPDIR, else in memory.
const char *fuzz_folder(void);

enum { FUZZ_FILES = 2 };

// Writes the bytes to an unnamed file, for readers that take a path, and returns its path. It is
// valid until the next file of this number, 0 to FUZZ_FILES - 1.
const char *fuzz_file(int number, const uint8_t *data, size_t size);

// Frees the status of a read. Returns true without an error. An error must have a message. With
// FUZZ_ERRORS in the environment errors are printed, to show how far an input gets.
bool fuzz_is_good(bel_status *status);

// Ends the process, and with it the run, unless `holds`.
void fuzz_expect(bool holds, const char *what);

// Cursor over an input. Bytes after its end are zeros.
typedef struct fuzz_input {
    const uint8_t *at;
    size_t left;
} fuzz_input;

uint64_t fuzz_take(fuzz_input *input, size_t bytes); // 1 to 8, little-endian
const uint8_t *fuzz_take_bytes(fuzz_input *input, size_t wanted, size_t *out_count); // or fewer

#endif
