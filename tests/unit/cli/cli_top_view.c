/* SPDX-License-Identifier: MIT */
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/top/columns.h"
#include "cli/top/draw.h"
#include "cli/top/keys.h"
#include "cli/top/run.h"
#include "unit_test.h"

#define NOW "2026-01-01T12:00:00Z"

struct fixture {
    struct call call;
    struct top top;
    char home[32];
};

static json_t *parse(const char *text)
{
    json_error_t where;
    json_t *value = json_loads(text, 0, &where);
    if (value == NULL)
        fail_msg("%s at %d", where.text, where.position);
    return value;
}

static void put(struct top *top, const char *text)
{
    _cleanup_json_ json_t *job = parse(text);
    top_jobs_put(&top->model.jobs, job);
}

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    struct top *top = &fixture->top;
    (void)snprintf(fixture->home, sizeof(fixture->home), "/tmp/mgpu-top-XXXXXX");
    assert_non_null(mkdtemp(fixture->home));
    (void)setenv("XDG_STATE_HOME", fixture->home, 1);
    fixture->call.times = TIME_ZULU;
    fixture->call.socket = "/nowhere";
    top_init(top, &fixture->call);
    top->screen = (struct screen){ .is_tty = true, .is_utf8 = true };
    top->now_ms = time_parse(NOW);
    top->own_uid = 4242;
    top->wire.asked = -1;
    top->model.is_complete = true;
    top->model.gpus = parse(
        "[{\"node\": \"box\", \"index\": 0, \"uuid\": \"a\", \"model\": \"H200\", \"memory_bytes\": "
        "25769803776,"
        " \"memory_used_bytes\": 12884901888, \"utilization\": 0.5, \"temperature_c\": 61, \"power_w\": 300,"
        " \"state\": \"used\", \"jobs\": [{\"id\": 1, \"user\": \"ana\", \"name\": \"train\"}], "
        "\"processes\": []},"
        " {\"node\": \"box\", \"index\": 1, \"uuid\": \"b\", \"model\": \"H200\", \"memory_bytes\": "
        "25769803776,"
        " \"state\": \"paused\", \"reason\": \"fan\", \"jobs\": [], \"processes\": []}]");
    put(top,
        "{\"id\": 1, \"user\": \"ana\", \"uid\": 7, \"name\": \"train\", \"state\": \"running\", \"gpus\": 1,"
        " \"command\": \"python t.py\", \"node\": \"box\", \"granted\": [{\"index\": 0, \"uuid\": \"a\"}],"
        " \"submitted_at\": \"2026-01-01T11:00:00Z\", \"started_at\": \"2026-01-01T11:30:00Z\","
        " \"time_limit_s\": 3600}");
    put(top,
        "{\"id\": 2, \"user\": \"me\", \"uid\": 4242, \"name\": \"eval\", \"state\": \"queued\", \"gpus\": 2,"
        " \"position\": 1, \"reason_text\": \"not enough\", \"submitted_at\": \"2026-01-01T11:59:00Z\"}");
    put(top, "{\"id\": 3, \"user\": \"bo\", \"uid\": 8, \"name\": \"\\u001b[2Jbad\", \"state\": \"failed\", "
             "\"gpus\": 0,"
             " \"ended_by\": \"exit\", \"exit_code\": 3, \"submitted_at\": \"2026-01-01T11:00:00Z\","
             " \"started_at\": \"2026-01-01T11:00:00Z\", \"ended_at\": \"2026-01-01T11:01:00Z\", "
             "\"run_seconds\": 60}");
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    _cleanup_free_ char *file = xasprintf("%s/mgpu/top", fixture->home),
                        *place = xasprintf("%s/mgpu", fixture->home);
    top_clear(&fixture->top);
    (void)unlink(file);
    (void)rmdir(place);
    (void)rmdir(fixture->home);
    free(fixture);
    return 0;
}

#define CASE(name) TEST_WITH(name, setup, teardown)

static struct top *top_of(void **state)
{
    return &((struct fixture *)*state)->top;
}

static char *draw(struct top *top, int columns, int rows)
{
    top_draw(top, rows, columns);
    return canvas_text(&top->canvas);
}

static void expect(struct top *top, const char *part)
{
    _cleanup_free_ char *text = draw(top, 80, 24);
    if (strstr(text, part) == NULL)
        fail_msg("no '%s' in\n%s", part, text);
}

static void expect_no(struct top *top, const char *part)
{
    _cleanup_free_ char *text = draw(top, 80, 24);
    if (strstr(text, part) != NULL)
        fail_msg("'%s' is in\n%s", part, text);
}

static void press(struct top *top, const char *keys)
{
    for (; *keys != '\0'; keys++)
        top_press(top, *keys);
}

/* --- the picture --- */

CASE(the_picture_of_80x24)
{
    static const char expected[] =
        " mgpu box · 2 GPUs: 1 used 0 free 1 out · 1 run 1 wait · you 0+1    12:00:00 2s\n"
        "┌1 GPUs H200───────────────────────────────────────────────────────────────────┐\n"
        "│ 0 1      ana      ██████▌        50%  12.0/24G  61C  300W train              │\n"
        "│ 1 ‖                                -     -/24G            paused: fan        │\n"
        "└──────────────────────────────────────────────────────────────────────────────┘\n"
        "┌2 Jobs 3 [all]──────────────────────────────────────────────[sort: state,turn]┐\n"
        "│  ID USER NAME       STATE     GPUS TIME   LEFT   WHY                         │\n"
        "│●  1 ana  train      running   :0   30m00s 30m00s python t.py                 │\n"
        "│◌  2 me   eval       queued #1 ×2   1m00s  -      not enough                  │\n"
        "│✗  3 bo   \\x1b[2Jbad failed    ×0   1m00s  -      exit 3                      │\n";
    _cleanup_free_ char *text = draw(top_of(state), 80, 24);
    char *end = strstr(text, "exit 3");
    assert_non_null(end);
    end = strchr(end, '\n');
    end[1] = '\0';
    assert_string_equal(text, expected);
}

CASE(the_visible_part_of_a_longer_list_is_shown)
{
    expect(top_of(state), "2 Jobs 3 [all]");
    press(top_of(state), "22"); // alone on the screen
    _cleanup_free_ char *text = draw(top_of(state), 80, 8);
    assert_non_null(strstr(text, "2 Jobs 1-2 of 3 [all]"));
}

CASE(the_pages_are_in_the_legend)
{
    _cleanup_free_ char *text = draw(top_of(state), 120, 24);
    assert_non_null(strstr(text, "4-7 pages"));
}

CASE(the_timeline_tells_what_is_out_of_use_and_keeps_now_apart)
{
    struct top *top = top_of(state);
    top_show_page(top, PAGE_TIMELINE);
    _cleanup_free_ char *text = draw(top, 100, 24);
    assert_non_null(strstr(text, "paused: fan"));
    assert_non_null(strstr(text, " now "));
}

/* The line of the picture that has `part`, between the frames. */
static void expect_row(struct top *top, const char *part, const char *row)
{
    _cleanup_free_ char *text = draw(top, 100, 24);
    const char *found = strstr(text, part);
    if (found == NULL || strncmp(found, row, strlen(row)) != 0)
        fail_msg("no '%s' in\n%s", row, text);
}

/* 90 minutes in 84 columns: a column is 64 seconds, and "now" is the 28th. */
CASE(the_timeline_is_broad_until_the_expected_end_and_thin_until_the_limit)
{
    struct top *top = top_of(state);
    put(top,
        "{\"id\": 1, \"user\": \"ana\", \"uid\": 7, \"name\": \"train\", \"state\": \"running\", \"gpus\": 1,"
        " \"node\": \"box\", \"granted\": [{\"index\": 0, \"uuid\": \"a\"}],"
        " \"submitted_at\": \"2026-01-01T11:00:00Z\", \"started_at\": \"2026-01-01T11:30:00Z\","
        " \"expected_end\": \"2026-01-01T12:10:40Z\", \"time_limit_s\": 3600}");
    put(top,
        "{\"id\": 2, \"user\": \"me\", \"uid\": 4242, \"name\": \"eval\", \"state\": \"queued\", \"gpus\": 1,"
        " \"submitted_at\": \"2026-01-01T11:59:00Z\", \"eta\": \"2026-01-01T12:10:40Z\","
        " \"expected_end\": \"2026-01-01T12:21:20Z\"}");
    top_show_page(top, PAGE_TIMELINE);
    expect_row(top, "GPU 0", "GPU 0         1 ana███████████████████████▒▒▒▒▒▒▒▒▒─────────────────── ");
    expect_row(top, "2 eval", "2 eval                                    ┊        ░░░░░░░░░░┄┄┄┄┄┄┄");
}

CASE(every_size_is_drawn_and_every_line_is_as_wide_as_the_screen_at_most)
{
    struct top *top = top_of(state);
    for (int page = 0; page < PAGES; page++)
        for (int columns = 1; columns < 220; columns += 7)
            for (int rows = 1; rows < 60; rows += 5) {
                top_show_page(top, (enum top_page)page);
                _cleanup_free_ char *text = draw(top, columns, rows);
                assert_non_null(text);
            }
}

CASE(nothing_known_is_drawn_too)
{
    struct top *top = top_of(state);
    top_jobs_clear(&top->model.jobs);
    json_decref(top->model.gpus);
    top->model.gpus = NULL;
    top->model.is_complete = false;
    top->view.is_list_old = true;
    expect(top, "waiting for mgpud ...");
    for (int page = 0; page < PAGES; page++) {
        top_show_page(top, (enum top_page)page);
        free(draw(top, 80, 24));
        press(top, "jkgG c\nrHpw\n/x\n[]");
        top_press(top, TOP_KEY_ESCAPE);
    }
}

CASE(a_frozen_screen_says_so_and_its_clock_stands)
{
    struct top *top = top_of(state);
    press(top, "P");
    expect(top, "FROZEN (P)");
    top->wire.lost_ms = clock_boot_ms() - 9000;
    expect_no(top, "reconnecting");
    top->wire.lost_ms = 0;
    press(top, "P");
    expect(top, "12:00:00 2s");
}

CASE(jobs_are_sorted_by_the_time_that_is_shown)
{
    struct top *top = top_of(state);
    assert_int_equal(order_parse("time", &top->prefs.order, NULL), 0);
    free(draw(top, 80, 24));
    assert_int_equal(field_integer(top->view.rows[2], "id", 0), 1); // it has run for 30 minutes by now
}

CASE(without_utf8_the_picture_is_ascii)
{
    struct top *top = top_of(state);
    top->screen.is_utf8 = false;
    top->prefs.graph = GRAPH_ASCII;
    _cleanup_free_ char *text = draw(top, 120, 30);
    for (const char *p = text; *p != '\0'; p++)
        assert_true((unsigned char)*p < 0x80);
}

CASE(text_of_jobs_cannot_drive_the_terminal)
{
    expect_no(top_of(state), "\033");
}

CASE(a_lost_mgpud_is_reported_and_the_last_state_stays)
{
    struct top *top = top_of(state);
    top->wire.lost_ms = clock_boot_ms() - 2500;
    expect(top, "reconnecting 3s");
    expect(top, "train");
    assert_int_equal(canvas_cell(&top->canvas, 7, 3)->look, LOOK_DIM);
}

/* --- keys --- */

TEST(no_key_means_two_things_in_one_place)
{
    for (const struct top_key *a = top_keys; a->name != NULL; a++)
        for (const struct top_key *b = a + 1; b->name != NULL; b++)
            for (int i = 0; i < KEY_CODES && (a->where & b->where) != 0; i++)
                for (int k = 0; k < KEY_CODES; k++)
                    if (a->codes[i] != 0 && a->codes[i] == b->codes[k])
                        fail_msg("'%s' is '%s' and '%s'", a->name, a->help, b->help);
}

TEST(every_function_key_has_a_letter_and_every_help_fits_80_columns)
{
    for (const struct top_key *key = top_keys; key->name != NULL; key++) {
        assert_true(key->codes[0] != 0 && key->help != NULL && key->act != NULL && key->where != 0);
        if (strlen(key->help) > 57)
            fail_msg("'%s' is too long", key->help);
        for (int i = 0; i < KEY_CODES; i++)
            if (key->codes[i] >= TOP_KEY_F1)
                assert_true(key->codes[0] < TOP_KEY_F1);
    }
}

CASE(the_selection_stays_with_its_job)
{
    struct top *top = top_of(state);
    free(draw(top, 80, 24));
    press(top, "j");
    assert_int_equal(top->view.selected, 2);
    put(top,
        "{\"id\": 9, \"user\": \"ana\", \"uid\": 7, \"name\": \"new\", \"state\": \"running\", \"gpus\": 1}");
    top->view.is_list_old = true;
    free(draw(top, 80, 24));
    assert_int_equal(top->view.selected, 2);
    assert_int_equal(top->view.selected_row, 2);
}

CASE(a_filter_is_applied_while_it_is_typed_and_escape_takes_it_back)
{
    struct top *top = top_of(state);
    press(top, "/u:bo");
    expect(top, "2 Jobs 1 [all] /u:bo");
    top_press(top, TOP_KEY_ESCAPE);
    expect(top, "2 Jobs 3 [all]─");
    press(top, "/s:queued\n");
    expect(top, "2 Jobs 1 [all] /s:queued");
    press(top, "m");
    expect(top, "2 Jobs 1 [mine] /s:queued");
    top_press(top, TOP_KEY_ESCAPE);
    press(top, "mz");
    expect(top, "2 Jobs 1 [all] [trouble]");
}

CASE(sorting_is_chosen_in_a_menu)
{
    struct top *top = top_of(state);
    free(draw(top, 80, 24));
    press(top, "sjj");
    expect(top, "Sort by");
    press(top, "\n");
    expect(top, "[sort: id,state]");
    assert_int_equal(top->view.popup, POPUP_NONE);
}

CASE(columns_are_shown_hidden_and_kept_for_the_next_time)
{
    struct fixture *fixture = *state;
    struct top *top = &fixture->top;
    free(draw(top, 80, 24));
    press(top, "Cj ");
    assert_string_equal(top->prefs.columns, "mark,user,name,state,gpus,time,left,why");
    top_press(top, TOP_KEY_ESCAPE);
    expect_no(top, "ID USER");
    _cleanup_(top_prefs_clear) struct top_prefs again;
    top_prefs_init(&again);
    top_prefs_load(&again);
    assert_string_equal(again.columns, top->prefs.columns);
}

CASE(a_question_is_answered_no_by_any_other_key)
{
    struct top *top = top_of(state);
    free(draw(top, 80, 24));
    press(top, "c");
    expect(top, "cancel job 1 (train)? y/N");
    press(top, "\n");
    expect(top, "nothing changed");
    assert_null(top->view.prompt.done);
}

CASE(a_line_that_is_too_long_shows_the_question_and_what_is_typed_last)
{
    struct top *top = top_of(state);
    free(draw(top, 80, 24));
    press(top, "c");
    _cleanup_free_ char *question = draw(top, 24, 8);
    assert_non_null(strstr(question, "? y/N"));
    press(top, "n");
    top_select_job(top, 0);
    press(top, "/state:running user:ana gpu:0");
    _cleanup_free_ char *filter = draw(top, 24, 8);
    assert_non_null(strstr(filter, "ana gpu:0\n"));
    assert_null(strstr(filter, "state:"));
}

CASE(marked_jobs_are_named_in_the_question)
{
    struct top *top = top_of(state);
    free(draw(top, 80, 24));
    press(top, "  c");
    expect(top, "cancel jobs 1, 2? y/N");
    press(top, "n");
    top_press(top, TOP_KEY_ESCAPE);
    press(top, "c");
    expect_no(top, "1, 2");
}

CASE(tab_and_numbers_choose_panels_and_a_number_again_makes_one_large)
{
    struct top *top = top_of(state);
    free(draw(top, 80, 24));
    press(top, "\t");
    assert_int_equal(top->view.focus, PANEL_LOG);
    press(top, "1");
    assert_int_equal(top->view.focus, PANEL_GPUS);
    assert_false(top->view.is_maximized);
    press(top, "1");
    free(draw(top, 80, 24));
    assert_int_equal(top->layout.panels[PANEL_GPUS].height, 22);
    press(top, "4");
    expect(top, "Nodes");
    press(top, "2");
    expect(top, "2 Jobs");
}

CASE(a_colon_goes_to_pages_and_jobs)
{
    struct top *top = top_of(state);
    free(draw(top, 80, 24));
    press(top, ":ti\t");
    expect(top, " :timeline");
    press(top, "\n");
    expect(top, "Timeline");
    press(top, ":2\n");
    expect(top, "Job 2  eval, of me");
    press(top, ":77\n");
    expect(top, "no such job");
    press(top, ":moon\n");
    expect(top, "'moon' is neither a job of yours nor a view");
    press(top, ":eval\n");
    expect(top, "Job 2  eval, of me");
    press(top, ":train\n"); // of another user
    expect(top, "'train' is neither a job of yours nor a view");
}

/* A host that is parked, the guest that has its GPUs and cannot be parked, and one that has started again. */
CASE(the_page_of_a_job_names_the_jobs_of_its_loan)
{
    static const struct {
        const char *job, *part;
    } rows[] = {
        { "\"park\": \"parked\", \"latest_return\": \"2026-01-01T13:10:00Z\", \"park_guest\": 21",
            "back by    13:10:00; it makes room for job 21" },
        { "\"park\": \"parked\", \"gpus_lent_to\": 21", "its GPUs   lent to job 21" },
        { "\"park_host\": 20", "instead of job 20 is parked for it" },
        { "\"gpus_due_to\": 20, \"gpus_due_at\": \"2026-01-01T13:10:00Z\"",
            "its GPUs   due to job 20 at 13:10:00" },
        { "\"reclaimed_by\": 20", "reclaimed  because its GPUs were due to job 20" },
        { "\"park_bar\": \"it has no time limit\"", "parking    not for shorter jobs: it has no time limit" },
    };
    struct top *top = top_of(state);
    free(draw(top, 80, 24));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        _cleanup_free_ char *job =
            xasprintf("{\"id\": 30, \"user\": \"me\", \"uid\": 4242, \"name\": \"lender\", \"gpus\": 1,"
                      " \"state\": \"running\", \"submitted_at\": \"2026-01-01T11:00:00Z\", %s}",
                rows[i].job);
        put(top, job);
        press(top, ":30\n");
        expect(top, rows[i].part);
    }
}

CASE(enter_on_a_user_or_a_node_shows_the_jobs_there)
{
    struct top *top = top_of(state);
    top->model.users = parse("[{\"user\": \"bo\", \"uid\": 8, \"limits\": {\"gpus\": 4}, \"gpus\": 3},"
                             " {\"user\": null, \"group\": \"staff\", \"limits\": null}]");
    top->model.nodes = parse("[{\"name\": \"box\", \"state\": \"up\"}]");
    press(top, "7");
    press(top, "5");
    expect(top, "@staff");
    expect(top, " 75%");
    press(top, "\n");
    expect(top, "2 Jobs 1 [all] /u:bo");
    press(top, "4\n");
    expect(top, "2 Jobs 1 [all] /box");
}

CASE(a_click_selects_and_one_on_a_heading_sorts)
{
    struct top *top = top_of(state);
    free(draw(top, 80, 24));
    top_click(top, 9, 10, 0, false);
    assert_int_equal(top->view.selected, 3);
    top_click(top, 6, 6, 0, false);
    expect(top, "[sort: user,state]");
    top_click(top, 8, 10, -1, false);
    top_click(top, 3, 10, 0, false);
    assert_int_equal(top->view.focus, PANEL_GPUS);
    assert_int_equal(top->view.gpu_row, 1);
}

CASE(the_keys_of_a_place_are_explained_there)
{
    struct top *top = top_of(state);
    free(draw(top, 80, 24));
    press(top, "?");
    expect(top, "cancel the job or the marked jobs; asks first");
    press(top, "?1?");
    expect(top, "pause a GPU or drain a node");
}

CASE(a_long_name_leaves_room_for_the_reason)
{
    struct top *top = top_of(state);
    struct top_job *job = top_jobs_find(&top->model.jobs, 2);
    (void)json_object_set_new(job->job, "name", json_string("a-name-of-more-than-forty-characters-in-a-row"));
    (void)json_object_set_new(
        job->job, "reason_text", json_string("a reason that is longer than there is room for"));
    expect(top, "a-name-of-more-… queued #1");
    expect(top, "a reason that i");
}

CASE(a_progress_that_a_job_tells_is_a_bar)
{
    struct top *top = top_of(state);
    struct top_job *job = top_jobs_find(&top->model.jobs, 1);
    (void)json_object_set_new(job->job, "progress", json_real(0.42));
    (void)json_object_set_new(job->job, "status", json_string("epoch 3"));
    expect(top, "████░░░░░░ 42% epoch 3");
}

TEST(columns_move_and_the_last_one_stays)
{
    _cleanup_free_ char *moved = top_columns_move("id,user,name", "name", -1);
    assert_string_equal(moved, "id,name,user");
    _cleanup_free_ char *edge = top_columns_move("id,user,name", "id", -1);
    assert_string_equal(edge, "id,user,name");
    _cleanup_free_ char *last = top_columns_toggle("id", "id");
    assert_string_equal(last, "id");
}

TEST(choices_that_are_not_understood_are_passed_over)
{
    _cleanup_(top_prefs_clear) struct top_prefs prefs;
    top_prefs_init(&prefs);
    top_prefs_read(&prefs,
        "theme: mono\nsort: -user\nrefresh: 500\nmoon: full\njunk\ngraph: dots\njobs: mine\ncolumns: \n");
    _cleanup_free_ char *text = top_prefs_text(&prefs);
    assert_string_equal(text, "theme: mono\ncolumns: " TOP_COLUMNS "\nsort: -user\nrefresh: 2\njobs: mine\n");
}

int main(void)
{
    (void)setlocale(LC_CTYPE, "C.UTF-8");
    return unit_tests_run(NULL, NULL);
}
