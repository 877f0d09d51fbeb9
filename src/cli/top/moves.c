/* SPDX-License-Identifier: MIT */
/* Navigation: rows, panels, pages. The selected job is identified by its number, so the selection stays when
 * rows move. */
#include <stdio.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/top/asks.h"
#include "cli/top/draw.h"
#include "cli/top/keys.h"

static size_t moved(size_t row, long by, size_t count)
{
    if (count == 0)
        return 0;
    if (by < 0)
        return row > (size_t)-by ? row - (size_t)-by : 0;
    return row + (size_t)by < count ? row + (size_t)by : count - 1;
}

static void forget_detail(struct top *top)
{
    json_decref(top->model.detail);
    json_decref(top->model.detail_past);
    top->model.detail = top->model.detail_past = NULL;
}

void top_select_job(struct top *top, int64_t id)
{
    if (top->view.selected == id)
        return;
    top->view.selected = id;
    for (size_t i = 0; i < top->view.n_rows; i++)
        if (field_integer(top->view.rows[i], "id", 0) == id)
            top->view.selected_row = i;
    top->view.scroll = 0;
    forget_detail(top);
    top_poke(top, ASK_WHY);
    top_poke(top, ASK_DETAIL);
}

static void move_job(struct top *top, long by)
{
    size_t row = moved(top->view.selected_row, by, top->view.n_rows);
    if (top->view.n_rows > 0)
        top_select_job(top, field_integer(top->view.rows[row], "id", 0));
}

static void move_gpu(struct top *top, long by)
{
    if (top->layout.is_cells)
        top->view.node_row = moved(top->view.node_row, by, json_array_size(top->model.nodes));
    else
        top->view.gpu_row = moved(top->view.gpu_row, by, json_array_size(top->model.gpus));
}

/* The log of a waiting job begins at its first line; one that is being written ends at its last. */
static void move_log(struct top *top, long by)
{
    const json_t *job = top_selected(top);
    bool is_why = job != NULL && field_is(job, "state", "queued");
    top->view.scroll = moved(top->view.scroll, is_why ? by : -by, TAIL_LINES + 1);
}

static void move_node(struct top *top, long by)
{
    top->view.node_row = moved(top->view.node_row, by, json_array_size(top->model.nodes));
}

static void move_user(struct top *top, long by)
{
    top->view.user_row = moved(top->view.user_row, by, json_array_size(top->model.users));
}

static void move_timeline(struct top *top, long by)
{
    top->view.list_offset =
        moved(top->view.list_offset, by, json_array_size(top->model.gpus) + top->view.n_rows);
}

void top_move(struct top *top, long by)
{
    static const struct {
        unsigned place;
        void (*move)(struct top *top, long by);
    } rows[] = { { IN_GPUS, move_gpu }, { IN_JOBS | IN_HISTORY, move_job }, { IN_LOG | IN_PAGE, move_log },
        { IN_NODES, move_node }, { IN_USERS, move_user }, { IN_TIMELINE, move_timeline } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if ((rows[i].place & top_place(top)) != 0)
            rows[i].move(top, by);
}

void top_go_up(struct top *top)
{
    top_move(top, -1);
}

void top_go_down(struct top *top)
{
    top_move(top, 1);
}

static long half_a_screen(const struct top *top)
{
    int rows = top->layout.body.height / 2;
    return rows > 1 ? rows : 1;
}

void top_go_page_up(struct top *top)
{
    top_move(top, -half_a_screen(top));
}

void top_go_page_down(struct top *top)
{
    top_move(top, half_a_screen(top));
}

void top_go_first(struct top *top)
{
    top_move(top, -1000000);
}

void top_go_last(struct top *top)
{
    top_move(top, 1000000);
}

/* --- panels and pages --- */

void top_next_panel(struct top *top)
{
    top->view.focus = (enum panel)((top->view.focus + 1) % PANELS);
}

static void choose(struct top *top, enum panel panel)
{
    bool is_again = top->view.page == PAGE_MAIN && top->view.focus == panel;
    top->view.is_maximized = is_again ? !top->view.is_maximized : false;
    top->view.focus = panel;
    top_show_page(top, PAGE_MAIN);
}

void top_choose_gpus(struct top *top)
{
    choose(top, PANEL_GPUS);
}

void top_choose_jobs(struct top *top)
{
    choose(top, PANEL_JOBS);
}

void top_choose_log(struct top *top)
{
    choose(top, PANEL_LOG);
}

void top_show_page(struct top *top, enum top_page page)
{
    if (top->view.page == page)
        return;
    top->view.is_list_old = true;
    if (page == PAGE_HISTORY && top->view.kept == 0) { // another list, with its own selection and filter
        top->view.kept = top->view.selected;
        top->view.filter[0] = '\0';
    }
    if (page == PAGE_MAIN && top->view.kept > 0) {
        top_select_job(top, top->view.kept);
        top->view.kept = 0;
        top->view.filter[0] = '\0';
    }
    if (page == PAGE_JOB)
        top->view.before = top->view.page;
    top->view.page = page;
    top->view.list_offset = 0;
    top->view.scroll = 0;
}

void top_open_nodes(struct top *top)
{
    top_show_page(top, PAGE_NODES);
}

void top_open_users(struct top *top)
{
    top_show_page(top, PAGE_USERS);
}

void top_open_timeline(struct top *top)
{
    top_show_page(top, PAGE_TIMELINE);
}

void top_open_history(struct top *top)
{
    top_show_page(top, PAGE_HISTORY);
}

/* Shows only the jobs that match `word`. */
static void open_filtered(struct top *top, const char *field, const char *value)
{
    top_show_page(top, PAGE_MAIN);
    top->view.focus = PANEL_JOBS;
    (void)snprintf(top->view.filter, sizeof(top->view.filter), "%s%s", field, value);
    top->view.is_list_old = true;
}

static void open_gpu(struct top *top)
{
    const json_t *gpu = top_selected_gpu(top);
    const json_t *job = json_array_get(json_object_get(gpu, "jobs"), 0);
    if (top->layout.is_cells)
        top_show_page(top, PAGE_NODES);
    else if (job == NULL)
        top_say(top, false, "this GPU has no job");
    else {
        top_select_job(top, field_integer(job, "id", 0));
        top_show_page(top, PAGE_JOB);
    }
}

static void open_job(struct top *top)
{
    if (top->view.selected > 0)
        top_show_page(top, PAGE_JOB);
}

static void open_node(struct top *top)
{
    const char *name = field_text(json_array_get(top->model.nodes, top->view.node_row), "name");
    if (name != NULL)
        open_filtered(top, "", name);
}

static void open_user(struct top *top)
{
    const char *name = field_text(json_array_get(top->model.users, top->view.user_row), "user");
    if (name != NULL)
        open_filtered(top, "u:", name);
}

void top_open(struct top *top)
{
    static const struct {
        unsigned place;
        void (*open)(struct top *top);
    } rows[] = { { IN_GPUS, open_gpu }, { IN_JOBS | IN_LOG | IN_HISTORY, open_job }, { IN_NODES, open_node },
        { IN_USERS, open_user } };
    unsigned place = top_place(top);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if ((rows[i].place & place) != 0)
            rows[i].open(top);
}

void top_go_back(struct top *top)
{
    if (top->view.page != PAGE_MAIN) {
        bool is_from_ended = top->view.page == PAGE_JOB && top->view.before == PAGE_HISTORY;
        top_show_page(top, is_from_ended ? PAGE_HISTORY : PAGE_MAIN);
        return;
    }
    top->view.is_maximized = top->view.is_trouble = false;
    top->view.filter[0] = '\0';
    top->view.is_list_old = true;
    for (size_t i = 0; i < top->model.jobs.count; i++)
        top->model.jobs.items[i].is_marked = false;
}

/* All rows match the filter; the first follows the last. */
static void go_round(struct top *top, size_t step)
{
    if (top->view.n_rows == 0)
        return;
    size_t row = (top->view.selected_row + step) % top->view.n_rows;
    top_select_job(top, field_integer(top->view.rows[row], "id", 0));
}

void top_next_match(struct top *top)
{
    go_round(top, 1);
}

void top_last_match(struct top *top)
{
    go_round(top, top->view.n_rows > 0 ? top->view.n_rows - 1 : 0);
}
