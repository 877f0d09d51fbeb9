/* SPDX-License-Identifier: MIT */
/* Jobs, events, GPUs and nodes as the API shows them. */

#include <string.h>

#include "base/memory.h"
#include "job/gpu_health.h"
#include "unit_test.h"
#include "wire/json_append.h"
#include "wire/json_event.h"
#include "wire/json_gpu.h"
#include "wire/json_job.h"
#include "wire/json_node.h"
#include "wire/json_text.h"

struct fixture {
    struct usernames *names;
    struct job *job;
};

static int start(void **state)
{
    struct fixture *fixture = xcalloc(1, sizeof(*fixture));
    struct job_spec spec;
    job_spec_init(&spec);
    strings_add(&spec.command, "/usr/bin/python3");
    strings_add(&spec.command, "my script.py");
    fixture->names = usernames_new();
    fixture->job = job_new(42, &spec);
    job_spec_clear(&spec);
    fixture->job->state = JOB_QUEUED;
    fixture->job->submitted_ms = 1000000000000;
    *state = fixture;
    return 0;
}

static int stop(void **state)
{
    struct fixture *fixture = *state;
    usernames_free(fixture->names);
    job_free(fixture->job);
    free(fixture);
    return 0;
}

#define CASE(name) TEST_WITH(name, start, stop)

/* Text written member by member is that of the tree. */
static void assert_same(struct buffer *text, json_t *tree)
{
    _cleanup_free_ char *wanted = json_text_format(tree);
    assert_string_equal(buffer_text(text), wanted);
    buffer_clear(text);
}

TEST(text_is_that_of_jansson)
{
    static const double reals[] = { 0, 1, 0.5, 60, 1.25, 0.001, 12.3456, -3.5, -0.0, 1e-7, 1e15, 1e22,
        123456789.123, 999999999.999, 0.1 + 0.2 };
    static const char *const strings[] = { "", "plain", "a\"b\\c/", "\b\f\n\r\t\x01\x1f\x7f",
        "Käse ☃ 🦀" };
    static const int64_t integers[] = { 0, 7, -1, INT64_MAX, INT64_MIN, 1000000 };
    _cleanup_json_ json_t *array = json_array();
    for (size_t i = 0; i < sizeof(reals) / sizeof(reals[0]); i++)
        (void)json_array_append_new(array, json_real(reals[i]));
    for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
        (void)json_array_append_new(array, json_string(strings[i]));
    for (size_t i = 0; i < sizeof(integers) / sizeof(integers[0]); i++)
        (void)json_array_append_new(array, json_integer(integers[i]));
    (void)json_array_append_new(array, json_pack("{s:b,s:n,s:[],s:{}}", "a\n", 1, "b", "c", "d"));
    struct buffer text = { 0 };
    json_append(&text, array);
    assert_same(&text, array);
}

static char *show(const struct fixture *fixture)
{
    struct json_job_view view = { .job = fixture->job,
        .names = fixture->names,
        .now_ms = 1000000005500,
        .position = 2,
        .reason = "waits" };
    _cleanup_json_ json_t *object = json_job_write(&view);
    struct buffer text = { 0 };
    json_job_append(&view, &text);
    assert_same(&text, object);
    struct json_job_key key;
    size_t count = 0;
    for (; json_job_key(count, &key); count++)
        assert_non_null(json_object_get(object, key.name));
    assert_int_equal(json_object_size(object), count);
    return json_text_format(object);
}

static void assert_shown(const struct fixture *fixture, const char *const *parts)
{
    _cleanup_free_ char *text = show(fixture);
    for (; *parts != NULL; parts++) {
        if (strstr(text, *parts) == NULL)
            print_message("%s is not in %s\n", *parts, text);
        assert_non_null(strstr(text, *parts));
    }
}

#define SHOWN(...) assert_shown(*state, (const char *const[]){ __VA_ARGS__, NULL })

CASE(job_on_several_nodes_lists_its_ranks)
{
    struct fixture *fixture = *state;
    struct record_list nodes = { 0 };
    SHOWN("\"ranks\":null");
    job_nodes_add(&nodes, "gpu1", "boot-1");
    job_nodes_add(&nodes, "gpu2", "boot-2");
    struct job_node *items = nodes.items;
    items[1].log_path = xstrdup("/logs/7.t1.log");
    items[1].end = END_EXIT;
    items[1].exit_code = 3;
    job_make_run(fixture->job)->nodes = job_nodes_copy(&nodes);
    fixture->job->state = JOB_DONE;
    fixture->job->end = END_EXIT;
    SHOWN("\"rank\":0,\"node\":\"gpu1\",\"gpus\":0,\"state\":\"returned\",\"ended_by\":null",
        "\"rank\":1,\"node\":\"gpu2\",\"gpus\":0,\"state\":\"failed\",\"ended_by\":\"exit\",\"exit_code\":3,"
        "\"log\":\"/logs/7.t1.log\"");
    struct job_nodes owner = { .nodes = nodes };
    record_clear(&job_nodes_record, &owner);
}

CASE(a_requeued_job_tells_how_many_nodes_its_earlier_attempt_had)
{
    struct fixture *fixture = *state;
    struct record_list nodes = { 0 };
    SHOWN("\"earlier\":null");
    job_nodes_add(&nodes, "gpu1", "boot-1");
    job_nodes_add(&nodes, "gpu2", "boot-2");
    ((struct job_node *)nodes.items)[1].log_path = xstrdup("/logs/7.t1.log");
    const struct job_event requeued = { .type = EVENT_REQUEUED, .attempt = 3, .nodes = nodes };
    job_make_run(fixture->job)->earlier = job_earlier_new(&requeued, "gpu1", NULL);
    SHOWN("\"earlier\":{\"attempt\":3,\"ranks\":2}");
    struct job_nodes owner = { .nodes = nodes };
    record_clear(&job_nodes_record, &owner);
}

CASE(a_queued_job_tells_why_it_waits)
{
    SHOWN("{\"id\":42,\"alias\":\"B358D7EB\",\"user\":\"root\",\"uid\":0,\"name\":\"python3\",\"state\":"
          "\"queued\"",
        "\"command\":\"/usr/bin/python3 'my script.py'\"", "\"position\":2,\"reason\":\"waits\"",
        "\"submitted_at\":\"2001-09-09T01:46:40.000Z\"", "\"wait_seconds\":5.5", "\"run_seconds\":null",
        "\"exit_code\":null", "\"granted\":[]", "\"node\":null", "\"ended_by\":null", "\"log\":null");
}

CASE(a_request_is_answered_under_the_names_it_came_with)
{
    struct job *job = ((struct fixture *)*state)->job;
    char notify_on[] = "end";
    struct job_ask ask = { .gpus = 2,
        .time_limit_ms = 90500,
        .begin_ms = 1000000000000,
        .cpu_milli = 2500,
        .memory = 1 << 30,
        .notify_on = notify_on };
    SHOWN("\"gpus\":1,", "\"priority\":0", "\"time_limit\":null", "\"gpu_mem\":null", "\"after\":null",
        "\"preemptible\":false", "\"begin\":null");
    job_set_ask(job, &ask);
    SHOWN("\"gpus\":2,", "\"time_limit_s\":90.5,\"time_limit\":90.5", "\"cpus\":2.5", "\"memory\":1073741824",
        "\"begin_at\":\"2001-09-09T01:46:40.000Z\",\"begin\":\"2001-09-09T01:46:40.000Z\"");
    _cleanup_free_ char *text = show(*state);
    assert_null(strstr(text, "notify")); // addresses are nobody else's business
}

CASE(a_running_job_tells_what_it_has)
{
    struct job *job = ((struct fixture *)*state)->job;
    job->state = JOB_RUNNING;
    job->started_ms = job->submitted_ms + 500;
    job->node = xstrdup("box");
    job_make_run(job)->log_path = xstrdup("/log");
    gpu_grants_add(&job->grants, 3, "GPU-3", 0, 0);
    struct gpu_grant *shared = gpu_grants_add(&job->grants, 1, "GPU-1", 2, 4096);
    shared->share = 500;
    shared->node = xstrdup("b");
    SHOWN("\"state\":\"running\"", "\"position\":null,\"reason\":null", "\"wait_seconds\":0.5",
        "\"run_seconds\":5.0",
        "\"granted\":[{\"index\":3,\"uuid\":\"GPU-3\",\"memory\":0,\"shared\":false,\"share\":null,\"node\":"
        "null},"
        "{\"index\":1,\"uuid\":\"GPU-1\",\"memory\":4096,\"shared\":true,\"share\":500,\"node\":\"b\"}]",
        "\"log\":\"/log\",\"log_bytes\":null", "\"max_rss_bytes\":null");
}

CASE(what_a_job_says_of_itself_is_shown)
{
    struct fixture *fixture = *state;
    char status[] = "epoch \x1b";
    struct job_usage usage = { .status = status, .checkpointed_ms = 1000000000000 };
    struct json_job_view view = { .job = fixture->job, .names = fixture->names, .usage = &usage };
    char reason[] = "waiting for its checkpoint";
    view.reason_text = reason;
    fixture->job->state = JOB_STOPPING;
    _cleanup_json_ json_t *object = json_job_write(&view);
    assert_true(json_is_null(json_object_get(object, "progress")));
    assert_string_equal(json_string_value(json_object_get(object, "status")), status);
    assert_string_equal(
        json_string_value(json_object_get(object, "checkpointed_at")), "2001-09-09T01:46:40.000Z");
    assert_string_equal(json_string_value(json_object_get(object, "reason_text")), reason);
    assert_true(json_is_null(json_object_get(object, "reason")));
    usage = (struct job_usage){ .valid = USAGE_PROGRESS, .progress_ppm = 250000 };
    fixture->job->state = JOB_RUNNING;
    _cleanup_json_ json_t *running = json_job_write(&view);
    assert_true(json_real_value(json_object_get(running, "progress")) == 0.25);
    assert_true(json_is_null(json_object_get(running, "status")));
    assert_true(json_is_null(json_object_get(running, "checkpointed_at")));
    assert_true(json_is_null(json_object_get(running, "reason_text")));
}

CASE(a_sparse_job_has_what_the_whole_one_has_but_no_null_or_false)
{
    struct fixture *fixture = *state;
    struct json_job_view view = { .job = fixture->job, .names = fixture->names };
    _cleanup_json_ json_t *whole = json_job_write(&view);
    view.is_sparse = true;
    _cleanup_json_ json_t *sparse = json_job_write(&view);
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(whole, name, value)
    {
        json_t *kept = json_object_get(sparse, name);
        bool is_left_out = json_is_null(value) || json_is_false(value);
        assert_true(is_left_out ? kept == NULL : json_equal(kept, value));
    }
    assert_true(json_object_size(sparse) < json_object_size(whole));
}

CASE(the_word_for_an_end_is_done_failed_or_cancelled)
{
    static const struct {
        enum job_end end;
        int32_t exit_code;
        const char *word;
        bool is_status_known;
    } cases[] = {
        { END_EXIT, 0, "done", true },
        { END_EXIT, 1, "failed", true },
        { END_SIGNAL, 139, "failed", true },
        { END_CANCELLED, 143, "cancelled", false },
        { END_START_FAILED, 127, "failed", true },
        { END_SETUP_FAILED, 1, "failed", true },
        { END_UNKNOWN, 0, "failed", false },
        { END_REBOOT, 0, "failed", false },
    };
    const struct fixture *fixture = *state;
    struct job *job = fixture->job;
    job->state = JOB_DONE;
    job->ended_ms = job->submitted_ms + 100;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        job->end = cases[i].end;
        job->exit_code = cases[i].exit_code;
        assert_string_equal(json_job_state(job), cases[i].word);
        _cleanup_free_ char *text = show(fixture);
        assert_int_equal(strstr(text, "\"exit_code\":null") == NULL, cases[i].is_status_known);
    }
    job->started_ms = job->submitted_ms; // a cancelled job that ran has a status
    job->end = END_CANCELLED;
    job->exit_code = 143;
    SHOWN("\"exit_code\":143", "\"stopped_by\":\"root\"");
}

CASE(an_event_tells_nothing_of_the_command)
{
    const struct fixture *fixture = *state;
    struct job_event event = { .seq = 9,
        .job = 42,
        .attempt = 1,
        .type = EVENT_ENDED,
        .wall_ms = 1,
        .end = END_SIGNAL,
        .exit_code = 137,
        .signal = 9,
        .run_ms = 1500,
        .log_path = (char[]){ "/secret" } };
    _cleanup_json_ json_t *object = json_event_write(&event, NULL, fixture->names);
    _cleanup_free_ char *text = json_text_format(object);
    assert_string_equal(text,
        "{\"seq\":9,\"type\":\"ended\",\"job\":42,\"attempt\":1,\"at\":\"1970-01-01T00:00:00.001Z\","
        "\"state\":\"failed\",\"ended_by\":\"signal\",\"exit_code\":137,\"signal\":9,\"run_seconds\":1.5,"
        "\"message\":null}");
}

CASE(the_state_in_an_event_is_the_one_right_after_it)
{
    const struct fixture *fixture = *state;
    struct job *job = fixture->job;
    static const struct {
        enum job_event_type type;
        enum job_state now; // of the job, some events later perhaps
        bool is_last;       // the event is the one that ended it
        const char *word, *unknown;
    } cases[] = {
        { EVENT_SUBMITTED, JOB_RUNNING, false, "queued", "queued" },
        { EVENT_ALLOCATED, JOB_DONE, false, "starting", "starting" },
        { EVENT_STARTED, JOB_RUNNING, false, "running", NULL },
        { EVENT_STARTED, JOB_DONE, false, "running", NULL },
        { EVENT_STARTED, JOB_STOPPING, false, "stopping", NULL },
        { EVENT_STOP, JOB_STOPPING, false, "stopping", NULL },
        { EVENT_STOP, JOB_DONE, false, "stopping", NULL },
        { EVENT_STOP, JOB_DONE, true, "cancelled", NULL },
        { EVENT_RETURNED, JOB_STARTING, false, "queued", NULL },
        { EVENT_RETURNED, JOB_DONE, true, "cancelled", NULL },
        { EVENT_ENDED, JOB_DONE, true, "failed", "failed" },
        { EVENT_EDITED, JOB_DONE, false, "queued", "queued" },
        { EVENT_HELD, JOB_DONE, false, "queued", "queued" },
        { EVENT_RELEASED, JOB_RUNNING, false, "queued", "queued" },
        { EVENT_PREEMPTED, JOB_QUEUED, false, "stopping", "stopping" },
        { EVENT_REQUEUED, JOB_RUNNING, false, "queued", "queued" },
        { EVENT_SPLIT, JOB_DONE, false, "queued", "queued" },
        { EVENT_MEMBER, JOB_DONE, false, "queued", NULL },
        { EVENT_MEMBER, JOB_DONE, true, "cancelled", NULL },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct job_event event = { .type = cases[i].type, .wall_ms = 1000 };
        job->state = cases[i].now;
        job->end = job->stop_reason = job->state == JOB_DONE ? END_CANCELLED : END_NONE;
        job->ended_ms = cases[i].is_last ? 1000 : 2000;
        _cleanup_json_ json_t *told = json_event_write(&event, job, fixture->names);
        assert_string_equal(json_string_value(json_object_get(told, "state")), cases[i].word);
        _cleanup_json_ json_t *old = json_event_write(&event, NULL, fixture->names);
        const char *word = json_string_value(json_object_get(old, "state"));
        if (cases[i].unknown != NULL)
            assert_string_equal(word, cases[i].unknown);
        else
            assert_null(word);
    }
}

CASE(a_gpu_shows_only_what_is_measured)
{
    const struct fixture *fixture = *state;
    struct gpu_state gpu = { .index = 1,
        .uuid = (char[]){ "U" },
        .memory_bytes = 100,
        .valid = GPU_MEMORY_USED | GPU_POWER,
        .memory_used_bytes = 50,
        .power_mw = 1500 };
    struct json_gpu_view view = { .node = "box", .is_node_up = true, .gpu = &gpu, .names = fixture->names };
    _cleanup_json_ json_t *object = json_gpu_write(&view);
    struct buffer appended = { 0 };
    json_gpu_append(&view, &appended);
    assert_same(&appended, object);
    view.is_sparse = true;
    json_gpu_append(&view, &appended);
    assert_string_equal(buffer_text(&appended), "{\"node\":\"box\",\"index\":1,\"uuid\":\"U\",\"memory_"
                                                "bytes\":100,\"memory_used_bytes\":50,\"power_w\":1.5,"
                                                "\"state\":\"free\",\"numa\":0,\"pcie_switch\":0}");
    buffer_clear(&appended);
    _cleanup_free_ char *text = json_text_format(object);
    assert_string_equal(text,
        "{\"node\":\"box\",\"index\":1,\"uuid\":\"U\",\"model\":null,\"pci\":null,\"mig\":null,\"memory_"
        "bytes\":100,"
        "\"memory_used_bytes\":50,\"utilization\":null,\"temperature_c\":null,\"power_w\":1.5,"
        "\"power_limit_w\":null,\"energy_joules\":null,\"sm_clock_mhz\":null,\"memory_clock_mhz\":null,"
        "\"ecc_corrected\":null,\"ecc_uncorrected\":null,\"xid\":null,\"xid_at\":null,\"trouble\":null,"
        "\"processes\":null,\"policy\":null,\"avoided\":false,\"state\":\"free\",\"reason\":null,"
        "\"unreachable_since\":null,"
        "\"fault\":null,\"until\":null,"
        "\"numa\":0,"
        "\"pcie_switch\":0,"
        "\"links\":[],\"tests\":[],\"test_result\":null,\"test_text\":null,\"idle_s\":null,"
        "\"wasted\":false,"
        "\"jobs\":[]}");
}

CASE(the_state_of_a_gpu_follows_its_jobs)
{
    const struct fixture *fixture = *state;
    struct gpu_state gpu = { .index = 1 };
    const struct job *jobs[] = { fixture->job };
    const int64_t idle_ms[] = { 0 };
    struct json_gpu_view view = {
        .node = "box",
        .is_node_up = true,
        .gpu = &gpu,
        .jobs = jobs,
        .idle_ms = idle_ms,
        .n_jobs = 1,
        .names = fixture->names,
    };
    static const struct {
        uint32_t slot, is_lost;
        bool is_up;
        const char *word;
    } cases[] = { { 0, 0, true, "used" }, { 1, 0, true, "shared" }, { 1, 1, true, "lost" },
        { 1, 0, false, "node_down" } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        gpu_grants_clear(&fixture->job->grants);
        gpu_grants_add(&fixture->job->grants, 1, "U", cases[i].slot, 0);
        gpu.is_lost = cases[i].is_lost;
        view.is_node_up = cases[i].is_up;
        _cleanup_json_ json_t *object = json_gpu_write(&view);
        assert_string_equal(json_string_value(json_object_get(object, "state")), cases[i].word);
    }
}

CASE(a_gpu_that_is_not_in_use_says_why)
{
    const struct fixture *fixture = *state;
    struct gpu_state gpu = { .is_unclean = 1, .trouble = (char[]){ "2G still used" } };
    const struct cluster_change fault = {
        .from_ms = 1000, .fault = GPU_FAULT_DEVICE, .xid = 79, .text = (char[]){ "off the bus" }
    };
    const struct cluster_change pause = { .text = (char[]){ "fan" } };
    struct json_gpu_view view = { .node = "box", .is_node_up = true, .gpu = &gpu, .names = fixture->names };
    struct {
        const struct cluster_change *fault, *pause;
        const char *state, *reason;
    } const cases[] = { { NULL, NULL, "unclean", "2G still used" },
        { &fault, NULL, "drained", "off the bus" }, { &fault, &pause, "paused", "fan" } };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        view.fault = cases[i].fault;
        view.pause = cases[i].pause;
        _cleanup_json_ json_t *object = json_gpu_write(&view);
        assert_string_equal(json_string_value(json_object_get(object, "state")), cases[i].state);
        assert_string_equal(json_string_value(json_object_get(object, "reason")), cases[i].reason);
        const json_t *shown = json_object_get(object, "fault");
        assert_true(json_is_object(shown) == (cases[i].fault != NULL));
        if (cases[i].fault == NULL)
            continue;
        assert_string_equal(json_string_value(json_object_get(shown, "kind")), "device");
        assert_int_equal(json_integer_value(json_object_get(shown, "xid")), 79);
        assert_string_equal(json_string_value(json_object_get(shown, "since")), "1970-01-01T00:00:01.000Z");
    }
}

CASE(a_gpu_is_idle_as_long_as_the_least_idle_of_its_jobs)
{
    const struct fixture *fixture = *state;
    struct gpu_state gpu = { .index = 1 };
    const struct job *jobs[] = { fixture->job, fixture->job };
    int64_t idle_ms[] = { 5000, 3500 };
    struct json_gpu_view view = {
        .node = "box",
        .is_node_up = true,
        .gpu = &gpu,
        .jobs = jobs,
        .idle_ms = idle_ms,
        .n_jobs = 2,
        .names = fixture->names,
    };
    view.is_wasted = true;
    _cleanup_json_ json_t *idle = json_gpu_write(&view);
    assert_true(json_real_value(json_object_get(idle, "idle_s")) == 3.5);
    assert_true(json_is_true(json_object_get(idle, "wasted")));
    view.is_wasted = false;
    idle_ms[1] = 0;
    _cleanup_json_ json_t *used = json_gpu_write(&view);
    assert_true(json_is_null(json_object_get(used, "idle_s")));
    assert_true(json_is_false(json_object_get(used, "wasted")));
}

CASE(a_node_tells_its_features)
{
    struct node_feature features[] = {
        { .name = (char[]){ "cgroup" }, .text = (char[]){ "off" }, .fix = (char[]){ "mount it" } }
    };
    struct message_hello hello = { .cpus = 4, .features = { .items = features, .count = 1 } };
    _cleanup_json_ json_t *object = json_table_write(
        &json_node_table, &(struct json_node_view){ .name = "box", .is_up = true, .hello = &hello });
    _cleanup_free_ char *text = json_text_format(object);
    assert_non_null(strstr(
        text, "\"features\":[{\"name\":\"cgroup\",\"on\":false,\"text\":\"off\",\"fix\":\"mount it\"}]"));
}

TEST(the_word_for_a_node_is_the_most_urgent_one)
{
    struct message_hello hello = { .cpus = 4 };
    struct cluster_change drain = { .kind = CHANGE_NODE_DRAIN }, fence = { .kind = CHANGE_NODE_FENCE };
    const struct {
        bool is_up;
        int64_t unreachable_ms;
        const struct cluster_change *mark;
        const char *word;
    } cases[] = {
        { true, 0, NULL, "up" },
        { false, 0, NULL, "down" },
        { true, 0, &drain, "drained" },
        { false, 1000, NULL, "unreachable" },
        { false, 1000, &drain, "unreachable" },
        { false, 1000, &fence, "fenced" },
        { true, 0, &fence, "fenced" },
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct json_node_view view = { .name = "box",
            .is_up = cases[i].is_up,
            .unreachable_ms = cases[i].unreachable_ms,
            .hello = &hello,
            .drain = cases[i].mark };
        _cleanup_json_ json_t *object = json_table_write(&json_node_table, &view);
        assert_string_equal(json_string_value(json_object_get(object, "state")), cases[i].word);
        assert_int_equal(
            json_is_null(json_object_get(object, "unreachable_since")), cases[i].unreachable_ms == 0);
    }
}
