// Recursive descent over the text, which is parsed again for each value: once for each step and
// group of variables. Precedence from weak to strong: ?:, comparison, sum, product, sign, power
// (right-associative). Nothing is allocated. DEEPEST and the text's length bound the depth.
#include "optim/formula.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/real.h"

enum { DEEPEST = 50, MOST_ARGUMENTS = 2 };

typedef struct reader {
    const char *at;
    double step;
    int depth;
    const char *failed_at;
    const char *expected; // NULL: nothing failed
} reader;

static double choice(reader *r);

static void formula_fail(reader *r, const char *expected)
{
    if (r->expected != NULL) return;
    r->expected = expected;
    r->failed_at = r->at;
}

static void skip_spaces(reader *r)
{
    while (*r->at == ' ')
        r->at++;
}

// Skips `symbol` if it is next.
static bool formula_take(reader *r, const char *symbol)
{
    size_t length = strlen(symbol);
    skip_spaces(r);
    if (strncmp(r->at, symbol, length) != 0) return false;
    r->at += length;
    return true;
}

// --- Functions -----------------------------------------------------------------------------------

static double absolute(double x)
{
    return fabs(x);
}

static double down(double x)
{
    return floor(x);
}

static double formula_root(double x)
{
    return sqrt(x);
}

static double smaller(double x, double y)
{
    return x < y ? x : y;
}

static double formula_larger(double x, double y)
{
    return x > y ? x : y;
}

typedef struct function {
    const char *name;
    double (*of_one)(double x);
    double (*of_two)(double x, double y);
} function;

static const function functions[] = {{"min", NULL, smaller},       {"max", NULL, formula_larger},
                                     {"exp", bel_real_exp, NULL},  {"log", bel_real_log, NULL},
                                     {"sqrt", formula_root, NULL}, {"sin", bel_real_sin, NULL},
                                     {"cos", bel_real_cos, NULL},  {"tanh", bel_real_tanh, NULL},
                                     {"abs", absolute, NULL},      {"floor", down, NULL}};

static double call(reader *r, const function *f)
{
    double x[MOST_ARGUMENTS] = {0};
    int wanted = f->of_two != NULL ? 2 : 1;
    if (!formula_take(r, "(")) formula_fail(r, "\"(\"");
    for (int i = 0; i < wanted && r->expected == NULL; i++) {
        if (i > 0 && !formula_take(r, ",")) formula_fail(r, "\",\"");
        x[i] = choice(r);
    }
    if (r->expected == NULL && !formula_take(r, ")")) formula_fail(r, "\")\"");
    return f->of_two != NULL ? f->of_two(x[0], x[1]) : f->of_one(x[0]);
}

static double name(reader *r)
{
    size_t length = 0;
    while (isalpha((unsigned char)r->at[length]))
        length++;
    const char *begin = r->at;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (strlen(functions[i].name) != length) continue;
        if (strncmp(functions[i].name, begin, length) != 0) continue;
        r->at += length;
        return call(r, &functions[i]);
    }
    bool is_step = length == 4 && strncmp(begin, "step", 4) == 0;
    bool is_pi = length == 2 && strncmp(begin, "pi", 2) == 0;
    if (!is_step && !is_pi) {
        formula_fail(r,
                     "a number, step, pi, or one of min, max, exp, log, sqrt, sin, cos, tanh, abs, "
                     "floor");
        return 0;
    }
    r->at += length;
    return is_step ? r->step : 3.14159265358979324;
}

// --- Operators -----------------------------------------------------------------------------------

static double formula_value(reader *r)
{
    char *end;
    skip_spaces(r);
    if (formula_take(r, "(")) {
        double inner = choice(r);
        if (r->expected == NULL && !formula_take(r, ")")) formula_fail(r, "\")\"");
        return inner;
    }
    bool digit = isdigit((unsigned char)*r->at) || *r->at == '.';
    if (!digit) return name(r);
    double number = bel_strtod(r->at, &end);
    if (end == r->at) formula_fail(r, "a number");
    r->at = end;
    return number;
}

static double power(reader *r);

static double sign(reader *r)
{
    if (++r->depth > DEEPEST) formula_fail(r, "a formula that is less deep");
    double x = 0;
    if (r->expected == NULL) x = formula_take(r, "-") ? -sign(r) : power(r);
    r->depth--;
    return x;
}

static double power(reader *r)
{
    double base = formula_value(r);
    return r->expected == NULL && formula_take(r, "^") ? bel_real_pow(base, sign(r)) : base;
}

static double formula_product(reader *r)
{
    double x = sign(r);
    while (r->expected == NULL) {
        if (formula_take(r, "*")) {
            x *= sign(r);
        } else if (formula_take(r, "/")) {
            x /= sign(r);
        } else {
            break;
        }
    }
    return x;
}

static double formula_sum(reader *r)
{
    double x = formula_product(r);
    while (r->expected == NULL) {
        if (formula_take(r, "+")) {
            x += formula_product(r);
        } else if (formula_take(r, "-")) {
            x -= formula_product(r);
        } else {
            break;
        }
    }
    return x;
}

static double comparison(reader *r)
{
    double x = formula_sum(r);
    if (r->expected != NULL) return x;
    if (formula_take(r, "<=")) return x <= formula_sum(r);
    if (formula_take(r, ">=")) return x >= formula_sum(r);
    if (formula_take(r, "<")) return x < formula_sum(r);
    if (formula_take(r, ">")) return x > formula_sum(r);
    return x;
}

// Parses condition ? a : b, and both branches.
static double choice(reader *r)
{
    if (++r->depth > DEEPEST) formula_fail(r, "a formula that is less deep");
    double x = r->expected == NULL ? comparison(r) : 0;
    if (r->expected == NULL && formula_take(r, "?")) {
        double a = choice(r);
        if (r->expected == NULL && !formula_take(r, ":")) formula_fail(r, "\":\"");
        double b = r->expected == NULL ? choice(r) : 0;
        x = x != 0 ? a : b;
    }
    r->depth--;
    return x;
}

static double read_all(reader *r)
{
    double x = choice(r);
    skip_spaces(r);
    if (r->expected == NULL && *r->at != '\0') formula_fail(r, "an operator, or the end");
    return x;
}

bel_status *bel_formula_check(const char *text)
{
    reader r = {.at = text};
    read_all(&r);
    if (r.expected == NULL) return NULL;
    return BEL_ERR(BEL_INVALID_ARGUMENT, "\"%s\": expected %s, got %s%s%s", text, r.expected,
                   *r.failed_at == '\0' ? "its end" : "\"", r.failed_at,
                   *r.failed_at == '\0' ? "" : "\"");
}

double bel_formula_value(const char *text, int64_t step)
{
    reader r = {.at = text, .step = (double)step};
    return read_all(&r);
}
