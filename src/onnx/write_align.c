// Aligns elements of initializers in a packed model. Their offsets depend on all preceding fields.
// Instead of computing them, the model is packed into a counting buffer: protobuf-c passes raw
// bytes by the caller's pointers, which identify them. The spaces before an initializer are in the
// description of the previous one, which is packed after its elements, or for the first one in the
// model's.
//
// A longer description can lengthen the encoding of an earlier length field, which moves everything
// after it. So it is measured again until nothing moves. Descriptions only grow, because shrinking
// ones could alternate for ever. (Alignment only avoids a copy on reading.)
#include <string.h>

#include "onnx/files.h"
#include "onnx/write_inner.h"

enum { LINE = BEL_GRAPH_CONSTANT_ALIGNMENT, MOST_ROUNDS = 8 };

// A protobuf-c buffer that only counts bytes.
typedef struct measure {
    ProtobufCBuffer base;
    const Onnx__GraphProto *graph;
    size_t at;      // bytes so far
    size_t next;    // initializer with the next elements
    size_t *places; // by initializer
} measure;

static bool is_large(const Onnx__TensorProto *tensor)
{
    return tensor->has_raw_data && tensor->raw_data.len >= BEL_ONNX_LARGE_BYTES;
}

static void write_align_count(ProtobufCBuffer *buffer, size_t size, const uint8_t *bytes)
{
    measure *m = (measure *)(void *)buffer;
    while (m->next < m->graph->n_initializer && !is_large(m->graph->initializer[m->next]))
        m->next++;
    if (m->next < m->graph->n_initializer && bytes == m->graph->initializer[m->next]->raw_data.data)
        m->places[m->next++] = m->at;
    m->at += size;
}

// One round: sets spaces for the present offsets. False: all were correct.
static bool align(const Onnx__ModelProto *model, size_t *places, char *const *texts)
{
    const Onnx__GraphProto *graph = model->graph;
    measure m = {.base = {.append = write_align_count}, .graph = graph, .places = places};
    onnx__model_proto__pack_to_buffer(model, &m.base);
    size_t moved = 0; // inserted so far in this round
    bool changes = false;
    for (size_t i = 0; i < graph->n_initializer; i++) {
        if (!is_large(graph->initializer[i])) continue;
        size_t missing = (LINE - (places[i] + moved) % LINE) % LINE;
        if (missing == 0) continue;
        size_t had = strlen(texts[i]);
        memset(texts[i] + had, ' ', missing);
        moved += missing;
        changes = true;
    }
    return changes;
}

void bel_onnx_align_elements(Onnx__ModelProto *model, bel_arena *arena)
{
    const Onnx__GraphProto *graph = model->graph;
    size_t *places = bel_arena_alloc(arena, (graph->n_initializer + 1) * sizeof *places);
    char **texts = bel_arena_alloc(arena, (graph->n_initializer + 1) * sizeof *texts);
    for (size_t i = 0; i < graph->n_initializer; i++) {
        if (!is_large(graph->initializer[i])) continue;
        texts[i] = bel_arena_alloc(arena, MOST_ROUNDS * LINE + 1); // zeroed
        if (i == 0) model->doc_string = texts[i];
        if (i > 0) graph->initializer[i - 1]->doc_string = texts[i];
    }
    for (int round = 0; round < MOST_ROUNDS && align(model, places, texts); round++)
        continue;
}
