/* SPDX-License-Identifier: MIT */
/* The keys of `mgpu top`: a table, from which the legend and the help are generated. */
#pragma once

#include "cli/top/codes.h"
#include "cli/top/top.h"

/* The contexts of a key. */
enum {
    IN_GPUS = 1 << 0,
    IN_JOBS = 1 << 1,
    IN_LOG = 1 << 2,
    IN_PAGE = 1 << 3, // of one job
    IN_NODES = 1 << 4,
    IN_USERS = 1 << 5,
    IN_TIMELINE = 1 << 6,
    IN_HISTORY = 1 << 7,
    IN_MAIN = IN_GPUS | IN_JOBS | IN_LOG,
    ON_JOB = IN_JOBS | IN_LOG | IN_PAGE | IN_HISTORY, // a job is selected there
    IN_LIST = IN_JOBS | IN_HISTORY | IN_TIMELINE,
    EVERYWHERE = (1 << 8) - 1,
};

#define KEY_CODES 4

struct top_key {
    int codes[KEY_CODES]; // terminated by 0
    const char *name;     // in the help
    const char *label;    // in the legend, NULL: not shown
    const char *help;
    unsigned where;
    void (*act)(struct top *top);
};

extern const struct top_key top_keys[]; // terminated by a NULL name

/* The current context of keys. */
unsigned top_place(const struct top *top);

/* A key was pressed. */
void top_press(struct top *top, int code);

/* A mouse click, or a turn of its wheel (`wheel` -1 up, 1 down, 0 a click). */
void top_click(struct top *top, int y, int x, int wheel, bool is_double);

/* --- actions of keys, by file --- */

/* top/moves.c */
void top_move(struct top *top, long by);
void top_go_up(struct top *top);
void top_go_down(struct top *top);
void top_go_page_up(struct top *top);
void top_go_page_down(struct top *top);
void top_go_first(struct top *top);
void top_go_last(struct top *top);
void top_next_panel(struct top *top);
void top_choose_gpus(struct top *top);
void top_choose_jobs(struct top *top);
void top_choose_log(struct top *top);
void top_open_nodes(struct top *top);
void top_open_users(struct top *top);
void top_open_timeline(struct top *top);
void top_open_history(struct top *top);
void top_open(struct top *top);
void top_go_back(struct top *top);
void top_next_match(struct top *top);
void top_last_match(struct top *top);
void top_show_page(struct top *top, enum top_page page);
void top_select_job(struct top *top, int64_t id);

/* top/choices.c: what is shown, and how */
void top_toggle_mine(struct top *top);
void top_toggle_trouble(struct top *top);
void top_toggle_frozen(struct top *top);
void top_follow_log(struct top *top);
void top_slower(struct top *top);
void top_faster(struct top *top);
void top_next_theme(struct top *top);
void top_next_graph(struct top *top);
void top_shorter_range(struct top *top);
void top_longer_range(struct top *top);
void top_filter_jobs(struct top *top);
void top_jump(struct top *top);
void top_go(struct top *top, const char *text); // "nodes", "42", as after `:`
bool top_is_place(const char *text);
const char *top_place_name(size_t i); // NULL after the last
void top_sort_by(struct top *top, int key);
void top_leave(struct top *top);

/* top/actions.c: actions on jobs, GPUs and nodes */
void top_mark(struct top *top);
void top_cancel(struct top *top);
void top_hold(struct top *top);
void top_set_priority(struct top *top);
void top_requeue(struct top *top);
void top_drain(struct top *top);
void top_explain(struct top *top);
void top_copy_id(struct top *top);
void top_attach(struct top *top);
void top_page_log(struct top *top);

/* top/popup.c */
void top_open_help(struct top *top);
void top_open_sort(struct top *top);
void top_open_columns(struct top *top);
void top_open_text(struct top *top, const char *title, const char *text);
int top_popup_text_width(const struct top *top); // maximum; longer lines are cut
bool top_popup_press(struct top *top, int code); // false: no popup is open

/* top/prompt.c */
void top_ask_text(struct top *top, const char *label, const char *text, bool is_live, prompt_done_fn *done);
void top_ask_yes(struct top *top, const char *question, prompt_done_fn *done);
bool top_prompt_press(struct top *top, int code); // false: no prompt is open
