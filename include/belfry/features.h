/// Features from files that records name, and from text: audio (WAV), images (JPEG, PNG, PGM, PPM)
/// and words. This makes padded batches of log-mel frames from a CSV file `path,label`:
///
/// ```c
/// static const bel_csv_column columns[] = {{"path", BEL_DTYPE_STRING}};
/// const bel_csv_options csv = {
///     .size = sizeof csv, .paths = (const char *[]){"train.csv"}, .path_count = 1,
///     .columns = columns, .column_count = 1, .label_column = "label", .class_count = 5};
/// const bel_audio_options audio = {.size = sizeof audio, .sample_rate = 8000, .mel_count = 26};
/// bel_dataset *data = bel_dataset_from_csv(&csv);
/// bel_dataset_shuffle(data, 0, 42);
/// bel_dataset_repeat(data, BEL_REPEAT_FOREVER);
/// bel_dataset_map_audio(data, &audio);
/// bel_dataset_padded_batch(data, 16, &(bel_padded_shape){"x", BEL_SHAPE(-1, 26)}, 1);
/// ```
///
/// Each kind has two interfaces. `bel_dataset_map_…` adds a complete map to a dataset. The
/// functions that it uses are public, for custom maps (bel_map_fn): read a file, change its
/// contents, and compute features from it.
///
/// **Options.** Set `size` and the fields you need. A number of 0 and NULL mean the default in the
/// comment. bel_dataset_map_… copy options, texts included.
///
/// **Same bits.** All results are functions of the file's bytes and the options, and with
/// augmentation of seed, record and epoch. They have the same bits on every processor
/// (docs/features.md says how this holds across the libraries used).
///
/// **Errors.** An impossible option is INVALID_ARGUMENT: functions return it at once,
/// bel_dataset_map_… when the dataset is opened and the first record is mapped. A missing file is
/// NOT_FOUND. DATA_LOSS: a file that is damaged, truncated, empty of content, of an unsupported
/// kind, or above a limit. The message has its path, the expected value and the actual value. In a
/// map the record's origin ("train.csv:17: ") precedes it. Outputs are set only on success.
///
/// **Thread rule.** Every function may be called by any thread. bel_audio is immutable; waves and
/// images belong to one thread at a time.
#ifndef BELFRY_FEATURES_H
#define BELFRY_FEATURES_H

#include "belfry/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Path field of a record, and the size limit of the file.
typedef struct bel_file_options {
    const char *path_field; ///< The STRING field with the path; NULL: "path". The map drops it.
    const char *folder;     ///< Base of relative paths; NULL: the folder of the record's file
                            ///< (bel_record_file).
    int64_t max_bytes;      ///< Larger files are refused; 0: 2^28 (256 MiB).
} bel_file_options;

/// --- Audio --------------------------------------------------------------------------------------

/// One channel of sound. Samples are in [-1, 1]; those of float files may be outside.
typedef struct bel_wave {
    float *samples;
    int64_t sample_count; ///< At least 1.
    int64_t sample_rate;  ///< In Hz.
} bel_wave;

/// Reads a WAV file: PCM of 8, 16, 24 and 32 bits, floats of 32 and 64 bits, also as
/// WAVE_FORMAT_EXTENSIBLE; 1 to 64 channels, which are averaged. Unknown chunks are skipped, odd
/// ones with their padding byte. DATA_LOSS: the samples end before the header's length, there are
/// no samples, or a sample is not finite. A length of 2^32 - 1, which programs write when they do
/// not know it yet, means up to the end of the file. Free `out_wave` with bel_wave_deinit.
/// max_bytes 0: 2^28.
BEL_API bel_status *bel_wave_read(const char *path, int64_t max_bytes,
                                  bel_wave *out_wave) BEL_MUST_USE;

/// Reads a WAV file from memory; `name` replaces the path in messages.
BEL_API bel_status *bel_wave_parse(const void *data, size_t size, const char *name,
                                   bel_wave *out_wave) BEL_MUST_USE;

/// Frees the samples and zeroes the struct; a zeroed one is fine.
BEL_API void bel_wave_deinit(bel_wave *wave);

/// Resamples a sound to another rate (Hz, 1 to 2^20): ceil(sample_count · to / from) samples. Uses
/// a windowed sinc in polyphase form (Smith & Gossett 1984), with 32 zero crossings to a side under
/// a Kaiser window. The gain is 1 to within 0.01 dB up to 84 % of the lower of the two Nyquist
/// frequencies; aliases are at least 80 dB down. Sound beyond its ends counts as silence. Errors:
/// INVALID_ARGUMENT: the ratio of the rates in lowest terms needs a table of more than 2^22
/// weights; DATA_LOSS: the result has more than 2^28 samples. Free `out_wave` with bel_wave_deinit.
BEL_API bel_status *bel_wave_resample(const bel_wave *wave, int64_t sample_rate,
                                      bel_wave *out_wave) BEL_MUST_USE;

/// Features of each frame.
typedef enum bel_audio_kind {
    BEL_AUDIO_LOG_MEL, ///< Natural logarithm of the power in each mel band: mel_count numbers.
    BEL_AUDIO_MFCC,    ///< The first mfcc_count of those numbers' orthonormal DCT-II.
    BEL_AUDIO_POWER,   ///< Power of each frequency, |X_k|²: fft_size / 2 + 1 numbers.
} bel_audio_kind;

/// Window of a frame. Both are periodic (the last sample does not repeat the first): Hann 0.5 - 0.5
/// cos(2π i / n), Hamming 0.54 - 0.46 cos(2π i / n).
typedef enum bel_audio_window { BEL_WINDOW_HANN, BEL_WINDOW_HAMMING } bel_audio_window;

/// Layout of mel bands. HTK: edges are evenly spaced and triangles straight in mel = 2595 log10(1 +
/// f / 700), triangles 1 high, as in HTK, Kaldi and TensorFlow. SLANEY: edges are linear below 1
/// kHz and logarithmic above, triangles straight in Hz and 2 / (their width in Hz) high, so that
/// their area is 1, as librosa's default. HTK is the default, as most speech recognizers use it.
typedef enum bel_mel_scale { BEL_MEL_HTK, BEL_MEL_SLANEY } bel_mel_scale;

/// Options of audio features. Frames begin every `hop_ms` and are inside the sound: 1 +
/// floor((samples - frame) / hop) of them. A sound that is shorter than a frame gives one, padded
/// with zeros. Frame and hop are rounded to the nearest sample.
typedef struct bel_audio_options {
    size_t size;       ///< sizeof(bel_audio_options): fields after it count as 0
    const char *field; ///< Becomes F32 [frames, width]; NULL: "x".
    bel_file_options file;
    const char *length_field; ///< Becomes I64 [], the number of frames; NULL: no such field.
    bel_audio_kind kind;
    int64_t sample_rate; ///< In Hz; sound of another rate is resampled to it. 0: 16,000.
    double frame_ms;     ///< 0: 25.
    double hop_ms;       ///< 0: 10.
    bel_audio_window window;
    int64_t fft_size; ///< A power of two, from the frame's samples to 2^15; 0: the smallest.
    bel_mel_scale mel_scale;
    int64_t mel_count;   ///< Bands, 1 to 512; 0: 40. An error names a band without a frequency.
    double low_hz;       ///< Lower edge of the first band; 0: at 0.
    double high_hz;      ///< Upper edge of the last band; 0: at the Nyquist frequency.
    double power_floor;  ///< Minimum of powers before the logarithm; 0: 1e-10.
    int64_t mfcc_count;  ///< 1 to mel_count; 0: 13.
    int64_t delta_order; ///< 1: appends their slopes over time (regression over two frames to each
                         ///< side, ends repeated); 2: also the slopes of these. 0: neither.
} bel_audio_options;

/// Adds a map that reads the record's file and adds `field`, and `length_field` if it is set.
BEL_API void bel_dataset_map_audio(bel_dataset *dataset, const bel_audio_options *options);

/// Tables shared by all sounds: window, bands, transforms. For custom maps.
typedef struct bel_audio bel_audio;
BEL_API bel_status *bel_audio_create(const bel_audio_options *options,
                                     bel_audio **out_audio) BEL_MUST_USE;
BEL_API void bel_audio_destroy(bel_audio *audio); ///< Accepts NULL.

/// Returns the numbers in a frame.
BEL_API int64_t bel_audio_width(const bel_audio *audio);
/// Returns the number of frames of a sound of `sample_count` samples (>= 1) at the options' rate.
BEL_API int64_t bel_audio_frame_count(const bel_audio *audio, int64_t sample_count);

/// Computes features of samples at the options' rate -> out [bel_audio_frame_count,
/// bel_audio_width].
BEL_API void bel_audio_compute(const bel_audio *audio, const float *samples, int64_t sample_count,
                               float *out);

/// --- Images -------------------------------------------------------------------------------------

/// Pixels [height, width, channels], rows from the top, 1 channel (gray) or 3 (red, green, blue).
typedef struct bel_image {
    uint8_t *pixels;
    int64_t height, width, channels; ///< Each at least 1.
} bel_image;

/// Options of reading an image.
typedef struct bel_image_read_options {
    size_t size;        ///< sizeof(bel_image_read_options): fields after it count as 0
    int64_t channels;   ///< 1 or 3; 0: 3. Gray is 0.299 r + 0.587 g + 0.114 b; alpha is dropped.
    int64_t max_bytes;  ///< Maximal size of the file; 0: 2^28.
    int64_t max_pixels; ///< Maximal height · width, checked in the header; 0: 10^8.
    int64_t enough_height, enough_width; ///< Both above 0: any size of at least this suffices. A
                                         ///< JPEG is then decoded at a half, quarter or eighth of
                                         ///< its size if that suffices, which is much faster.
} bel_image_read_options;

/// Reads an image file: JPEG (baseline and progressive; CMYK as well), PNG (8 and 16 bits, of which
/// the upper 8 count, palettes, interlaced) or binary PGM and PPM (P5, P6, any maximum up to
/// 65,535). Its first bytes determine the format, not its name. An orientation in Exif data is not
/// applied. DATA_LOSS: a PNG with wrong checksums, a JPEG that libjpeg has to guess parts of, or a
/// truncated file. options NULL: all defaults. Free `out_image` with bel_image_deinit.
BEL_API bel_status *bel_image_read(const char *path, const bel_image_read_options *options,
                                   bel_image *out_image) BEL_MUST_USE;

/// Reads an image from memory; `name` replaces the path in messages.
BEL_API bel_status *bel_image_parse(const void *data, size_t size, const char *name,
                                    const bel_image_read_options *options,
                                    bel_image *out_image) BEL_MUST_USE;

/// Frees the pixels and zeroes the struct; a zeroed one is fine.
BEL_API void bel_image_deinit(bel_image *image);

/// Filter of resizing. BILINEAR: a triangle over neighboring pixels that widens when an image
/// shrinks, so that all of them count (antialiased, as Pillow's). NEAREST: the pixel under the
/// middle of the new one.
typedef enum bel_image_filter { BEL_IMAGE_BILINEAR, BEL_IMAGE_NEAREST } bel_image_filter;

/// The functions below make a new image, which the caller frees with bel_image_deinit, and keep the
/// old one. Sizes are 1 to 2^16, and at most 10^8 pixels (INVALID_ARGUMENT).

/// Resizes an image.
BEL_API bel_status *bel_image_resize(const bel_image *image, int64_t height, int64_t width,
                                     bel_image_filter filter, bel_image *out_image) BEL_MUST_USE;

/// Crops an image to a window; pixels outside of the image are black. `top` and `left` may be
/// negative.
BEL_API bel_status *bel_image_crop(const bel_image *image, int64_t top, int64_t left,
                                   int64_t height, int64_t width,
                                   bel_image *out_image) BEL_MUST_USE;

/// Turns an image counterclockwise by `quarters` quarter turns, of any sign.
BEL_API bel_status *bel_image_turn(const bel_image *image, int64_t quarters,
                                   bel_image *out_image) BEL_MUST_USE;

/// Rotates an image counterclockwise around its middle by any angle, in the same size: bilinear,
/// with black outside the old image.
BEL_API bel_status *bel_image_rotate(const bel_image *image, double degrees,
                                     bel_image *out_image) BEL_MUST_USE;

/// Mirrors an image left and right, in place.
BEL_API void bel_image_flip(bel_image *image);

/// Normalizes pixels: (pixel · scale - mean[c]) / deviation[c] -> out F32 [channels, height,
/// width], or [height, width, channels] with `channels_last`. scale 0: 1 / 255; a deviation of 0 is
/// 1.
BEL_API void bel_image_normalize(const bel_image *image, double scale, const double mean[3],
                                 const double deviation[3], bool channels_last, float *out);

/// Options of image features, applied in this order: random quarter turn, resize, random rotation,
/// crop, flip, normalize.
typedef struct bel_image_options {
    size_t size;       ///< sizeof(bel_image_options): fields after it count as 0
    const char *field; ///< Becomes F32 [channels, height, width]; NULL: "x".
    bel_file_options file;
    int64_t channels;      ///< 1 or 3; 0: 3.
    int64_t height, width; ///< Size of the result. 0: both as in the file, without resize and crop.
    int64_t resize_short;  ///< Scales the image, with its proportions, until its shorter side has
                           ///< this many pixels (at least height and width); then crops it. 0:
                           ///< scales it to height × width, whatever its proportions.
    bel_image_filter filter;
    int64_t pad;      ///< Black pixels around the scaled image before it is cropped.
    bool random_crop; ///< The window is anywhere; else in the middle.
    /// Above 0, up to 1, instead of resize_short, pad and random_crop: a window anywhere in the
    /// file's image, scaled to height × width. Its area is between this share and all of the
    /// image's, its proportions are between 3:4 and 4:3 (Szegedy et al. 2015, section 6).
    double random_area;
    double random_flip;   ///< Probability of mirroring left and right.
    bool random_turn;     ///< By 0 to 3 quarters.
    double random_rotate; ///< Maximal angle in degrees to either side.
    uint64_t seed;        ///< Seed of all random choices, with the record's number and epoch.
    double scale;         ///< As in bel_image_normalize.
    double mean[3], deviation[3];
    bool channels_last; ///< [height, width, channels] instead.
    int64_t max_pixels; ///< As in bel_image_read_options.
} bel_image_options;

/// Adds a map that reads the record's image and adds `field`. Leave the random options unset for
/// evaluation.
BEL_API void bel_dataset_map_image(bel_dataset *dataset, const bel_image_options *options);

/// --- Text ---------------------------------------------------------------------------------------

/// Options of word features. Words are the longest runs of ASCII letters, ASCII digits and bytes
/// from 0x80 on, so words in UTF-8 of any language stay intact. ASCII letters become lower case.
/// All other bytes separate words.
typedef struct bel_words_options {
    size_t size;            ///< sizeof(bel_words_options): fields after it count as 0
    const char *text_field; ///< The STRING field; NULL: "text". The map drops it.
    const char *field;      ///< Becomes I64 [ids]; NULL: "ids".
    const char *hash_name;  ///< Part of every id; NULL: the same as `field`.
    bool keep_case;
    int64_t ngrams; ///< 2: also pairs of neighbors after the words; 3: also triples; at most 8; 0:
                    ///< 1.
    int64_t max_count; ///< Maximal number of ids; the rest is dropped; 0: no limit.
} bel_words_options;

/// Adds a map that converts words to ids for tables (bel_embedding).
BEL_API void bel_dataset_map_words(bel_dataset *dataset, const bel_words_options *options);

/// Computes ids of a text's words, then of its pairs of neighboring words and so on, each in the
/// order of the text. Returns their number, and writes the first `capacity` of them. The id of a
/// word is the same as for bel_csv_options.id_columns in a column called `hash_name`: the low half
/// of XXH3's 128 bits, seeded with the 64 of the name. Words of a pair are hashed with one space
/// between them. options NULL: defaults. -1: their size is unset (belfry.h).
BEL_API int64_t bel_word_ids(const char *text, size_t length, const bel_words_options *options,
                             int64_t *out_ids, int64_t capacity);

/// --- Randomness in custom maps ------------------------------------------------------------------

/// Returns a uniform random number in [0, 1): a function of seed, the record's number and epoch,
/// and `index`, which distinguishes the choices that a map makes for a record.
BEL_API double bel_record_random(const bel_record *record, uint64_t seed, uint32_t index);

#ifdef __cplusplus
}
#endif

#endif
