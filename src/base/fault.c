// BEL_FAULT, parsed once.
#include "base/fault.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_once_t parse_once = PTHREAD_ONCE_INIT;
static bool enabled[BEL_FAULT_COUNT];
static atomic_long writes_left; // 0: never fails
static char crash_point[64], hang_point[64];

static const struct {
    const char *word;
    bel_fault fault;
} words[] = {
    {"sum_sequential", BEL_FAULT_SUM_SEQUENTIAL},
    {"divide", BEL_FAULT_DIVIDE},
    {"threads2", BEL_FAULT_THREADS2},
    {"chunk_order", BEL_FAULT_CHUNK_ORDER},
    {"delay", BEL_FAULT_LANE_DELAY},
    {"repeat", BEL_FAULT_LANE_REPEAT},
    {"reorder", BEL_FAULT_LANE_REORDER},
    {"break", BEL_FAULT_LANE_BREAK},
};

static void set_point(char point[64], const char *name, size_t length)
{
    size_t size = length < 63 ? length : 63;
    memcpy(point, name, size);
    point[size] = '\0';
}

static void parse_word(const char *word, size_t length)
{
    if (length > 6 && strncmp(word, "write:", 6) == 0) {
        atomic_store(&writes_left, strtol(word + 6, NULL, 10));
        return;
    }
    if (length > 6 && strncmp(word, "crash:", 6) == 0) {
        set_point(crash_point, word + 6, length - 6);
        return;
    }
    if (length > 5 && strncmp(word, "hang:", 5) == 0) {
        set_point(hang_point, word + 5, length - 5);
        return;
    }
    if (length > 5 && strncmp(word, "lane:", 5) == 0) {
        word += 5;
        length -= 5;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strlen(words[i].word) == length && strncmp(words[i].word, word, length) == 0) {
            enabled[words[i].fault] = true;
        }
    }
}

static void parse(const char *settings)
{
    memset(enabled, 0, sizeof enabled);
    atomic_store(&writes_left, 0);
    crash_point[0] = hang_point[0] = '\0';
    while (settings != NULL && *settings != '\0') {
        size_t length = strcspn(settings, ",+");
        parse_word(settings, length);
        settings += length + (settings[length] != '\0');
    }
}

static void parse_environment(void)
{
    parse(getenv("BEL_FAULT"));
}

bool bel_fault_is(bel_fault fault)
{
    pthread_once(&parse_once, parse_environment);
    return enabled[fault];
}

bool bel_fault_write_fails(void)
{
    pthread_once(&parse_once, parse_environment);
    if (atomic_load(&writes_left) == 0) return false;
    return atomic_fetch_sub(&writes_left, 1) == 1;
}

void bel_fault_point(const char *name)
{
    pthread_once(&parse_once, parse_environment);
    if (crash_point[0] != '\0' && strcmp(crash_point, name) == 0) raise(SIGKILL);
    while (hang_point[0] != '\0' && strcmp(hang_point, name) == 0)
        (void)nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
}

void bel_fault_set(const char *settings)
{
    pthread_once(&parse_once, parse_environment);
    parse(settings);
}
