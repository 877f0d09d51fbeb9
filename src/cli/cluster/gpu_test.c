/* SPDX-License-Identifier: MIT */
/*
 * mgpu gpu test: a job per GPU that runs mgpu-gpu-test there, so GPUs are tested once they are free, and like
 * any job. The job reports its figures as its status; its record keeps them. A GPU is slow if a figure is
 * well below the median of GPUs of the same model, now and in the last months, or below its own best if there
 * is no such GPU.
 */
#include "cli/cluster/gpu_test.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "base/parse.h"
#include "base/strings.h"
#include "cli/api/exit_code.h"
#include "cli/api/programs.h"
#include "cli/cluster/gpu_test_park.h"
#include "cli/complete/complete.h"
#include "cli/options/list.h"
#include "cli/show/job_end.h"
#include "cli/submit/submit.h"
#include "job/ask.h"

#define JOB_NAME      "gpu-test"
#define PROGRAM       "mgpu-gpu-test"
#define FIGURES       4U
#define SLOW_PART     0.8 // of the reference
#define PAST          API_PATH "/history?name=" JOB_NAME "&since=180d&limit=1000"
#define TIME_LIMIT    "15m"
#define PERCENT       100.0
#define REFERENCE_MAX 1024U
#define MOST_MIN      (UINT64_C(64) << 20)

struct test_options {
    const char *memory; // to be tested
    bool is_park;
    struct gpu_test_park_options park;
};

static int set_memory(void *target, const char *value, struct error *err)
{
    uint64_t bytes = 0;
    ((struct test_options *)((struct call *)target)->options)->memory = value;
    return parse_size(value, "--memory", &bytes, err);
}

static int set_most(void *target, const char *value, struct error *err)
{
    struct test_options *options = ((struct call *)target)->options;
    int r = parse_size(value, "--park-most", &options->park.most_bytes, err);
    if (r == 0 && options->park.most_bytes < MOST_MIN)
        return error_set(err, -ERANGE, "--park-most: '%.40s' is less than 64M", value);
    return r;
}

static int set_user(void *target, const char *value, struct error *err)
{
    struct test_options *options = ((struct call *)target)->options;
    options->park.user = value;
    return getpwnam(value) != NULL ? 0 : error_set(err, -EINVAL, "--as: there is no user '%.60s'", value);
}

static const struct option_row rows[] = {
    { 'm', "memory", "SIZE", "how much of the memory to test with a pattern: 4G, 200G for all", set_memory,
        "4G" },
    { 0, "park", NULL, "test instead, as an operator, whether jobs can be parked on the given nodes",
        OPTION_INNER(flag, struct test_options, is_park) },
    { 0, "park-most", "SIZE", "the most memory to park (40G)", set_most },
    { 0, "as", "USER", "as root: owner of the jobs of --park (the user behind sudo)", set_user },
    { 0 },
};

static const struct {
    const char *member, *title;
} figures[FIGURES] = { { "to_gpu_gb_per_s", "copies to the GPU" },
    { "from_gpu_gb_per_s", "copies from the GPU" }, { "on_gpu_gb_per_s", "copies on the GPU" },
    { "multiply_gflop_per_s", "products" } };

/* --- the table --- */

static char *figure_text(const struct view *view, const json_t *row, const char *member)
{
    return field_is_known(row, member) ? xasprintf("%.1f", field_number(row, member, 0)) : xstrdup("-");
}

static const struct list_column columns[] = {
    { .name = "gpu", .header = "GPU", .help = "node and number", .field = "gpu" },
    { .name = "model", .header = "MODEL", .help = "model", .field = "model", .shrink = 1 },
    { .name = "to",
        .header = "TO GB/s",
        .help = "copies to the GPU",
        .field = "to_gpu_gb_per_s",
        .is_right = true,
        .form = figure_text },
    { .name = "from",
        .header = "FROM GB/s",
        .help = "copies from the GPU",
        .field = "from_gpu_gb_per_s",
        .is_right = true,
        .form = figure_text },
    { .name = "on",
        .header = "ON GB/s",
        .help = "copies on the GPU",
        .field = "on_gpu_gb_per_s",
        .is_right = true,
        .form = figure_text },
    { .name = "product",
        .header = "GFLOP/s",
        .help = "products of matrices in single precision",
        .field = "multiply_gflop_per_s",
        .is_right = true,
        .form = figure_text },
    { .name = "job", .header = "JOB", .help = "job that tested it", .field = "job", .is_right = true },
    { .name = "result", .header = "RESULT", .help = "passed, slow, or failed", .field = "result" },
    { .name = "text", .header = "", .help = "what is wrong", .field = "text", .shrink = 2 },
    { 0 },
};

static const struct list_kind test_list = {
    .member = "tests",
    .columns = columns,
    .normal = "gpu,model,to,from,on,product,result,text",
    .wide = "gpu,model,to,from,on,product,job,result,text",
};

/* --- results --- */

/* The figures in a job's status, as written by send_status() of the program. */
static void read_status(const json_t *job, json_t *row)
{
    double values[FIGURES];
    unsigned long long wrong = 0;
    const char *status = field_text(job, "status");
    if (status == NULL || sscanf(status, "to %lf from %lf on %lf product %lf wrong %llu", &values[0],
                              &values[1], &values[2], &values[3], &wrong) != 5)
        return;
    for (size_t i = 0; i < FIGURES; i++)
        (void)json_object_set_new(row, figures[i].member, json_real(values[i]));
    (void)json_object_set_new(row, "wrong", json_integer((json_int_t)wrong));
}

static const char *uuid_of(const json_t *job)
{
    return field_text(json_array_get(json_object_get(job, "granted"), 0), "uuid");
}

static void judge(const json_t *job, json_t *row)
{
    bool is_done = field_is(job, "state", "done");
    const char *message = field_text(job, "message");
    int64_t wrong = field_integer(row, "wrong", 0);
    read_status(job, row);
    wrong = field_integer(row, "wrong", 0);
    _cleanup_free_ char *text =
        wrong > 0                                 ? xasprintf("%" PRId64 " wrong results", wrong)
        : is_done && field_is_known(row, "wrong") ? NULL
        : is_done                                 ? xstrdup("it reported no figures")
        : message != NULL
            ? xstrdup(message)
            : xasprintf("job %" PRId64 " ended as %s: mgpu logs %" PRId64, field_integer(job, "id", 0),
                  field_text(job, "state"), field_integer(job, "id", 0));
    (void)json_object_set_new(row, "result", json_string(text == NULL ? "passed" : "failed"));
    (void)json_object_set_new(row, "text", text != NULL ? json_string(text) : json_null());
}

static int compare_numbers(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

struct reference {
    double values[REFERENCE_MAX];
    size_t count;
};

static void add_value(struct reference *reference, const json_t *row, const char *member)
{
    if (reference->count < REFERENCE_MAX && field_is_known(row, member))
        reference->values[reference->count++] = field_number(row, member, 0);
}

/* Others: the other GPUs of the model, each with its latest result. The past is sorted newest first. */
static double find_reference(
    const json_t *tests, const json_t *past, const json_t *row, const char *member, const char **ret_what)
{
    struct reference others = { 0 }, own = { 0 };
    const json_t *other;
    size_t i;
    json_array_foreach(tests, i, other)
    {
        if (other != row && field_is(other, "model", field_text(row, "model")))
            add_value(&others, other, member);
    }
    json_array_foreach(past, i, other)
    {
        bool is_own = field_is(other, "uuid", field_text(row, "uuid"));
        if (!field_is(other, "model", field_text(row, "model")))
            continue;
        add_value(is_own ? &own : &others, other, member);
    }
    struct reference *chosen = others.count > 0 ? &others : &own;
    if (chosen->count == 0)
        return 0;
    *ret_what = others.count > 0 ? "the median of its model" : "its best";
    qsort(chosen->values, chosen->count, sizeof(double), compare_numbers);
    return others.count > 0 ? chosen->values[chosen->count / 2] : chosen->values[chosen->count - 1];
}

static void compare(const json_t *tests, const json_t *past, json_t *row)
{
    double worst = SLOW_PART;
    for (size_t i = 0; i < FIGURES && field_is(row, "result", "passed"); i++) {
        const char *what = NULL;
        double reference = find_reference(tests, past, row, figures[i].member, &what);
        double part = reference > 0 ? field_number(row, figures[i].member, 0) / reference : 1;
        if (part >= worst)
            continue;
        worst = part;
        _cleanup_free_ char *text =
            xasprintf("%s are %.0f %% below %s", figures[i].title, (1 - part) * PERCENT, what);
        (void)json_object_set_new(row, "text", json_string(text));
    }
    if (worst < SLOW_PART)
        (void)json_object_set_new(row, "result", json_string("slow"));
}

/* Earlier results with the model of their GPU, newest first, without those of this run. */
static json_t *read_past(struct call *call, const json_t *gpus, const json_t *tests)
{
    _cleanup_json_ json_t *answer = NULL;
    struct error ignored = { 0 };
    json_t *past = json_array();
    const json_t *job, *gpu, *test;
    size_t i, k;
    if (client_get(&call->client, PAST, &answer, &ignored) < 0)
        return past; // compared without
    json_array_foreach(json_object_get(answer, "jobs"), i, job)
    {
        bool is_new = false;
        json_t *row = json_pack("{s:s?}", "uuid", uuid_of(job));
        json_array_foreach(tests, k, test) is_new |=
            field_integer(test, "job", 0) == field_integer(job, "id", -1);
        json_array_foreach(gpus, k, gpu) if (text_equal(field_text(gpu, "uuid"), uuid_of(job)))(void)
            json_object_set(row, "model", json_object_get(gpu, "model"));
        read_status(job, row);
        if (!is_new && field_is_known(row, "model") && field_is_known(row, "wrong"))
            (void)json_array_append(past, row);
        json_decref(row);
    }
    return past;
}

/* --- jobs --- */

/* Submits the test of a GPU ("node:3"), and stores the number of the job in its row. */
static int submit(struct call *call, json_t *row, struct error *err)
{
    const struct test_options *options = call->options;
    _cleanup_free_ char *program = program_find(PROGRAM);
    const char *libraries = getenv("LD_LIBRARY_PATH");
    _cleanup_json_ json_t *job = NULL;
    _cleanup_json_ json_t *request = json_pack("{s:[s,s,s,s], s:s, s:s, s:s, s:s, s:{s:s*}}", "command",
        program, "health", "-m", options->memory, "gpu_ids", field_text(row, "gpu"), "name", JOB_NAME, "cwd",
        "/", "time_limit", TIME_LIMIT, "env", "LD_LIBRARY_PATH", libraries);
    if (request == NULL)
        return error_set(err, -EINVAL, "--memory is not UTF-8 text");
    int r = submit_renew_key(request, err);
    if (r == 0)
        r = client_call(&call->client, "POST", API_PATH "/jobs", request, &job, err);
    if (r == 0)
        (void)json_object_set_new(row, "job", json_integer(field_integer(job, "id", 0)));
    return r;
}

/* Waits however long the GPU is in use. */
static int await(struct call *call, json_t *row, struct error *err)
{
    _cleanup_free_ char *id = xasprintf("%" PRId64, field_integer(row, "job", 0));
    _cleanup_json_ json_t *job = NULL;
    int r = job_end_await(call, id, JOB_END_FOR_EVER, &job, err);
    if (r == 0)
        judge(job, row);
    return r;
}

/* Ctrl-C ends the wait, but not the jobs. */
static void print_jobs(const struct call *call, const json_t *tests)
{
    const json_t *row;
    size_t i;
    if (call->is_quiet || isatty(STDERR_FILENO) != 1)
        return;
    (void)fputs("  waiting for the tests of all GPUs; to give them up: mgpu cancel", stderr);
    json_array_foreach(tests, i, row)(void) fprintf(stderr, " %" PRId64, field_integer(row, "job", 0));
    (void)fputc('\n', stderr);
}

/* --- the GPUs --- */

static json_t *row_of(const json_t *gpu)
{
    _cleanup_free_ char *name =
        xasprintf("%s:%" PRId64, field_text(gpu, "node"), field_integer(gpu, "index", 0));
    return json_pack("{s:s, s:O?, s:O?}", "gpu", name, "model", json_object_get(gpu, "model"), "uuid",
        json_object_get(gpu, "uuid"));
}

static bool is_named(const json_t *gpu, const struct ask_gpu *named)
{
    return named->index == (uint32_t)field_integer(gpu, "index", -1) &&
           (named->node == NULL || field_is(gpu, "node", named->node));
}

/* Adds the rows of the GPUs of a word such as "0,2-3" or "gpu1:0". */
static int add_named(const json_t *gpus, const char *word, json_t *tests, struct error *err)
{
    struct ask_gpu *named = NULL;
    size_t count = 0, k;
    const json_t *gpu;
    int r = parse_gpu_ids(word, &named, &count, NULL);
    if (r < 0)
        return error_set(err, -EINVAL, "'%.60s' is not a GPU", word);
    for (size_t i = 0; i < count; i++) {
        size_t before = json_array_size(tests);
        json_array_foreach(gpus, k, gpu) if (is_named(gpu, &named[i]))(void)
            json_array_append_new(tests, row_of(gpu));
        if (json_array_size(tests) == before)
            r = error_set(err, -ENOENT, "there is no GPU %.100s", word);
        else if (json_array_size(tests) > before + 1)
            r = error_set(
                err, -EINVAL, "several nodes have a GPU %u: give node:%u", named[i].index, named[i].index);
    }
    ask_gpus_free(named, count);
    return r;
}

static int choose(const json_t *gpus, int argc, char **argv, json_t *tests, struct error *err)
{
    const json_t *gpu;
    size_t k;
    int r = 0;
    for (int i = 0; r == 0 && i < argc; i++)
        r = add_named(gpus, argv[i], tests, err);
    json_array_foreach(gpus, k, gpu) if (argc == 0)(void) json_array_append_new(tests, row_of(gpu));
    return r == 0 && json_array_size(tests) == 0 ? error_set(err, -ENOENT, "there is no GPU") : r;
}

static int run_tests(struct call *call, const json_t *gpus, json_t *tests, struct error *err)
{
    json_t *row;
    size_t i;
    int r = 0, status = EXIT_OK;
    json_array_foreach(tests, i, row) r = r < 0 ? r : submit(call, row, err);
    if (r == 0)
        print_jobs(call, tests);
    call->client.timeout_ms = CLIENT_PATIENT_MS;
    json_array_foreach(tests, i, row) r = r < 0 ? r : await(call, row, err);
    if (r < 0)
        return r;
    _cleanup_json_ json_t *past = read_past(call, gpus, tests);
    json_array_foreach(tests, i, row)
    {
        compare(tests, past, row);
        status = field_is(row, "result", "passed") ? status : EXIT_PARTLY;
    }
    return status;
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    struct screen screen;
    _cleanup_json_ json_t *answer = NULL, *result = json_pack("{s:[]}", "tests");
    json_t *tests = json_object_get(result, "tests");
    const struct test_options *options = call->options;
    int status = list_begin(call, options->is_park ? &gpu_test_park_list : &test_list, err);
    if (status != 0)
        return status > 0 ? EXIT_OK : status;
    if (options->is_park)
        return gpu_test_park(call, argc, argv, &options->park, err);
    int r = client_get(&call->client, API_PATH "/gpus", &answer, err);
    const json_t *gpus = json_object_get(answer, "gpus");
    if (r == 0)
        r = choose(gpus, argc, argv, tests, err);
    status = r < 0 ? r : run_tests(call, gpus, tests, err);
    if (status < 0)
        return status;
    screen_open(&screen, STDOUT_FILENO, call->color);
    r = list_print(call, &test_list, &screen, result, stdout, err);
    return r < 0 ? r : status;
}

const struct command command_gpu_test = {
    .name = "gpu test",
    .usage = "[OPTIONS] [GPU]... | --park [NODE]...",
    .help = "Measure GPUs and check their memory, each in a job",
    .detail = "A GPU is a number, a list such as 0,2-3, or node:list; without one, all are tested. Waits "
              "until each is\n"
              "free. slow: 20 % or more below the median of the GPUs of its model. Exits with 1 if one "
              "failed or is slow.",
    .tables = { rows, call_list_rows },
    .options_size = sizeof(struct test_options),
    .list = &test_list,
    .complete_operand = complete_gpus,
    .run = run,
};
