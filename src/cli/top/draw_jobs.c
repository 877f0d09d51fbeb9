/* SPDX-License-Identifier: MIT */
/* The table of jobs: only the visible rows are rendered, and the column widths fit these. */
#include <stdlib.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/show/job_columns.h"
#include "cli/top/columns.h"
#include "cli/top/draw.h"

#define SHRUNK_MIN 8
#define RANKS      3 // order of shrinking: 1 and 2 as in table.h, then all others
#define NAME_RANK  2
#define NAME_FAIR  16  // minimum width of a name beside a reason
#define WIDE_FROM  100 // width of the panel; from here on, there are two blanks between columns

struct grid {
    const struct list_column *columns[TOP_COLUMNS_MAX];
    int widths[TOP_COLUMNS_MAX];
    size_t n_columns;
    char *(*cells)[TOP_COLUMNS_MAX];
    enum color (*colors)[TOP_COLUMNS_MAX];
    size_t n_rows;
    int gap;
};

static void render(struct top *top, struct grid *grid, size_t first)
{
    const struct view view = top_list_view(top);
    for (size_t row = 0; row < grid->n_rows; row++) {
        json_t *job = top->view.rows[first + row];
        top_job_tick(job, top->now_ms);
        for (size_t i = 0; i < grid->n_columns; i++) {
            const struct list_column *column = grid->columns[i];
            grid->colors[row][i] = COLOR_NONE;
            grid->cells[row][i] = list_cell(&view, column, job, &grid->colors[row][i]);
        }
    }
}

static int sum_of(const struct grid *grid)
{
    int sum = 0;
    for (size_t i = 0; i < grid->n_columns; i++)
        sum += grid->widths[i] + (i > 0 ? grid->gap : 0);
    return sum;
}

static bool may_shrink(const struct grid *grid, size_t column, unsigned rank)
{
    unsigned shrink = grid->columns[column]->shrink;
    return rank == RANKS ? shrink == 0 : shrink == rank;
}

/* Takes width from the columns of a rank, but not below `least`. */
static void shrink(struct grid *grid, unsigned rank, int least, int room)
{
    for (size_t i = 0; i < grid->n_columns; i++) {
        int over = sum_of(grid) - room, spare = grid->widths[i] - least;
        if (over > 0 && spare > 0 && may_shrink(grid, i, rank))
            grid->widths[i] -= spare < over ? spare : over;
    }
}

/* Natural widths; first long names are cut, then the other columns by rank. The last column gets the rest. */
static void measure(struct grid *grid, int room)
{
    for (size_t i = 0; i < grid->n_columns; i++) {
        grid->widths[i] = canvas_width(grid->columns[i]->header);
        for (size_t row = 0; row < grid->n_rows; row++) {
            int width = canvas_width(grid->cells[row][i]);
            grid->widths[i] = width > grid->widths[i] ? width : grid->widths[i];
        }
    }
    shrink(grid, NAME_RANK, NAME_FAIR, room);
    for (unsigned rank = 1; rank <= RANKS; rank++)
        shrink(grid, rank, SHRUNK_MIN, room);
    if (grid->n_columns > 0 && sum_of(grid) < room)
        grid->widths[grid->n_columns - 1] += room - sum_of(grid);
}

static void draw_header(struct top *top, const struct grid *grid, const struct rect *inside)
{
    int x = inside->x, end = inside->x + inside->width;
    for (size_t i = 0; i < grid->n_columns && x < end; i++) {
        const struct list_column *column = grid->columns[i];
        int width = grid->widths[i] < end - x ? grid->widths[i] : end - x;
        if (column->is_right)
            (void)canvas_put_right(&top->canvas, inside->y, x, width, LOOK_HEADER, column->header);
        else
            (void)canvas_put(&top->canvas, inside->y, x, width, LOOK_HEADER, column->header);
        const struct rect area = { inside->y, x, 1, width };
        if (order_find(column->name) >= 0)
            top_hit(top, &area, HIT_ORDER, order_find(column->name));
        x += width + grid->gap;
    }
}

static void draw_row(
    struct top *top, const struct grid *grid, size_t row, const json_t *job, int y, const struct rect *inside)
{
    int x = inside->x, end = inside->x + inside->width;
    int64_t id = field_integer(job, "id", 0);
    const struct top_job *known = top_jobs_find(&top->model.jobs, id);
    for (size_t i = 0; i < grid->n_columns && x < end; i++) {
        int width = grid->widths[i] < end - x ? grid->widths[i] : end - x;
        enum look look = look_of_color(grid->colors[row][i]);
        if (look == LOOK_PLAIN && job_is_done(job))
            look = LOOK_DIM;
        if (grid->columns[i]->is_right)
            (void)canvas_put_right(&top->canvas, y, x, width, look, grid->cells[row][i]);
        else
            (void)canvas_put(&top->canvas, y, x, width, look, grid->cells[row][i]);
        x += width + grid->gap;
    }
    if (known != NULL && known->is_marked)
        (void)canvas_put(&top->canvas, y, inside->x, 1, LOOK_KEY, "▶");
    if (id == top->view.selected)
        canvas_select(&top->canvas, y, inside->x, inside->width);
    const struct rect area = { y, inside->x, 1, inside->width };
    top_hit(top, &area, HIT_JOB, id);
    if (top->view.n_shown < SHOWN_MAX)
        top->view.shown[top->view.n_shown++] = id;
}

static const char *empty_words(const struct top *top)
{
    if (top->view.page != PAGE_HISTORY && !top->model.is_complete)
        return "waiting for mgpud ...";
    if (top->view.filter[0] != '\0' || top->view.is_trouble)
        return top->view.is_trouble ? "no job has a problem (z shows all)"
                                    : "no job matches the filter (/ and Enter clear it)";
    if (top->view.page == PAGE_HISTORY)
        return top->prefs.is_mine ? "no job of yours ended in the last seven days (m shows all users')"
                                  : "no job ended in the last seven days";
    return top->prefs.is_mine ? "you have no jobs now (m shows all users')"
                              : "no jobs: mgpu run -g 1 -- COMMAND starts one";
}

/* Rows of jobs that fit below the header. */
static size_t rows_in(int height)
{
    return height > 1 ? (size_t)height - 1 : 0;
}

static size_t offset_in(const struct top *top, size_t height)
{
    return top_scroll_to(top->view.job_offset, top->view.selected_row, top->view.n_rows, height);
}

/* "18", or "6-10 of 18" if not all are on the screen. */
static char *count_text(const struct top *top, size_t height)
{
    size_t first = offset_in(top, height), count = top->view.n_rows;
    if (height == 0 || count <= height)
        return xasprintf("%zu%s", count, top->model.is_cut ? "+" : "");
    size_t last = first + height < count ? first + height : count;
    return xasprintf("%zu-%zu of %zu%s", first + 1, last, count, top->model.is_cut ? "+" : "");
}

static void draw_table(struct top *top, const struct rect *inside)
{
    size_t height = rows_in(inside->height), offset = offset_in(top, height);
    size_t left = top->view.n_rows - offset;
    struct grid grid = { .n_rows = left < height ? left : height, .gap = inside->width >= WIDE_FROM ? 2 : 1 };
    _cleanup_free_ char *(*cells)[TOP_COLUMNS_MAX] = xcalloc(grid.n_rows + 1, sizeof(*cells));
    _cleanup_free_ enum color(*colors)[TOP_COLUMNS_MAX] = xcalloc(grid.n_rows + 1, sizeof(*colors));
    top->view.job_offset = offset;
    grid.cells = cells;
    grid.colors = colors;
    grid.n_columns = top_columns_parse(top->prefs.columns, grid.columns);
    render(top, &grid, offset);
    measure(&grid, inside->width);
    draw_header(top, &grid, inside);
    for (size_t row = 0; row < grid.n_rows; row++) {
        draw_row(top, &grid, row, top->view.rows[offset + row], inside->y + 1 + (int)row, inside);
        for (size_t i = 0; i < grid.n_columns; i++)
            free(cells[row][i]);
    }
    if (top->view.n_rows == 0)
        (void)canvas_put(
            &top->canvas, inside->y + 1, inside->x + 1, inside->width - 1, LOOK_DIM, empty_words(top));
}

void top_draw_jobs(struct top *top, const struct rect *area)
{
    bool is_focus = top->view.page == PAGE_HISTORY || top->view.focus == PANEL_JOBS;
    _cleanup_free_ char *order = order_text(&top->prefs.order);
    _cleanup_free_ char *right = xasprintf("[sort: %s]", order);
    _cleanup_free_ char *count = count_text(top, rows_in(rect_inside(area).height));
    _cleanup_free_ char *title =
        xasprintf("%s %s [%s]%s%s%s", top->view.page == PAGE_HISTORY ? "Ended, 7 days:" : "2 Jobs", count,
            top->prefs.is_mine ? "mine" : "all", top->view.is_trouble ? " [trouble]" : "",
            top->view.filter[0] != '\0' ? " /" : "", top->view.filter);
    struct rect inside = top_draw_frame(top, area, is_focus, title, right);
    if (inside.height > 0)
        draw_table(top, &inside);
}
