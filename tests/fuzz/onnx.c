// Fuzz target for ONNX models: read, and built into a graph, which must be well formed. The same
// bytes are also read as a single tensor, and decoded like those of a file.
#include "onnx/onnx.h"
#include "base/alloc.h"
#include "base/str.h"
#include "fuzz/fuzz.h"
#include "graph/graph.h"
#include "onnx/files.h"

static void take_apart(const uint8_t *data, size_t size)
{
    bel_str message;
    bel_onnx_bytes *raw;
    size_t count;
    bel_onnx_bytes all = {(const char *)data, size};
    if (!bel_onnx_spare(all, &message, &raw, &count)) return;
    fuzz_expect(message.length <= size + 8, "a message that is no longer than the file");
    for (size_t i = 0; i < count; i++) {
        bool inside =
            raw[i].data == NULL || (raw[i].size <= size && raw[i].data >= all.data &&
                                    (size_t)(raw[i].data - all.data) <= size - raw[i].size);
        fuzz_expect(inside, "elements inside the file");
    }
    bel_str_deinit(&message);
    bel_free(raw);
}

// As for training: constants by their use; a batch that the file closes is opened.
static void open_batch(const bel_onnx_model *model)
{
    int inputs = bel_onnx_input_count(model), bound = 0;
    size_t count = (size_t)bel_onnx_output_count(model) + 1;
    bel_graph *graph = bel_graph_create();
    bel_value **outputs = bel_xcalloc(count, sizeof(bel_value *));
    bel_onnx_binding *bindings = bel_xcalloc((size_t)inputs + 1, sizeof *bindings);
    bel_onnx_weights *weights = bel_onnx_weights_find(model, NULL, 0);
    for (int i = 0; i < inputs; i++) {
        const bel_onnx_port *port = bel_onnx_input(model, i);
        bel_shape shape = port->shape;
        if (!port->ranked || shape.rank == 0 || shape.dims[0] <= 0) continue;
        shape.dims[0] = -1000;
        bindings[bound].name = port->name;
        bindings[bound++].value = bel_input_value(graph, port->name, port->dtype, &shape);
    }
    bel_onnx_options options = {.weights = weights, .bindings = bindings, .binding_count = bound};
    if (bound > 0 && fuzz_is_good(bel_onnx_build(model, graph, &options, outputs)))
        fuzz_expect(fuzz_is_good(bel_graph_verify(graph)), "an opened graph that is well formed");
    bel_onnx_weights_destroy(weights);
    bel_free(bindings);
    bel_free(outputs);
    bel_graph_destroy(graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bel_tensor tensor;
    bel_onnx_model *model;
    take_apart(data, size);
    if (fuzz_is_good(bel_onnx_read_tensor(data, size, &tensor))) bel_free(tensor.data);
    if (!fuzz_is_good(bel_onnx_read(data, size, &model))) return 0;
    int count = bel_onnx_output_count(model);
    bel_graph *graph = bel_graph_create();
    bel_value **outputs = bel_xcalloc((size_t)count + 1, sizeof(bel_value *));
    bel_onnx_options options = {.variables = size % 2 == 0};
    if (fuzz_is_good(bel_onnx_build(model, graph, &options, outputs))) {
        fuzz_expect(fuzz_is_good(bel_graph_verify(graph)), "a graph that is well formed");
        for (int i = 0; i < count; i++)
            fuzz_expect(outputs[i] != NULL, "a value for each output");
    }
    bel_free(outputs);
    bel_graph_destroy(graph);
    open_batch(model);
    bel_onnx_destroy(model);
    return 0;
}
