// Fuzz target for TFRecord files and tf.train.Example. The first byte chooses between a file and
// records. Records follow two bytes of length each, and get frames with correct checksums. The byte
// also chooses whether examples are decoded.
#include "base/hash.h"
#include "base/str.h"
#include "belfry/features.h"
#include "fuzz/read_all.h"

// TensorFlow's masked CRC-32C.
static void put_crc(bel_str *out, const char *bytes, size_t count)
{
    uint32_t crc = bel_crc32c(0, bytes, count);
    uint32_t masked = (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
    char four[4];
    for (int i = 0; i < 4; i++)
        four[i] = (char)(uint8_t)(masked >> (8 * i));
    bel_str_append(out, four, sizeof four);
}

static void frame(fuzz_input *input, bel_str *out)
{
    while (input->left > 0) {
        size_t wanted = (size_t)fuzz_take(input, 2), count;
        const char *bytes = (const char *)fuzz_take_bytes(input, wanted, &count);
        const char length[8] = {(char)(count & 255), (char)(count >> 8)};
        bel_str_append(out, length, sizeof length);
        put_crc(out, length, sizeof length);
        bel_str_append(out, bytes, count);
        put_crc(out, bytes, count);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const float none = 0;
    const bel_example_feature features[] = {
        {.key = "f", .dtype = BEL_DTYPE_F32, .shape = BEL_SHAPE(2), .missing = &none},
        {.key = "i", .dtype = BEL_DTYPE_I64, .shape = BEL_SHAPE(-1)},
        {.key = "b", .dtype = BEL_DTYPE_U8, .shape = BEL_SHAPE(-1, 3)},
    };
    fuzz_input input = {data, size};
    unsigned first = (unsigned)fuzz_take(&input, 1);
    bel_str file = {0};
    if (first & 1) {
        frame(&input, &file);
    } else {
        bel_str_append(&file, (const char *)input.at, input.left);
    }
    const char *path = fuzz_file(0, (const uint8_t *)file.text, file.length);
    bel_str_deinit(&file);
    bel_tfrecord_options options = {.size = sizeof options, .paths = &path, .path_count = 1};
    if (!(first & 2)) {
        options.features = features;
        options.feature_count = 3;
    }
    bel_dataset *dataset = bel_dataset_from_tfrecord(&options);
    if (first & 2)
        bel_dataset_map_words(dataset, &(bel_words_options){.size = sizeof(bel_words_options),
                                                            .text_field = "record"});
    if (first & 4) bel_dataset_skip_bad_records(dataset, 2);
    fuzz_read_all(dataset, true);
    return 0;
}
