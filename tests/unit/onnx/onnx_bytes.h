// Writes the bytes of small ONNX models by hand, field by field, so that the reader's tests need no
// library that writes them. Field numbers are ONNX's (proto/onnx.proto).
#ifndef BELFRY_TESTS_UNIT_ONNX_ONNX_BYTES_H
#define BELFRY_TESTS_UNIT_ONNX_ONNX_BYTES_H

#include "base/str.h"

static inline void put_varint(bel_str *out, uint64_t value)
{
    do {
        char byte = (char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        bel_str_append(out, &byte, 1);
        value >>= 7;
    } while (value > 0);
}

static inline void put_int(bel_str *out, int field, int64_t value)
{
    put_varint(out, (uint64_t)field << 3);
    put_varint(out, (uint64_t)value);
}

static inline void put_bytes(bel_str *out, int field, const void *bytes, size_t size)
{
    put_varint(out, ((uint64_t)field << 3) | 2);
    put_varint(out, size);
    bel_str_append(out, bytes, size);
}

static inline void put_text(bel_str *out, int field, const char *text)
{
    put_bytes(out, field, text, strlen(text));
}

// Appends a part to a message and frees the part.
static inline void put_part(bel_str *out, int field, bel_str *part)
{
    put_bytes(out, field, part->text == NULL ? "" : part->text, part->length);
    bel_str_deinit(part);
    *part = (bel_str){.text = NULL};
}

// A TensorProto with raw bytes. data_type: 1 float, 7 int64.
static inline bel_str make_tensor(const char *name, int data_type, const int64_t *dims, int rank,
                                  const void *raw, size_t size)
{
    bel_str tensor = {.text = NULL};
    for (int i = 0; i < rank; i++)
        put_int(&tensor, 1, dims[i]);
    put_int(&tensor, 2, data_type);
    put_text(&tensor, 8, name);
    put_bytes(&tensor, 9, raw, size);
    return tensor;
}

// An input or output; dims are texts "2" or "batch", separated by blanks.
static inline bel_str make_port(const char *name, int data_type, const char *dims)
{
    bel_str shape = {.text = NULL}, type = {.text = NULL}, typed = {.text = NULL}, port = typed;
    while (*dims != '\0') {
        size_t length = strcspn(dims, " ");
        bel_str dim = {.text = NULL};
        int64_t size;
        if (bel_parse_i64(dims, length, &size)) {
            put_int(&dim, 1, size);
        } else if (dims[0] != '?') {
            put_bytes(&dim, 2, dims, length);
        }
        put_part(&shape, 1, &dim);
        dims += length;
        dims += *dims == ' ';
    }
    put_int(&type, 1, data_type);
    put_part(&type, 2, &shape);
    put_part(&typed, 1, &type);
    put_text(&port, 1, name);
    put_part(&port, 2, &typed);
    return port;
}

// A node; inputs and outputs are names separated by blanks, "-" for an omitted one. `attrs` is
// empty or made by put_part(&attrs, 5, …).
static inline bel_str make_node(const char *op, const char *inputs, const char *outputs,
                                bel_str *attrs)
{
    bel_str node = {.text = NULL};
    const char *lists[] = {inputs, outputs};
    for (int i = 0; i < 2; i++) {
        for (const char *at = lists[i]; *at != '\0';) {
            size_t length = strcspn(at, " ");
            put_bytes(&node, 1 + i, at, length == 1 && *at == '-' ? 0 : length);
            at += length;
            at += *at == ' ';
        }
    }
    put_text(&node, 3, "here");
    put_text(&node, 4, op);
    if (attrs != NULL && attrs->length > 0) bel_str_append(&node, attrs->text, attrs->length);
    if (attrs != NULL) bel_str_deinit(attrs);
    return node;
}

static inline bel_str make_int_attr(const char *name, int64_t value)
{
    bel_str attr = {.text = NULL}, attrs = {.text = NULL};
    put_text(&attr, 1, name);
    put_int(&attr, 3, value);
    put_int(&attr, 20, 2);
    put_part(&attrs, 5, &attr);
    return attrs;
}

// Adds a subgraph as an attribute after those in `attrs`.
static inline void add_graph_attr(bel_str *attrs, const char *name, bel_str *graph)
{
    bel_str attr = {.text = NULL};
    put_text(&attr, 1, name);
    put_part(&attr, 6, graph);
    put_int(&attr, 20, 5);
    put_part(attrs, 5, &attr);
}

// A TensorProto whose elements are in another file; length NULL: omitted.
static inline bel_str make_external(const char *name, int data_type, const int64_t *dims, int rank,
                                    const char *location, const char *offset, const char *length)
{
    const char *pairs[3][2] = {{"location", location}, {"offset", offset}, {"length", length}};
    bel_str tensor = {.text = NULL};
    for (int i = 0; i < rank; i++)
        put_int(&tensor, 1, dims[i]);
    put_int(&tensor, 2, data_type);
    put_text(&tensor, 8, name);
    for (int i = 0; i < 3; i++) {
        bel_str entry = {.text = NULL};
        if (pairs[i][1] == NULL) continue;
        put_text(&entry, 1, pairs[i][0]);
        put_text(&entry, 2, pairs[i][1]);
        put_part(&tensor, 13, &entry);
    }
    put_int(&tensor, 14, 1);
    return tensor;
}

// Makes a model of an opset from a graph.
static inline bel_str make_model(bel_str *graph, int64_t opset)
{
    bel_str model = {.text = NULL}, import = {.text = NULL};
    put_int(&model, 1, 8);
    put_part(&model, 7, graph);
    put_int(&import, 2, opset);
    put_part(&model, 8, &import);
    return model;
}

enum { GRAPH_NODE = 1, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };

#endif
