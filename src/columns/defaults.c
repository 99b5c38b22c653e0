// Rules for layers, penalty, batch and passes. Cross-validation on the training rows of the tables
// in bench/tables gave them (docs/columns.md). They depend only on what a description says of a
// table, so the command, C programs and Python train the same model on it.
#include "columns/defaults.h"

#include "base/number.h"

// Numbers of rows: below TINY_TABLE a few units are enough, from MIDDLE_TABLE on larger batches
// pay, and from LARGE_TABLE on models overfit little.
enum { TINY_TABLE = 500, MIDDLE_TABLE = 5000, LARGE_TABLE = 20000, HUGE_TABLE = 100000 };

// Returns true for a table of measured values. Numbers without categories are mostly measured, and
// determine their label with little noise; a label of two classes says least about a row. Only
// measured tables gain from more units, more passes and a smaller penalty. Other tables overfit
// with them.
static bool is_measured(const bel_table_size *size)
{
    return size->numbers && size->class_count != 2 && size->rows >= TINY_TABLE;
}

// Returns true for a small table of numbers with a label of two classes. One layer of more units
// serves it best, and the penalty that serves it hardly depends on the number of columns.
static bool is_binary(const bel_table_size *size)
{
    return size->numbers && size->class_count == 2 && size->rows < MIDDLE_TABLE;
}

// Returns true for a small table that learns a number and is not measured. With two hidden layers
// and the penalty that such a table needs, the kernels of the layers may all become 0. Only the
// wide part then learns.
static bool is_regression(const bel_table_size *size)
{
    bool small = size->rows >= TINY_TABLE && size->rows < MIDDLE_TABLE;
    return size->class_count == 0 && small && !is_measured(size);
}

// Returns the penalty. A table overfits more with more columns per row, and with a label that is a
// number more than with classes.
static double penalty_of(const bel_table_size *size)
{
    const double of_classes = 0.3, of_numbers = 1, of_measured = 0.1, most = 0.1;
    const double least_of_tiny = 0.01, most_of_binary = 0.01, binary_rows = 10;
    if (is_binary(size)) {
        double by_rows = binary_rows / ((double)size->rows + 1);
        return by_rows < most_of_binary ? by_rows : most_of_binary;
    }
    bool classes = size->class_count > 0;
    double l2 = (classes ? of_classes : of_numbers) * size->columns / ((double)size->rows + 1);
    if (is_measured(size)) l2 *= of_measured;
    if (classes && size->rows < TINY_TABLE && l2 < least_of_tiny) l2 = least_of_tiny;
    return l2 < most ? l2 : most;
}

// The penalty with three digits, as a person would write it.
static double l2_of(const bel_table_size *size)
{
    char text[32];
    bel_snprintf(text, sizeof text, "%.3g", penalty_of(size));
    return bel_strtod(text, NULL);
}

// A small table gets some thousand steps, a large one a few passes: more if it is measured.
static int64_t epochs_of(const bel_table_size *size)
{
    enum { EXAMPLES = 100000, MOST = 300, LEAST = 3, LEAST_OF_SMALL = 10 };
    enum { EXAMPLES_OF_MEASURED = 200000, LEAST_OF_MEASURED = 30 };
    bool few = size->rows >= EXAMPLES && !is_measured(size);
    int64_t examples = EXAMPLES, least = few ? LEAST : LEAST_OF_SMALL;
    if (is_measured(size) && size->rows < LARGE_TABLE) {
        examples = EXAMPLES_OF_MEASURED;
        least = LEAST_OF_MEASURED;
    }
    int64_t epochs = examples / (size->rows + 1);
    return epochs < least ? least : epochs > MOST ? MOST : epochs;
}

static const char *layers_of(const bel_table_size *size)
{
    if (is_binary(size) || is_regression(size)) return "64";
    if (size->rows < TINY_TABLE) return "16";
    if (size->rows >= LARGE_TABLE) return "256,128";
    if (!is_measured(size)) return "64,32";
    return size->rows < MIDDLE_TABLE ? "128,64" : "256,128";
}

static int64_t batch_size_of(const bel_table_size *size)
{
    if (size->rows >= HUGE_TABLE) return 512;
    if (size->rows >= MIDDLE_TABLE) return 128;
    return is_measured(size) ? 64 : 32;
}

bel_table_defaults bel_table_defaults_of(const bel_table_size *size)
{
    bool large = size->rows >= LARGE_TABLE, slow = large || is_regression(size);
    return (bel_table_defaults){.hidden_units = layers_of(size),
                                .dropout = large ? "0" : "0.2",
                                .learning_rate = slow ? "0.003" : "0.01",
                                .l2 = l2_of(size),
                                .batch_size = batch_size_of(size),
                                .epochs = epochs_of(size)};
}

// A transformer learns a few thousand texts by heart in a few passes.
static bel_table_defaults defaults_of_texts(int64_t rows)
{
    enum { EXAMPLES = 40000, LEAST = 3, MOST = 10, BATCH = 32 };
    int64_t epochs = EXAMPLES / (rows + 1);
    return (bel_table_defaults){.hidden_units = "",
                                .dropout = "0",
                                .learning_rate = "0.001",
                                .batch_size = BATCH,
                                .epochs = epochs < LEAST  ? LEAST
                                          : epochs > MOST ? MOST
                                                          : epochs};
}

bel_table_defaults bel_columns_defaults(const bel_columns *columns)
{
    if (columns->tokens >= 0) return defaults_of_texts(bel_columns_rows(columns));
    bel_label_kind label = bel_columns_label_kind(columns);
    bel_table_size size = {.rows = bel_columns_rows(columns), .numbers = true};
    for (int i = 0; i < columns->count; i++) {
        const bel_column *c = &columns->items[i];
        bool learned = c->x_place >= 0 || c->id_place >= 0 || c->list_place >= 0;
        size.columns += learned;
        if (learned && c->kind != BEL_COLUMN_NUMBER) size.numbers = false;
    }
    if (label == BEL_LABEL_CLASSES) size.class_count = bel_columns_class_count(columns);
    if (label == BEL_LABEL_SEVERAL) size.class_count = 2;
    return bel_table_defaults_of(&size);
}
