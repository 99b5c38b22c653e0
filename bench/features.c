// JPEG files to batches for training on one thread: decode, shorter side to 256 pixels, random
// window of 224 × 224, random flip, normalize; and recordings to log-mel. bench/features runs it
// beside PyTorch. usage: bench_features images|sounds LIST.csv SECONDS
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "input/batch/input.h"
#include "mlp.h"

static bel_dataset *make_dataset(const char *kind, const char *path)
{
    static const bel_csv_column columns[] = {{"path", BEL_DTYPE_STRING}};
    static const bel_image_options images = {.size = sizeof images,
                                             .height = 224,
                                             .width = 224,
                                             .resize_short = 256,
                                             .random_crop = true,
                                             .random_flip = 0.5,
                                             .mean = {0.485, 0.456, 0.406},
                                             .deviation = {0.229, 0.224, 0.225}};
    static const bel_audio_options sounds = {
        .size = sizeof sounds, .sample_rate = 8000, .mel_count = 26};
    const bel_csv_options csv = {.size = sizeof csv,
                                 .paths = &path,
                                 .path_count = 1,
                                 .columns = columns,
                                 .column_count = 1,
                                 .label_column = "label"};
    bel_dataset *data = bel_dataset_from_csv(&csv);
    bel_dataset_repeat(data, BEL_REPEAT_FOREVER);
    if (strcmp(kind, "images") == 0) {
        bel_dataset_map_image(data, &images);
        bel_dataset_batch(data, 32);
    } else {
        bel_dataset_map_audio(data, &sounds);
        bel_dataset_padded_batch(data, 32, NULL, 0);
    }
    return data;
}

static bel_status *run(const char *kind, const char *path, double seconds)
{
    bel_dataset *data = make_dataset(kind, path);
    bel_input *input;
    bel_status *status = bel_input_open(data, NULL, &input);
    bel_dataset_destroy(data);
    BEL_TRY(status);
    bel_batch *batch = bel_batch_create(input);
    BEL_TRY(bel_input_read(input, 0, batch));
    int64_t begun = bel_clock_ns(), records = 0;
    double taken = 0;
    for (int64_t block = 1; taken < seconds; block++) {
        BEL_TRY(bel_input_read(input, block, batch));
        records += batch->example_count;
        taken = (double)(bel_clock_ns() - begun) * 1e-9;
    }
    printf("{\"bench\":\"features\",\"kind\":\"%s\",\"records_per_second\":%.1f}\n", kind,
           (double)records / taken);
    bel_batch_destroy(batch);
    bel_input_destroy(input);
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: bench_features images|sounds LIST.csv [SECONDS]\n");
        return 2;
    }
    return bench_end(run(argv[1], argv[2], argc > 3 ? strtod(argv[3], NULL) : 2));
}
