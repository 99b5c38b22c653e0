// Control flow: `If` with a condition that is known while the graph is built, as exporters write it
// for choices by shapes. The nodes of the taken branch replace the node; the other branch is
// ignored, so it may contain features that Belfry lacks.
#include "onnx/make.h"
#include "ops/kernels/elements.h"

bel_status *bel_onnx_if(bel_onnx_call *call)
{
    bel_tensor condition;
    BEL_TRY(bel_onnx_known(call, 0, &condition));
    if (condition.dtype != BEL_DTYPE_BOOL || bel_shape_elements(&condition.shape) != 1) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "its condition must be one bool, got %s",
                       bel_dtype_name(condition.dtype));
    }
    bool taken = bel_element_get_whole(&condition, 0) != 0;
    const char *name = taken ? "then_branch" : "else_branch";
    const bel_onnx_attr *branch = bel_onnx_find_attr(call, name);
    if (branch == NULL) return BEL_ERR(BEL_DATA_LOSS, "attribute \"%s\" is missing", name);
    BEL_TRY_CTX(bel_onnx_build_subgraph(call, branch->graph), "%s", name);
    return NULL;
}
