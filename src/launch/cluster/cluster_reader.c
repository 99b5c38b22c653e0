// Values and mappings of cluster.yaml. Every error has the position, the expected value and the
// actual one. All names of a mapping are checked before the first value is read, so an unknown key
// is reported before any mistake in a value. Numbers go through base/number.h, which ignores the
// locale. Integers may be quoted, as AI Platform writes them.
#include "launch/cluster/cluster_reader.h"

#include <string.h>

#include "base/alloc.h"
#include "base/number.h"
#include "base/str.h"

// --- Errors --------------------------------------------------------------------------------------

bel_status *bel_cluster_expected(const bel_yaml *yaml, const bel_yaml_node *node, const char *what)
{
    if (node->kind != BEL_YAML_SCALAR) {
        const char *got = node->kind == BEL_YAML_SEQUENCE ? "a list" : "a mapping";
        return bel_yaml_error(yaml, node, "expected %s, got %s", what, got);
    }
    if (bel_yaml_is_null(node)) return bel_yaml_error(yaml, node, "expected %s, got nothing", what);
    return bel_yaml_error(yaml, node, "expected %s, got \"%s\"", what, node->text);
}

bel_status *bel_cluster_unknown_key(const bel_yaml *yaml, const bel_yaml_node *key,
                                    const char *const *names, size_t count)
{
    int nearest = bel_nearest_name(key->text, names, count);
    if (nearest < 0) return bel_yaml_error(yaml, key, "unknown key \"%s\"", key->text);
    return bel_yaml_error(yaml, key, "unknown key \"%s\"; did you mean \"%s\"?", key->text,
                          names[nearest]);
}

// --- Values --------------------------------------------------------------------------------------

bel_status *bel_cluster_text(const bel_yaml *yaml, const bel_yaml_node *node, const char **out_text)
{
    bool good = node->kind == BEL_YAML_SCALAR && !bel_yaml_is_null(node) && node->text[0] != '\0';
    if (!good) return bel_cluster_expected(yaml, node, "a text");
    *out_text = node->text;
    return NULL;
}

static bel_status *read_text(const bel_yaml *yaml, const bel_yaml_node *node, char **place)
{
    const char *text = "";
    BEL_TRY(bel_cluster_text(yaml, node, &text));
    bel_free(*place);
    *place = bel_xstrdup(text);
    return NULL;
}

// Reads an integer, quoted or not: the document's scalars are texts.
static bel_status *read_whole(const bel_yaml *yaml, const bel_yaml_node *node, int low, int high,
                              int *place)
{
    int64_t value = 0;
    bool good = node->kind == BEL_YAML_SCALAR &&
                bel_parse_i64(node->text, strlen(node->text), &value) && value >= low &&
                value <= high;
    if (!good) {
        char what[64];
        bel_snprintf(what, sizeof what, "an integer from %d to %d", low, high);
        return bel_cluster_expected(yaml, node, what);
    }
    *place = (int)value;
    return NULL;
}

static bel_status *read_seconds(const bel_yaml *yaml, const bel_yaml_node *node, double *place)
{
    double value = 0;
    bool good = node->kind == BEL_YAML_SCALAR &&
                bel_parse_f64(node->text, strlen(node->text), &value) && value >= 0.001 &&
                value <= BEL_CLUSTER_MOST_SECONDS;
    if (!good) {
        char what[64];
        bel_snprintf(what, sizeof what, "seconds, from 0.001 to %d", BEL_CLUSTER_MOST_SECONDS);
        return bel_cluster_expected(yaml, node, what);
    }
    *place = value;
    return NULL;
}

static bel_status *read_switch(const bel_yaml *yaml, const bel_yaml_node *node, bool *place)
{
    bool scalar = node->kind == BEL_YAML_SCALAR;
    bool yes = scalar && strcmp(node->text, "true") == 0;
    bool no = scalar && strcmp(node->text, "false") == 0;
    if (!yes && !no) return bel_cluster_expected(yaml, node, "true or false");
    *place = yes;
    return NULL;
}

// Reads a number, optional spaces and a unit of the table.
static bel_status *read_bytes(const bel_yaml *yaml, const bel_yaml_node *node, int64_t *place)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"", 1},      {"B", 1},        {"kB", 1e3},     {"MB", 1e6},     {"GB", 1e9},
                 {"TB", 1e12}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
    static const char what[] = "a size such as 64 GiB or 500 MB";
    if (node->kind != BEL_YAML_SCALAR) return bel_cluster_expected(yaml, node, what);
    size_t digits = strspn(node->text, "0123456789.");
    const char *unit = node->text + digits + strspn(node->text + digits, " ");
    double value;
    if (!bel_parse_f64(node->text, digits, &value)) return bel_cluster_expected(yaml, node, what);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        double bytes = value * units[i].bytes;
        if (strcmp(unit, units[i].name) != 0 || bytes < 1 || bytes > 0x1p60) continue;
        *place = (int64_t)bytes;
        return NULL;
    }
    return bel_cluster_expected(yaml, node, what);
}

// --- Mappings ------------------------------------------------------------------------------------

static const bel_cluster_key *find_key(const char *name, const bel_cluster_key *keys,
                                       size_t key_count)
{
    for (size_t k = 0; k < key_count; k++)
        if (strcmp(keys[k].name, name) == 0) return &keys[k];
    return NULL;
}

const bel_yaml_node *bel_cluster_first_key(const bel_yaml_node *mapping,
                                           const bel_cluster_key *keys, size_t key_count)
{
    for (size_t i = 0; i < mapping->count; i++)
        if (find_key(mapping->keys[i]->text, keys, key_count) != NULL) return mapping->keys[i];
    return NULL;
}

const bel_yaml_node *bel_cluster_place(const bel_yaml_node *mapping, const char *name,
                                       const bel_yaml_node *otherwise)
{
    const bel_yaml_node *value = bel_yaml_member(mapping, name);
    return value != NULL ? value : otherwise;
}

// Checks that every key of the mapping is in the table.
static bel_status *check_names(const bel_yaml *yaml, const bel_yaml_node *mapping,
                               const bel_cluster_key *keys, size_t key_count)
{
    for (size_t i = 0; i < mapping->count; i++) {
        if (find_key(mapping->keys[i]->text, keys, key_count) != NULL) continue;
        const char **names = bel_xcalloc(key_count, sizeof *names);
        for (size_t k = 0; k < key_count; k++)
            names[k] = keys[k].name;
        bel_status *status = bel_cluster_unknown_key(yaml, mapping->keys[i], names, key_count);
        bel_free(names);
        return status;
    }
    return NULL;
}

static bel_status *read_value(const bel_yaml *yaml, const bel_yaml_node *value,
                              const bel_cluster_key *key, void *place)
{
    switch (key->kind) {
    case BEL_CLUSTER_TEXT: return read_text(yaml, value, place);
    case BEL_CLUSTER_WHOLE: return read_whole(yaml, value, key->low, key->high, place);
    case BEL_CLUSTER_BYTES: return read_bytes(yaml, value, place);
    case BEL_CLUSTER_SECONDS: return read_seconds(yaml, value, place);
    case BEL_CLUSTER_SWITCH: return read_switch(yaml, value, place);
    case BEL_CLUSTER_OTHER: return key->read(yaml, value, place);
    case BEL_CLUSTER_PASSED_OVER: break;
    }
    return NULL;
}

bel_status *bel_cluster_read_mapping(const bel_yaml *yaml, const bel_yaml_node *mapping,
                                     const bel_cluster_key *keys, size_t key_count, void *out)
{
    if (mapping->kind != BEL_YAML_MAPPING) return bel_cluster_expected(yaml, mapping, "a mapping");
    BEL_TRY(check_names(yaml, mapping, keys, key_count));
    for (size_t k = 0; k < key_count; k++) {
        const bel_yaml_node *value = bel_yaml_member(mapping, keys[k].name);
        if (value == NULL) continue;
        BEL_TRY(read_value(yaml, value, &keys[k], (char *)out + keys[k].offset));
    }
    return NULL;
}
