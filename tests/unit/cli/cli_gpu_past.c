/* SPDX-License-Identifier: MIT */
/* GPUs and their past on paper. */

#include <stdlib.h>
#include <string.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "cli/show/gpu_columns.h"
#include "cli/show/gpu_past.h"
#include "server.h"
#include "unit_test.h"

static json_t *object(const char *text)
{
    json_t *value = json_loads(text, 0, NULL);
    assert_non_null(value);
    return value;
}

TEST(the_last_minutes_are_bars_with_gaps)
{
    const struct screen plain = { 0 }, fine = { .is_utf8 = true };
    enum color color = COLOR_NONE;
    _cleanup_json_ json_t *gpu = object("{\"recent\": [0, 0.5, null, 1.0]}");
    _cleanup_free_ char *ascii = gpu_past_render(&(struct view){ .screen = &plain }, gpu, &color);
    _cleanup_free_ char *blocks = gpu_past_render(&(struct view){ .screen = &fine }, gpu, &color);
    assert_string_equal(ascii, "_- #");
    assert_string_equal(blocks, "▁▄ █");
}

TEST(without_an_answer_there_are_no_bars)
{
    const struct screen plain = { 0 };
    enum color color = COLOR_NONE;
    _cleanup_json_ json_t *gpu = object("{}");
    _cleanup_free_ char *text = gpu_past_render(&(struct view){ .screen = &plain }, gpu, &color);
    assert_string_equal(text, "-");
}

TEST(it_is_asked_for_only_when_it_is_shown)
{
    static const struct {
        const char *output;
        bool is_json, is_shown;
    } rows[] = { { NULL, false, false }, { "wide", false, true }, { "wide", true, false },
        { "json", false, false }, { "gpu,past", false, true }, { "past", false, true },
        { "gpu,util", false, false } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct call call = { .list = { .output = rows[i].output }, .is_json = rows[i].is_json };
        assert_int_equal(gpu_past_is_shown(&call), rows[i].is_shown);
    }
}

/* The response is in the socket before the request is sent; the request is read afterwards. */
TEST(arrays_become_rows_and_unknown_moments_none)
{
    static const char body[] =
        "{\"schema\":\"mgpu/v1\",\"from\":\"2026-11-21T06:30:00.000Z\",\"step_s\":60,\"gpus\":[{\"node\":"
        "\"box\",\"index\":3,\"uuid\":\"U\",\"utilization\":[null,0.25],\"power_w\":[null,300]}]}";
    _cleanup_(server_close) struct server server;
    _cleanup_(client_clear) struct client client;
    struct error err = { 0 };
    _cleanup_json_ json_t *answer = NULL;
    server_open(&server);
    client_init(&client, server.path, NULL);
    pid_t pid = fork();
    if (pid == 0) {
        char request[1024] = "", head[256];
        int fd = server_accept(&server);
        server_receive(fd, request, sizeof(request));
        bool is_right =
            strstr(request, "GET /api/v1/gpus/history?gpu=box:3&since=2026-11-21T06:30:00Z&step=60 ") !=
                NULL ||
            strstr(request, "gpu=box%3A3&since=2026-11-21T06%3A30%3A00Z&step=60 ") != NULL;
        (void)snprintf(head, sizeof(head),
            "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
            is_right ? "200 OK" : "500 Wrong", sizeof(body) - 1);
        server_say(fd, head);
        server_say(fd, body);
        _exit(0);
    }
    const struct gpu_past_question question = {
        .gpu = "box:3", .since = "2026-11-21T06:30:00Z", .step = "60"
    };
    assert_int_equal(gpu_past_get(&client, &question, &answer, &err), 0);
    const json_t *points = json_object_get(answer, "points"), *point = json_array_get(points, 0);
    assert_int_equal(json_array_size(points), 1);
    assert_string_equal(field_text(point, "at"), "2026-11-21T06:31:00.000Z");
    assert_int_equal(field_integer(point, "power_w", 0), 300);
    assert_false(field_is_known(point, "memory"));
}

static void check_line(const char *gpus, const char *expected)
{
    _cleanup_json_ json_t *array = object(gpus);
    _cleanup_free_ char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    gpu_print_line(array, out);
    (void)fclose(out);
    assert_string_equal(text, expected);
}

TEST(a_line_tells_each_gpu_in_a_word)
{
    check_line("[{\"index\":0,\"state\":\"used\",\"jobs\":[{}],\"utilization\":0.97},"
               "{\"index\":1,\"state\":\"free\",\"jobs\":[]},"
               "{\"index\":2,\"state\":\"lost\",\"jobs\":[{}]},"
               "{\"index\":3,\"state\":\"used\",\"jobs\":[{}],\"utilization\":0,\"wasted\":true},"
               "{\"index\":4,\"state\":\"free\",\"jobs\":[],\"processes\":[{\"pid\":7,\"job\":null}]}]",
        "0:97% 1:- 2:x 3:idle 4:-!\n");
}

static void check_cells(const char *gpu, const char *columns, const char *expected)
{
    struct screen screen = { 0 };
    const struct call call = { .list = { .output = columns, .is_headless = true } };
    _cleanup_json_ json_t *answer = json_pack("{s:[o]}", "gpus", object(gpu));
    _cleanup_free_ char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(list_print(&call, &gpu_list, &screen, answer, out, NULL), 0);
    (void)fclose(out);
    assert_string_equal(text, expected);
}

TEST(what_keeps_jobs_away_has_a_sign)
{
    check_cells("{\"state\":\"free\",\"processes\":[{\"pid\":7,\"user\":\"cy\",\"job\":null},"
                "{\"pid\":8,\"user\":\"cy\",\"job\":null},{\"pid\":9,\"user\":\"bo\",\"job\":null}]}",
        "job,user", "!  cy,bo\n");
    check_cells("{\"state\":\"paused\"}", "job,user", "=  -\n");
    check_cells("{\"state\":\"free\"}", "job,user", "-  -\n");
    check_cells("{\"state\":\"used\",\"jobs\":[{\"id\":3,\"user\":\"ada\"}],"
                "\"processes\":[{\"pid\":7,\"user\":\"cy\",\"job\":null}]}",
        "job,user", "3  ada\n");
}

TEST(idleness_is_a_time_and_a_mark)
{
    check_cells("{\"state\":\"used\",\"idle_s\":5,\"wasted\":false}", "idle", "5s\n");
    check_cells("{\"state\":\"used\",\"idle_s\":2520,\"wasted\":true}", "idle", "42m00s !\n");
    check_cells("{\"state\":\"free\",\"idle_s\":null}", "idle", "-\n");
}
