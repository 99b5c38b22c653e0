// Rank 0 decides by its clock and broadcasts the number of the way, so all ranks keep the same one,
// whatever their clocks say. Only rank 0 reads and writes the file. Its name is derived from
// everything that a choice depends on, so other hosts, another processor or another version have
// another file.
#include "ddl/explore.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/isa.h"
#include "base/json.h"
#include "base/linux_processor.h"
#include "base/log.h"
#include "base/number.h"
#include "base/str.h"
#include "belfry/estimator.h"
#include "ddl/rounds.h"

enum {
    CLASSES = 11, // sizes up to 4^k bytes from k = LEAST: 64 B to 64 MiB, then all larger ones
    LEAST = 3,
    MOST_ONCE_BYTES = 256 << 10,
    MOST_WAYS = 64,
    REPEATS = 5,
    HOST_TEXT = 192,
};

struct bel_ddl_choices {
    bool known[CLASSES];
    bel_ddl_mode ways[CLASSES];
    char *path, *key; // at rank 0; path NULL: not stored
};

static int class_of(size_t bytes)
{
    int k = 0;
    while (k < CLASSES - 1 && bytes > (size_t)1 << 2 * (k + LEAST))
        k++;
    return k;
}

static size_t class_bytes(int k)
{
    return (size_t)1 << 2 * (k + LEAST);
}

// --- Ways ----------------------------------------------------------------------------------------

static void add_way(const bel_ddl *ddl, char letter, int x, int y, int z, bel_ddl_mode *ways,
                    int *count)
{
    bel_ddl_mode way = {.letter = letter, .dims = {x, y, z}};
    bool fixed = ddl->settings.options.order == BEL_DDL_FIXED;
    if (*count == MOST_WAYS || (fixed && !bel_ddl_mode_keeps_tree(&way))) return;
    ways[(*count)++] = way;
}

// Adds groups of x ranks: near each other, and for each way near and far.
static void add_groups(const bel_ddl *ddl, int x, size_t bytes, bel_ddl_mode *ways, int *count)
{
    int groups = ddl->place.size / x;
    bool fast = ddl->settings.options.order == BEL_DDL_FAST;
    for (int y = groups; y > 1 || y == groups; y--) {
        if (groups % y != 0) continue;
        add_way(ddl, 's', x, y, groups / y, ways, count);
        if (fast && y > 2) add_way(ddl, 'r', x, y, groups / y, ways, count);
    }
    if (bytes <= MOST_ONCE_BYTES) add_way(ddl, 'o', x, groups, 1, ways, count);
}

// Lists the same ways on all ranks; the first one is always allowed.
static int list_ways(const bel_ddl *ddl, size_t bytes, bel_ddl_mode ways[MOST_WAYS])
{
    int count = 0;
    add_groups(ddl, ddl->group.size, bytes, ways, &count);
    if (ddl->net != NULL && ddl->group.size > 1) add_groups(ddl, 1, bytes, ways, &count);
    if (ddl->mpi != NULL) {
        bel_ddl_mode mpi = ddl->mode;
        mpi.letter = 'm';
        if (count < MOST_WAYS) ways[count++] = mpi;
    }
    return count;
}

// --- On disk -------------------------------------------------------------------------------------

static bel_ddl_call inner_call(bel_ddl *ddl, const bel_tensor *tensor, int root)
{
    return (bel_ddl_call){.ddl = ddl,
                          .name = "explore",
                          .tensors = tensor,
                          .count = 1,
                          .divisor = 1,
                          .root = root,
                          .mode = ddl->mode};
}

static bel_status *explore_spread(bel_ddl *ddl, bel_dtype dtype, void *data, int64_t n, int root)
{
    bel_tensor tensor = {dtype, BEL_SHAPE(n), data};
    bel_ddl_call call = inner_call(ddl, &tensor, root);
    BEL_TRY(bel_ddl_call_begin(&call));
    return bel_ddl_rounds_spread(&call);
}

static void describe_host(char out[HOST_TEXT])
{
    char host[HOST_TEXT], model[HOST_TEXT];
    memset(out, 0, HOST_TEXT);
    if (gethostname(host, sizeof host) != 0) host[0] = '\0';
    host[sizeof host - 1] = '\0';
    bel_linux_processor_name(model, sizeof model);
    bel_snprintf(out, HOST_TEXT, "%.64s:%.64s, %s, %d cores", host, model,
                 bel_isa_title(bel_isa_get()), (int)sysconf(_SC_NPROCESSORS_ONLN));
}

// Writes everything that a choice depends on, a line for each rank.
static bel_status *make_key(bel_ddl *ddl, bel_str *out)
{
    char settings[BEL_DDL_SETTINGS_TEXT], host[HOST_TEXT];
    bel_str_printf(out, "Belfry %s, %s, groups of %d%s\n", bel_version(),
                   bel_ddl_settings_text(&ddl->settings, settings), ddl->group.size,
                   ddl->mpi != NULL ? ", Open MPI" : "");
    for (int r = 0; r < ddl->place.size; r++) {
        if (r == ddl->place.rank) describe_host(host);
        BEL_TRY(explore_spread(ddl, BEL_DTYPE_U8, host, HOST_TEXT, r));
        host[HOST_TEXT - 1] = '\0';
        bel_str_printf(out, "%s\n", host);
    }
    return NULL;
}

static bool is_same(const bel_ddl_mode *a, const bel_ddl_mode *b)
{
    bool mpi = a->letter == 'm'; // it has no dimensions
    return a->letter == b->letter && (mpi || memcmp(a->dims, b->dims, sizeof a->dims) == 0);
}

// A stored choice that is no longer a way is measured again.
static void take_choice(const bel_ddl *ddl, bel_ddl_choices *choices, int k,
                        const bel_ddl_mode *way)
{
    bel_ddl_mode ways[MOST_WAYS];
    int count = list_ways(ddl, class_bytes(k), ways);
    choices->known[k] = false;
    for (int i = 0; i < count; i++) {
        if (!is_same(&ways[i], way)) continue;
        choices->known[k] = true;
        choices->ways[k] = ways[i];
    }
}

static void read_choice(const bel_ddl *ddl, bel_ddl_choices *choices, int k, const char *text)
{
    bel_ddl_mode way;
    bel_status *status = bel_ddl_mode_parse(text, &way);
    if (status == NULL) take_choice(ddl, choices, k, &way);
    bel_status_ignore(status); // no choice is stored
}

static bel_status *read_choices(const bel_ddl *ddl, bel_ddl_choices *choices)
{
    char *text, name[24];
    size_t length;
    bel_json *json;
    const char *key, *way;
    BEL_TRY(bel_file_read(choices->path, &text, &length));
    bel_status *status = bel_json_parse(text, length, choices->path, &json);
    bel_free(text);
    if (status != NULL) return status;
    const bel_json_value *root = bel_json_root(json), *all = bel_json_member(root, "ways");
    bool same = bel_json_string(root, "key", &key) && strcmp(key, choices->key) == 0;
    for (int k = 0; k < CLASSES && same && all != NULL; k++) {
        bel_snprintf(name, sizeof name, "%zu", class_bytes(k));
        if (bel_json_string(all, name, &way)) read_choice(ddl, choices, k, way);
    }
    bel_json_destroy(json);
    return NULL;
}

static bel_status *write_choices(const bel_ddl_choices *choices)
{
    bel_str text = {0};
    char way[BEL_DDL_MODE_TEXT];
    const char *separator = "";
    bel_str_puts(&text, "{\"key\": ");
    bel_json_write_string(&text, choices->key);
    bel_str_puts(&text, ", \"ways\": {");
    for (int k = 0; k < CLASSES; k++) {
        if (!choices->known[k]) continue;
        bel_str_printf(&text, "%s\"%zu\": \"%s\"", separator, class_bytes(k),
                       bel_ddl_mode_text(&choices->ways[k], way));
        separator = ", ";
    }
    bel_str_puts(&text, "}}\n");
    bel_status *status = bel_file_replace(choices->path, text.text, text.length);
    bel_str_deinit(&text);
    return status;
}

// Broadcasts rank 0's choices.
static bel_status *share_choices(bel_ddl *ddl, bel_ddl_choices *choices)
{
    int32_t numbers[CLASSES * (2 + BEL_DDL_DIMS)], *at = numbers;
    for (int k = 0; k < CLASSES; k++) {
        *at++ = choices->known[k];
        *at++ = (unsigned char)choices->ways[k].letter;
        for (int d = 0; d < BEL_DDL_DIMS; d++)
            *at++ = choices->ways[k].dims[d];
    }
    BEL_TRY(explore_spread(ddl, BEL_DTYPE_I32, numbers, CLASSES * (2 + BEL_DDL_DIMS), 0));
    at = numbers;
    for (int k = 0; k < CLASSES; k++) {
        bool known = *at++ != 0;
        bel_ddl_mode way = {.letter = (char)*at++};
        for (int d = 0; d < BEL_DDL_DIMS; d++)
            way.dims[d] = *at++;
        if (known) take_choice(ddl, choices, k, &way);
    }
    return NULL;
}

static void find_file(const bel_ddl *ddl, bel_ddl_choices *choices)
{
    char *folder = ddl->place.rank == 0 ? bel_cache_folder() : NULL;
    if (folder == NULL) return;
    bel_status *status = bel_dir_create(folder);
    choices->path = bel_strf("%s/ddl-%016llx.json", folder,
                             (unsigned long long)bel_hash64(choices->key, strlen(choices->key)));
    if (status == NULL && bel_file_exists(choices->path)) status = read_choices(ddl, choices);
    if (status != NULL)
        bel_log_write(BEL_LOG_WARN, "mode p: %s; all is measured", bel_status_message(status));
    bel_status_ignore(status); // logged
    bel_free(folder);
}

bel_status *bel_ddl_choices_open(bel_ddl *ddl, bel_ddl_choices **out)
{
    bel_str key = {0};
    bel_ddl_choices *choices = bel_xcalloc(1, sizeof *choices);
    bel_status *status = make_key(ddl, &key);
    choices->key = key.text;
    if (status == NULL) find_file(ddl, choices);
    if (status == NULL) status = share_choices(ddl, choices);
    if (status != NULL) {
        bel_ddl_choices_close(choices);
        return status;
    }
    *out = choices;
    return NULL;
}

void bel_ddl_choices_close(bel_ddl_choices *choices)
{
    if (choices == NULL) return;
    bel_free(choices->path);
    bel_free(choices->key);
    bel_free(choices);
}

// --- Measuring -----------------------------------------------------------------------------------

static bel_status *explore_run(bel_ddl *ddl, const bel_tensor *tensor, const bel_ddl_mode *way)
{
    bel_ddl_call call = inner_call(ddl, tensor, 0);
    call.mode = *way;
    BEL_TRY(bel_ddl_call_begin(&call));
    if (way->letter != 'm') return bel_ddl_rounds_sum(&call);
    return bel_ddl_mpi_sum(ddl->mpi, tensor, 1);
}

// Measures the fastest of several runs in nanoseconds; all ranks begin each run together.
static bel_status *explore_measure(bel_ddl *ddl, const bel_tensor *tensor, const bel_ddl_mode *way,
                                   int64_t *out_ns)
{
    *out_ns = INT64_MAX;
    for (int i = 0; i < REPEATS; i++) {
        bel_ddl_call all = inner_call(ddl, NULL, 0);
        all.count = 0;
        BEL_TRY(bel_ddl_call_begin(&all));
        BEL_TRY(bel_ddl_rounds_meet(&all));
        int64_t begun = bel_clock_ns();
        BEL_TRY(explore_run(ddl, tensor, way));
        int64_t ns = bel_clock_ns() - begun;
        if (i > 0 && ns < *out_ns) *out_ns = ns; // the first run touches memory
    }
    return NULL;
}

static bel_status *measure_all(bel_ddl *ddl, int k, bel_ddl_mode *out)
{
    bel_ddl_mode ways[MOST_WAYS];
    size_t bytes = class_bytes(k);
    int count = list_ways(ddl, bytes, ways);
    int64_t best = INT64_MAX;
    int32_t chosen = 0;
    void *data;
    BEL_TRY(bel_pages_create(bytes, true, "mode p", &data));
    bel_tensor tensor = {BEL_DTYPE_F32, BEL_SHAPE((int64_t)(bytes / sizeof(float))), data};
    bel_status *status = NULL;
    for (int i = 0; i < count && status == NULL && count > 1; i++) {
        int64_t ns;
        char text[BEL_DDL_MODE_TEXT];
        status = explore_measure(ddl, &tensor, &ways[i], &ns);
        if (status == NULL)
            bel_log_write(BEL_LOG_DEBUG, "mode p: %zu bytes: %s takes %.1f us", bytes,
                          bel_ddl_mode_text(&ways[i], text), (double)ns * 1e-3);
        if (status == NULL && ns < best) {
            best = ns;
            chosen = i;
        }
    }
    bel_pages_destroy(data, bytes);
    if (status == NULL) status = explore_spread(ddl, BEL_DTYPE_I32, &chosen, 1, 0);
    if (status == NULL) *out = ways[chosen >= 0 && chosen < count ? chosen : 0];
    return status;
}

// Compares the ranks' calls before anything is measured for them.
static bel_status *meet_for(const bel_ddl_call *call)
{
    bel_ddl_call meeting = *call;
    BEL_TRY(bel_ddl_call_begin(&meeting));
    return bel_ddl_rounds_meet(&meeting);
}

bel_status *bel_ddl_choose(const bel_ddl_call *call, bel_ddl_mode *out)
{
    bel_ddl_choices *choices = call->ddl->choices;
    int k = class_of(bel_ddl_call_bytes(call));
    if (!choices->known[k]) {
        BEL_TRY(meet_for(call));
        BEL_TRY(measure_all(call->ddl, k, &choices->ways[k]));
        choices->known[k] = true;
        bel_status *kept = choices->path != NULL ? write_choices(choices) : NULL;
        if (kept != NULL)
            bel_log_write(BEL_LOG_WARN, "mode p: not kept: %s", bel_status_message(kept));
        bel_status_ignore(kept); // logged
    }
    *out = choices->ways[k];
    return NULL;
}
