/* SPDX-License-Identifier: MIT */
#include "early_scene.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/strings.h"

const struct identity scene_owner = { .is_known = true, .uid = 1000, .gid = 1000 };
const struct identity scene_admin = { .is_known = true, .uid = 77, .role = ROLE_ADMIN };

static void give_spec(struct bench *b)
{
    struct job_spec spec;
    job_spec_init(&spec);
    strings_add(&spec.command, SCENE_COMMAND);
    spec.cwd = xstrdup("/");
    core_on_spec(b->core, b->fetched, spec_bytes_new(&spec));
    job_spec_clear(&spec);
    b->fetched = 0;
}

void scene_settle(struct bench *b)
{
    bench_settle(b);
    for (int i = 0; i < 3; i++) { // what is due since that is durable, and what follows from it
        core_timer(b->core, b->now_ms, b->now_ms);
        if (b->fetched != 0)
            give_spec(b);
        core_barrier(b->core, NULL); // a commit that waits for others
        bench_settle(b);
    }
}

int scene_hello(struct bench *b, struct scene_node node)
{
    struct message_hello hello = { .protocol = LINK_PROTOCOL,
        .node = xstrdup(node.name),
        .boot_id = xstrdup("boot"),
        .cpus = 4,
        .memory_bytes = 16ULL << 30,
        .parks_ranks = 1 };
    struct gpu_state *gpu = xcalloc(1, sizeof(*gpu));
    *gpu =
        (struct gpu_state){ .uuid = xasprintf("GPU-%s", node.name), .memory_bytes = 24ULL << 30, .numa = -1 };
    struct node_feature *features = xcalloc(2, sizeof(*features));
    features[0] = (struct node_feature){ .name = xstrdup("park"), .is_on = 1 };
    features[1] = (struct node_feature){ .name = xstrdup("early"), .is_on = !node.lacks_early };
    struct known_attempt *attempts = xcalloc(node.n_known + 1, sizeof(*attempts));
    for (size_t i = 0; i < node.n_known; i++)
        attempts[i] = node.known[i];
    hello.gpus = (struct record_list){ gpu, 1 };
    hello.features = (struct record_list){ features, 2 };
    hello.attempts = (struct record_list){ attempts, node.n_known };
    struct error err;
    int r = core_link_up(b->core, b->now_ms, b->now_ms, node.link, &hello, &err);
    scene_settle(b);
    record_clear(&message_hello_record, &hello);
    return r;
}

void scene_submit(struct bench *b, struct scene_job scene_job, void *request)
{
    const struct identity *who = scene_job.priority > 0 ? &scene_admin : &scene_owner;
    struct job_spec *spec = bench_spec(scene_job.command != NULL ? scene_job.command : SCENE_COMMAND);
    spec->ask.gpus = 1;
    spec->ask.time_limit_ms = scene_job.limit_s * SECOND_MS;
    spec->ask.begin_ms = scene_job.begin_s != 0 ? b->now_ms + scene_job.begin_s * SECOND_MS : 0;
    spec->ask.priority = scene_job.priority;
    spec->ask.early = scene_job.is_early;
    spec->ask.no_early = scene_job.is_unwilling;
    spec->hold = scene_job.is_held;
    spec->ask.memory = scene_job.memory;
    spec->ask.cpu_milli = scene_job.cpu_milli;
    spec->ask.requeue_on_node_lost = scene_job.goes_on;
    core_submit(b->core, b->now_ms, b->now_ms, who, spec, NULL, request);
    scene_settle(b);
}

const struct job *scene_job(const struct bench *b, uint64_t id)
{
    return core_job(b->core, id);
}

uint32_t scene_phase(const struct bench *b, uint64_t id)
{
    return job_park(scene_job(b, id))->phase;
}

void scene_say(struct bench *b, uint16_t id, const void *message)
{
    struct error err = { 0 };
    assert_int_equal(core_link_message(b->core, b->now_ms, b->now_ms, SCENE_LINK, id, message, &err), 0);
    scene_settle(b);
}

struct sent scene_launch_of(const struct bench *b, uint64_t id)
{
    const struct sent *launch = bench_sent(b, MESSAGE_LAUNCH, id);
    assert_non_null(launch);
    assert_int_equal(launch->attempt, scene_job(b, id)->attempt);
    return *launch;
}

void scene_run(struct bench *b, uint64_t id)
{
    struct sent launch = scene_launch_of(b, id);
    assert_int_equal(bench_started(b, SCENE_LINK, &launch), 0);
    scene_settle(b);
    assert_int_equal(scene_job(b, id)->state, JOB_RUNNING);
}

void scene_end(struct bench *b, uint64_t id, enum job_end how, int exit_code)
{
    struct sent launch = scene_launch_of(b, id);
    assert_int_equal(bench_exited(b, SCENE_LINK, &launch, how, exit_code), 0);
    scene_settle(b);
}

void scene_pass(struct bench *b, int64_t seconds)
{
    for (int64_t until_ms = b->now_ms + seconds * SECOND_MS; b->now_ms < until_ms;) {
        b->now_ms = b->armed_ms > b->now_ms && b->armed_ms < until_ms ? b->armed_ms : until_ms;
        core_timer(b->core, b->now_ms, b->now_ms);
        scene_settle(b);
    }
}

uint32_t scene_take_order(struct bench *b, uint64_t id)
{
    uint32_t number = 0;
    for (size_t i = 0; i < b->n_sent; i++)
        if (b->sent[i].id == MESSAGE_PARK && b->sent[i].job == id && b->sent[i].action == PARK_RETURN) {
            number = b->sent[i].number;
            b->sent[i].id = 0;
        }
    return number;
}

void scene_answer(struct bench *b, uint64_t id, enum park_action action, enum park_outcome outcome)
{
    char why[] = "its filter cannot be changed";
    struct message_park_result result = { .id.job = id,
        .id.attempt = scene_job(b, id)->attempt,
        .token = scene_job(b, id)->token,
        .number = job_park(scene_job(b, id))->number,
        .action = action,
        .outcome = outcome,
        .waited_ms = 4 * SECOND_MS,
        .text = outcome == PARK_DONE ? NULL : why };
    scene_say(b, MESSAGE_PARK_RESULT, &result);
}

void scene_expect_early(const struct bench *b, uint64_t id)
{
    assert_int_equal(scene_job(b, id)->state, JOB_RUNNING);
    assert_true(job_is_early(scene_job(b, id)));
    assert_int_equal(scene_phase(b, id), PARK_WAITING);
    assert_false(job_is_stopped(scene_job(b, id)));
    assert_false(job_holds_gpus(scene_job(b, id)));
}

void scene_expect_granted(struct bench *b, uint64_t id)
{
    assert_int_equal(scene_phase(b, id), PARK_RESTORING);
    assert_true(job_holds_gpus(scene_job(b, id)));
    assert_int_equal(scene_take_order(b, id), job_park(scene_job(b, id))->number);
    scene_answer(b, id, PARK_RETURN, PARK_DONE);
    assert_int_equal(scene_phase(b, id), PARK_NONE);
    assert_int_equal(scene_job(b, id)->state, JOB_RUNNING);
    assert_false(job_is_early(scene_job(b, id)));
    assert_int_equal(scene_job(b, id)->attempt, 1);
}

int scene_open(void **state)
{
    (void)bench_open(state);
    struct bench *b = *state;
    b->options.queue_max = 10;
    b->options.recent_done_max = 10;
    b->options.early = (struct early_settings){ .mode = EARLY_ASKED, .within_ms = 2 * MINUTE_MS };
    bench_configure(b);
    return scene_hello(b, (struct scene_node){ .link = SCENE_LINK, .name = "box" });
}

static void encode_park(const struct job *job, struct buffer *out)
{
    record_encode(&job_park_record, job_park(job), out);
    buffer_printf(out, "|%d|%u|%u|%zu|%u|%llu|%u", (int)job->state, job->attempt, job_run(job)->terms,
        job->grants.count, job_run(job)->cpu_milli, (unsigned long long)job_run(job)->memory, job->restarts);
}

/* The job's stored events alone make the same job. */
static void check_fold(const struct bench *b, const struct job *here)
{
    _cleanup_buffer_ struct buffer known = { 0 }, folded = { 0 };
    const struct job *stored = b->stored[here->id];
    struct error err = { 0 };
    assert_int_equal(job_invariant(here, &err), 0);
    if (stored == NULL)
        return; // this core has read it from there
    encode_park(here, &known);
    encode_park(stored, &folded);
    assert_int_equal(known.length, folded.length);
    assert_memory_equal(known.bytes, folded.bytes, known.length);
}

int scene_close(void **state)
{
    struct bench *b = *state;
    struct error err = { 0 };
    for (uint64_t id = 1; id <= core_last_job(b->core); id++)
        if (scene_job(b, id) != NULL)
            check_fold(b, scene_job(b, id));
    assert_int_equal(sched_invariant(core_sched(b->core), &err), 0);
    return bench_close(state);
}
