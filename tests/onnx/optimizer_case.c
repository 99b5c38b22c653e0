// ONNX's optimizers against Belfry's rules: converts an operator's attributes and inputs to the
// numbers of a step. R is the rate, T the count of earlier updates; then come tensors in groups:
// values, gradients, and one or two groups of slots.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "onnx/model.h"
#include "onnx/onnx_case.h"
#include "optim/rule.h"
#include "optim/settings.h"

static const struct {
    const char *name;
    bel_optimizer_kind kind;
    int slots;
} optimizers[] = {{"Adagrad", BEL_OPTIMIZER_ADAGRAD, 1},
                  {"Adam", BEL_OPTIMIZER_ADAM, 2},
                  {"Momentum", BEL_OPTIMIZER_MOMENTUM, 1}};

static int find_optimizer(const bel_onnx_node *node)
{
    if (strcmp(node->domain, "ai.onnx.preview.training") != 0) return -1;
    for (int i = 0; i < (int)(sizeof optimizers / sizeof optimizers[0]); i++)
        if (strcmp(optimizers[i].name, node->op) == 0) return i;
    return -1;
}

bool onnx_is_optimizer(const onnx_case *opened)
{
    const bel_onnx_model *model = opened->model;
    return model->node_count == 1 && find_optimizer(&model->nodes[0]) >= 0;
}

static const bel_onnx_attr *find_attr(const bel_onnx_node *node, const char *name)
{
    for (int i = 0; i < node->attr_count; i++)
        if (strcmp(node->attrs[i].name, name) == 0) return &node->attrs[i];
    return NULL;
}

static float number_of(const bel_onnx_node *node, const char *name, float otherwise)
{
    const bel_onnx_attr *attr = find_attr(node, name);
    return attr == NULL ? otherwise : attr->number;
}

// ONNX's Adam corrects rate · v / (sqrt(h) + epsilon) for both means at once, and not at all if T
// is 0. In Belfry the fraction's denominator contains root and epsilon.
static void correct_adam(bel_rule_step *step, double alpha, double beta, float count)
{
    double mean = count > 0 ? 1 - pow(alpha, (double)count) : 1;
    double root = count > 0 ? sqrt(1 - pow(beta, (double)count)) : 1;
    step->rate = (float)((double)step->rate * root / mean);
    step->root = 1;
}

static bel_status *read_step(const bel_onnx_node *node, bel_optimizer_kind kind, float rate,
                             float count, bel_rule_step *out_step)
{
    bel_optimizer optimizer = {.kind = kind, .learning_rate = (double)rate};
    BEL_TRY(bel_optimizer_check(&optimizer));
    bel_rule_step step = bel_rule_begin(&optimizer, 0);
    step.rate = rate;
    step.weight_decay = number_of(node, "norm_coefficient", 0);
    step.epsilon = number_of(node, "epsilon", 1e-6f);
    if (number_of(node, "norm_coefficient_post", 0) != 0)
        return BEL_ERR(BEL_UNIMPLEMENTED, "norm_coefficient_post: Belfry shrinks before the step");
    if (kind == BEL_OPTIMIZER_ADAGRAD)
        step.rate = rate / (1 + count * number_of(node, "decay_factor", 0));
    if (kind == BEL_OPTIMIZER_ADAM) {
        double alpha = (double)number_of(node, "alpha", 0.9f);
        double beta = (double)number_of(node, "beta", 0.999f);
        step.beta1 = bel_rule_decay_of(alpha);
        step.beta2 = bel_rule_decay_of(beta);
        correct_adam(&step, alpha, beta, count);
    }
    if (kind == BEL_OPTIMIZER_MOMENTUM) {
        const bel_onnx_attr *mode = find_attr(node, "mode");
        if (count > 0 && number_of(node, "beta", 1) != 1)
            return BEL_ERR(BEL_UNIMPLEMENTED, "a dampened gradient (beta)");
        step.momentum = number_of(node, "alpha", 0);
        step.nesterov = mode != NULL && strcmp(mode->text, "nesterov") == 0;
    }
    *out_step = step;
    return NULL;
}

static bel_status *compare(const float *got, const bel_tensor *expected, onnx_match *match)
{
    char difference[200];
    bel_tensor tensor = *expected;
    tensor.data = bel_xmalloc(bel_tensor_bytes(expected) + 1);
    memcpy(tensor.data, got, bel_tensor_bytes(expected));
    onnx_match found = onnx_compare(&tensor, expected, difference);
    bel_free(tensor.data);
    if (found == ONNX_DIFFERS) return BEL_ERR(BEL_INTERNAL, "%s", difference);
    if (found < *match) *match = found;
    return NULL;
}

bel_status *onnx_optimizer_run(const onnx_case *opened, onnx_match *out_match)
{
    const bel_onnx_node *node = &opened->model->nodes[0];
    const bel_tensor *inputs = opened->inputs.items, *outputs = opened->outputs.items;
    int row = find_optimizer(node), slots = optimizers[row].slots;
    int tensors = (opened->inputs.count - 2) / (2 + slots);
    if (inputs[1].dtype != BEL_DTYPE_I64 || tensors * (2 + slots) + 2 != opened->inputs.count)
        return BEL_ERR(BEL_INTERNAL, "unexpected inputs of %s", node->op);
    float count = (float)*(const int64_t *)inputs[1].data;
    bel_rule_step step;
    BEL_TRY(read_step(node, optimizers[row].kind, *(const float *)inputs[0].data, count, &step));
    *out_match = ONNX_CLOSE;
    for (int t = 0; t < tensors; t++) { // slots are updated in place, so the case runs once
        const bel_tensor *values = &inputs[2 + t], *gradient = &inputs[2 + tensors + t];
        float *slot[BEL_RULE_MAX_SLOTS] = {inputs[2 + 2 * tensors + t].data};
        if (slots > 1) slot[1] = inputs[2 + 3 * tensors + t].data;
        bel_rule_apply(&step, gradient->data, 1, values->data, values->data, slot,
                       bel_shape_elements(&values->shape));
        BEL_TRY(compare(values->data, &outputs[t], out_match));
        for (int s = 0; s < slots; s++)
            BEL_TRY(compare(slot[s], &outputs[(1 + s) * tensors + t], out_match));
    }
    return NULL;
}
