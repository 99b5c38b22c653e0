/* Runs a model: reads numbers of its first input from the command line and prints its first output
 * on one line. An open dimension is 1.
 *
 *   cc predict.c -o predict $(pkg-config --cflags --libs belfry-predictor)
 *   ./predict model.onnx 0.5 1 -2 */
#include <belfry/predictor.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 4096 };

static bel_status *predict(bel_predictor *model, int count, char **numbers)
{
    float x[MOST];
    bel_port port = bel_predictor_input_port(model, 0);
    bel_tensor in = {port.dtype, port.shape, x};
    for (int d = 0; d < in.shape.rank; d++)
        if (in.shape.dims[d] < 0) in.shape.dims[d] = 1;
    long long wanted = bel_shape_elements(&in.shape);
    if (in.dtype != BEL_DTYPE_F32 || wanted != count || count > MOST)
        return BEL_ERR(BEL_INVALID_ARGUMENT, "the model takes %lld numbers, got %d", wanted, count);
    for (int i = 0; i < count; i++)
        x[i] = strtof(numbers[i], NULL);
    BEL_TRY(bel_predictor_bind(model, 0, &in));
    BEL_TRY(bel_predictor_run(model));
    bel_tensor out = bel_predictor_output(model, 0);
    for (int64_t i = 0; out.dtype == BEL_DTYPE_F32 && i < bel_shape_elements(&out.shape); i++)
        printf("%s%g", i > 0 ? " " : "", (double)((float *)out.data)[i]);
    printf("\n");
    return NULL;
}

int main(int argc, char **argv)
{
    bel_predictor *model = NULL;
    if (argc < 3) return fprintf(stderr, "usage: predict MODEL NUMBER…\n"), 2;
    bel_status *status = bel_predictor_load(argv[1], NULL, &model);
    if (status == NULL) status = predict(model, argc - 2, argv + 2);
    bel_predictor_destroy(model);
    return bel_status_report(status);
}
