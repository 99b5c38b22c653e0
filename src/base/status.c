// Status objects: a code, a message to which context is prepended, and a trace of places. The
// out-of-memory object is static, so that making an error can never fail; it is never freed and
// accepts no context. Without memory for a context, the error stays without it. Memory comes from
// malloc itself, as base/alloc.h would end the process.
#include "belfry/status.h"
#include "base/number.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct bel_status {
    bel_code code;
    char *message;
    char *trace;
};

static char oom_message[] = "out of memory";
static char oom_trace[] = "";
static bel_status oom = {BEL_RESOURCE_EXHAUSTED, oom_message, oom_trace};

static const char *const code_names[] = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

// A message may contain external values of any length. Longer words are shown by their beginning
// and end.
enum { LONGEST_WORD = 256, SHOWN_FIRST = 160, SHOWN_LAST = 64 };

// Returns true for a continuation byte of UTF-8.
static bool goes_on(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

// Replaces the middle of a word of `length` bytes; returns the bytes after it.
static char *cut_word(char *word, size_t length)
{
    static const char dots[] = "…";
    char *first = word + SHOWN_FIRST, *last = word + length - SHOWN_LAST;
    while (first > word && goes_on(*first))
        first--;
    while (goes_on(*last))
        last++;
    memcpy(first, dots, sizeof dots - 1);
    first += sizeof dots - 1;
    memmove(first, last, strlen(last) + 1);
    return first + (word + length - last);
}

static void cut_long_words(char *text)
{
    while (*text != '\0') {
        size_t length = strcspn(text, " \t\n");
        text = length > LONGEST_WORD ? cut_word(text, length) : text + length;
        text += strspn(text, " \t\n");
    }
}

BEL_PRINTF(1, 0)
static char *format_message(const char *format, va_list args, const char *tail)
{
    va_list copy;
    va_copy(copy, args);
    int length = bel_vsnprintf(NULL, 0, format, copy);
    va_end(copy);
    if (length < 0) return NULL;
    size_t tail_length = tail == NULL ? 0 : strlen(tail) + 2;
    char *text = malloc((size_t)length + tail_length + 1);
    if (text == NULL) return NULL;
    bel_vsnprintf(text, (size_t)length + 1, format, args);
    cut_long_words(text);
    if (tail != NULL) {
        char *end = text + strlen(text);
        memcpy(end, ": ", 2);
        memcpy(end + 2, tail, tail_length - 1);
    }
    return text;
}

static char *extend_trace(const char *trace, const char *file, int line)
{
    const char *separator = trace == NULL ? "" : " < ";
    if (trace == NULL) trace = "";
    int length = bel_snprintf(NULL, 0, "%s%s%s:%d", trace, separator, file, line);
    char *text = malloc((size_t)length + 1);
    if (text != NULL)
        bel_snprintf(text, (size_t)length + 1, "%s%s%s:%d", trace, separator, file, line);
    return text;
}

bel_status *bel_status_create(bel_code code, const char *file, int line, const char *format, ...)
{
    bel_status *status = malloc(sizeof *status);
    if (status == NULL) return &oom;
    va_list args;
    va_start(args, format);
    status->code = code;
    status->message = format_message(format, args, NULL);
    status->trace = extend_trace(NULL, file, line);
    va_end(args);
    if (status->message == NULL || status->trace == NULL) {
        bel_status_destroy(status);
        return &oom;
    }
    return status;
}

bel_status *bel_status_wrap(bel_status *status, const char *file, int line, const char *format, ...)
{
    if (status == NULL || status == &oom) return status;
    va_list args;
    va_start(args, format);
    char *message = format_message(format, args, status->message);
    char *trace = extend_trace(status->trace, file, line);
    va_end(args);
    if (message != NULL) {
        free(status->message);
        status->message = message;
    }
    if (trace != NULL) {
        free(status->trace);
        status->trace = trace;
    }
    return status;
}

bel_code bel_status_code(const bel_status *status)
{
    return status == NULL ? BEL_OK : status->code;
}

const char *bel_code_name(bel_code code)
{
    size_t count = sizeof code_names / sizeof code_names[0];
    return (size_t)code < count ? code_names[code] : "UNKNOWN";
}

const char *bel_status_message(const bel_status *status)
{
    return status == NULL ? "ok" : status->message;
}

const char *bel_status_trace(const bel_status *status)
{
    return status == NULL ? "" : status->trace;
}

int bel_status_exit_code(const bel_status *status)
{
    switch (bel_status_code(status)) {
    case BEL_OK: return 0;
    case BEL_INVALID_ARGUMENT:
    case BEL_FAILED_PRECONDITION:
    case BEL_UNIMPLEMENTED: return 2;
    case BEL_NOT_FOUND:
    case BEL_DATA_LOSS: return 3;
    default: return 1;
    }
}

void bel_status_destroy(bel_status *status)
{
    if (status == NULL || status == &oom) return;
    free(status->message);
    free(status->trace);
    free(status);
}

void bel_status_ignore(bel_status *status)
{
    bel_status_destroy(status);
}
