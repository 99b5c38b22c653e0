// Predictions of table rows from files or from standard input, with one form of output. The library
// reads files on all towers; the columns to keep are looked up by the row's number. Standard input
// is read as it arrives. All complete rows that are available make a batch of at most BATCH rows,
// so that one request is answered at once and many are answered fast. The model always gets BATCH
// examples, and only the requested ones are used. With a varying number its rounding would depend
// on that number, and so on the rate of the requests.
#include "predict/predict_table.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/str.h"
#include "columns/description.h"
#include "command/results.h"
#include "input/table/table_rows.h"
#include "predict/answers.h"

enum { BATCH = 32, MOST_FEATURES = 5 };

static void add_name(const char **names, const char *name, int *count)
{
    for (int i = 0; i < *count; i++)
        if (strcmp(names[i], name) == 0) return;
    names[(*count)++] = name;
}

// The columns to copy to the output, each once: the description's keys, then those of
// --keep_columns. Free the array with bel_free; the description and the options own the names.
static const char **passed_through(const bel_options *options, const bel_columns *columns,
                                   int *out_count)
{
    size_t asked;
    const char *const *more = bel_options_list(options, "keep_columns", &asked);
    const char **names = bel_xcalloc((size_t)columns->count + asked + 1, sizeof *names);
    for (int i = 0; i < columns->count; i++)
        if (columns->items[i].kind == BEL_COLUMN_KEY)
            add_name(names, columns->items[i].name, out_count);
    for (size_t i = 0; i < asked; i++)
        add_name(names, more[i], out_count);
    return names;
}

// --- Files ---------------------------------------------------------------------------------------

typedef struct file_answers {
    bel_answers answers;
    bel_table_cells *cells;
    bel_str *texts;
    bel_str lines; // not yet written
    bel_rank_lines *ranks;
    bool begun; // the header is made, or belongs to another part
} file_answers;

static bel_status *write_lines(file_answers *f)
{
    if (f->lines.length == 0) return NULL;
    f->lines.length = 0;
    return f->ranks != NULL ? bel_rank_lines_write(f->ranks, f->lines.text)
                            : bel_results_write(f->lines.text);
}

static void file_answers_begin(file_answers *f)
{
    if (!f->begun) bel_answers_header(&f->answers, &f->lines);
    f->begun = true;
}

static bel_status *write_row(void *user, int64_t example, const bel_row *rows, int count)
{
    enum { AT_ONCE = 1 << 15 };
    (void)count;
    file_answers *f = user;
    file_answers_begin(f);
    int64_t row = f->answers.rows != NULL ? f->answers.rows[example] : example;
    for (int i = 0; i < f->answers.name_count; i++)
        bel_table_cells_get(f->cells, row, i, &f->texts[i]);
    BEL_TRY(bel_answers_line(&f->answers, example, f->texts, &rows[0].value, &f->lines));
    return f->lines.length < AT_ONCE ? NULL : write_lines(f);
}

static bel_status *predict_files(const bel_options *options, const bel_setup *setup,
                                 const bel_answers *answers, bel_rank_lines *ranks)
{
    bel_arena *arena = bel_arena_create();
    const char *const *paths;
    int count;
    file_answers f = {.answers = *answers, .ranks = ranks};
    f.begun = bel_estimator_config(setup->estimator)->predict_part > 0;
    f.texts = bel_xcalloc((size_t)answers->name_count + 1, sizeof *f.texts);
    bool again = setup->training != NULL;
    bel_status *status =
        again ? bel_flag_inputs_paths(setup->training, BEL_MODE_TRAIN, arena, &paths, &count)
              : bel_flag_inputs_paths(options, BEL_MODE_PREDICT, arena, &paths, &count);
    if (status == NULL && answers->name_count > 0) {
        status = bel_table_cells_create(answers->columns, paths, count, answers->names,
                                        answers->name_count, &f.cells);
    }
    if (status == NULL) {
        status = bel_predict(setup->estimator, setup->input_fn, setup->input_user,
                             setup->checkpoint, write_row, &f);
    }
    if (status == NULL) file_answers_begin(&f); // the header without rows
    bel_status *written = write_lines(&f);      // also those before an error
    if (status == NULL) {
        status = written;
    } else {
        bel_status_ignore(written); // the first error is returned
    }
    for (int i = 0; i < answers->name_count; i++)
        bel_str_deinit(&f.texts[i]);
    bel_free(f.texts);
    bel_str_deinit(&f.lines);
    bel_table_cells_destroy(f.cells);
    bel_arena_destroy(arena);
    return status;
}

// --- Standard input ------------------------------------------------------------------------------

typedef struct stream {
    bel_answers answers;
    bel_table_lines *lines;
    bel_predictor *predictor;
    bel_tensor features[MOST_FEATURES];
    bel_columns_block row; // the first example of a batch
    int feature_count;
    bel_str *cells; // [BATCH][name_count]: cells to copy to the output
    int waiting;    // number of waiting examples
    int64_t example;
    bool begun; // the header of answers is written
    bel_str out;
} stream;

static void add_feature(stream *s, bel_feature *features, const char *name, bel_dtype dtype,
                        bel_shape shape, void *data)
{
    features[s->feature_count] = (bel_feature){.name = name, .dtype = dtype, .shape = shape};
    bel_tensor *tensor = &s->features[s->feature_count++];
    *tensor = (bel_tensor){.dtype = dtype, .shape = {.rank = 1, .dims = {BATCH}}, .data = data};
    for (int32_t d = 0; d < shape.rank; d++)
        tensor->shape.dims[tensor->shape.rank++] = shape.dims[d];
}

static bel_status *make_predictor(stream *s, const bel_setup *setup)
{
    const bel_columns *c = setup->columns;
    size_t lists = (size_t)c->list_count * (size_t)c->list_most;
    bel_feature features[MOST_FEATURES];
    size_t tokens = c->tokens < 0 ? 0 : (size_t)c->items[c->tokens].most;
    s->row =
        (bel_columns_block){.x = bel_xcalloc(BATCH * (size_t)c->x_width + 1, sizeof *s->row.x),
                            .ids = bel_xcalloc(BATCH * (size_t)c->id_count + 1, sizeof *s->row.ids),
                            .lists = bel_xcalloc(BATCH * lists + 1, sizeof *s->row.lists),
                            .tokens = bel_xcalloc(BATCH * tokens + 1, sizeof *s->row.tokens),
                            .lengths = bel_xcalloc(BATCH, sizeof *s->row.lengths),
                            .crossed = bel_xcalloc((size_t)c->count + 1, sizeof *s->row.crossed)};
    if (c->x_width > 0)
        add_feature(s, features, "x", BEL_DTYPE_F32, BEL_SHAPE(c->x_width), s->row.x);
    if (c->id_count > 0)
        add_feature(s, features, BEL_ID_FIELD, BEL_DTYPE_I64, BEL_SHAPE(c->id_count), s->row.ids);
    if (c->list_count > 0)
        add_feature(s, features, BEL_ID_LIST_FIELD, BEL_DTYPE_I64,
                    BEL_SHAPE(c->list_count, c->list_most), s->row.lists);
    if (c->tokens >= 0) {
        add_feature(s, features, BEL_TOKENS_FIELD, BEL_DTYPE_I64, BEL_SHAPE((int64_t)tokens),
                    s->row.tokens);
        add_feature(s, features, BEL_LENGTH_FIELD, BEL_DTYPE_I64, bel_shape_scalar(),
                    s->row.lengths);
    }
    BEL_TRY(bel_estimator_predictor(setup->estimator, features, s->feature_count, setup->checkpoint,
                                    &s->predictor));
    for (int i = 0; i < s->feature_count; i++)
        BEL_TRY(bel_predictor_bind(s->predictor, i, &s->features[i]));
    return NULL;
}

// Answers the waiting examples.
static bel_status *stream_answer(stream *s)
{
    if (s->waiting == 0) return NULL;
    BEL_TRY(bel_predictor_run(s->predictor));
    const bel_tensor all = bel_predictor_output(s->predictor, 0);
    bel_tensor one = all;
    size_t bytes = (size_t)bel_shape_elements(&one.shape) / BATCH * bel_dtype_size(one.dtype);
    one.shape.dims[0] = 1;
    s->out.length = 0;
    for (int i = 0; i < s->waiting; i++) {
        one.data = (char *)all.data + (size_t)i * bytes;
        BEL_TRY(bel_answers_line(&s->answers, s->example++,
                                 s->cells + (ptrdiff_t)i * s->answers.name_count, &one, &s->out));
    }
    s->waiting = 0;
    BEL_TRY(bel_results_write(s->out.text));
    return bel_results_flush();
}

// Writes the header as soon as the header of the rows is known to be valid.
static bel_status *begin_answers(stream *s)
{
    if (s->begun) return NULL;
    s->begun = true;
    s->out.length = 0;
    bel_answers_header(&s->answers, &s->out);
    if (s->out.length == 0) return NULL;
    BEL_TRY(bel_results_write(s->out.text));
    return bel_results_flush();
}

static bel_status *take_row(stream *s, const char *text, size_t length)
{
    ptrdiff_t at = s->waiting;
    bel_columns_block row = bel_columns_block_from(s->answers.columns, &s->row, at);
    row.crossed = s->row.crossed;
    bool header;
    BEL_TRY(bel_table_lines_take(s->lines, text, length, &row, &header));
    BEL_TRY(begin_answers(s));
    if (header) return NULL;
    for (int i = 0; i < s->answers.name_count; i++) {
        const bel_str *cell = bel_table_lines_cell(s->lines, i);
        bel_str *copy = &s->cells[at * s->answers.name_count + i];
        copy->length = 0;
        bel_str_append(copy, cell->text, cell->length);
    }
    s->waiting++;
    return s->waiting == BATCH ? stream_answer(s) : NULL;
}

// Answers all complete rows of a text; *out_taken is their size in bytes. Answers the rows before
// an invalid one before it returns the error.
static bel_status *take_rows(stream *s, const char *text, size_t length, bool last,
                             size_t *out_taken)
{
    bel_status *status = NULL;
    *out_taken = 0;
    for (size_t bytes;
         status == NULL &&
         (bytes = bel_table_lines_next(s->lines, text + *out_taken, length - *out_taken, last)) > 0;
         *out_taken += bytes)
        status = take_row(s, text + *out_taken, bytes);
    bel_status *answered = stream_answer(s);
    if (status == NULL) return answered;
    bel_status_ignore(answered); // the first error is returned
    return status;
}

static bel_status *read_stream(stream *s)
{
    enum { PIECE = 1 << 16, LONGEST = 1 << 26 };
    size_t capacity = 0, length = 0;
    char *text = NULL;
    bel_status *status = NULL;
    for (bool last = false; status == NULL && !last;) {
        text = bel_xgrow(text, &capacity, length + PIECE, 1);
        ssize_t got = read(STDIN_FILENO, text + length, PIECE);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) { // another process made it non-blocking
            (void)poll(&(struct pollfd){.fd = STDIN_FILENO, .events = POLLIN}, 1, -1);
            continue;
        }
        if (got < 0) {
            status = bel_file_error(errno, "read", "standard input");
            break;
        }
        last = got == 0;
        length += (size_t)got;
        size_t taken = 0;
        status = take_rows(s, text, length, last, &taken);
        length -= taken;
        if (taken > 0) memmove(text, text + taken, length);
        if (status == NULL && length > LONGEST)
            status = BEL_ERR(BEL_DATA_LOSS, "standard input: a row of more than 64 MiB");
    }
    bel_free(text);
    return status;
}

static bel_status *predict_stream(const bel_setup *setup, const bel_answers *answers)
{
    stream s = {.answers = *answers};
    size_t cells = (size_t)BATCH * (size_t)answers->name_count;
    s.cells = bel_xcalloc(cells + 1, sizeof *s.cells);
    s.lines = bel_table_lines_create(answers->columns, answers->names, answers->name_count);
    bel_status *status = make_predictor(&s, setup);
    if (status == NULL) status = read_stream(&s);
    if (status == NULL && s.example == 0) { // the same error as for a file
        status = BEL_ERR(BEL_DATA_LOSS, "standard input: expected %s, got none",
                         s.begun ? "records after the header" : "rows of CSV");
    }
    bel_predictor_destroy(s.predictor);
    bel_table_lines_destroy(s.lines);
    for (size_t i = 0; i < cells; i++)
        bel_str_deinit(&s.cells[i]);
    bel_free(s.cells);
    bel_free(s.row.x);
    bel_free(s.row.ids);
    bel_free(s.row.lists);
    bel_free(s.row.tokens);
    bel_free(s.row.lengths);
    bel_free(s.row.crossed);
    bel_str_deinit(&s.out);
    return status;
}

// Checks that every name of a JSON object occurs once.
static bel_status *check_names(const bel_answers *answers)
{
    static const char *const own[] = {"example", "row",           "class",
                                      "labels",  "probabilities", "prediction"};
    for (int i = 0; i < answers->name_count && answers->json; i++)
        for (size_t k = 0; k < sizeof own / sizeof own[0]; k++) {
            if (strcmp(answers->names[i], own[k]) != 0) continue;
            if (answers->rows == NULL && strcmp(own[k], "row") == 0) continue;
            return BEL_ERR(BEL_INVALID_ARGUMENT,
                           "--json: the column \"%s\" has the name of a member that lines have "
                           "anyway; hint: without --json",
                           own[k]);
        }
    return NULL;
}

bel_status *bel_predict_table(const bel_options *options, const bel_setup *setup,
                              const int64_t *rows, bel_rank_lines *ranks)
{
    size_t files, outputs;
    const char *const *names = bel_options_list(options, "eval_files", &files);
    bel_options_list(options, "outputs", &outputs);
    bool streams = files == 1 && strcmp(names[0], "-") == 0;
    if (outputs > 0) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--outputs: a table's predictions have one form; "
                                             "hint: --keep_columns for columns of the table");
    }
    if (streams && bel_options_is_given(options, "part")) {
        return BEL_ERR(BEL_INVALID_ARGUMENT, "--part: standard input has no parts");
    }
    bel_answers answers = {.columns = setup->columns,
                           .rows = rows,
                           .threshold = setup->threshold,
                           .json = bel_options_bool(options, "json")};
    const char **through = passed_through(options, setup->columns, &answers.name_count);
    answers.names = through;
    bel_status *status = check_names(&answers);
    if (status == NULL && streams) {
        status = predict_stream(setup, &answers);
    } else if (status == NULL) {
        status = predict_files(options, setup, &answers, ranks);
    }
    bel_free(through);
    return status;
}
