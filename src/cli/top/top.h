/* SPDX-License-Identifier: MIT */
/* `mgpu top`: its data (model), its connections (wire), and its display state. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/strings.h"
#include "cli/api/stream.h"
#include "cli/options/call.h"
#include "cli/options/list.h"
#include "cli/top/canvas.h"
#include "cli/top/events.h"
#include "cli/top/graph.h"
#include "cli/top/jobs.h"
#include "cli/top/layout.h"
#include "cli/top/log.h"
#include "cli/top/order.h"
#include "cli/top/prefs.h"

/* --- model: answers of the API, NULL until received --- */

enum top_range { RANGE_MINUTES, RANGE_HOUR, RANGE_ALL, RANGES };

struct top_model {
    struct top_jobs jobs;
    json_t *gpus, *past, *nodes, *users, *sums, *history;
    json_t *why;         // of job `why_id`
    json_t *detail;      // of job `detail_id`
    json_t *detail_past; // of the GPUs of job `detail_id`, over `range`
    int64_t why_id, detail_id;
    bool is_complete; // the list of jobs has been received once
    bool is_cut;      // there are more jobs than listed
};

/* --- wire --- */

enum top_ask_id {
    ASK_GPUS, // fast requests come first
    ASK_RUNNING,
    ASK_QUICK,
    ASK_OPEN,
    ASK_ENDED,
    ASK_CHANGED,
    ASK_PAST,
    ASK_NODES,
    ASK_WHY,
    ASK_DETAIL,
    ASK_DETAIL_PAST,
    ASK_USERS,
    ASK_SUMS,
    ASK_HISTORY,
    ASKS
};

struct top_wire {
    struct stream ask, events;
    struct client actions; // for actions, which must not wait for other requests
    struct events parser;
    bool is_listening;     // /events has answered on this connection
    int asked;             // a row of top_asks, -1: none in progress
    int64_t asked_ms;      // boot clock
    int64_t due_ms[ASKS];  // boot clock
    int64_t last_ms[ASKS]; // boot clock: time of the last request
    int64_t retry_ms;      // boot clock: no request before this time; 0: at once
    int64_t lost_ms;       // boot clock: mgpud has not answered since; 0: it answers
    char problem[256];     // message of the last failure
};

/* --- display state --- */

enum top_page { PAGE_MAIN, PAGE_JOB, PAGE_NODES, PAGE_USERS, PAGE_TIMELINE, PAGE_HISTORY, PAGES };

enum popup { POPUP_NONE, POPUP_HELP, POPUP_SORT, POPUP_COLUMNS, POPUP_TEXT };

struct top;
struct deed;
typedef void prompt_done_fn(struct top *top, const char *text);

#define PROMPT_BYTES_MAX 200
#define MESSAGE_FOR_MS   6000
#define SHOWN_MAX        CANVAS_ROWS_MAX

/* The prompt in the bottom line. */
struct prompt {
    prompt_done_fn *done;                      // NULL: no prompt
    const char *(*complete)(const char *text); // completes with Tab, NULL: nothing
    char label[256];
    char text[PROMPT_BYTES_MAX + 1];
    bool is_question; // one key: y, or any other for no
    bool is_live;     // `done` is also called for each change
    char before[PROMPT_BYTES_MAX + 1];
};

/* Objects that the mouse can select. */
enum hit { HIT_PANEL, HIT_JOB, HIT_GPU, HIT_ORDER, HIT_TAB, HIT_NODE };

struct hit_area {
    struct rect area;
    enum hit kind;
    int64_t value;
};

#define HITS_MAX 1024

struct top_view {
    enum top_page page, before; // `before`: the page from which a job's page was opened
    enum panel focus;
    bool is_maximized, is_frozen, is_trouble;
    char filter[PROMPT_BYTES_MAX + 1];
    int64_t selected; // number of a job, 0: none
    int64_t kept;     // the selection before the page of ended jobs
    size_t selected_row;
    size_t job_offset;
    size_t gpu_row, node_row, user_row;
    size_t scroll;      // of the log: lines above its end
    size_t list_offset; // of nodes, users, the timeline
    enum top_range range;
    json_t **rows; // jobs in order, borrowed from the model
    size_t n_rows;
    bool is_list_old;
    int64_t shown[SHOWN_MAX]; // jobs on the screen
    size_t n_shown;
    enum popup popup;
    int popup_row, popup_rows, popup_offset;
    struct strings popup_lines;
    char popup_title[128];
    struct prompt prompt;
    const struct deed *deed; // the action to be confirmed
    struct strings targets;  // its targets
    char message[512];
    int64_t message_until_ms; // boot clock
    bool is_message_bad;
    struct hit_area hits[HITS_MAX];
    size_t n_hits;
};

struct top {
    struct call *call;
    struct screen screen;
    struct canvas canvas;
    struct layout layout;
    struct top_model model;
    struct top_wire wire;
    struct top_view view;
    struct top_prefs prefs;
    struct top_log log;
    int64_t own_uid;
    int64_t now_ms;  // wall clock of this screen
    bool is_changed; // the screen is out of date
    bool is_urgent;  // and should be updated without delay
    bool is_leaving;
    void (*outside)(
        struct top *top, void (*act)(struct top *top)); // runs `act` on the restored terminal; or NULL
};

/* The selected job, or NULL. */
json_t *top_selected(const struct top *top);

/* Sorts and filters the jobs again if anything has changed. */
void top_update_rows(struct top *top);

/* Shows a message at the bottom for some seconds. */
void top_say(struct top *top, bool is_bad, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* True if several nodes have GPUs. */
bool top_has_nodes(const struct top *top);
struct view top_list_view(const struct top *top);
