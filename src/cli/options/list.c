/* SPDX-License-Identifier: MIT */
/*
 * A format is a row of the table `formats`; any other value of -o is a list of columns. JSON is the server's
 * own, so scripts see one schema through this program and through the socket.
 */
#include "cli/options/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/api/exit_code.h"
#include "cli/api/show_json.h"
#include "cli/options/talk.h"
#include "cli/term/table.h"

struct selection {
    const struct list_column *columns[LIST_COLUMNS_MAX];
    bool is_reversed[LIST_COLUMNS_MAX];
    size_t count;
};

static const struct list_column *find_column(const struct list_kind *kind, const char *name)
{
    for (const struct list_column *column = kind->columns; column->name != NULL; column++)
        if (strcmp(column->name, name) == 0)
            return column;
    return NULL;
}

static int refuse_column(
    const struct list_kind *kind, const char *option, const char *name, struct error *err)
{
    const char *names[LIST_COLUMNS_MAX + 1] = { 0 };
    for (size_t i = 0; i < LIST_COLUMNS_MAX && kind->columns[i].name != NULL; i++)
        names[i] = kind->columns[i].name;
    _cleanup_free_ char *shown = text_escape(name, 40);
    const char *near = text_nearest(name, names);
    if (near != NULL)
        (void)error_set(err, -EINVAL, "%s: no column '%s'. Did you mean '%s'?", option, shown, near);
    else
        (void)error_set(err, -EINVAL, "%s: no column '%s'", option, shown);
    return error_hint(err, "all columns: -o help");
}

static int select_columns(const struct list_kind *kind, const char *option, const char *text,
    struct selection *selection, struct error *err)
{
    _cleanup_free_ char *copy = xstrdup(text);
    char *rest = copy;
    for (char *name = NULL; (name = strsep(&rest, ",")) != NULL;) {
        bool is_reversed = name[0] == '-';
        const struct list_column *column = find_column(kind, name + (is_reversed ? 1 : 0));
        if (column == NULL)
            return refuse_column(kind, option, name, err);
        if (selection->count == LIST_COLUMNS_MAX)
            return error_set(err, -E2BIG, "%s: more than %d columns", option, LIST_COLUMNS_MAX);
        selection->is_reversed[selection->count] = is_reversed;
        selection->columns[selection->count++] = column;
    }
    return 0;
}

/* The bare value: for CSV and for sorting. The caller frees it. */
static char *plain(const struct view *view, const struct list_column *column, const json_t *row)
{
    enum color ignored = COLOR_NONE;
    if (column->bare != NULL)
        return column->bare(row);
    if (column->field == NULL) {
        char *text = list_cell(view, column, row, &ignored);
        if (strcmp(text, "-") == 0) // in a table: no value
            text[0] = '\0';
        return text;
    }
    const json_t *value = json_object_get(row, column->field);
    if (json_is_string(value))
        return xstrdup(json_string_value(value));
    if (column->unit != 0 && json_is_number(value))
        return xasprintf("%.6f", json_number_value(value) / column->unit);
    return value == NULL || json_is_null(value)
               ? xstrdup("")
               : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));
}

/* A list that lacks columns says so, for those who look for one of them. */
static void print_dropped(const struct selection *selection, const struct selection *shown)
{
    struct buffer out = { 0 };
    size_t next = 0;
    if (shown->count == selection->count)
        return;
    for (size_t i = 0; i < selection->count; i++) {
        if (next < shown->count && shown->columns[next] == selection->columns[i])
            next++;
        else
            buffer_printf(&out, "%s%s", out.length > 0 ? "," : "", selection->columns[i]->name);
    }
    _cleanup_free_ char *names = buffer_take(&out);
    talk_line("no room for %s; -o NAME,NAME... shows these", names);
}

/* The rank of spare columns that comes after this one; 0: none. */
static unsigned next_spare(const struct selection *selection, unsigned rank)
{
    unsigned next = 0;
    for (size_t i = 0; i < selection->count; i++) {
        unsigned spare = selection->columns[i]->spare;
        if (spare > rank && (next == 0 || spare < next))
            next = spare;
    }
    return next;
}

/* Leaves out the spare columns up to this rank. */
static struct selection without_spare(const struct selection *selection, unsigned rank)
{
    struct selection kept = { 0 };
    for (size_t i = 0; i < selection->count; i++)
        if (selection->columns[i]->spare == 0 || selection->columns[i]->spare > rank)
            kept.columns[kept.count++] = selection->columns[i];
    return kept;
}

static struct table *make_table(
    const struct view *view, const struct selection *selection, const json_t *rows)
{
    struct table_column columns[LIST_COLUMNS_MAX];
    for (size_t i = 0; i < selection->count; i++)
        columns[i] = (struct table_column){
            .header = selection->columns[i]->header,
            .is_right = selection->columns[i]->is_right,
            .shrink = selection->columns[i]->shrink,
        };
    struct table *table = table_new(columns, selection->count);
    size_t index = 0;
    json_t *row = NULL;
    json_array_foreach(rows, index, row) for (size_t i = 0; i < selection->count; i++)
    {
        enum color color = COLOR_NONE;
        char *text = list_cell(view, selection->columns[i], row, &color);
        table_add(table, text, color);
    }
    return table;
}

/* True if this column says nothing of any row. */
static bool is_void(const struct view *view, const struct list_column *column, const json_t *rows)
{
    size_t index = 0;
    json_t *row = NULL;
    json_array_foreach(rows, index, row)
    {
        enum color ignored = COLOR_NONE;
        _cleanup_free_ char *text = list_cell(view, column, row, &ignored);
        if (text[0] != '\0' && strcmp(text, "-") != 0)
            return false;
    }
    return true;
}

/* For eyes, and the default columns only. */
static struct selection without_void(
    const struct view *view, const struct selection *selection, const json_t *rows)
{
    struct selection kept = { 0 };
    for (size_t i = 0; i < selection->count; i++)
        if (!selection->columns[i]->is_hidden_void || !is_void(view, selection->columns[i], rows))
            kept.columns[kept.count++] = selection->columns[i];
    return kept;
}

static int print_none(const struct view *view, const struct list_kind *kind, FILE *out)
{
    (void)fprintf(out, "%sno %s%s\n", screen_color(view->screen, COLOR_DIM), kind->member,
        screen_color(view->screen, COLOR_NONE));
    return 0;
}

static int print_table(const struct view *view, const struct list_choice *choice,
    const struct selection *wanted, const json_t *rows, FILE *out)
{
    bool is_for_eyes = view->screen->is_tty && choice->output == NULL;
    const struct selection selected = is_for_eyes ? without_void(view, wanted, rows) : *wanted;
    const struct selection *selection = &selected;
    struct selection shown = *selection;
    _cleanup_(table_freep) struct table *table = make_table(view, &shown, rows);
    if (text_equal(choice->output, "wide"))
        table_may_drop(table);
    unsigned rank = 0;
    while (choice->output == NULL && !table_fits(table, view->screen, !choice->is_headless) &&
           (rank = next_spare(selection, rank)) > 0) {
        table_free(table);
        shown = without_spare(selection, rank);
        table = make_table(view, &shown, rows);
    }
    if (choice->output == NULL)
        table_must_fit(table);
    shown.count = table_print(table, view->screen, !choice->is_headless, out);
    if (!choice->is_headless)
        print_dropped(selection, &shown);
    return 0;
}

/* RFC 4180: quotes where needed, doubled inside. */
static void print_csv_value(const char *text, bool is_last, FILE *out)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        (void)fputs(text, out);
    } else {
        (void)fputc('"', out);
        for (const char *p = text; *p != '\0'; p++) {
            if (*p == '"')
                (void)fputc('"', out);
            (void)fputc(*p, out);
        }
        (void)fputc('"', out);
    }
    (void)fputc(is_last ? '\n' : ',', out);
}

static void print_csv(const struct view *view, const struct list_choice *choice, const struct list_kind *kind,
    const json_t *rows, FILE *out)
{
    for (const struct list_column *c = kind->columns; !choice->is_headless && c->name != NULL; c++)
        print_csv_value(c->name, c[1].name == NULL, out);
    size_t index = 0;
    json_t *row = NULL;
    json_array_foreach(rows, index, row) for (const struct list_column *c = kind->columns; c->name != NULL;
                                              c++)
    {
        _cleanup_free_ char *text = plain(view, c, row);
        print_csv_value(text, c[1].name == NULL, out);
    }
}

static void print_json_lines(const json_t *rows, FILE *out)
{
    size_t index = 0;
    json_t *row = NULL;
    json_array_foreach(rows, index, row)
    {
        show_json_line(row, out);
    }
}

struct sorting {
    const struct view *view;
    const struct selection *keys;
};

static int compare_values(const char *a, const char *b)
{
    char *a_end = NULL, *b_end = NULL;
    double a_number = strtod(a, &a_end), b_number = strtod(b, &b_end);
    if (*a != '\0' && *b != '\0' && *a_end == '\0' && *b_end == '\0')
        return a_number < b_number ? -1 : a_number > b_number;
    return strcmp(a, b);
}

static int compare_rows(const void *a, const void *b, void *arg)
{
    const struct sorting *sorting = arg;
    json_t *const *first = a, *const *second = b;
    for (size_t i = 0; i < sorting->keys->count; i++) {
        _cleanup_free_ char *x = plain(sorting->view, sorting->keys->columns[i], *first);
        _cleanup_free_ char *y = plain(sorting->view, sorting->keys->columns[i], *second);
        int order = compare_values(x, y);
        if (order != 0)
            return sorting->keys->is_reversed[i] ? -order : order;
    }
    return 0;
}

static json_t *sort_rows(const struct view *view, const struct selection *keys, json_t *rows)
{
    size_t count = json_array_size(rows);
    _cleanup_free_ json_t **order = xcalloc(count + 1, sizeof(json_t *));
    for (size_t i = 0; i < count; i++)
        order[i] = json_array_get(rows, i);
    struct sorting sorting = { .view = view, .keys = keys };
    qsort_r(order, count, sizeof(order[0]), compare_rows, &sorting);
    json_t *sorted = json_array();
    for (size_t i = 0; i < count; i++)
        (void)json_array_append(sorted, order[i]);
    return sorted;
}

static bool is_machine_word(const char *output)
{
    static const char *const words[] = { "json", "jsonl", "csv" };
    for (size_t i = 0; output != NULL && i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(output, words[i]) == 0)
            return true;
    return false;
}

bool list_is_machine(const struct call *call)
{
    return call->is_json || is_machine_word(call->list.output);
}

bool list_print_help(const struct list_choice *choice, const struct list_kind *kind, FILE *out)
{
    if (!text_equal(choice->output, "help"))
        return false;
    for (const struct list_column *column = kind->columns; column->name != NULL; column++)
        (void)fprintf(out, "%-12s %s\n", column->name, column->help);
    return true;
}

int list_check(const struct list_choice *choice, const struct list_kind *kind, struct error *err)
{
    struct selection ignored = { 0 };
    int r = choice->sort == NULL ? 0 : select_columns(kind, "--sort", choice->sort, &ignored, err);
    bool has_columns = choice->output != NULL && !is_machine_word(choice->output) &&
                       strcmp(choice->output, "wide") != 0 && strcmp(choice->output, "help") != 0;
    if (r < 0 || !has_columns)
        return r;
    ignored.count = 0;
    return select_columns(kind, "-o", choice->output, &ignored, err);
}

int list_print(const struct call *call, const struct list_kind *kind, const struct screen *screen,
    json_t *answer, FILE *out, struct error *err)
{
    const struct list_choice *choice = &call->list;
    struct view view = { .screen = screen, .times = call->times, .now_ms = clock_wall_ms() };
    struct selection keys = { 0 }, shown = { 0 };
    json_t *rows = json_object_get(answer, kind->member);
    _cleanup_json_ json_t *sorted = NULL;
    int r = choice->sort == NULL ? 0 : select_columns(kind, "--sort", choice->sort, &keys, err);
    if (r < 0)
        return r;
    if (keys.count > 0) {
        sorted = sort_rows(&view, &keys, rows);
        rows = sorted;
        (void)json_object_set(answer, kind->member, rows);
    }
    const char *output = call->is_json ? "json" : choice->output;
    if (text_equal(output, "json")) {
        show_json_page(answer, out);
    } else if (text_equal(output, "jsonl")) {
        print_json_lines(rows, out);
    } else if (text_equal(output, "csv")) {
        print_csv(&view, choice, kind, rows, out);
    } else {
        bool is_wide = text_equal(output, "wide");
        const char *wide = kind->wide != NULL ? kind->wide : kind->normal;
        const char *names = is_wide ? wide : output == NULL ? kind->normal : output;
        bool is_none = screen->is_tty && output == NULL && !choice->is_headless && json_array_size(rows) == 0;
        r = select_columns(kind, "-o", names, &shown, err);
        if (r == 0)
            r = is_none ? print_none(&view, kind, out) : print_table(&view, choice, &shown, rows, out);
    }
    return r;
}

int list_begin(const struct call *call, const struct list_kind *kind, struct error *err)
{
    if (list_print_help(&call->list, kind, stdout))
        return 1;
    return list_check(&call->list, kind, err);
}

int list_run(struct call *call, const struct list_kind *kind, const char *path, struct error *err)
{
    struct screen screen;
    _cleanup_json_ json_t *answer = NULL;
    int r = list_begin(call, kind, err);
    if (r > 0)
        return EXIT_OK;
    if (r == 0)
        r = client_get(&call->client, path, &answer, err);
    if (r < 0)
        return r;
    screen_open(&screen, STDOUT_FILENO, call->color);
    return list_print(call, kind, &screen, answer, stdout, err);
}
