// YAML through libyaml; no other file includes it. A recursive descent turns its events into a
// tree. The depth is limited because the text comes from users. Nodes and texts are in the
// document's arena. The limit of keys bounds the search for duplicates, which compares each with
// all before it. For text that cannot be decoded libyaml gives only a byte offset; the line and
// column are computed here.
#include "base/yaml.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/number.h"
#include "base/str.h"

struct bel_yaml {
    bel_arena *arena; // holds the nodes and their texts
    const char *source;
    bel_yaml_node *root;
};

typedef struct reader {
    yaml_parser_t parser;
    bel_yaml *yaml;
    const char *text;
    size_t length;
    size_t node_count, most_nodes;
} reader;

static bel_status *error_at(const bel_yaml *yaml, yaml_mark_t mark, const char *message)
{
    return BEL_ERR(BEL_INVALID_ARGUMENT, "%s:%zu:%zu: %s", yaml->source, mark.line + 1,
                   mark.column + 1, message);
}

// libyaml gives a line and a column for text that it could scan, but only a byte offset for text
// that it could not decode.
static bel_status *syntax_error(const reader *r)
{
    const yaml_parser_t *parser = &r->parser;
    const char *problem = parser->problem != NULL ? parser->problem : "cannot be read";
    if (parser->error == YAML_MEMORY_ERROR) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: too large for this machine's memory",
                       r->yaml->source);
    }
    yaml_mark_t mark = parser->problem_mark;
    if (parser->error == YAML_READER_ERROR) {
        mark = (yaml_mark_t){0};
        for (size_t i = 0; i < parser->problem_offset && i < r->length; i++) {
            mark.column = r->text[i] == '\n' ? 0 : mark.column + 1;
            mark.line += r->text[i] == '\n';
        }
    }
    char message[256];
    const char *context = parser->context != NULL ? parser->context : "reading";
    bel_snprintf(message, sizeof message, "not valid YAML: %s (%s)", problem, context);
    return error_at(r->yaml, mark, message);
}

static bel_status *next_event(reader *r, yaml_event_t *out_event)
{
    return yaml_parser_parse(&r->parser, out_event) == 1 ? NULL : syntax_error(r);
}

// The arrays of a node double at every power of two; the old ones stay in the arena.
static void append_child(bel_arena *arena, bel_yaml_node *parent, const bel_yaml_node *key,
                         const bel_yaml_node *value)
{
    size_t count = parent->count;
    if ((count & (count - 1)) == 0) { // 0, 1, 2, 4, 8 …: full
        size_t capacity = count == 0 ? 1 : count * 2;
        const bel_yaml_node **keys = bel_arena_alloc(arena, capacity * sizeof *keys);
        const bel_yaml_node **values = bel_arena_alloc(arena, capacity * sizeof *values);
        for (size_t i = 0; i < count; i++) {
            keys[i] = parent->keys[i];
            values[i] = parent->values[i];
        }
        parent->keys = keys;
        parent->values = values;
    }
    parent->keys[count] = key;
    parent->values[count] = value;
    parent->count = count + 1;
}

// Refuses features that settings never need, and that could make a small file large.
static bel_status *refuse_extras(const reader *r, const yaml_event_t *event)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    }
    if (anchor != NULL || event->type == YAML_ALIAS_EVENT) {
        return error_at(
            r->yaml, event->start_mark,
            "anchors (&name) and aliases (*name) are not accepted; write the value out");
    }
    if (tag != NULL) return error_at(r->yaml, event->start_mark, "tags (!name) are not accepted");
    return NULL;
}

static bel_status *read_node(reader *r, const yaml_event_t *event, int depth,
                             bel_yaml_node **out_node);

static bel_status *read_sequence(reader *r, int depth, bel_yaml_node *node)
{
    for (;;) {
        yaml_event_t event;
        BEL_TRY(next_event(r, &event));
        bel_yaml_node *item = NULL;
        bool end = event.type == YAML_SEQUENCE_END_EVENT;
        bel_status *status = end ? NULL : read_node(r, &event, depth, &item);
        yaml_event_delete(&event);
        if (status != NULL || end) return status;
        append_child(r->yaml->arena, node, NULL, item);
    }
}

// Refuses a duplicate key, of which YAML would silently keep the second.
static bel_status *check_key(const reader *r, const bel_yaml_node *mapping,
                             const bel_yaml_node *key)
{
    if (key->kind != BEL_YAML_SCALAR) {
        return bel_yaml_error(r->yaml, key, "a key must be a plain text");
    }
    if (mapping->count == BEL_YAML_MAX_KEYS) {
        return bel_yaml_error(r->yaml, key, "too many keys in one mapping");
    }
    for (size_t i = 0; i < mapping->count; i++) {
        if (strcmp(mapping->keys[i]->text, key->text) != 0) continue;
        return bel_yaml_error(r->yaml, key, "key \"%s\" already exists in line %d", key->text,
                              mapping->keys[i]->line);
    }
    return NULL;
}

// Children alternate: a key, its value.
static bel_status *read_mapping(reader *r, int depth, bel_yaml_node *node)
{
    const bel_yaml_node *key = NULL; // read, and waiting for its value
    for (;;) {
        yaml_event_t event;
        BEL_TRY(next_event(r, &event));
        bel_yaml_node *child = NULL;
        bool end = event.type == YAML_MAPPING_END_EVENT;
        bel_status *status = end ? NULL : read_node(r, &event, depth, &child);
        yaml_event_delete(&event);
        if (status != NULL || end) return status;
        if (key == NULL) {
            BEL_TRY(check_key(r, node, child));
            key = child;
        } else {
            append_child(r->yaml->arena, node, key, child);
            key = NULL;
        }
    }
}

static bel_status *read_scalar(reader *r, const yaml_event_t *event, bel_yaml_node *node)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t length = event->data.scalar.length;
    if (memchr(text, '\0', length) != NULL) {
        return error_at(r->yaml, event->start_mark, "a text must not hold a zero byte");
    }
    node->text = bel_arena_copy(r->yaml->arena, text, length + 1); // libyaml ends it with a zero
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return NULL;
}

static bel_status *read_node(reader *r, const yaml_event_t *event, int depth,
                             bel_yaml_node **out_node)
{
    BEL_TRY(refuse_extras(r, event));
    if (depth >= BEL_YAML_MAX_DEPTH) {
        return error_at(r->yaml, event->start_mark, "nested too deeply");
    }
    if (++r->node_count > r->most_nodes) {
        return error_at(r->yaml, event->start_mark, "too many values in one document");
    }
    bel_yaml_node *node = bel_arena_alloc(r->yaml->arena, sizeof *node);
    node->line = (int)event->start_mark.line + 1;
    node->column = (int)event->start_mark.column + 1;
    bel_status *status;
    if (event->type == YAML_SEQUENCE_START_EVENT) {
        node->kind = BEL_YAML_SEQUENCE;
        status = read_sequence(r, depth + 1, node);
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        node->kind = BEL_YAML_MAPPING;
        status = read_mapping(r, depth + 1, node);
    } else {
        node->kind = BEL_YAML_SCALAR;
        status = read_scalar(r, event, node);
    }
    if (status == NULL) *out_node = node;
    return status;
}

// A stream is: start, then documents (start, node, end), then end. The first document counts.
static bel_status *read_stream(reader *r)
{
    for (;;) {
        yaml_event_t event;
        BEL_TRY(next_event(r, &event));
        bel_status *status = NULL;
        bool end = event.type == YAML_STREAM_END_EVENT;
        bool mark = event.type == YAML_STREAM_START_EVENT ||
                    event.type == YAML_DOCUMENT_START_EVENT ||
                    event.type == YAML_DOCUMENT_END_EVENT;
        if (!end && !mark) status = read_node(r, &event, 0, &r->yaml->root);
        if (event.type == YAML_DOCUMENT_START_EVENT && r->yaml->root != NULL) {
            status = error_at(r->yaml, event.start_mark, "a second document; one is expected");
        }
        yaml_event_delete(&event);
        if (status != NULL || end) return status;
    }
}

static size_t most_bytes(bel_yaml_limits limits)
{
    return limits.bytes > 0 ? limits.bytes : BEL_YAML_MAX_BYTES;
}

static bel_status *check_size(const char *source, size_t length, bel_yaml_limits limits)
{
    if (length <= most_bytes(limits)) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "%s: more than %zu bytes are no configuration", source,
                   most_bytes(limits));
}

bel_status *bel_yaml_parse_within(const char *text, size_t length, const char *source,
                                  bel_yaml_limits limits, bel_yaml **out_yaml)
{
    BEL_TRY(check_size(source, length, limits));
    bel_yaml *yaml = bel_xcalloc(1, sizeof *yaml);
    yaml->arena = bel_arena_create();
    yaml->source = bel_arena_strdup(yaml->arena, source);
    reader r = {.yaml = yaml,
                .text = text,
                .length = length,
                .most_nodes = limits.nodes > 0 ? limits.nodes : BEL_YAML_MAX_NODES};
    bel_status *status;
    if (yaml_parser_initialize(&r.parser) == 1) {
        yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, length);
        status = read_stream(&r);
        yaml_parser_delete(&r.parser);
    } else {
        status = BEL_ERR(BEL_RESOURCE_EXHAUSTED, "%s: no memory for a YAML parser", source);
    }
    if (status == NULL) {
        *out_yaml = yaml;
    } else {
        bel_yaml_destroy(yaml);
    }
    return status;
}

bel_status *bel_yaml_parse(const char *text, size_t length, const char *source, bel_yaml **out_yaml)
{
    return bel_yaml_parse_within(text, length, source, (bel_yaml_limits){0}, out_yaml);
}

static bel_status *read_text(const char *path, bel_yaml_limits limits, char **out_text,
                             size_t *out_length)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "cannot read %s: %s", path, strerror(errno));
    }
    if (!S_ISREG(info.st_mode)) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "cannot read %s: it is no regular file", path);
    }
    BEL_TRY(check_size(path, (size_t)info.st_size, limits));
    bel_status *status = bel_file_read(path, out_text, out_length);
    if (status == NULL) return NULL;
    bel_status *other = BEL_ERR(BEL_INVALID_ARGUMENT, "%s", bel_status_message(status));
    bel_status_destroy(status);
    return other;
}

bel_status *bel_yaml_read_text(const char *path, char **out_text, size_t *out_length)
{
    return read_text(path, (bel_yaml_limits){0}, out_text, out_length);
}

bel_status *bel_yaml_read_within(const char *path, bel_yaml_limits limits, bel_yaml **out_yaml)
{
    char *text;
    size_t length;
    BEL_TRY(read_text(path, limits, &text, &length));
    bel_status *status = bel_yaml_parse_within(text, length, path, limits, out_yaml);
    bel_free(text);
    return status;
}

bel_status *bel_yaml_read(const char *path, bel_yaml **out_yaml)
{
    return bel_yaml_read_within(path, (bel_yaml_limits){0}, out_yaml);
}

const bel_yaml_node *bel_yaml_root(const bel_yaml *yaml)
{
    return yaml->root;
}

const char *bel_yaml_source(const bel_yaml *yaml)
{
    return yaml->source;
}

void bel_yaml_destroy(bel_yaml *yaml)
{
    if (yaml == NULL) return;
    bel_arena_destroy(yaml->arena);
    bel_free(yaml);
}

const bel_yaml_node *bel_yaml_member(const bel_yaml_node *mapping, const char *name)
{
    if (mapping == NULL || mapping->kind != BEL_YAML_MAPPING) return NULL;
    for (size_t i = 0; i < mapping->count; i++)
        if (strcmp(mapping->keys[i]->text, name) == 0) return mapping->values[i];
    return NULL;
}

bool bel_yaml_is_null(const bel_yaml_node *node)
{
    if (node->kind != BEL_YAML_SCALAR || node->quoted) return false;
    return node->text[0] == '\0' || strcmp(node->text, "~") == 0 || strcmp(node->text, "null") == 0;
}

bel_status *bel_yaml_error(const bel_yaml *yaml, const bel_yaml_node *node, const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    bel_vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return BEL_ERR(BEL_INVALID_ARGUMENT, "%s:%d:%d: %s", yaml->source, node->line, node->column,
                   message);
}
