/* SPDX-License-Identifier: MIT */
/* The rows are in the order of the legend and the help: the most important keys first. */
#include "cli/top/keys.h"

#include "cli/top/asks.h"

#define CTRL(letter) ((letter)&0x1f)

const struct top_key top_keys[] = {
    { { TOP_KEY_ENTER, '\r' }, "Enter", "details", "details of a job; jobs of a GPU, node or user",
        EVERYWHERE & ~(unsigned)(IN_PAGE | IN_TIMELINE), top_open },
    { { TOP_KEY_ESCAPE, TOP_KEY_BACKSPACE }, "Esc", "back", "go back; in lists: clear filter and marks",
        EVERYWHERE & ~(unsigned)IN_MAIN, top_go_back },
    { { TOP_KEY_ESCAPE }, "Esc", NULL, "clear filter and marks, show all panels", IN_MAIN, top_go_back },
    { { 'l' }, "l", "log", "whole output in a pager (MGPU_PAGER)", ON_JOB, top_page_log },
    { { 'a' }, "a", "attach", "attach to the job's terminal; Ctrl-] d returns", ON_JOB, top_attach },
    { { 'c', TOP_KEY_F9 }, "c F9", "cancel", "cancel the job or the marked jobs; asks first", ON_JOB,
        top_cancel },
    { { 'w' }, "w", "why", "why the job waits, and until when", ON_JOB, top_explain },
    { { ' ' }, "Space", NULL, "mark the job: the next action applies to all marked jobs",
        IN_JOBS | IN_HISTORY, top_mark },
    { { 'H' }, "H", NULL, "hold or release a waiting job", ON_JOB, top_hold },
    { { 'p' }, "p", NULL, "change the priority", ON_JOB, top_set_priority },
    { { 'r' }, "r", NULL, "end and requeue the job; asks first", ON_JOB, top_requeue },
    { { 'y' }, "y", NULL, "copy the job number (OSC 52)", ON_JOB, top_copy_id },
    { { 'D' }, "D", "drain", "pause a GPU or drain a node, or resume it (operators)", IN_GPUS | IN_NODES,
        top_drain },
    { { '/' }, "/", "filter", "filter: u:ana s:queued gpu:4 n:train word !word", IN_LIST, top_filter_jobs },
    { { '[' }, "[", NULL, "a shorter time", IN_PAGE | IN_TIMELINE, top_shorter_range },
    { { ']' }, "]", NULL, "a longer time", IN_PAGE | IN_TIMELINE, top_longer_range },
    { { 'f' }, "f", NULL, "follow the end of the log again", IN_LOG | IN_PAGE, top_follow_log },
    { { ':' }, ":", NULL, "go to jobs, nodes, users, timeline, history, or job 42", EVERYWHERE, top_jump },
    { { 'm' }, "m", "mine", "only my jobs, or all jobs", IN_LIST | IN_LOG, top_toggle_mine },
    { { 'z' }, "z", NULL, "only problems: failed, idle, stuck, on other jobs' GPUs", IN_LIST,
        top_toggle_trouble },
    { { 's' }, "s", "sort", "sort order of jobs; or click a heading", IN_JOBS | IN_HISTORY, top_open_sort },
    { { 'C', TOP_KEY_F2 }, "C F2", NULL, "columns to show, and their order", IN_JOBS | IN_HISTORY,
        top_open_columns },
    { { 'n' }, "n", NULL, "next match of the filter, wrapping around", IN_JOBS | IN_HISTORY, top_next_match },
    { { 'N' }, "N", NULL, "previous match", IN_JOBS | IN_HISTORY, top_last_match },
    { { TOP_KEY_TAB }, "Tab", "panel", "next panel", IN_MAIN, top_next_panel },
    { { '1' }, "1", NULL, "GPUs; again: as large as the screen", EVERYWHERE, top_choose_gpus },
    { { '2' }, "2", NULL, "jobs; again: as large as the screen", EVERYWHERE, top_choose_jobs },
    { { '3' }, "3", NULL, "log; again: as large as the screen", EVERYWHERE, top_choose_log },
    { { '4' }, "4-7", "pages", "4 nodes, 5 users, 6 timeline, 7 ended jobs", EVERYWHERE, top_open_nodes },
    { { '5' }, "5", NULL, "users", EVERYWHERE, top_open_users },
    { { '6' }, "6", NULL, "timeline of GPU allocations", EVERYWHERE, top_open_timeline },
    { { '7' }, "7", NULL, "ended jobs in the last seven days", EVERYWHERE, top_open_history },
    { { TOP_KEY_DOWN, 'j' }, "Down j", NULL, "down one row", EVERYWHERE, top_go_down },
    { { TOP_KEY_UP, 'k' }, "Up k", NULL, "up one row", EVERYWHERE, top_go_up },
    { { TOP_KEY_PAGE_DOWN, CTRL('d') }, "PgDn Ctrl-D", NULL, "down half a screen", EVERYWHERE,
        top_go_page_down },
    { { TOP_KEY_PAGE_UP, CTRL('u') }, "PgUp Ctrl-U", NULL, "up half a screen", EVERYWHERE, top_go_page_up },
    { { 'g', TOP_KEY_HOME }, "g Home", NULL, "first row", EVERYWHERE, top_go_first },
    { { 'G', TOP_KEY_END }, "G End", NULL, "last row", EVERYWHERE, top_go_last },
    { { 'P' }, "P", NULL, "freeze or resume the screen", EVERYWHERE, top_toggle_frozen },
    { { '+', '=' }, "+", NULL, "refresh the GPUs less often", EVERYWHERE, top_slower },
    { { '-' }, "-", NULL, "refresh the GPUs more often", EVERYWHERE, top_faster },
    { { 't' }, "t", NULL, "next theme: mono, high-contrast, colour-blind", EVERYWHERE, top_next_theme },
    { { 'b' }, "b", NULL, "graphs of blocks, braille or ASCII", EVERYWHERE, top_next_graph },
    { { CTRL('l') }, "Ctrl-L", NULL, "refresh everything", EVERYWHERE, top_asks_begin },
    { { '?', TOP_KEY_F1 }, "? F1", "keys", "keys of this view", EVERYWHERE, top_open_help },
    { { 'q', TOP_KEY_F10 }, "q F10", "quit", "leave", EVERYWHERE, top_leave },
    { .name = NULL },
};

unsigned top_place(const struct top *top)
{
    static const unsigned pages[PAGES] = { [PAGE_JOB] = IN_PAGE,
        [PAGE_NODES] = IN_NODES,
        [PAGE_USERS] = IN_USERS,
        [PAGE_TIMELINE] = IN_TIMELINE,
        [PAGE_HISTORY] = IN_HISTORY };
    static const unsigned panels[PANELS] = { IN_GPUS, IN_JOBS, IN_LOG };
    return top->view.page == PAGE_MAIN ? panels[top->view.focus] : pages[top->view.page];
}

static bool has_code(const struct top_key *key, int code)
{
    for (int i = 0; i < KEY_CODES && key->codes[i] != 0; i++)
        if (key->codes[i] == code)
            return true;
    return false;
}

void top_press(struct top *top, int code)
{
    unsigned place = top_place(top);
    top->is_changed = true;
    top_update_rows(top);
    if (top_prompt_press(top, code) || top_popup_press(top, code))
        return;
    for (const struct top_key *key = top_keys; key->name != NULL; key++)
        if (has_code(key, code) && (key->where & place) != 0) {
            top->view.message[0] = '\0';
            key->act(top);
            return;
        }
}
