/* SPDX-License-Identifier: MIT */
/* The whole screen: a summary line, the page, and the bottom line with keys, prompt or message. */
#include "cli/top/draw.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/api/client.h"
#include "cli/show/job_columns.h"
#include "cli/top/filter.h"
#include "cli/top/keys.h"
#include "cli/top/wire.h"

struct view top_list_view(const struct top *top)
{
    return (struct view){ .screen = &top->screen, .times = top->call->times, .now_ms = top->now_ms };
}

bool top_has_nodes(const struct top *top)
{
    size_t count = json_array_size(top->model.gpus);
    const char *first = field_text(json_array_get(top->model.gpus, 0), "node");
    const char *last = field_text(json_array_get(top->model.gpus, count > 0 ? count - 1 : 0), "node");
    return first != NULL && last != NULL && strcmp(first, last) != 0;
}

void top_say(struct top *top, bool is_bad, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(top->view.message, sizeof(top->view.message), format, arguments);
    va_end(arguments);
    top->view.is_message_bad = is_bad;
    top->view.message_until_ms = clock_boot_ms() + MESSAGE_FOR_MS;
    top->is_changed = true;
}

void top_hit(struct top *top, const struct rect *area, enum hit kind, int64_t value)
{
    if (top->view.n_hits < HITS_MAX)
        top->view.hits[top->view.n_hits++] = (struct hit_area){ *area, kind, value };
}

struct rect top_draw_frame(
    struct top *top, const struct rect *area, bool is_focus, const char *title, const char *right_title)
{
    if (area->height <= 0)
        return *area;
    canvas_box(&top->canvas, area, is_focus ? LOOK_FOCUS : LOOK_BORDER, title, right_title);
    return rect_inside(area);
}

enum look look_of_color(enum color color)
{
    static const enum look looks[COLORS] = {
        [COLOR_NONE] = LOOK_PLAIN,
        [COLOR_GREEN] = LOOK_GOOD,
        [COLOR_YELLOW] = LOOK_WAIT,
        [COLOR_RED] = LOOK_BAD,
        [COLOR_MAGENTA] = LOOK_HELD,
        [COLOR_DIM] = LOOK_DIM,
        [COLOR_BOLD] = LOOK_TITLE,
    };
    return looks[color];
}

size_t top_scroll_to(size_t offset, size_t row, size_t count, size_t height)
{
    size_t last = count > height ? count - height : 0;
    if (row < offset)
        offset = row;
    else if (height > 0 && row >= offset + height)
        offset = row - height + 1;
    return offset > last ? last : offset;
}

/* --- rows of jobs --- */

json_t *top_selected(const struct top *top)
{
    const struct top_job *job = top_jobs_find(&top->model.jobs, top->view.selected);
    if (job != NULL && job->job != NULL)
        return job->job;
    if (top->model.detail != NULL && top->model.detail_id == top->view.selected)
        return top->model.detail;
    size_t index = 0;
    json_t *ended = NULL;
    json_array_foreach(top->model.history, index, ended)
    {
        if (field_integer(ended, "id", 0) == top->view.selected)
            return ended;
    }
    return NULL;
}

static void add_row(struct top *top, const struct filter *filter, json_t *job)
{
    if (job != NULL && filter_matches(filter, job))
        top->view.rows[top->view.n_rows++] = job;
}

/* The selection stays with its job; if the job has left the list, with the row. */
static void find_selected(struct top *top)
{
    struct top_view *view = &top->view;
    for (size_t i = 0; i < view->n_rows; i++)
        if (field_integer(view->rows[i], "id", 0) == view->selected) {
            view->selected_row = i;
            return;
        }
    if (view->page == PAGE_JOB)
        return; // it may be older than the list
    view->selected_row = view->selected_row < view->n_rows ? view->selected_row
                         : view->n_rows > 0                ? view->n_rows - 1
                                                           : 0;
    top_select_job(top, view->n_rows > 0 ? field_integer(view->rows[view->selected_row], "id", 0) : 0);
}

void top_update_rows(struct top *top)
{
    struct top_view *view = &top->view;
    bool is_history = view->page == PAGE_HISTORY;
    size_t most = is_history ? json_array_size(top->model.history) : top->model.jobs.count;
    const struct filter filter = { view->filter, top->own_uid, top->prefs.is_mine, view->is_trouble };
    if (!view->is_list_old)
        return;
    view->rows = xreallocarray(view->rows, most + 1, sizeof(json_t *));
    view->n_rows = 0;
    for (size_t i = 0; i < most; i++)
        add_row(
            top, &filter, is_history ? json_array_get(top->model.history, i) : top->model.jobs.items[i].job);
    for (size_t i = 0; i < view->n_rows && top->prefs.order.by[0].key == order_find("time"); i++)
        top_job_tick(view->rows[i], top->now_ms); // the others are updated when they are shown
    order_sort(&top->prefs.order, view->rows, view->n_rows);
    view->is_list_old = false;
    find_selected(top);
}

/* --- the line at the top --- */

struct counts {
    size_t used, free, out, running, waiting, own_running, own_waiting;
};

static void count(const struct top *top, struct counts *counts)
{
    size_t index = 0;
    json_t *gpu = NULL;
    json_array_foreach(top->model.gpus, index, gpu)
    {
        bool is_used = field_is(gpu, "state", "used") || field_is(gpu, "state", "shared");
        counts->used += is_used;
        counts->free += field_is(gpu, "state", "free");
    }
    counts->out = json_array_size(top->model.gpus) - counts->used - counts->free;
    for (size_t i = 0; i < top->model.jobs.count; i++) {
        const struct top_job *job = &top->model.jobs.items[i];
        bool is_own = job->uid == top->own_uid, is_waiting = job->is_waiting;
        if (!job->is_open)
            continue;
        counts->running += !is_waiting;
        counts->waiting += is_waiting;
        counts->own_running += !is_waiting && is_own;
        counts->own_waiting += is_waiting && is_own;
    }
}

/* The text at the right end: the clock, or that the data is outdated. */
static char *clock_text(const struct top *top, enum look *look)
{
    char at[64];
    int64_t lost_s = top_wire_lost_s(top);
    *look = LOOK_WARN;
    if (lost_s > 0)
        return xasprintf("reconnecting %" PRId64 "s ", lost_s);
    if (top->view.is_frozen)
        return xstrdup("FROZEN (P) ");
    *look = LOOK_DIM;
    time_format(top->now_ms, top->now_ms, top->call->times, at, sizeof(at));
    return xasprintf("%s %ds ", at, (int)(top->prefs.refresh_ms / 1000));
}

/* The line, which is filled from the left. */
struct line {
    int x, end;
};

/* A piece that does not fit completely is omitted, together with all that would follow it; true if it
 * fits. */
static bool put_piece(struct top *top, struct line *line, enum look look, char *text)
{
    _cleanup_free_ char *owned = text;
    bool is_fitting = line->x + canvas_width(owned) <= line->end;
    if (is_fitting)
        line->x += canvas_put(&top->canvas, top->layout.header.y, line->x, line->end - line->x, look, owned);
    return is_fitting;
}

static void draw_counts(struct top *top, struct line *line, const struct counts *counts)
{
    size_t gpus = json_array_size(top->model.gpus);
    bool is_fitting = put_piece(top, line, LOOK_PLAIN,
        xasprintf(" · %zu GPU%s: %zu used %zu free", gpus, gpus == 1 ? "" : "s", counts->used, counts->free));
    if (is_fitting && counts->out > 0)
        is_fitting = put_piece(top, line, LOOK_HELD, xasprintf(" %zu out", counts->out));
    if (!is_fitting || !top->model.is_complete)
        return;
    is_fitting =
        put_piece(top, line, LOOK_PLAIN, xasprintf(" · %zu run %zu wait", counts->running, counts->waiting));
    if (is_fitting && !put_piece(top, line, LOOK_PLAIN,
                          xasprintf(" · you: %zu run %zu wait", counts->own_running, counts->own_waiting)))
        (void)put_piece(
            top, line, LOOK_PLAIN, xasprintf(" · you %zu+%zu", counts->own_running, counts->own_waiting));
}

static void draw_header(struct top *top)
{
    const struct rect *area = &top->layout.header;
    struct counts counts = { 0 };
    enum look look = LOOK_DIM;
    _cleanup_free_ char *clock = clock_text(top, &look);
    int clock_width = canvas_width(clock);
    struct line line = { .x = 1, .end = area->width - clock_width - 1 };
    count(top, &counts);
    (void)canvas_put_right(&top->canvas, area->y, area->width - clock_width, clock_width, look, clock);
    _cleanup_free_ char *node = field_shown(json_array_get(top->model.gpus, 0), "node");
    bool is_fitting = put_piece(top, &line, LOOK_TITLE,
        top_has_nodes(top) ? xasprintf("mgpu · %zu nodes", json_array_size(top->model.nodes))
                           : xasprintf("mgpu %s", node));
    if (is_fitting && top->model.gpus != NULL)
        draw_counts(top, &line, &counts);
}

static void draw_tabs(struct top *top)
{
    static const char *const names[PANELS] = { "1 GPUs", "2 Jobs", "3 Log" };
    const struct rect *area = &top->layout.tabs;
    int x = area->x + 1;
    for (int i = 0; i < PANELS && area->height > 0; i++) {
        bool is_chosen = top->view.page == PAGE_MAIN && (int)top->view.focus == i;
        struct rect tab = { area->y, x, 1, canvas_width(names[i]) };
        x += canvas_put(
            &top->canvas, area->y, x, area->width - x, is_chosen ? LOOK_TITLE : LOOK_DIM, names[i]);
        if (is_chosen)
            canvas_select(&top->canvas, tab.y, tab.x, tab.width);
        top_hit(top, &tab, HIT_TAB, i);
        x += 3;
    }
}

/* --- the line at the bottom --- */

/* The end of a text being typed: the beginning is omitted if it does not fit. */
static const char *last_part(const char *text, int width)
{
    while (canvas_width(text) > width)
        do
            text++;
        while (((unsigned char)*text & 0xc0) == 0x80); // the remaining bytes of a UTF-8 character
    return text;
}

/* However long the label is, its question and the typed text remain visible. */
static void draw_prompt(struct top *top, const struct rect *area)
{
    static const char answers[] = "? y/N ";
    const struct prompt *prompt = &top->view.prompt;
    int room = area->width - 2, last = area->width - 1;
    int typed = canvas_width(prompt->text), half = room / 2;
    int kept = prompt->is_question ? canvas_width(answers) : typed < half ? typed : half;
    int x = 1 + canvas_put(&top->canvas, area->y, 1, room - kept, LOOK_TITLE, prompt->label);
    if (prompt->is_question) {
        (void)canvas_put(&top->canvas, area->y, x, area->width - x, LOOK_WARN, answers);
        return;
    }
    x += canvas_put(&top->canvas, area->y, x, last - x, LOOK_PLAIN, last_part(prompt->text, last - x));
    (void)canvas_put(&top->canvas, area->y, x, 1, LOOK_INPUT, " ");
}

/* The number of columns of a key in the legend with the blanks after it; its first name is shown. */
static int legend_width(const struct top_key *key)
{
    return (int)strcspn(key->name, " ") + canvas_width(key->label) + 3;
}

static int draw_key(struct top *top, const struct rect *area, int x, const struct top_key *key)
{
    _cleanup_free_ char *name = xstrndup(key->name, strcspn(key->name, " "));
    int after = x + canvas_put(&top->canvas, area->y, x, area->width - x, LOOK_KEY, name);
    (void)canvas_printf(&top->canvas, area->y, after, area->width - after, LOOK_PLAIN, " %s", key->label);
    return x + legend_width(key);
}

static bool is_in_legend(const struct top *top, const struct top_key *key)
{
    return key->label != NULL && (key->where & top_place(top)) != 0;
}

/* The keys that work everywhere ("? keys", "q quit") are always shown; of the others, as many as fit before
 * them. */
static void draw_legend(struct top *top, const struct rect *area)
{
    int x = 1, reserved = 0;
    for (const struct top_key *key = top_keys; key->name != NULL; key++)
        if (is_in_legend(top, key) && key->where == EVERYWHERE)
            reserved += legend_width(key);
    for (const struct top_key *key = top_keys; key->name != NULL; key++) {
        if (!is_in_legend(top, key))
            continue;
        bool is_always = key->where == EVERYWHERE;
        reserved -= is_always ? legend_width(key) : 0;
        if (is_always || x + legend_width(key) + reserved <= area->width)
            x = draw_key(top, area, x, key);
    }
}

static void draw_bottom(struct top *top)
{
    const struct rect *area = &top->layout.legend;
    if (top->view.prompt.done != NULL)
        draw_prompt(top, area);
    else if (top->view.message[0] != '\0' && clock_boot_ms() < top->view.message_until_ms)
        (void)canvas_put(&top->canvas, area->y, 1, area->width - 1,
            top->view.is_message_bad ? LOOK_BAD : LOOK_GOOD, top->view.message);
    else
        draw_legend(top, area);
}

/* --- pages --- */

static void draw_main(struct top *top, const struct rect *body)
{
    static void (*const draw[PANELS])(
        struct top * top, const struct rect *area) = { top_draw_gpus, top_draw_jobs, top_draw_log };
    for (int i = 0; i < PANELS; i++) {
        const struct rect *area = &top->layout.panels[i];
        if (area->height == 0)
            continue;
        top_hit(top, area, HIT_PANEL, i);
        draw[i](top, area);
    }
}

/* There is no data yet, and mgpud is unreachable. */
static void draw_absence(struct top *top)
{
    struct rect box = { top->layout.body.y + top->layout.body.height / 3, 2, 5, top->canvas.columns - 4 };
    if (top->model.gpus != NULL || top->wire.lost_ms == 0)
        return;
    canvas_fill(&top->canvas, &box, LOOK_PLAIN, L' ');
    canvas_box(&top->canvas, &box, LOOK_WARN, "mgpud does not respond", NULL);
    (void)canvas_put(&top->canvas, box.y + 1, box.x + 2, box.width - 4, LOOK_PLAIN, top->wire.problem);
    (void)canvas_put(&top->canvas, box.y + 2, box.x + 2, box.width - 4, LOOK_DIM, client_absence_hint());
    (void)canvas_put(
        &top->canvas, box.y + 3, box.x + 2, box.width - 4, LOOK_DIM, "retrying every second; q quits");
}

void top_draw(struct top *top, int rows, int columns)
{
    static void (*const pages[PAGES])(struct top * top, const struct rect *area) = { draw_main, top_draw_page,
        top_draw_nodes, top_draw_users, top_draw_timeline, top_draw_jobs };
    canvas_resize(&top->canvas, rows, columns);
    top->canvas.is_utf8 = top->screen.is_utf8;
    top->screen.width = (size_t)columns;
    top->view.n_hits = top->view.n_shown = 0;
    const struct layout_input input = { rows, columns, (int)json_array_size(top->model.gpus),
        (int)json_array_size(top->model.nodes), top->view.focus, top->view.is_maximized };
    layout_make(&input, &top->layout);
    if (top->layout.is_too_small) {
        (void)canvas_put(&top->canvas, 0, 0, columns, LOOK_PLAIN, "too small");
        return;
    }
    top_update_rows(top);
    pages[top->view.page](top, &top->layout.body);
    if (top_wire_lost_s(top) > 0)
        canvas_dim(&top->canvas);
    draw_header(top);
    draw_tabs(top);
    draw_absence(top);
    draw_bottom(top);
    top_draw_popup(top);
}
