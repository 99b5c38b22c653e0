// Writes a model of onnx_models.h, for tests of the command and for benchmarks.
// usage: make_onnx NAME FILE
#include <stdio.h>

#include "base/file.h"
#include "base/str.h"
#include "support/onnx_models.h"

int main(int argc, char **argv)
{
    bel_str model = {.text = NULL};
    if (argc == 3) model = bel_onnx_model_make(argv[1]);
    if (model.text == NULL) {
        (void)fputs("usage: make_onnx NAME FILE; NAME is one of:", stderr);
        for (int i = 0; bel_onnx_model_name(i) != NULL; i++)
            (void)fprintf(stderr, " %s", bel_onnx_model_name(i));
        (void)fputs("\n", stderr);
        return 2;
    }
    bel_status *status = bel_file_write_atomic(argv[2], model.text, model.length);
    bel_str_deinit(&model);
    return bel_status_report(status);
}
