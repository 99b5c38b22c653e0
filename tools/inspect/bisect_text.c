// The result of bisect, for people and as JSON. Text shows the first LINES differences, JSON all.
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "inspect/bisect.h"

enum { LINES = 20 };

// --- Text ----------------------------------------------------------------------------------------

static void put_name(const bel_difference *d, bel_str *out)
{
    bel_str_printf(out, "%s%s%s%s", d->is_table ? "table " : "", d->name,
                   d->column != NULL ? " " : "", d->column != NULL ? d->column : "");
}

static void put_list(const int64_t *numbers, int32_t count, bel_str *out)
{
    bel_str_puts(out, "[");
    for (int32_t d = 0; d < count; d++)
        bel_str_printf(out, "%s%lld", d == 0 ? "" : ", ", (long long)numbers[d]);
    bel_str_puts(out, "]");
}

// Appends "[2, 5]": the indices of an element of a tensor.
static void put_indices(const bel_shape *shape, int64_t element, bel_str *out)
{
    int64_t indices[BEL_MAX_RANK];
    for (int32_t d = shape->rank; d-- > 0; element /= shape->dims[d])
        indices[d] = element % shape->dims[d];
    put_list(indices, shape->rank, out);
}

// Appends "logits/bias differs at element 3: 0.5 and 0.25".
static void put_first(const bel_difference *d, bel_str *out)
{
    const bel_value_difference *v = &d->values;
    put_name(d, out);
    if (d->other != NULL) {
        bel_str_printf(out, " %s\n", d->other);
        return;
    }
    if (d->is_table) {
        bel_str_printf(out, " differs at key %lld, element %d", (long long)v->first,
                       v->first_element);
    } else {
        bel_str_printf(out, " differs at element %lld", (long long)v->first);
        if (d->shape.rank > 1) bel_str_puts(out, " ");
        if (d->shape.rank > 1) put_indices(&d->shape, v->first, out);
    }
    bel_str_printf(out, ": %s and %s\n", v->a, v->b);
}

// Appends ", at most 0.25 apart (3 ulps), 1 not finite".
static void put_apart(const bel_value_difference *v, bel_str *out)
{
    if (v->finite && !v->floats) {
        bel_str_printf(out, ", at most %llu apart", (unsigned long long)v->ulps);
    } else if (v->finite && v->ulps == 0) {
        bel_str_puts(out, ", only the sign of zeros");
    } else if (v->finite) {
        bel_str_puts(out, ", ");
        if (isfinite(v->apart))
            bel_str_printf(out, "at most %.3g apart", v->apart);
        else
            bel_str_puts(out, "farther apart than the largest double");
        bel_str_printf(out, " (%llu ulps)", (unsigned long long)v->ulps);
    }
    if (v->not_finite > 0) bel_str_printf(out, ", %lld not finite", (long long)v->not_finite);
}

static void put_line(const bel_difference *d, bel_str *out)
{
    const bel_value_difference *v = &d->values;
    bel_str name = {0};
    put_name(d, &name);
    bel_str_printf(out, "  %-40s ", name.text);
    bel_str_deinit(&name);
    if (d->other != NULL) {
        bel_str_printf(out, "%s\n", d->other);
        return;
    }
    bel_str_printf(out, "%lld of %lld %s", (long long)v->different, (long long)v->count,
                   d->is_table ? "rows" : "elements");
    put_apart(v, out);
    bel_str_puts(out, "\n");
}

static void put_differences(const bel_differences *all, const char *unread, bel_str *out)
{
    if (unread != NULL) bel_str_printf(out, "the values cannot be compared: %s\n", unread);
    if (all->count == 0 && unread == NULL)
        bel_str_puts(out, "the digests differ, and all tensors and tables are equal: look at both "
                          "with belfry inspect --digest\n");
    if (all->count == 0) return;
    if (unread != NULL) bel_str_puts(out, "before that: ");
    put_first(&all->items[0], out);
    for (size_t i = 0; i < all->count && i < LINES; i++)
        put_line(&all->items[i], out);
    if (all->count > LINES)
        bel_str_printf(out, "  and %zu more (--json lists all)\n", all->count - LINES);
    bel_str_printf(out, "%lld tensors and tables are equal\n", (long long)all->equal);
}

static void put_curve(const bel_curve_difference *curve, bel_str *out)
{
    if (curve->tag == NULL) {
        if (curve->points > 0)
            bel_str_printf(out, "%lld points of curves are equal\n", (long long)curve->points);
        return;
    }
    bel_str_printf(out, "curve %s: ", curve->tag);
    if (curve->equal_step >= 0)
        bel_str_printf(out, "equal up to step %lld, ", (long long)curve->equal_step);
    bel_str_printf(out, "differs at step %lld: %.9g and %.9g\n", (long long)curve->step, curve->a,
                   curve->b);
}

// A curve may differ before checkpoints that are equal again.
static void put_equal_steps(const bel_bisect_result *r, bel_str *out)
{
    if (r->equal_step < 0 || !r->folders) return;
    bool again = r->equal_before != r->equal_step;
    if (again && r->equal_before < 0)
        bel_str_printf(out, "equal again at step %lld\n", (long long)r->equal_step);
    else if (again)
        bel_str_printf(out, "equal up to step %lld, and again at step %lld\n",
                       (long long)r->equal_before, (long long)r->equal_step);
    else
        bel_str_printf(out, "equal up to step %lld\n", (long long)r->equal_step);
}

static void put_left_out(const bel_bisect_result *r, bel_str *out)
{
    if (r->left_out == 1)
        bel_str_printf(out, "step %lld cannot be read and is left out\n",
                       (long long)r->first_left_out);
    if (r->left_out > 1)
        bel_str_printf(out, "%lld common steps from %lld on cannot be read and are left out\n",
                       (long long)r->left_out, (long long)r->first_left_out);
}

static void write_text(const bel_bisect_result *r, bel_str *out)
{
    if (r->settings.length > 0) bel_str_printf(out, "settings: %s\n", r->settings.text);
    if (r->step_a != r->step_b)
        bel_str_printf(out, "steps %lld and %lld: ", (long long)r->step_a, (long long)r->step_b);
    if (r->equal) bel_str_puts(out, "equal\n");
    put_equal_steps(r, out);
    put_left_out(r, out);
    if (r->step >= 0) {
        if (r->folders) bel_str_printf(out, "step %lld: ", (long long)r->step);
        put_differences(&r->differences, r->unread, out);
    }
    put_curve(&r->curve, out);
    if (r->step < 0 && r->newest_a != r->newest_b)
        bel_str_printf(out, "the newest checkpoints are of steps %lld and %lld\n",
                       (long long)r->newest_a, (long long)r->newest_b);
    if (r->next.length > 0) bel_str_printf(out, "next: %s\n", r->next.text);
}

// --- JSON ----------------------------------------------------------------------------------------

static void json_text(const char *name, const char *text, bel_str *out)
{
    bel_str_printf(out, ",\"%s\":", name);
    text == NULL ? bel_str_puts(out, "null") : bel_json_write_string(out, text);
}

static void json_step(const char *name, int64_t step, bel_str *out)
{
    bel_str_printf(out, ",\"%s\":", name);
    step < 0 ? bel_str_puts(out, "null") : bel_str_printf(out, "%lld", (long long)step);
}

// Texts of numbers are JSON's, except those that are not finite.
static void json_value(const char *name, const char *text, bel_str *out)
{
    bool finite = strpbrk(text, "ni") == NULL;
    bel_str_printf(out, ",\"%s\":%s", name, finite ? text : "null");
}

static void json_values(const bel_difference *d, bel_str *out)
{
    const bel_value_difference *v = &d->values;
    bel_str_printf(out, ",\"count\":%lld,\"different\":%lld,\"first\":%lld", (long long)v->count,
                   (long long)v->different, (long long)v->first);
    if (d->is_table) {
        bel_str_printf(out, ",\"first_element\":%d", v->first_element);
    } else {
        bel_str_puts(out, ",\"shape\":");
        put_list(d->shape.dims, d->shape.rank, out);
        bel_str_puts(out, ",\"indices\":");
        put_indices(&d->shape, v->first, out);
    }
    json_value("a", v->a, out);
    json_value("b", v->b, out);
    bel_str_puts(out, ",\"apart\":");
    if (!v->finite)
        bel_str_puts(out, "null");
    else if (v->floats)
        bel_json_write_number(out, v->apart);
    else
        bel_str_printf(out, "%llu", (unsigned long long)v->ulps);
    bel_str_printf(out, ",\"ulps\":%llu,\"not_finite\":%lld", (unsigned long long)v->ulps,
                   (long long)v->not_finite);
}

static void json_difference(const bel_difference *d, bel_str *out)
{
    bel_str_puts(out, "{\"name\":");
    bel_json_write_string(out, d->name);
    bel_str_printf(out, ",\"table\":%s", d->is_table ? "true" : "false");
    json_text("column", d->column, out);
    json_text("other", d->other, out);
    if (d->only_in != NULL) json_text("only_in", d->only_in, out);
    if (d->lone_rows > 0)
        bel_str_printf(out, ",\"rows\":%lld,\"first\":%lld", (long long)d->lone_rows,
                       (long long)d->first_lone);
    if (d->kind_a != NULL) json_text("kind_a", d->kind_a, out);
    if (d->kind_b != NULL) json_text("kind_b", d->kind_b, out);
    if (d->other == NULL) json_values(d, out);
    bel_str_puts(out, "}");
}

static void json_curve(const bel_curve_difference *curve, bel_str *out)
{
    bel_str_puts(out, ",\"curve\":");
    if (curve->tag == NULL) {
        bel_str_puts(out, "null");
        return;
    }
    bel_str_puts(out, "{\"tag\":");
    bel_json_write_string(out, curve->tag);
    json_step("equal_step", curve->equal_step, out);
    json_step("step", curve->step, out);
    bel_str_puts(out, ",\"a\":");
    bel_json_write_number(out, curve->a);
    bel_str_puts(out, ",\"b\":");
    bel_json_write_number(out, curve->b);
    bel_str_puts(out, "}");
}

static void write_json(const bel_bisect_result *r, bel_str *out)
{
    bel_str_printf(out, "{\"equal\":%s,\"compared\":%lld,\"left_out\":%lld",
                   r->equal ? "true" : "false", (long long)r->compared, (long long)r->left_out);
    bool other_steps = r->step_a != r->step_b;
    json_step("step", other_steps ? -1 : r->step, out);
    json_step("equal_step", other_steps ? -1 : r->equal_step, out);
    json_text("settings", r->settings.text, out);
    if (!r->folders) json_step("step_a", r->step_a, out);
    if (!r->folders) json_step("step_b", r->step_b, out);
    json_step("equal_before", other_steps ? -1 : r->equal_before, out);
    json_text("unread", r->unread, out);
    bel_str_puts(out, ",\"differences\":[");
    for (size_t i = 0; i < r->differences.count; i++) {
        if (i > 0) bel_str_puts(out, ",");
        json_difference(&r->differences.items[i], out);
    }
    bel_str_printf(out, "],\"equal_tensors\":%lld", (long long)r->differences.equal);
    bel_str_printf(out, ",\"curve_points\":%lld", (long long)r->curve.points);
    json_curve(&r->curve, out);
    json_text("next", r->next.text, out);
    bel_str_puts(out, "}\n");
}

void bel_bisect_write(const bel_bisect_result *result, bool json, bel_str *out)
{
    (json ? write_json : write_text)(result, out);
}
