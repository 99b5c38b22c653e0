// Crash handler. It may neither format nor allocate, so the line is written in advance, in the
// log's format, with gaps for the numbers of the signal, the step and the block. Text lines omit
// absent numbers. The alternative stack is for code that has exhausted its stack.
#define _XOPEN_SOURCE 700 // sigaltstack
#include "base/crash.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"

enum { LONGEST = 1024, NUMBER_TEXT = 24 };

// Parts of the line before the signal's number, the step's and the block's, and after them.
static char parts[4][LONGEST];
static bool for_people; // no JSON
static _Atomic int64_t current_step = -1;
static _Thread_local int64_t current_block = -1;

void bel_crash_set_step(int64_t step)
{
    atomic_store_explicit(&current_step, step, memory_order_relaxed);
}

void bel_crash_set_block(int64_t block)
{
    current_block = block;
}

static void crash_put(char *line, size_t *length, const char *text)
{
    size_t size = strlen(text);
    memcpy(line + *length, text, size);
    *length += size;
}

static void put_number(char *line, size_t *length, int64_t number)
{
    char digits[NUMBER_TEXT];
    size_t at = sizeof digits;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    digits[--at] = '\0';
    do {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (number < 0) digits[--at] = '-';
    crash_put(line, length, digits + at);
}

// The handler is already removed (SA_RESETHAND): the signal repeats, and ends the process.
static void on_crash(int number)
{
    char line[4 * LONGEST + 3 * NUMBER_TEXT];
    size_t length = 0;
    crash_put(line, &length, parts[0]);
    put_number(line, &length, number);
    const int64_t places[] = {atomic_load_explicit(&current_step, memory_order_relaxed),
                              current_block};
    for (int i = 0; i < 2; i++) {
        if (places[i] < 0 && for_people) continue;
        crash_put(line, &length, parts[1 + i]);
        put_number(line, &length, places[i]);
    }
    crash_put(line, &length, parts[3]);
    ssize_t wrote = write(STDERR_FILENO, line, length);
    (void)wrote; // there is no other way to report
    raise(number);
}

static void crash_prepare(const char *message)
{
    bel_str text = {0};
    for_people = bel_log_get_format() != BEL_LOG_JSON;
    if (!for_people) {
        bel_json_write_string(&text, message);
        bel_snprintf(parts[0], LONGEST,
                     "{\"level\":\"error\",\"event\":\"crash\",\"code\":\"UNKNOWN\",\"signal\":");
        bel_snprintf(parts[1], LONGEST, ",\"step\":");
        bel_snprintf(parts[2], LONGEST, ",\"block\":");
        bel_snprintf(parts[3], LONGEST, ",\"message\":%.*s}\n", LONGEST - 16, text.text);
        bel_str_deinit(&text);
    } else {
        bel_snprintf(parts[0], LONGEST, "belfry: %.*s (signal ", LONGEST - 32, message);
        bel_snprintf(parts[1], LONGEST, ", step ");
        bel_snprintf(parts[2], LONGEST, ", block of the input ");
        bel_snprintf(parts[3], LONGEST, ")\n");
    }
}

void bel_crash_watch(const char *message, bool instead)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    static char stack[64 * 1024];
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND | SA_ONSTACK};
    if (parts[0][0] != '\0' && !instead) return;
    crash_prepare(message);
    sigemptyset(&action.sa_mask);
    if (instead) sigaltstack(&own, NULL);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction before;
        bool taken = sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_DFL;
        if (instead || !taken) sigaction(signals[i], &action, NULL);
    }
}
