/* SPDX-License-Identifier: MIT */
/* The output of a started job, or the reasons of a waiting one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/show/job_columns.h"
#include "cli/show/why_text.h"
#include "cli/top/draw.h"

static void draw_words(struct top *top, const struct rect *area, const char *words)
{
    (void)canvas_put(&top->canvas, area->y, area->x + 1, area->width - 1, LOOK_DIM, words);
}

static void draw_why(struct top *top, const struct rect *area, const json_t *job)
{
    _cleanup_free_ char *text = NULL;
    size_t size = 0;
    struct screen screen = top->screen;
    screen.width = (size_t)(area->width > 2 ? area->width - 2 : 1);
    struct view view = top_list_view(top);
    view.screen = &screen;
    if (top->model.why == NULL || top->model.why_id != field_integer(job, "id", 0)) {
        draw_words(top, area, "finding out why it waits ...");
        return;
    }
    FILE *memory = open_memstream(&text, &size);
    if (memory == NULL)
        return;
    why_print(&view, job, top->model.why, memory);
    (void)fclose(memory);
    char *rest = text;
    size_t skip = top->view.scroll;
    int y = 0;
    for (char *line = NULL; (line = strsep(&rest, "\n")) != NULL && y < area->height;) {
        if (skip > 0) {
            skip--;
            continue;
        }
        (void)canvas_put(&top->canvas, area->y + y, area->x + 1, area->width - 1, LOOK_PLAIN, line);
        y++;
    }
}

static void draw_output(struct top *top, const struct rect *area)
{
    size_t count = tail_count(&top->log.tail), height = (size_t)area->height;
    size_t most = count > height ? count - height : 0;
    size_t back = top->view.scroll > most ? most : top->view.scroll;
    top->view.scroll = back;
    size_t first = count > height + back ? count - height - back : 0;
    for (size_t i = first; i < count && i - first < height; i++)
        (void)canvas_put(&top->canvas, area->y + (int)(i - first), area->x + 1, area->width - 1, LOOK_PLAIN,
            tail_line(&top->log.tail, i));
}

void top_draw_log_lines(struct top *top, const struct rect *area)
{
    json_t *job = top_selected(top);
    bool is_here = top->log.job == top->view.selected;
    if (area->height <= 0)
        return;
    if (job == NULL)
        draw_words(top, area, "select a job to see its output");
    else if (field_is(job, "state", "queued"))
        draw_why(top, area, job);
    else if (is_here && tail_count(&top->log.tail) > 0)
        draw_output(top, area);
    else if (is_here && top->log.problem[0] != '\0')
        draw_words(top, area, top->log.problem);
    else if (is_here && top_log_is_settled(&top->log))
        draw_words(top, area, "no output");
    else
        draw_words(top, area, job_is_done(job) ? "reading its output ..." : "no output yet");
}

void top_draw_log(struct top *top, const struct rect *area)
{
    const json_t *job = top_selected(top);
    _cleanup_free_ char *id = job == NULL ? xstrdup("") : job_id(job);
    _cleanup_free_ char *name = job == NULL ? xstrdup("") : field_shown(job, "name");
    bool is_queued = job != NULL && field_is(job, "state", "queued");
    _cleanup_free_ char *title = xasprintf("3 %s %s %s", is_queued ? "Why" : "Log", id, name);
    const char *right = is_queued ? NULL : top->view.scroll > 0 ? "[scrolled, f follows]" : "[following]";
    struct rect inside = top_draw_frame(top, area, top->view.focus == PANEL_LOG, title, right);
    top_draw_log_lines(top, &inside);
}
