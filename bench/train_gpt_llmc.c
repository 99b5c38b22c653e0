// The peer of bench_train_gpt in C: the training step of Karpathy's llm.c on the CPU, on random
// weights and tokens of the same sizes. bench/train builds it with the flags of llm.c's Makefile
// if LLM_C names a folder with a copy of it. usage: OMP_NUM_THREADS=N train_gpt_llmc nano|gpt2
#define TESTING // leaves out its main
#include "train_gpt2.c"

static void fill_parameters(GPT2 *model)
{
    uint32_t state = 1;
    fill_in_parameter_sizes(model->param_sizes, model->config);
    for (int i = 0; i < NUM_PARAMETER_TENSORS; i++)
        model->num_parameters += model->param_sizes[i];
    model->params_memory = malloc_and_point_parameters(&model->params, model->param_sizes);
    for (size_t i = 0; i < model->num_parameters; i++) {
        state = state * 1664525u + 1013904223u;
        model->params_memory[i] = ((float)(state >> 8) * 0x1p-24f - 0.5f) * 0.04f;
    }
}

int main(int count, char **arguments)
{
    enum { T = 64, MOST = 12 * T };
    int large = count == 2 && strcmp(arguments[1], "gpt2") == 0;
    if (count != 2 || (!large && strcmp(arguments[1], "nano") != 0)) {
        fprintf(stderr, "usage: %s nano|gpt2\n", arguments[0]);
        return 2;
    }
    int batch = large ? 4 : 12, steps = large ? 2 : 40, inputs[MOST], targets[MOST];
    GPT2 model = {.mean_loss = -1};
    model.config = large ? (GPT2Config){.max_seq_len = 1024,
                                        .vocab_size = 50257,
                                        .padded_vocab_size = 50304,
                                        .num_layers = 12,
                                        .num_heads = 12,
                                        .channels = 768}
                         : (GPT2Config){.max_seq_len = T,
                                        .vocab_size = 65,
                                        .padded_vocab_size = 128,
                                        .num_layers = 4,
                                        .num_heads = 4,
                                        .channels = 128};
    fill_parameters(&model);
    struct timespec begin, end;
    for (int step = 0; step <= steps; step++) { // the first one allocates, and is not measured
        if (step == 1) clock_gettime(CLOCK_MONOTONIC, &begin);
        for (int i = 0; i < batch * T; i++) {
            inputs[i] =
                (int)((uint32_t)(step * batch * T + i) * 2654435761u % model.config.vocab_size);
            targets[i] = (inputs[i] + 1) % (int)model.config.vocab_size;
        }
        gpt2_forward(&model, inputs, targets, (size_t)batch, T);
        gpt2_zero_grad(&model);
        gpt2_backward(&model);
        gpt2_update(&model, 1e-3f, 0.9f, 0.99f, 1e-8f, 0.1f, step + 1);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    double seconds =
        (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    printf("{\"examples_per_second\": %.1f}\n", steps * batch / seconds);
    return 0;
}
