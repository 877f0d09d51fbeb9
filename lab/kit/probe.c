/* SPDX-License-Identifier: MIT */
#include "lab/kit/probe.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "lab/cuda/probes.h"
#include "lab/kit/child.h"
#include "lab/kit/instance.h"

#define ARGUMENTS_MAX 16U
#define LINE_SIZE     300U
#define MIB           (1 << 20)
#define ASK_MS        20000
#define FREE_MS       20000
#define LOOK_MS       50
#define NUMBER        32

char *probe_program(const struct kit *kit)
{
    return xasprintf("%s/mgpu-gpu-test", kit->programs);
}

const char *record_word(const json_t *record, const char *name)
{
    const char *word = json_string_value(json_object_get(record, name));
    return word != NULL ? word : "";
}

static void join(const char *program, const char *const *arguments, const char **argv)
{
    size_t n = 0;
    argv[n++] = program;
    for (size_t i = 0; arguments[i] != NULL && n < ARGUMENTS_MAX; i++)
        argv[n++] = arguments[i];
    argv[n] = NULL;
}

const json_t *probe_run(
    struct kit *kit, const char *const *arguments, int64_t timeout_ms, struct result *result)
{
    _cleanup_free_ char *program = probe_program(kit);
    _cleanup_output_ struct child_output output = { 0 };
    const char *argv[ARGUMENTS_MAX + 1];
    char line[LINE_SIZE];
    join(program, arguments, argv);
    int r = child_run(argv, kit_left_ms(kit, timeout_ms), &output);
    json_t *answer = json_last_line(output.out);
    text_last_line(output.err, line, sizeof(line));
    const char *why =
        answer != NULL && json_object_get(answer, "error") != NULL ? record_word(answer, "error") : line;
    if (r < 0)
        result_fail(result, "%s cannot run", program);
    else if (output.is_late)
        result_fail(result, "it did not end in %lld ms", (long long)timeout_ms);
    else if (output.status == 0)
        result_pass(result, "%.1f s", (double)output.us / 1e6);
    else if (output.status == PROBE_SKIPPED)
        result_skip(result, "%s", why);
    else
        result_fail(result, "exit status %d: %s", output.status, why);
    if (answer != NULL)
        result_fact(result, "probe", answer);
    return answer;
}

int64_t probe_submit(
    struct kit *kit, const char *const *options, const char *const *arguments, struct result *result)
{
    _cleanup_free_ char *program = probe_program(kit);
    const char *argv[ARGUMENTS_MAX + 1];
    struct error err = { 0 };
    join(program, arguments, argv);
    int64_t job = instance_submit(kit, options, argv, &err);
    if (job < 0)
        result_fail(result, "%s", err.message);
    return job;
}

json_t *probe_wait(struct kit *kit, int64_t job, int64_t timeout_ms, struct result *result)
{
    struct error err = { 0 };
    json_t *record = NULL;
    int r = instance_wait(kit, job, timeout_ms, &record, &err);
    _cleanup_free_ char *output = instance_output(kit, job);
    char line[LINE_SIZE];
    json_t *last = json_last_line(output);
    text_last_line(output, line, sizeof(line));
    if (record != NULL)
        result_fact(result, "job",
            json_pack("{s:s, s:O?, s:O?, s:s, s:O?}", "state", record_word(record, "state"), "exit_code",
                json_object_get(record, "exit_code"), "message", json_object_get(record, "message"),
                "ended_by", record_word(record, "ended_by"), "usage", json_object_get(record, "usage")));
    result_fact(result, "output", last != NULL ? last : json_string(line));
    if (r == 0)
        return record;
    result_fail(result, "job %lld: %s", (long long)job, err.message);
    json_decref(record);
    return NULL;
}

void probe_size(const struct kit *kit, unsigned int percent, long long most_mib, char text[PROBE_SIZE])
{
    const json_t *gpu = json_array_get(kit->nvml_gpus, kit->gpu);
    long long bytes = json_integer_value(json_object_get(gpu, "memory_bytes")) -
                      json_integer_value(json_object_get(gpu, "memory_used_bytes"));
    long long mib = bytes / MIB * percent / 100;
    mib = mib < 1 ? 1 : mib < most_mib ? mib : most_mib;
    (void)snprintf(text, PROBE_SIZE, "%lldM", mib);
}

bool probe_is_same(const char *uuid, const char *of_cuda)
{
    const char *left = strchr(uuid, '-'), *right = strchr(of_cuda, '-');
    return left != NULL && right != NULL && strcmp(left, right) == 0;
}

bool probe_has_instances(const struct kit *kit)
{
    const json_t *gpu;
    size_t i, count = 0;
    json_array_foreach(kit->nvml_gpus, i, gpu) count +=
        strncmp(record_word(gpu, "uuid"), PROBE_INSTANCE, strlen(PROBE_INSTANCE)) == 0;
    return count > 0;
}

void probe_hide(json_t *gpu)
{
    size_t count = json_array_size(json_object_get(gpu, "processes"));
    (void)json_object_del(gpu, "node");
    if (gpu != NULL)
        (void)json_object_set_new(gpu, "processes", json_integer((json_int_t)count));
}

bool probe_has_verb(struct kit *kit, const char *verb, const char *action, struct result *result)
{
    const char *const arguments[] = { verb, "--help", NULL }, *const longer[] = { verb, action, "--help",
        NULL };
    struct error err = { 0 };
    if (instance_ask(kit, action != NULL ? longer : arguments, ASK_MS, NULL, &err) == 0)
        return true;
    result_skip(
        result, "this mgpu has no '%s%s%s'", verb, action != NULL ? " " : "", action != NULL ? action : "");
    return false;
}

void probe_cancel(struct kit *kit, int64_t job)
{
    char number[NUMBER];
    struct error err = { 0 };
    (void)snprintf(number, sizeof(number), "%lld", (long long)job);
    const char *const arguments[] = { "cancel", "--grace", "0", number, NULL };
    (void)instance_ask(kit, arguments, ASK_MS, NULL, &err);
}

bool probe_await_start(struct kit *kit, int64_t job, int64_t timeout_ms)
{
    char number[NUMBER];
    (void)snprintf(number, sizeof(number), "%lld", (long long)job);
    const char *const show[] = { "show", number, NULL };
    int64_t end = clock_boot_ms() + kit_left_ms(kit, timeout_ms);
    bool is_started = false;
    while (!is_started && clock_boot_ms() < end) {
        struct error err = { 0 };
        json_t *record = NULL;
        (void)instance_ask(kit, show, ASK_MS, &record, &err);
        is_started = record_word(record, "started_at")[0] != '\0';
        json_decref(record);
        (void)poll(NULL, 0, LOOK_MS);
    }
    return is_started;
}

size_t probe_count_free(struct kit *kit)
{
    static const char *const gpus[] = { "gpus", NULL };
    struct error err = { 0 };
    json_t *answer = NULL;
    const json_t *gpu;
    size_t i, count = 0;
    (void)instance_ask(kit, gpus, ASK_MS, &answer, &err);
    json_array_foreach(json_object_get(answer, "gpus"), i, gpu) count +=
        strcmp(record_word(gpu, "state"), "free") == 0;
    json_decref(answer);
    return count;
}

int64_t probe_await_count(struct kit *kit, size_t count, int64_t timeout_ms)
{
    int64_t begin = clock_boot_ms(), end = begin + kit_left_ms(kit, timeout_ms);
    while (clock_boot_ms() < end) {
        if (probe_count_free(kit) == count)
            return clock_boot_ms() - begin;
        (void)poll(NULL, 0, LOOK_MS);
    }
    return -1;
}

int64_t probe_await_free(struct kit *kit, struct result *result)
{
    static const char *const gpus[] = { "gpus", NULL };
    int64_t begin = clock_boot_ms(), end = begin + kit_left_ms(kit, FREE_MS);
    struct error err = { 0 };
    while (clock_boot_ms() < end) {
        json_t *answer = NULL;
        (void)instance_ask(kit, gpus, ASK_MS, &answer, &err);
        const json_t *gpu = json_array_get(json_object_get(answer, "gpus"), kit->gpu);
        bool is_free = strcmp(record_word(gpu, "state"), "free") == 0;
        result_fact(result, "gpu_after",
            json_pack("{s:O?, s:O?, s:O?, s:O?, s:O?}", "state", json_object_get(gpu, "state"), "reason",
                json_object_get(gpu, "reason"), "trouble", json_object_get(gpu, "trouble"), "xid",
                json_object_get(gpu, "xid"), "fault", json_object_get(gpu, "fault")));
        json_decref(answer);
        if (is_free)
            return clock_boot_ms() - begin;
        (void)poll(NULL, 0, LOOK_MS);
    }
    return -1;
}
