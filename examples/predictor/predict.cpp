// Runs a model: reads numbers of its first input from the command line and prints its first output
// on one line. An open dimension is 1.
//
//   c++ -std=c++17 predict.cpp -o predict $(pkg-config --cflags --libs belfry-predictor)
//   ./predict model.onnx 0.5 1 -2
#include <belfry/predictor.h>

#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

static void check(bel_status *status)
{
    if (status == nullptr) return;
    const std::string message = bel_status_message(status);
    bel_status_destroy(status);
    throw std::runtime_error(message);
}

int main(int argc, char **argv)
try {
    if (argc < 3) throw std::runtime_error("usage: predict MODEL NUMBER…");
    bel_predictor *loaded = nullptr;
    check(bel_predictor_load(argv[1], nullptr, &loaded));
    const std::unique_ptr<bel_predictor, void (*)(bel_predictor *)> model(loaded, bel_predictor_destroy);
    std::vector<float> x;
    for (int i = 2; i < argc; i++) x.push_back(std::stof(argv[i]));
    const bel_port port = bel_predictor_input_port(model.get(), 0);
    bel_tensor in = {port.dtype, port.shape, x.data()};
    for (int d = 0; d < in.shape.rank; d++)
        if (in.shape.dims[d] < 0) in.shape.dims[d] = 1;
    if (in.dtype != BEL_DTYPE_F32 || bel_shape_elements(&in.shape) != argc - 2)
        throw std::runtime_error("the model takes " + std::to_string(bel_shape_elements(&in.shape)) + " floats");
    check(bel_predictor_bind(model.get(), 0, &in));
    check(bel_predictor_run(model.get()));
    const bel_tensor out = bel_predictor_output(model.get(), 0);
    for (int64_t i = 0; out.dtype == BEL_DTYPE_F32 && i < bel_shape_elements(&out.shape); i++)
        std::cout << (i > 0 ? " " : "") << static_cast<float *>(out.data)[i];
    std::cout << "\n";
} catch (const std::exception &error) {
    std::cerr << "predict: " << error.what() << "\n";
    return 1;
}
