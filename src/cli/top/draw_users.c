/* SPDX-License-Identifier: MIT */
/* Users: current usage, share, quota, and usage of the last seven days. */
#include <inttypes.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/top/draw.h"

#define NAME_WIDTH 10
#define BAR_WIDTH  10

static const json_t *sum_of(const struct top *top, int64_t uid)
{
    size_t index = 0;
    json_t *sum = NULL;
    json_array_foreach(top->model.sums, index, sum)
    {
        if (field_integer(sum, "uid", -1) == uid)
            return sum;
    }
    return NULL;
}

/* The used fraction of the limit on GPUs, or of the limit on GPU time; GRAPH_UNKNOWN without either. */
static double quota_of(const json_t *user)
{
    const json_t *limits = json_object_get(user, "limits");
    double gpus = field_number(limits, "gpus", 0), seconds = field_number(limits, "gpu_seconds", 0);
    if (seconds > 0)
        return field_number(user, "gpu_seconds", 0) / seconds;
    return gpus > 0 ? field_number(user, "gpus", 0) / gpus : GRAPH_UNKNOWN;
}

/* Groups are listed too, with their limits. */
static char *name_of(const struct top *top, const json_t *user)
{
    if (!field_is_known(user, "user")) {
        _cleanup_free_ char *group = field_shown(user, "group");
        return xasprintf("@%s", group);
    }
    return field_integer(user, "uid", -1) == top->own_uid ? xstrdup("you") : field_shown(user, "user");
}

static void draw_user(struct top *top, const json_t *user, int y, const struct rect *inside)
{
    struct canvas *canvas = &top->canvas;
    int x = inside->x, end = inside->x + inside->width;
    int64_t uid = field_integer(user, "uid", -1);
    const json_t *sum = sum_of(top, uid);
    double quota = quota_of(user);
    _cleanup_free_ char *name = name_of(top, user);
    (void)canvas_put(canvas, y, x, NAME_WIDTH, uid == top->own_uid ? LOOK_TITLE : LOOK_PLAIN, name);
    x += NAME_WIDTH + 1;
    (void)canvas_printf(canvas, y, x, 20, LOOK_PLAIN, "%4" PRId64 " %5" PRId64 " %6g ",
        field_integer(user, "running", 0), field_integer(user, "queued", 0), field_number(user, "gpus", 0));
    x += 19;
    (void)canvas_printf(canvas, y, x, 14, LOOK_PLAIN, "%4.0f%% %6.2f ", field_number(user, "share", 0) * 100,
        field_number(user, "factor", 0));
    x += 14;
    if (quota >= 0) {
        graph_bar(canvas, top->prefs.graph, y, x, BAR_WIDTH, quota >= 1 ? LOOK_BAD : LOOK_MIDDLE, quota);
        (void)canvas_printf(canvas, y, x + BAR_WIDTH, 5, LOOK_PLAIN, "%3.0f%%", quota * 100);
    } else {
        (void)canvas_put(canvas, y, x, BAR_WIDTH, LOOK_DIM, "no limit");
    }
    x += BAR_WIDTH + 6;
    if (sum != NULL && x < end) {
        double wasted = field_number(sum, "gpu_seconds_wasted", 0) / 3600;
        (void)canvas_printf(canvas, y, x, 9, LOOK_PLAIN, "%8.1f", field_number(sum, "gpu_seconds", 0) / 3600);
        (void)canvas_printf(
            canvas, y, x + 9, end - x - 9, wasted >= 1 ? LOOK_WARN : LOOK_DIM, "%8.1f", wasted);
    }
}

void top_draw_users(struct top *top, const struct rect *area)
{
    size_t count = json_array_size(top->model.users);
    _cleanup_free_ char *title = xasprintf("Users %zu", count);
    struct rect inside = top_draw_frame(top, area, true, title, "[Esc back]");
    if (inside.height <= 1)
        return;
    (void)canvas_printf(&top->canvas, inside.y, inside.x, inside.width, LOOK_HEADER,
        "%-*s %4s %5s %6s %5s %6s  %-*s %9s %8s", NAME_WIDTH, "USER", "RUN", "QUEUE", "GPUS", "SHARE", "FAIR",
        BAR_WIDTH + 4, "QUOTA", "GPU-H 7D", "WASTED");
    size_t height = (size_t)inside.height - 1;
    size_t first = top_scroll_to(top->view.list_offset, top->view.user_row, count, height);
    for (size_t i = first; i < count && i - first < height; i++) {
        int y = inside.y + 1 + (int)(i - first);
        draw_user(top, json_array_get(top->model.users, i), y, &inside);
        if (i == top->view.user_row)
            canvas_select(&top->canvas, y, inside.x, inside.width);
    }
    if (count == 0)
        (void)canvas_put(
            &top->canvas, inside.y + 1, inside.x + 1, inside.width - 1, LOOK_DIM, "no recent usage");
}
