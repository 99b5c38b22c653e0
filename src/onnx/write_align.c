// Where elements of initializers begin in a packed model follows from all that stands before them.
// Instead of computing that, the model is packed into nothing: protobuf-c hands over raw bytes by
// the caller's own pointer, by which they are known. Spaces before an initializer are the
// description of the one before, or of the model, whose fields stand behind those of elements.
//
// A longer description can make a length that stands before it longer, which moves what follows; so
// it is measured again until nothing moves. Descriptions only grow: one that might shrink could
// move the length there and back for ever. (Nothing but a copy on reading depends on the places.)
#include <string.h>

#include "onnx/files.h"
#include "onnx/write_inner.h"

enum { LINE = BEL_GRAPH_CONSTANT_ALIGNMENT, MOST_ROUNDS = 8 };

// A protobuf-c buffer that only counts.
typedef struct measure {
    ProtobufCBuffer base;
    const Onnx__GraphProto *graph;
    size_t at;      // bytes so far
    size_t next;    // initializer whose elements come next
    size_t *places; // by initializer
} measure;

static bool is_large(const Onnx__TensorProto *tensor)
{
    return tensor->has_raw_data && tensor->raw_data.len >= BEL_ONNX_LARGE_BYTES;
}

static void count(ProtobufCBuffer *buffer, size_t size, const uint8_t *bytes)
{
    measure *m = (measure *)(void *)buffer;
    while (m->next < m->graph->n_initializer && !is_large(m->graph->initializer[m->next]))
        m->next++;
    if (m->next < m->graph->n_initializer && bytes == m->graph->initializer[m->next]->raw_data.data)
        m->places[m->next++] = m->at;
    m->at += size;
}

// One round: spaces by the places there are now. False: all were right.
static bool align(const Onnx__ModelProto *model, size_t *places, char *const *texts)
{
    const Onnx__GraphProto *graph = model->graph;
    measure m = {.base = {.append = count}, .graph = graph, .places = places};
    onnx__model_proto__pack_to_buffer(model, &m.base);
    size_t moved = 0; // what is put in before
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
