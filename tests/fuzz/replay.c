// Runs a fuzz target without libFuzzer: over every file of its corpus, and over some hundred
// mutations of each, so that every build and compiler runs them.
//
// usage: fuzz_NAME CORPUS_FOLDER MUTATIONS | fuzz_NAME FILE
//
// The inputs depend only on the corpus: mutations come from a fixed seed, file by file in the order
// of their names. Each input has memory of its exact size, so that the address sanitizer sees a
// read after its end. If the process dies, the input is written to fuzz_NAME.crash in the working
// folder, which is printed; `fuzz_NAME fuzz_NAME.crash` repeats it.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "fuzz/fuzz.h"

enum { MOST_BYTES = 1 << 16 };

// --- The last words ------------------------------------------------------------------------------

static char crash_path[256], now_running[512];
static const uint8_t *now_data;
static size_t now_size;

// Runs in a signal handler, where only system calls are allowed.
static void keep_input(void)
{
    int file = open(crash_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    bool kept = file >= 0 && write(file, now_data, now_size) == (ssize_t)now_size;
    if (file >= 0) (void)close(file);
    (void)!write(STDERR_FILENO, now_running, strlen(now_running));
    if (kept) (void)!write(STDERR_FILENO, crash_path, strlen(crash_path));
    (void)!write(STDERR_FILENO, "\n", 1);
}

static void die(int signal_number)
{
    keep_input();
    (void)signal(signal_number, SIG_DFL);
    (void)raise(signal_number);
}

// Sanitizers end a process by SIGABRT if their options say abort_on_error=1, as in CTest.
static void watch_for_death(void)
{
    static const int deadly[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof deadly / sizeof deadly[0]; i++)
        (void)signal(deadly[i], die);
}

// --- Mutations -----------------------------------------------------------------------------------

typedef struct input {
    uint8_t bytes[MOST_BYTES];
    size_t size;
} input;

// splitmix64 (Steele, Lea, Flood 2014).
static uint64_t roll(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static size_t below(uint64_t *state, size_t most)
{
    return most == 0 ? 0 : (size_t)(roll(state) % most);
}

// Writes a number at the edge of a type or of a usual limit, in either byte order.
static void put_number(input *in, size_t at, uint64_t *state)
{
    static const uint64_t edges[] = {0,          1,          2,           0x7f,       0x80,
                                     0xff,       0x7fff,     0xffff,      0x7fffffff, 0x80000000,
                                     0xffffffff, UINT64_MAX, INT64_MAX,   1 << 20,    1 << 28,
                                     64,         4096,       0x100000000, 1000000007, 13};
    uint64_t value = edges[below(state, sizeof edges / sizeof edges[0])];
    size_t width = (size_t)1 << below(state, 4);
    bool big = roll(state) % 2 == 0;
    for (size_t i = 0; i < width && at + i < in->size; i++)
        in->bytes[at + i] = (uint8_t)(value >> (8 * (big ? width - 1 - i : i)));
}

static void remove_part(input *in, size_t at, size_t count)
{
    memmove(in->bytes + at, in->bytes + at + count, in->size - at - count);
    in->size -= count;
}

static void repeat_part(input *in, size_t at, size_t count)
{
    if (count > MOST_BYTES - in->size) return;
    memmove(in->bytes + at + count, in->bytes + at, in->size - at);
    in->size += count;
}

static void mutate_once(input *in, uint64_t *state)
{
    static const uint8_t marks[] = "0179-+.,:;\"'\\/{}[]()<>= \t\r\n\0#%&*|~nxe\x7f\x80\xc3\xff";
    size_t at = below(state, in->size), most = in->size - at;
    size_t count = 1 + below(state, most < 16 ? most : 16);
    if (count > most) count = most;
    if (in->size == 0) {
        in->bytes[in->size++] = (uint8_t)roll(state);
        return;
    }
    switch (below(state, 9)) {
    case 0: in->bytes[at] ^= (uint8_t)(1 << below(state, 8)); break;
    case 1: in->bytes[at] = (uint8_t)roll(state); break;
    case 2: in->bytes[at] = marks[below(state, sizeof marks)]; break;
    case 3:
    case 4: put_number(in, at, state); break;
    case 5: remove_part(in, at, count); break;
    case 6: repeat_part(in, at, count); break;
    case 7: in->size = at; break;
    default: memmove(in->bytes + at, in->bytes + below(state, in->size - count + 1), count); break;
    }
}

// --- Running -------------------------------------------------------------------------------------

static void run(const char *path, int mutation, const uint8_t *data, size_t size)
{
    uint8_t *exact = malloc(size > 0 ? size : 1);
    fuzz_expect(exact != NULL, "memory for an input");
    if (size > 0) memcpy(exact, data, size);
    snprintf(now_running, sizeof now_running, "fuzz: died of %.400s, mutation %d: ", path,
             mutation);
    now_data = exact;
    now_size = size;
    (void)LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

// Reads the raw content: a compressed file is not unpacked, as bel_file_read would do.
static void load(const char *path, input *in)
{
    FILE *file = fopen(path, "rbe");
    fuzz_expect(file != NULL, "a file that can be read");
    in->size = fread(in->bytes, 1, sizeof in->bytes, file);
    fuzz_expect(fgetc(file) == EOF, "a corpus of files of at most 64 KiB");
    (void)fclose(file);
}

static int run_folder(const char *folder, int mutations)
{
    static input original, mutated;
    char **names;
    size_t count;
    if (!fuzz_is_good(bel_dir_list(folder, &names, &count)) || count == 0) {
        fprintf(stderr, "fuzz: no corpus in %s\n", folder);
        return 1;
    }
    uint64_t state = 1;
    for (size_t i = 0; i < count; i++) {
        char *path = bel_path_join(folder, names[i]);
        load(path, &original);
        run(path, 0, original.bytes, original.size);
        for (int m = 1; m <= mutations; m++) {
            mutated = original;
            for (size_t times = 1 + below(&state, 3); times > 0; times--)
                mutate_once(&mutated, &state);
            run(path, m, mutated.bytes, mutated.size);
        }
        bel_free(path);
    }
    printf("fuzz: %zu inputs, %d mutations of each\n", count, mutations);
    bel_dir_names_free(names, count);
    return 0;
}

int main(int argument_count, char **arguments)
{
    const char *slash = strrchr(arguments[0], '/');
    snprintf(crash_path, sizeof crash_path, "%.200s.crash",
             slash != NULL ? slash + 1 : arguments[0]);
    LLVMFuzzerInitialize(&argument_count, &arguments);
    watch_for_death();
    if (argument_count == 3) return run_folder(arguments[1], (int)strtol(arguments[2], NULL, 10));
    if (argument_count != 2) {
        fprintf(stderr, "usage: %s CORPUS_FOLDER MUTATIONS | FILE\n", arguments[0]);
        return 2;
    }
    static input one;
    load(arguments[1], &one);
    run(arguments[1], 0, one.bytes, one.size);
    return 0;
}
