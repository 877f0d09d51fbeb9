/* SPDX-License-Identifier: MIT */
/* What is shown, and how. Permanent choices are saved (top/prefs.h). */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/top/asks.h"
#include "cli/top/keys.h"
#include "cli/top/wire.h"

static void save(struct top *top)
{
    struct error err = { 0 };
    if (top_prefs_save(&top->prefs, &err) < 0)
        top_say(top, true, "settings were not saved: %s", err.message);
}

void top_toggle_mine(struct top *top)
{
    top->prefs.is_mine = !top->prefs.is_mine;
    top->view.is_list_old = true;
    save(top);
}

void top_toggle_trouble(struct top *top)
{
    top->view.is_trouble = !top->view.is_trouble;
    top->view.is_list_old = true;
}

void top_toggle_frozen(struct top *top)
{
    top->view.is_frozen = !top->view.is_frozen;
    if (!top->view.is_frozen)
        top_wire_resume(top);
    top_say(top, false, top->view.is_frozen ? "frozen; P resumes" : "resumed");
}

void top_follow_log(struct top *top)
{
    top->view.scroll = 0;
}

static void set_refresh(struct top *top, int64_t ms)
{
    top->prefs.refresh_ms = ms < REFRESH_MIN_MS ? REFRESH_MIN_MS : ms > REFRESH_MAX_MS ? REFRESH_MAX_MS : ms;
    top_poke(top, ASK_GPUS);
    top_say(top, false, "GPUs are refreshed every %d s; job changes are shown at once",
        (int)(top->prefs.refresh_ms / 1000));
    save(top);
}

void top_slower(struct top *top)
{
    int64_t ms = top->prefs.refresh_ms;
    set_refresh(top, ms + (ms < 5000 ? 1000 : 5000));
}

void top_faster(struct top *top)
{
    int64_t ms = top->prefs.refresh_ms;
    set_refresh(top, ms - (ms <= 5000 ? 1000 : 5000));
}

void top_next_theme(struct top *top)
{
    top->prefs.theme++;
    if (top_themes[top->prefs.theme].name == NULL)
        top->prefs.theme = 0;
    top_say(top, false, "theme %s: %s", top_themes[top->prefs.theme].name, top_themes[top->prefs.theme].help);
    save(top);
}

void top_next_graph(struct top *top)
{
    if (!top->screen.is_utf8) {
        top_say(top, false, "this terminal's locale is not UTF-8: graphs are ASCII");
        return;
    }
    top->prefs.graph = (enum graph)((top->prefs.graph + 1) % GRAPHS);
    top->prefs.has_graph = true;
    top_say(top, false, "graphs of %s", graph_name(top->prefs.graph));
    save(top);
}

static void set_range(struct top *top, int range)
{
    top->view.range = (enum top_range)(range < 0 ? 0 : range >= RANGES ? RANGES - 1 : range);
    top_poke(top, ASK_DETAIL_PAST);
}

void top_shorter_range(struct top *top)
{
    set_range(top, (int)top->view.range - 1);
}

void top_longer_range(struct top *top)
{
    set_range(top, (int)top->view.range + 1);
}

void top_sort_by(struct top *top, int key)
{
    order_choose(&top->prefs.order, key);
    top->view.is_list_old = true;
    save(top);
}

void top_leave(struct top *top)
{
    top->is_leaving = true;
}

/* --- filter and jump --- */

static void set_filter(struct top *top, const char *text)
{
    (void)snprintf(top->view.filter, sizeof(top->view.filter), "%s", text);
    top->view.is_list_old = true;
}

void top_filter_jobs(struct top *top)
{
    top_ask_text(top, "/", top->view.filter, true, set_filter);
}

static void show_panel(struct top *top, enum panel panel)
{
    top->view.focus = panel;
    top->view.is_maximized = false;
    top_show_page(top, PAGE_MAIN);
}

static void show_gpus(struct top *top)
{
    show_panel(top, PANEL_GPUS);
}

static void show_jobs(struct top *top)
{
    show_panel(top, PANEL_JOBS);
}

static void show_log(struct top *top)
{
    show_panel(top, PANEL_LOG);
}

static const struct {
    const char *name;
    void (*open)(struct top *top);
    bool is_named; // as a starting point
} places[] = {
    { "jobs", show_jobs, true },
    { "gpus", show_gpus, true },
    { "log", show_log, true },
    { "nodes", top_open_nodes, true },
    { "users", top_open_users, true },
    { "timeline", top_open_timeline, true },
    { "history", top_open_history, true },
    { "help", top_open_help, false },
    { "quit", top_leave, false },
};

const char *top_place_name(size_t i)
{
    return i < sizeof(places) / sizeof(places[0]) && places[i].is_named ? places[i].name : NULL;
}

bool top_is_place(const char *text)
{
    int64_t id = 0;
    for (size_t i = 0; top_place_name(i) != NULL; i++)
        if (strcmp(top_place_name(i), text) == 0)
            return true;
    return isdigit((unsigned char)*text) && parse_integer(text, "job", 1, INT64_MAX, &id, NULL) == 0;
}

/* The user's newest job of that name among those of the list; an array stands for its elements. 0: none. */
static int64_t find_named(const struct top *top, const char *name)
{
    int64_t newest = 0;
    for (size_t i = 0; i < top->model.jobs.count; i++) {
        const struct top_job *job = &top->model.jobs.items[i];
        bool is_named = job->job != NULL && job->uid == top->own_uid && field_is(job->job, "name", name);
        if (is_named && field_integer(job->job, "array_job", 0) == 0)
            newest = job->id;
    }
    return newest;
}

static void go_to_job(struct top *top, int64_t id)
{
    top_show_page(top, PAGE_JOB); // it is not necessarily in the list
    top_select_job(top, id);
}

void top_go(struct top *top, const char *text)
{
    int64_t id = 0;
    while (isspace((unsigned char)*text))
        text++;
    if (isdigit((unsigned char)*text) && parse_integer(text, "job", 1, INT64_MAX, &id, NULL) == 0) {
        go_to_job(top, id);
        return;
    }
    for (size_t i = 0; *text != '\0' && i < sizeof(places) / sizeof(places[0]); i++)
        if (strncmp(places[i].name, text, strlen(text)) == 0) {
            places[i].open(top);
            return;
        }
    id = find_named(top, text);
    if (id > 0)
        go_to_job(top, id);
    else if (*text != '\0')
        top_say(top, true,
            "'%.40s' is neither a job of yours nor a view: jobs, gpus, log, nodes, users, timeline, history",
            text);
}

/* The first place that begins with the text. */
static const char *complete_place(const char *text)
{
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (strncmp(places[i].name, text, strlen(text)) == 0)
            return places[i].name;
    return NULL;
}

void top_jump(struct top *top)
{
    top_ask_text(top, ":", "", false, top_go);
    top->view.prompt.complete = complete_place;
}
