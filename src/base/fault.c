// Parser of BELFRY_FAULT, run once, where faults are enabled. An unknown word is an error, or a
// test that misspells one would pass. One table here has the names of points; docs/operations.md
// explains them.
#include "base/fault.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/number.h"

static pthread_once_t parse_once = PTHREAD_ONCE_INIT;
static bool enabled[BEL_FAULT_COUNT];
static atomic_long writes_left; // 0: never fails

// Point with its name, its process ("" for any), and how often it is passed before it counts.
typedef struct point {
    char name[64], process[32];
    atomic_long left; // 0: never
} point;
enum { SLOW_POINTS = 4 };
static point crash_point, hang_point, flip_point, slow_points[SLOW_POINTS];
static int slow_count;
static char process_name[32];
static char unknown[64]; // the first word or point that does not exist
static bool spared;

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
    {"corrupt", BEL_FAULT_LANE_CORRUPT},
    {"short_lease", BEL_FAULT_SHORT_LEASE},
    {"small_objects", BEL_FAULT_SMALL_OBJECTS},
};

// Names of points, passed to bel_fault_point.
static const char *const point_names[] = {
    "checkpoint_after_rename",
    "checkpoint_before_rename",
    "checkpoint_shard_written",
    "ddl_met",
    "file_syncs",
    "file_writes",
    "input_reads",
    "master_counts_best",
    "master_finishes",
    "master_gather",
    "master_new_generation",
    "master_saves",
    "master_states_best",
    "member_begins",
    "relay_passes_on",
    "relay_reported",
    "relay_sent_stats",
    "shard_decides",
    "shard_kept_piece",
    "shard_loads",
    "shard_passed",
    "shard_passes",
    "shard_sent_stats",
    "shard_sent_sum",
    "shard_snapshot",
    "shard_takes_state",
    "stored_before_last",
    "tower_compute",
    "tower_step",
    "worker_reported",
    "worker_rows_reported",
    "worker_sent_stats",
    "worker_sends_stats",
    "worker_sent_part",
    "worker_waits",
    "worker_exchanges",
    "evaluates",
    "serves",
};

static void copy_part(char *to, size_t room, const char *from, size_t length)
{
    size_t size = length < room - 1 ? length : room - 1;
    memcpy(to, from, size);
    to[size] = '\0';
}

// NAME[#COUNT][@PROCESS]
static void set_point(point *p, const char *text, size_t length)
{
    char word[128];
    copy_part(word, sizeof word, text, length);
    size_t name = strcspn(word, "#@"), process = strcspn(word, "@");
    copy_part(p->name, sizeof p->name, word, name);
    bool has_process = word[process] == '@';
    const char *its_process = has_process ? word + process + 1 : "";
    copy_part(p->process, sizeof p->process, its_process, strlen(its_process));
    atomic_store(&p->left, word[name] == '#' ? strtol(word + name + 1, NULL, 10) : 1);
}

// Returns false if the word is no fault.
static bool parse_word(const char *word, size_t length)
{
    if (length > 6 && strncmp(word, "write:", 6) == 0) {
        atomic_store(&writes_left, strtol(word + 6, NULL, 10));
        return true;
    }
    if (length > 6 && strncmp(word, "crash:", 6) == 0) {
        set_point(&crash_point, word + 6, length - 6);
        return true;
    }
    if (length > 5 && strncmp(word, "hang:", 5) == 0) {
        set_point(&hang_point, word + 5, length - 5);
        return true;
    }
    if (strncmp(word, "flip", 4) == 0 && strcspn(word, "#@,+") == 4) {
        set_point(&flip_point, word, length);
        return true;
    }
    if (length > 5 && strncmp(word, "slow:", 5) == 0) {
        if (slow_count == SLOW_POINTS) return false;
        set_point(&slow_points[slow_count++], word + 5, length - 5);
        return true;
    }
    if (length > 5 && strncmp(word, "lane:", 5) == 0) {
        word += 5;
        length -= 5;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strlen(words[i].word) == length && strncmp(words[i].word, word, length) == 0) {
            enabled[words[i].fault] = true;
            return true;
        }
    }
    return length == 0;
}

static bool is_known_point(const point *p)
{
    if (atomic_load(&p->left) == 0 || strcmp(p->name, "*") == 0) return true;
    for (size_t i = 0; i < sizeof point_names / sizeof point_names[0]; i++)
        if (strcmp(p->name, point_names[i]) == 0) return true;
    return false;
}

static void note_unknown(const char *text, size_t length)
{
    if (unknown[0] == '\0') copy_part(unknown, sizeof unknown, text, length);
}

static void note_unknown_points(void)
{
    const point *const points[] = {&crash_point, &hang_point};
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++)
        if (!is_known_point(points[i])) note_unknown(points[i]->name, strlen(points[i]->name));
    for (int i = 0; i < slow_count; i++) {
        const char *name = slow_points[i].name;
        if (!is_known_point(&slow_points[i])) note_unknown(name, strlen(name));
    }
}

// Parses words between commas or "+", and keeps the first unknown one for bel_fault_check.
static void fault_parse(const char *settings)
{
    unknown[0] = '\0';
    memset(enabled, 0, sizeof enabled);
    atomic_store(&writes_left, 0);
    atomic_store(&crash_point.left, 0);
    atomic_store(&hang_point.left, 0);
    atomic_store(&flip_point.left, 0);
    slow_count = 0;
    while (settings != NULL && *settings != '\0') {
        size_t length = strcspn(settings, ",+");
        if (!parse_word(settings, length)) note_unknown(settings, length);
        settings += length + (settings[length] != '\0');
    }
    note_unknown_points();
}

static bool may_count(void)
{
    const char *text = getenv("BELFRY_ENABLE_FAULTS");
    return text != NULL && strcmp(text, "1") == 0;
}

static void parse_environment(void)
{
    fault_parse(may_count() ? getenv("BELFRY_FAULT") : NULL);
}

void bel_fault_enable(void)
{
    (void)setenv("BELFRY_ENABLE_FAULTS", "1", 1); // without memory faults stay off
    pthread_once(&parse_once, parse_environment);
    parse_environment(); // the environment may have been parsed earlier
}

bel_status *bel_fault_check(void)
{
    const char *settings = getenv("BELFRY_FAULT");
    if (settings == NULL || settings[0] == '\0') return NULL;
    if (!may_count()) {
        return BEL_ERR(
            BEL_FAILED_PRECONDITION,
            "BELFRY_FAULT=%s is in the environment, but faults on purpose are off; hint: unset "
            "it, or enable them with --enable_faults (or BELFRY_ENABLE_FAULTS=1)",
            settings);
    }
    pthread_once(&parse_once, parse_environment);
    if (unknown[0] == '\0') return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT,
                   "BELFRY_FAULT=%s: \"%s\" is no fault and no point; hint: docs/operations.md has "
                   "them all",
                   settings, unknown);
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

static bool is_at(point *p, const char *name)
{
    if (atomic_load(&p->left) == 0) return false;
    if (strcmp(p->name, "*") != 0 && strcmp(p->name, name) != 0) return false;
    return p->process[0] == '\0' || strcmp(p->process, process_name) == 0;
}

// Returns true if the fault at `name` applies to the calling thread now.
static bool is_meant(point *p, const char *name)
{
    return !spared && is_at(p, name) && atomic_fetch_sub(&p->left, 1) == 1;
}

static void fault_nap(long milliseconds)
{
    (void)nanosleep(
        &(struct timespec){.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000},
        NULL);
}

// Waits, but ends once the file of BELFRY_FAULT_WHILE is gone.
static void fault_slow(long milliseconds)
{
    const char *file = getenv("BELFRY_FAULT_WHILE");
    if (file == NULL || file[0] == '\0') {
        fault_nap(milliseconds);
        return;
    }
    for (; milliseconds > 0 && access(file, F_OK) == 0; milliseconds -= 10)
        fault_nap(milliseconds < 10 ? milliseconds : 10);
}

void bel_fault_point(const char *name)
{
    pthread_once(&parse_once, parse_environment);
    if (is_meant(&crash_point, name)) {
        char line[96];
        bel_snprintf(line, sizeof line, "killed on purpose at %s\n", name);
        fputs(line, stderr);
        fflush(stderr);
        raise(SIGKILL);
    }
    bool stays = is_meant(&hang_point, name);
    while (stays) // NOLINT(bugprone-infinite-loop): hang:NAME requests that
        fault_nap(1000);
    for (int i = slow_count - 1; i >= 0; i--) {
        if (!is_at(&slow_points[i], name)) continue;
        fault_slow(atomic_load(&slow_points[i].left));
        break;
    }
}

bool bel_fault_flips(void)
{
    pthread_once(&parse_once, parse_environment);
    return is_meant(&flip_point, "flip");
}

void bel_fault_name_process(const char *name, bool is_spared)
{
    copy_part(process_name, sizeof process_name, name, strlen(name));
    spared = is_spared;
}

void bel_fault_set(const char *settings)
{
    pthread_once(&parse_once, parse_environment);
    fault_parse(settings);
}
