// What every fuzz target includes. A target is one file of this folder: a function that takes bytes
// as a stranger might send them, and gives them to one reader of Belfry's. Whatever the bytes are,
// the reader ends with an error or with something that holds together; memory, time and undefined
// behaviour are watched by who runs the target: libFuzzer (tools/fuzz), or replay.c in CTest.
//
// A target keeps nothing from one input to the next, so that an input alone shows what is wrong.
#ifndef BELFRY_TESTS_FUZZ_FUZZ_H
#define BELFRY_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "belfry/status.h"

// The target. Returns 0, as libFuzzer wants it.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Before the first input: the log is for errors alone. libFuzzer and replay.c call it.
int LLVMFuzzerInitialize(int *argument_count, char ***arguments);

// Where files of a run go: $TMPDIR, else memory.
const char *fuzz_folder(void);

enum { FUZZ_FILES = 2 };

// A file that holds the bytes and has no name, for readers that take a path: the path, good until
// the next file of this number, 0 to FUZZ_FILES - 1.
const char *fuzz_file(int number, const uint8_t *data, size_t size);

// The end of a reading: NULL, or an error, which must say something. Frees it. True: it went well.
// With FUZZ_ERRORS in the environment errors are printed: how far an input gets.
bool fuzz_is_good(bel_status *status);

// Ends the process, and with it the run, unless `holds`.
void fuzz_expect(bool holds, const char *what);

// Taking an input apart: behind its end are zeros.
typedef struct fuzz_input {
    const uint8_t *at;
    size_t left;
} fuzz_input;

uint64_t fuzz_take(fuzz_input *input, size_t bytes); // 1 to 8, little-endian
const uint8_t *fuzz_take_bytes(fuzz_input *input, size_t wanted, size_t *out_count); // or fewer

#endif
