// The peer of bench_ps_step over MPI: two processes add up gradients, and each applies the update.
// Prints the median of a step in ms. bench/ps_step builds and runs it with mpicc and mpirun.
// usage: ps_step_mpi MILLIONS STEPS
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARM = 3, MAX_STEPS = 1000 };

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int count, char **arguments)
{
    MPI_Init(&count, &arguments);
    int rank, steps = count > 2 ? atoi(arguments[2]) : 15;
    int elements = (int)(strtod(count > 1 ? arguments[1] : "10", NULL) * 1e6);
    if (steps > MAX_STEPS) steps = MAX_STEPS;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    float *gradients = malloc((size_t)elements * sizeof *gradients);
    float *sums = malloc((size_t)elements * sizeof *sums);
    float *values = malloc((size_t)elements * sizeof *values);
    double times[MAX_STEPS];
    for (int i = 0; i < elements; i++)
        gradients[i] = sums[i] = values[i] = 1e-3f;
    for (int step = 0; step < WARM + steps; step++) {
        double begun = MPI_Wtime();
        MPI_Allreduce(gradients, sums, elements, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        for (int i = 0; i < elements; i++)
            values[i] -= 0.005f * sums[i];
        if (step >= WARM) times[step - WARM] = (MPI_Wtime() - begun) * 1e3;
    }
    qsort(times, (size_t)steps, sizeof *times, by_size);
    if (rank == 0) printf("%.3f\n", times[steps / 2]);
    MPI_Finalize();
    return values[0] > 1; // uses the result, so that it is computed
}
