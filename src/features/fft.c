// Discrete Fourier transform of real frames. They are transformed as complex numbers of half the
// size, by Stockham's radix-2 passes, which need no bit reversal. The result is split into the
// spectra of the even and the odd numbers (Press et al., section 12.3). Belfry implements it
// because the results enter batches: Debian's kissfft is compiled with fused multiply-adds on
// aarch64 and without on x86-64, and takes its twiddles from the C library, so its last bits differ
// (docs/features.md). Here each number results from single operations in one order. Eight frames
// are side by side, so that compilers vectorize across them without changing that order.
//
// The pass with stride s over blocks of n: for p < n / 2, q < s
//
//   y[2p · s + q]       =  x[p · s + q] + x[(p + n / 2) · s + q]
//   y[(2p + 1) · s + q] = (x[p · s + q] - x[(p + n / 2) · s + q]) · e^(-2πi p / n)
#include "features/fft.h"

#include <string.h>

#include "base/alloc.h"
#include "base/real.h"

enum { L = BEL_FFT_LANES };

typedef struct twiddle {
    float re, im;
} twiddle;

struct bel_fft {
    int64_t half;    // complex numbers of a transform
    twiddle *passes; // e^(-2πi k / half), k < half / 2
    twiddle *split;  // e^(-2πi k / size), k <= half
};

static twiddle fft_root(int64_t k, int64_t n)
{
    double angle = -2 * 3.14159265358979323846 * (double)k / (double)n;
    return (twiddle){(float)bel_real_cos(angle), (float)bel_real_sin(angle)};
}

bel_fft *bel_fft_create(int64_t size)
{
    bel_fft *fft = bel_xcalloc(1, sizeof *fft);
    fft->half = size / 2;
    fft->passes = bel_xcalloc((size_t)(fft->half / 2 + 1), sizeof *fft->passes);
    fft->split = bel_xcalloc((size_t)(fft->half + 1), sizeof *fft->split);
    for (int64_t k = 0; k < fft->half / 2; k++)
        fft->passes[k] = fft_root(k, fft->half);
    for (int64_t k = 0; k <= fft->half; k++)
        fft->split[k] = fft_root(k, size);
    return fft;
}

void bel_fft_destroy(bel_fft *fft)
{
    if (fft == NULL) return;
    bel_free(fft->passes);
    bel_free(fft->split);
    bel_free(fft);
}

// Two arrays of complex numbers, each [half, 2, lanes]: real parts, then imaginary ones.
int64_t bel_fft_scratch(const bel_fft *fft)
{
    return 2 * fft->half * 2 * L;
}

// a and b -> sum and (a - b) · w; each 2 · L floats.
static inline void butterfly(const float *restrict a, const float *restrict b, twiddle w,
                             float *restrict sum, float *restrict turned)
{
    for (int i = 0; i < L; i++) {
        float re = a[i] - b[i], im = a[L + i] - b[L + i];
        sum[i] = a[i] + b[i];
        sum[L + i] = a[L + i] + b[L + i];
        turned[i] = re * w.re - im * w.im;
        turned[L + i] = re * w.im + im * w.re;
    }
}

// Returns the one of the two arrays that has the result.
static const float *transform(const bel_fft *fft, float *x, float *y)
{
    int64_t stride = 1;
    for (int64_t n = fft->half; n > 1; n /= 2, stride *= 2) {
        for (int64_t p = 0; p < n / 2; p++) {
            twiddle w = fft->passes[p * stride];
            const float *a = x + p * stride * 2 * L, *b = x + (p + n / 2) * stride * 2 * L;
            float *sum = y + 2 * p * stride * 2 * L, *turned = y + (2 * p + 1) * stride * 2 * L;
            for (int64_t q = 0; q < stride * 2 * L; q += 2 * L)
                butterfly(a + q, b + q, w, sum + q, turned + q);
        }
        float *old = x;
        x = y;
        y = old;
    }
    return x;
}

// Computes |X_k|² with X_k = E_k + w_k O_k. E and O, the spectra of even and odd numbers, follow
// from Z_k and the conjugate of Z_(half - k).
static inline void split_power(const float *restrict z, const float *restrict mirror, twiddle w,
                               float *restrict power)
{
    for (int i = 0; i < L; i++) {
        float even_re = 0.5F * (z[i] + mirror[i]), even_im = 0.5F * (z[L + i] - mirror[L + i]);
        float odd_re = 0.5F * (z[L + i] + mirror[L + i]), odd_im = 0.5F * (mirror[i] - z[i]);
        float re = even_re + (odd_re * w.re - odd_im * w.im);
        float im = even_im + (odd_re * w.im + odd_im * w.re);
        power[i] = re * re + im * im;
    }
}

void bel_fft_power(const bel_fft *fft, const float *frames, float *scratch, float *power)
{
    int64_t half = fft->half;
    // Numbers 2k and 2k + 1 are the parts of complex number k, so the layout already fits.
    memcpy(scratch, frames, (size_t)(half * 2 * L) * sizeof *scratch);
    const float *z = transform(fft, scratch, scratch + half * 2 * L);
    for (int64_t k = 0; k <= half; k++) {
        const float *at = z + k % half * 2 * L, *mirror = z + (half - k) % half * 2 * L;
        split_power(at, mirror, fft->split[k], power + k * L);
    }
}
