// Softmax regression on images of digits, in plain C and one process.
// usage: alone TRAIN.csv [STEPS]
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PIXELS = 64, DIGITS = 10, ROW = PIXELS + 1, BATCH = 32, MOST_ROWS = 10000 };

static float images[MOST_ROWS][PIXELS];
static int labels[MOST_ROWS];
static float weights[DIGITS * ROW], gradients[DIGITS * ROW]; // by digit: pixels, bias

static int read_rows(const char *path)
{
    FILE *file = fopen(path, "r");
    int rows = 0;
    if (file == NULL) return 0;
    if (fscanf(file, "%*[^\n]") != 0) rows = -1; // names of the columns
    for (; rows >= 0 && rows < MOST_ROWS; rows++) {
        int pixel, read = 0;
        while (read < PIXELS && fscanf(file, "%d,", &pixel) == 1)
            images[rows][read++] = (float)pixel / 16;
        if (read < PIXELS || fscanf(file, "%d", &labels[rows]) != 1) break;
    }
    fclose(file);
    return rows;
}

// Adds a row's part to the mean gradients of a batch; returns its loss.
static float learn(int row)
{
    float scores[DIGITS], sum = 0;
    for (int d = 0; d < DIGITS; d++) {
        const float *w = weights + d * ROW;
        scores[d] = w[PIXELS];
        for (int p = 0; p < PIXELS; p++)
            scores[d] += w[p] * images[row][p];
        sum += scores[d] = expf(scores[d]);
    }
    for (int d = 0; d < DIGITS; d++) {
        float error = (scores[d] / sum - (float)(d == labels[row])) / BATCH;
        for (int p = 0; p < PIXELS; p++)
            gradients[d * ROW + p] += error * images[row][p];
        gradients[d * ROW + PIXELS] += error;
    }
    return -logf(scores[labels[row]] / sum) / BATCH;
}

int main(int count, char **arguments)
{
    int rows = count > 1 ? read_rows(arguments[1]) : 0;
    int steps = count > 2 ? atoi(arguments[2]) : 500;
    float rate = 0.1f;
    if (rows < BATCH) return fprintf(stderr, "usage: alone TRAIN.csv [STEPS]\n"), 2;
    for (int i = 0; i < DIGITS * ROW; i++)
        weights[i] = (float)rand() / (float)RAND_MAX / 100;
    for (int step = 1; step <= steps; step++) {
        float loss = 0;
        for (int i = 0; i < DIGITS * ROW; i++)
            gradients[i] = 0;
        for (int i = 0; i < BATCH; i++)
            loss += learn((step * BATCH + i) % rows);
        for (int i = 0; i < DIGITS * ROW; i++)
            weights[i] -= rate * gradients[i];
        if (step % 100 == 0) printf("step %d: loss %.4f\n", step, loss);
    }
    return 0;
}
