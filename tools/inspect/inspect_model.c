// Describes a model as in its file, with the shapes of the graph that a predictor would run. A node
// that cannot be built is reported and the table continues, because users then want to see the
// rest.
#include "inspect/inspect_model.h"

#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "base/number.h"
#include "base/str.h"
#include "command/results.h"
#include "graph/graph.h"
#include "onnx/graph_file.h"

bool bel_is_model(const char *path)
{
    if (!bel_dir_exists(path)) return bel_file_exists(path);
    char *manifest = bel_path_join(path, "manifest.json");
    char *model = bel_path_join(path, "model.onnx");
    bool is_model = !bel_file_exists(manifest) && bel_file_exists(model);
    bel_free(manifest);
    bel_free(model);
    return is_model;
}

typedef struct listing {
    bel_str rows, errors;
    bool json;
    int64_t nodes, unknown, parameters;
} listing;

static void put_shape_json(const bel_shape *shape, bel_str *out)
{
    bel_str_puts(out, "[");
    for (int32_t d = 0; d < shape->rank; d++)
        bel_str_printf(out, "%s%lld", d > 0 ? "," : "", (long long)shape->dims[d]);
    bel_str_puts(out, "]");
}

static void put_row_json(listing *l, const bel_onnx_row *row)
{
    bel_str_puts(&l->rows, l->nodes > 0 ? ",{\"name\":" : "{\"name\":");
    bel_json_write_string(&l->rows, row->name);
    bel_str_puts(&l->rows, ",\"operator\":");
    bel_json_write_string(&l->rows, row->op);
    bel_str_printf(&l->rows, ",\"parameters\":%lld,\"shape\":", (long long)row->parameters);
    if (row->value == NULL) {
        bel_str_puts(&l->rows, "null");
    } else {
        bel_shape shape = bel_value_shape(row->value);
        put_shape_json(&shape, &l->rows);
    }
    if (row->error != NULL) {
        bel_str_puts(&l->rows, ",\"error\":");
        bel_json_write_string(&l->rows, row->error);
    }
    bel_str_puts(&l->rows, "}");
}

static void put_row_text(listing *l, const bel_onnx_row *row)
{
    char text[BEL_SHAPE_TEXT] = "?";
    if (row->value != NULL) {
        bel_shape shape = bel_value_shape(row->value);
        bel_shape_text(&shape, text);
    }
    bel_str_printf(&l->rows, "  %-32s %-22s %-20s %12lld\n", row->name, row->op, text,
                   (long long)row->parameters);
    if (row->error != NULL)
        bel_str_printf(&l->errors, "  %s (%s): %s\n", row->name, row->op, row->error);
}

static void take_row(void *user, const bel_onnx_row *row)
{
    listing *l = user;
    (l->json ? put_row_json : put_row_text)(l, row);
    l->nodes++;
    l->unknown += row->error != NULL;
    l->parameters += row->parameters;
}

// Lists the nodes of a finished graph, and its variables with their element counts.
static void take_nodes(const bel_graph *graph, listing *l)
{
    for (size_t n = 0; n < graph->node_count; n++) {
        const bel_node *node = graph->nodes[n];
        bel_onnx_row row = {
            .name = node->name, .op = bel_op_get(node->op)->name, .value = node->outputs[0]};
        if (node->op == BEL_OP_VARIABLE)
            row.parameters = bel_shape_elements(&node->outputs[0]->spec.shape);
        take_row(l, &row);
    }
}

static void put_ports(const bel_onnx_model *model, bool inputs, bool json, bel_str *out)
{
    int count = inputs ? bel_onnx_input_count(model) : bel_onnx_output_count(model);
    for (int i = 0; i < count; i++) {
        const bel_onnx_port *port = inputs ? bel_onnx_input(model, i) : bel_onnx_output(model, i);
        char text[BEL_SHAPE_TEXT];
        if (json) {
            bel_str_puts(out, i > 0 ? ",{\"name\":" : "{\"name\":");
            bel_json_write_string(out, port->name);
            bel_str_printf(out, ",\"dtype\":\"%s\",\"shape\":", bel_dtype_name(port->dtype));
            if (port->ranked) {
                put_shape_json(&port->shape, out);
            } else {
                bel_str_puts(out, "null");
            }
            bel_str_puts(out, "}");
        } else {
            bel_str_printf(out, "  %-32s %-5s %s\n", port->name, bel_dtype_name(port->dtype),
                           port->ranked ? bel_shape_text(&port->shape, text) : "?");
        }
    }
}

static void put_text(const listing *l, const bel_onnx_model *model, const char *path, bel_str *out)
{
    bel_str_printf(out, "model %s\n\ninputs\n", path);
    put_ports(model, true, false, out);
    bel_str_puts(out, "\noutputs\n");
    put_ports(model, false, false, out);
    bel_str_printf(out, "\n  %-32s %-22s %-20s %12s\n", "node", "operator", "shape", "parameters");
    bel_str_puts(out, l->rows.text == NULL ? "" : l->rows.text);
    bel_str_printf(out, "  %lld nodes, %lld parameters\n", (long long)l->nodes,
                   (long long)l->parameters);
    if (l->unknown > 0)
        bel_str_printf(out, "\ncannot be run: %lld nodes\n%s", (long long)l->unknown,
                       l->errors.text);
}

static void put_json(const listing *l, const bel_onnx_model *model, const char *path, bel_str *out)
{
    bel_str_puts(out, "{\"model\":");
    bel_json_write_string(out, path);
    bel_str_puts(out, ",\"inputs\":[");
    put_ports(model, true, true, out);
    bel_str_puts(out, "],\"outputs\":[");
    put_ports(model, false, true, out);
    bel_str_printf(out, "],\"nodes\":[%s],\"parameters\":%lld,\"errors\":%lld}\n",
                   l->rows.text == NULL ? "" : l->rows.text, (long long)l->parameters,
                   (long long)l->unknown);
}

static bel_status *inspect(const bel_onnx_model *model, const char *path, bool json,
                           int *out_exit_code)
{
    listing l = {.json = json};
    const bel_onnx_options options = {.views = true, .each = take_row, .user = &l};
    bel_graph *graph = NULL;
    bel_value **outputs =
        bel_xcalloc((size_t)bel_onnx_output_count(model) + 1, sizeof(bel_value *));
    bel_str text = {0};
    bel_status *status;
    if (bel_graph_file_is(model)) {
        status = bel_graph_file_read(model, &graph, outputs);
        if (status == NULL) take_nodes(graph, &l);
    } else {
        graph = bel_graph_create();
        status = bel_onnx_build(model, graph, &options, outputs);
    }
    if (status == NULL) {
        (json ? put_json : put_text)(&l, model, path, &text);
        status = bel_results_write(text.text);
    }
    if (status == NULL && l.unknown > 0) *out_exit_code = 1;
    bel_str_deinit(&text);
    bel_str_deinit(&l.rows);
    bel_str_deinit(&l.errors);
    bel_free(outputs);
    bel_graph_destroy(graph);
    return status;
}

bel_status *bel_inspect_model(const char *path, bool json, int *out_exit_code)
{
    bel_onnx_model *model;
    char *file = bel_dir_exists(path) ? bel_path_join(path, "model.onnx") : bel_xstrdup(path);
    bel_status *status = bel_onnx_read_file(file, &model);
    if (status == NULL) {
        status = inspect(model, file, json, out_exit_code);
        bel_onnx_destroy(model);
    }
    bel_free(file);
    return status;
}
