/// Features from files that records name, and from text: audio (WAV), images (JPEG, PNG, PGM, PPM)
/// and words. From a CSV file `path,label` to padded batches of log-mel frames:
///
/// ```c
/// static const bel_csv_column columns[] = {{"path", BEL_DTYPE_STRING}};
/// bel_dataset *data = bel_dataset_from_csv(&(bel_csv_options){
///     .paths = (const char *[]){"train.csv"}, .path_count = 1, .columns = columns,
///     .column_count = 1, .label_column = "label", .class_count = 5});
/// bel_dataset_shuffle(data, 0, 42);
/// bel_dataset_repeat(data, BEL_REPEAT_FOREVER);
/// bel_dataset_map_audio(data, &(bel_audio_options){.sample_rate = 8000, .mel_count = 26});
/// bel_dataset_padded_batch(data, 16, &(bel_padded_shape){"x", BEL_SHAPE(-1, 26)}, 1);
/// ```
///
/// Each kind has two ways in. `bel_dataset_map_…` adds a finished map to a dataset. The functions
/// behind it are here too, for maps of your own (bel_map_fn): read a file, change what it holds,
/// and compute features from it.
///
/// **Options.** Structs of options are zero-initialised; then set what you need. A number of 0 and
/// a NULL mean the default that stands in the comment. bel_dataset_map_… copy them, texts included.
///
/// **Same bits.** Whatever is computed here is a function of the file's bytes and the options, and
/// with augmentation of seed, record and epoch; it has the same bits on every processor
/// (docs/features.md says what carries that through the libraries that are used).
///
/// **Errors.** An option that makes no sense is INVALID_ARGUMENT: from functions at once, from
/// bel_dataset_map_… when the dataset is opened and the first record is mapped. A file that is
/// missing is NOT_FOUND; one that is damaged, cut off, empty of content, of a kind that is not read
/// here, or above a limit is DATA_LOSS, and the message has its path, what was expected and what
/// came. In a map the record's origin ("train.csv:17: ") stands before that. Outputs are set on
/// success alone.
///
/// **Thread rule.** Every function may be called by any thread. bel_audio is immutable; waves and
/// images belong to one thread at a time.
#ifndef BELFRY_FEATURES_H
#define BELFRY_FEATURES_H

#include "belfry/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Which file a record names, and how much of it is read at most.
typedef struct bel_file_options {
    const char *path_field; ///< The STRING field with the path; NULL: "path". The map drops it.
    const char *folder;     ///< What relative paths are relative to; NULL: the folder of the file
                            ///< that the record is from (bel_record_file).
    int64_t max_bytes;      ///< A larger file is refused; 0: 2^28 (256 MiB).
} bel_file_options;

/// --- Audio --------------------------------------------------------------------------------------

/// One channel of sound. Samples lie in [-1, 1], but those of float files may lie outside.
typedef struct bel_wave {
    float *samples;
    int64_t sample_count; ///< At least 1.
    int64_t sample_rate;  ///< In Hz.
} bel_wave;

/// Reads a WAV file: PCM of 8, 16, 24 and 32 bits, floats of 32 and 64 bits, also as
/// WAVE_FORMAT_EXTENSIBLE; 1 to 64 channels, of which the mean is taken. Chunks that are not known
/// are passed over, odd ones with their padding byte. A file whose samples end before the header
/// says is DATA_LOSS; a length of 2^32 - 1, as programs write it that do not know it yet, means up
/// to the end of the file. So are one without samples, and a sample that is no finite number. Free
/// `out_wave` with bel_wave_deinit. max_bytes 0: 2^28.
BEL_API bel_status *bel_wave_read(const char *path, int64_t max_bytes,
                                  bel_wave *out_wave) BEL_MUST_USE;

/// The same from memory; `name` stands in messages for the path.
BEL_API bel_status *bel_wave_parse(const void *data, size_t size, const char *name,
                                   bel_wave *out_wave) BEL_MUST_USE;

/// Frees the samples and zeroes the struct; a zeroed one is fine.
BEL_API void bel_wave_deinit(bel_wave *wave);

/// The same sound at another rate (Hz, 1 to 2^20): ceil(sample_count · to / from) samples. A
/// windowed sinc in polyphase form (Smith & Gossett 1984), 32 zero crossings to a side under a
/// Kaiser window: up to 84 % of the lower of the two Nyquist frequencies the gain is 1 to within
/// 0.01 dB, and what would alias is at least 80 dB down. Sound beyond its ends is taken to be
/// silence. Error: the rates' ratio in lowest terms is one of numbers too large for a table of 2^22
/// weights (INVALID_ARGUMENT), or the result has more than 2^28 samples (DATA_LOSS). Free
/// `out_wave` with bel_wave_deinit.
BEL_API bel_status *bel_wave_resample(const bel_wave *wave, int64_t sample_rate,
                                      bel_wave *out_wave) BEL_MUST_USE;

/// What is computed of each frame.
typedef enum bel_audio_kind {
    BEL_AUDIO_LOG_MEL, ///< Natural logarithm of the power in each mel band: mel_count numbers.
    BEL_AUDIO_MFCC,    ///< The first mfcc_count of those numbers' orthonormal DCT-II.
    BEL_AUDIO_POWER,   ///< Power of each frequency, |X_k|²: fft_size / 2 + 1 numbers.
} bel_audio_kind;

/// Both are periodic (the last sample is not the first again): Hann 0.5 - 0.5 cos(2π i / n),
/// Hamming 0.54 - 0.46 cos(2π i / n).
typedef enum bel_audio_window { BEL_WINDOW_HANN, BEL_WINDOW_HAMMING } bel_audio_window;

/// How bands lie. HTK: edges and triangles are evenly spaced and straight in mel = 2595 log10(1 + f
/// / 700), triangles 1 high, as in HTK, Kaldi and TensorFlow. SLANEY: edges are linear below 1 kHz
/// and logarithmic above, triangles straight in Hz and 2 / (their width in Hz) high, so that their
/// area is 1, as librosa's default. HTK is the default, as recognisers of speech mostly use it.
typedef enum bel_mel_scale { BEL_MEL_HTK, BEL_MEL_SLANEY } bel_mel_scale;

/// Frames begin every `hop_ms` as long as they lie within the sound: 1 + floor((samples - frame) /
/// hop) of them; a sound that is shorter than a frame gives one, filled up with zeros. Frame and
/// hop are rounded to the nearest sample.
typedef struct bel_audio_options {
    const char *field; ///< Becomes F32 [frames, width]; NULL: "x".
    bel_file_options file;
    const char *length_field; ///< Becomes I64 [], the number of frames; NULL: no such field.
    bel_audio_kind kind;
    int64_t sample_rate; ///< In Hz; sound of another rate is resampled to it. 0: 16,000.
    double frame_ms;     ///< 0: 25.
    double hop_ms;       ///< 0: 10.
    bel_audio_window window;
    int64_t fft_size; ///< A power of two, from the frame's samples to 2^15; 0: the smallest such.
    bel_mel_scale mel_scale;
    int64_t mel_count;   ///< Bands, 1 to 512; 0: 40. The message names a band that sees nothing.
    double low_hz;       ///< Where the first band begins; 0: at 0.
    double high_hz;      ///< Where the last one ends; 0: at the Nyquist frequency.
    double power_floor;  ///< Powers below it count as it before the logarithm; 0: 1e-10.
    int64_t mfcc_count;  ///< 1 to mel_count; 0: 13.
    int64_t delta_order; ///< 1: behind them, their slopes over time (regression over two frames to
                         ///< each side, ends repeated); 2: and the slopes of these. 0: neither.
} bel_audio_options;

/// Adds a map that reads the record's file and adds `field`, and `length_field` where asked for.
BEL_API void bel_dataset_map_audio(bel_dataset *dataset, const bel_audio_options *options);

/// What is computed once for all sounds: window, bands, tables. For maps of your own.
typedef struct bel_audio bel_audio;
BEL_API bel_status *bel_audio_create(const bel_audio_options *options,
                                     bel_audio **out_audio) BEL_MUST_USE;
BEL_API void bel_audio_destroy(bel_audio *audio); ///< Accepts NULL.

/// Numbers of a frame, and frames of a sound of so many samples (>= 1) at the options' rate.
BEL_API int64_t bel_audio_width(const bel_audio *audio);
BEL_API int64_t bel_audio_frame_count(const bel_audio *audio, int64_t sample_count);

/// Features of samples at the options' rate -> out [bel_audio_frame_count, bel_audio_width].
BEL_API void bel_audio_compute(const bel_audio *audio, const float *samples, int64_t sample_count,
                               float *out);

/// --- Images -------------------------------------------------------------------------------------

/// Pixels [height, width, channels], rows from the top, 1 channel (grey) or 3 (red, green, blue).
typedef struct bel_image {
    uint8_t *pixels;
    int64_t height, width, channels; ///< Each at least 1.
} bel_image;

/// How an image is read.
typedef struct bel_image_read_options {
    int64_t channels;   ///< 1 or 3; 0: 3. Grey is 0.299 r + 0.587 g + 0.114 b; alpha is dropped.
    int64_t max_bytes;  ///< Of the file; 0: 2^28.
    int64_t max_pixels; ///< height · width as the header has it, looked at first; 0: 10^8.
    int64_t enough_height, enough_width; ///< Both above 0: an image of at least that size will do.
                                         ///< A JPEG is then decoded at a half, quarter or eighth
                                         ///< of its size where that suffices, which is much faster.
} bel_image_read_options;

/// Reads a JPEG (baseline and progressive; CMYK as well), PNG (8 and 16 bits, of which the upper 8
/// count, palettes, interlaced) or binary PGM and PPM (P5, P6, any maximum up to 65,535) file;
/// which one its first bytes tell, not its name. An orientation in Exif data is not applied. A PNG
/// whose checksums are wrong is DATA_LOSS, as are a JPEG that libjpeg has to guess parts of and
/// anything behind which bytes are missing. options NULL: all defaults. Free `out_image` with
/// bel_image_deinit.
BEL_API bel_status *bel_image_read(const char *path, const bel_image_read_options *options,
                                   bel_image *out_image) BEL_MUST_USE;

/// The same from memory; `name` stands in messages for the path.
BEL_API bel_status *bel_image_parse(const void *data, size_t size, const char *name,
                                    const bel_image_read_options *options,
                                    bel_image *out_image) BEL_MUST_USE;

/// Frees the pixels and zeroes the struct; a zeroed one is fine.
BEL_API void bel_image_deinit(bel_image *image);

/// BILINEAR: a triangle over neighbouring pixels, which grows as an image shrinks, so that all of
/// them count (antialiased, as Pillow's). NEAREST: the pixel under the middle of the new one.
typedef enum bel_image_filter { BEL_IMAGE_BILINEAR, BEL_IMAGE_NEAREST } bel_image_filter;

/// The functions below make a new image, freed with bel_image_deinit; the old one stays. Sizes are
/// 1 to 2^16, and 10^8 pixels at most (INVALID_ARGUMENT).

/// The same picture in another size.
BEL_API bel_status *bel_image_resize(const bel_image *image, int64_t height, int64_t width,
                                     bel_image_filter filter, bel_image *out_image) BEL_MUST_USE;

/// A window of the image; what lies outside of the image is black. `top` and `left` may be
/// negative.
BEL_API bel_status *bel_image_crop(const bel_image *image, int64_t top, int64_t left,
                                   int64_t height, int64_t width,
                                   bel_image *out_image) BEL_MUST_USE;

/// Turned counterclockwise by so many quarters, of any sign.
BEL_API bel_status *bel_image_turn(const bel_image *image, int64_t quarters,
                                   bel_image *out_image) BEL_MUST_USE;

/// Turned counterclockwise around its middle by any angle, in a picture of the same size: bilinear,
/// with black where the old one does not reach.
BEL_API bel_status *bel_image_rotate(const bel_image *image, double degrees,
                                     bel_image *out_image) BEL_MUST_USE;

/// Mirrors left and right, in place.
BEL_API void bel_image_flip(bel_image *image);

/// (pixel · scale - mean[c]) / deviation[c] -> out F32 [channels, height, width], or [height,
/// width, channels] with `channels_last`. scale 0: 1 / 255; a deviation of 0 is 1.
BEL_API void bel_image_normalise(const bel_image *image, double scale, const double mean[3],
                                 const double deviation[3], bool channels_last, float *out);

/// In this order: random quarter turn, resize, random rotation, crop, flip, normalise.
typedef struct bel_image_options {
    const char *field; ///< Becomes F32 [channels, height, width]; NULL: "x".
    bel_file_options file;
    int64_t channels;      ///< 1 or 3; 0: 3.
    int64_t height, width; ///< Of the result. 0: both as in the file, without resize and crop.
    int64_t resize_short;  ///< The image is scaled, keeping its proportions, until its shorter side
                           ///< has so many pixels (at least height and width); then it is cropped.
                           ///< 0: it is scaled to height × width, whatever its proportions.
    bel_image_filter filter;
    int64_t pad;        ///< Before it is cropped: so many black pixels around the scaled image.
    bool random_crop;   ///< The window lies anywhere; else in the middle.
    double random_area; ///< Above 0, up to 1, in place of resize_short, pad and random_crop: a
                        ///< window of between this part of the area and all of it, its proportions
                        ///< between 3:4 and 4:3, lies anywhere in the file's image and is scaled to
                        ///< height × width (Szegedy et al. 2015, section 6).
    double random_flip; ///< Probability of mirroring left and right.
    bool random_turn;   ///< By 0 to 3 quarters.
    double random_rotate; ///< By at most so many degrees to either side.
    uint64_t seed;        ///< Of everything random, with the record's number and epoch.
    double scale;         ///< As in bel_image_normalise.
    double mean[3], deviation[3];
    bool channels_last; ///< [height, width, channels] instead.
    int64_t max_pixels; ///< As in bel_image_read_options.
} bel_image_options;

/// Adds a map that reads the record's image and adds `field`. For evaluation leave the random
/// options out.
BEL_API void bel_dataset_map_image(bel_dataset *dataset, const bel_image_options *options);

/// --- Text ---------------------------------------------------------------------------------------

/// Words are the longest runs of ASCII letters, ASCII digits and bytes from 0x80 on, so that words
/// of any language in UTF-8 stay whole, in lower case where they are ASCII; whatever lies between
/// separates them.
typedef struct bel_words_options {
    const char *text_field; ///< The STRING field; NULL: "text". The map drops it.
    const char *field;      ///< Becomes I64 [ids]; NULL: "ids".
    const char *hash_name;  ///< Enters every id; NULL: the same as `field`.
    int64_t ngrams; ///< 2: behind the words, pairs of neighbours; 3: and triples; at most 8; 0: 1.
    int64_t max_count; ///< Ids behind so many are left out; 0: none.
    bool keep_case;
} bel_words_options;

/// Adds a map that makes ids of words, for tables (bel_embedding).
BEL_API void bel_dataset_map_words(bel_dataset *dataset, const bel_words_options *options);

/// Ids of a text's words, then of its pairs of neighbouring words and so on, each in the order of
/// the text -> how many there are; the first `capacity` of them are written. The id of a word is
/// what bel_csv_options.id_columns make of it in a column called `hash_name`: the low half of
/// XXH3's 128 bits, seeded with the 64 of the name. Words of a pair are hashed with one space
/// between them. options NULL: defaults.
BEL_API int64_t bel_word_ids(const char *text, size_t length, const bel_words_options *options,
                             int64_t *out_ids, int64_t capacity);

/// --- Chance in maps of your own -----------------------------------------------------------------

/// A number in [0, 1), evenly spread: a function of seed, the record's number and epoch, and
/// `index`, which tells apart the choices that a map makes for a record.
BEL_API double bel_record_random(const bel_record *record, uint64_t seed, uint32_t index);

#ifdef __cplusplus
}
#endif

#endif
