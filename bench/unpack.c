// Unpacking a gzip'd IDX file of 60,000 images of 28 × 28 by bel_file_read, over a plain loop of
// zlib's gzread into memory of the right size. Half of an image is zeros, the rest is noise around
// a level, which compresses to about half, as Fashion-MNIST does. In turns; medians and quartiles.
// usage: bench_unpack [ROUNDS [FILE]] (FILE: another .gz)
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/rng.h"
#include "figures.h"

enum { IMAGES = 60000, PIXELS = 784, HEADER = 16, MAX_ROUNDS = 99 };

static void fail(const char *what)
{
    fprintf(stderr, "bench_unpack: %s\n", what);
    exit(1);
}

static void write_images(const char *path)
{
    bel_rng_key key = bel_rng_key_make(1, "images", 0);
    unsigned char image[PIXELS] = {0};
    gzFile file = gzopen(path, "wb6");
    if (file == NULL || gzwrite(file, image, HEADER) != HEADER) fail("cannot write");
    for (int i = 0; i < IMAGES; i++) {
        uint32_t words[4] = {0};
        for (int p = PIXELS / 4; p < 3 * PIXELS / 4; p++) {
            if (p % 4 == 0) bel_rng_block(key, (uint64_t)i, (uint64_t)p, words);
            image[p] = (unsigned char)(160 + words[p % 4] % 64);
        }
        if (gzwrite(file, image, PIXELS) != PIXELS) fail("cannot write");
    }
    gzclose(file);
}

static double read_belfry(const char *path, size_t *out_size)
{
    char *data;
    int64_t start = bel_clock_ns();
    bel_status *status = bel_file_read(path, &data, out_size);
    if (status != NULL) fail(bel_status_message(status));
    double seconds = (double)(bel_clock_ns() - start) * 1e-9;
    bel_free(data);
    return seconds;
}

static double read_zlib(const char *path, size_t size)
{
    int64_t start = bel_clock_ns();
    char *data = bel_xmalloc(size);
    gzFile file = gzopen(path, "rb");
    gzbuffer(file, 1 << 17);
    if (gzread(file, data, (unsigned)size) != (int)size) fail("gzread");
    gzclose(file);
    double seconds = (double)(bel_clock_ns() - start) * 1e-9;
    bel_free(data);
    return seconds;
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 9;
    if (rounds < 1 || rounds > MAX_ROUNDS) fail("usage: bench_unpack [ROUNDS [FILE]]");
    char made[64];
    snprintf(made, sizeof made, "/tmp/bench-unpack-%ld.gz", (long)getpid());
    const char *path = argc > 2 ? argv[2] : made;
    if (path == made) write_images(made);
    double belfry[MAX_ROUNDS], zlib[MAX_ROUNDS];
    size_t size;
    for (int i = -1; i < rounds; i++) { // one warm-up round, overwritten
        belfry[i < 0 ? 0 : i] = read_belfry(path, &size);
        zlib[i < 0 ? 0 : i] = read_zlib(path, size);
    }
    bench_spread ratio = bench_ratio_of(zlib, belfry, rounds);
    double megabytes = (double)size / 1e6;
    printf("unpacking %.1f MB: Belfry %.0f MB/s, gzread %.0f MB/s, ratio %.2f [%.2f, %.2f]\n",
           megabytes, megabytes / bench_median(belfry, rounds),
           megabytes / bench_median(zlib, rounds), ratio.median, ratio.low, ratio.high);
    if (path != made) return 0; // the figure is of the same file everywhere
    unlink(made);
    bench_figure("unpack", &ratio);
    return 0;
}
