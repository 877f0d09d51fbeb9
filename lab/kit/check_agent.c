/* SPDX-License-Identifier: MIT */
/* A private mgpud on this machine: does it start, which features has it, does it see the GPUs as NVML does.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/strings.h"
#include "lab/kit/child.h"
#include "lab/kit/instance.h"
#include "lab/kit/kit.h"
#include "lab/kit/probe.h"

#define START_MS 30000
#define ASK_MS   20000
#define STORM    8U
#define STORM_MS 20000
#define LOOK_MS  500

static const char *const gpus_arguments[] = { "gpus", NULL };

static void check_start(struct kit *kit, struct result *result)
{
    struct error err = { 0 };
    int64_t begin = clock_boot_ms();
    if (instance_start(kit, &err) < 0) {
        result_fail(result, "%s", err.message);
        return;
    }
    bool is_root = instance_is_root(kit->instance);
    result_fact(result, "is_root", json_boolean(is_root));
    result_fact(result, "ready_ms", json_integer(clock_boot_ms() - begin));
    if (geteuid() == 0 && !is_root)
        result_fail(result, "it does not start as root, but does without: %s", err.message);
    else
        result_pass(result, "ready after %lld ms %s", (long long)(clock_boot_ms() - begin),
            is_root ? "as root" : "without root");
}

static void check_doctor(struct kit *kit, struct result *result)
{
    static const char *const arguments[] = { "doctor", NULL };
    struct error err = { 0 };
    json_t *doctor = NULL;
    int status = instance_ask(kit, arguments, ASK_MS, &doctor, &err);
    json_t *features = json_object_get(json_array_get(json_object_get(doctor, "nodes"), 0), "features");
    const json_t *feature;
    size_t i, on = 0;
    json_array_foreach(features, i, feature) on += json_is_true(json_object_get(feature, "on"));
    if (status < 0 || features == NULL)
        result_fail(result, "%s", err.message[0] != '\0' ? err.message : "doctor printed no features");
    else
        result_pass(result, "%zu of %zu features work", on, json_array_size(features));
    result_fact(result, "features", features != NULL ? json_incref(features) : json_null());
    json_decref(doctor);
}

/* The GPUs as mgpud has them; NULL after result_fail(). The caller frees *ret_answer. */
static json_t *ask_gpus(struct kit *kit, json_t **ret_answer, struct result *result)
{
    struct error err = { 0 };
    json_t *answer = NULL;
    int status = instance_ask(kit, gpus_arguments, ASK_MS, &answer, &err);
    *ret_answer = answer;
    if (status == 0 && answer != NULL)
        return json_object_get(answer, "gpus");
    result_fail(result, "%s", err.message);
    return NULL;
}

/* Whether the GPU is offered as its MIG instances. */
static bool is_divided(const json_t *gpus, const json_t *gpu)
{
    const json_t *other;
    size_t i;
    bool is_found = false;
    json_array_foreach(gpus, i, other) is_found |=
        strcmp(record_word(json_object_get(other, "mig"), "parent"), record_word(gpu, "uuid")) == 0;
    return is_found;
}

static void check_gpus(struct kit *kit, struct result *result)
{
    json_t *answer = NULL;
    json_t *gpus = ask_gpus(kit, &answer, result), *gpu;
    size_t i, usable = 0, divided = 0;
    const char *reason = "";
    json_array_foreach(gpus, i, gpu)
    {
        bool has_parts = is_divided(gpus, gpu);
        bool is_free = strcmp(record_word(gpu, "state"), "free") == 0 || has_parts;
        divided += has_parts;
        const json_t *same = json_array_get(kit->nvml_gpus, i);
        usable += is_free;
        reason = is_free ? reason : record_word(gpu, "reason");
        if (!text_equal(record_word(gpu, "uuid"), record_word(same, "uuid")))
            reason = "its UUID is not NVML's";
    }
    json_array_foreach(gpus, i, gpu) probe_hide(gpu);
    result_fact(result, "gpus", json_incref(json_object_get(answer, "gpus")));
    if (gpus != NULL && json_array_size(gpus) != json_array_size(kit->nvml_gpus))
        result_fail(
            result, "mgpu has %zu GPUs, NVML %zu", json_array_size(gpus), json_array_size(kit->nvml_gpus));
    else if (gpus != NULL && usable < json_array_size(gpus))
        result_fail(result, "%zu of %zu GPUs are free for jobs: %s", usable, json_array_size(gpus), reason);
    else if (gpus != NULL)
        result_pass(result, "%zu free for jobs%s", usable - divided,
            divided > 0 ? ", with MIG instances in place of the GPUs that have them" : "");
    json_decref(answer);
}

static size_t count_lost(const json_t *gpus)
{
    const json_t *gpu;
    size_t i, lost = 0;
    json_array_foreach(gpus, i, gpu) lost +=
        json_is_string(json_object_get(gpu, "trouble")) || strcmp(record_word(gpu, "state"), "lost") == 0;
    return lost;
}

/* Programs start and end on the GPUs while mgpu watches: none may count as lost. */
static void check_storm(struct kit *kit, struct result *result)
{
    _cleanup_free_ char *program = probe_program(kit);
    _cleanup_free_ char *log = xasprintf("%s/storm", kit->work);
    const char *const argv[] = { program, "list", NULL };
    pid_t pids[STORM] = { 0 };
    size_t lost = 0, looks = 0, started = 0;
    for (int64_t end = clock_boot_ms() + STORM_MS; clock_boot_ms() < end && lost == 0; looks++) {
        json_t *answer = NULL;
        for (size_t i = 0; i < STORM; i++)
            if (pids[i] <= 0 || child_wait(pids[i], 0) >= 0) {
                pids[i] = child_start(argv, log, -1);
                started++;
            }
        lost = count_lost(ask_gpus(kit, &answer, result));
        json_decref(answer);
        (void)poll(NULL, 0, LOOK_MS);
    }
    for (size_t i = 0; i < STORM; i++)
        if (pids[i] > 0)
            (void)child_stop(pids[i], SIGKILL, STORM_MS);
    result_fact(result, "programs", json_integer((json_int_t)started));
    result_fact(result, "looks", json_integer((json_int_t)looks));
    if (lost > 0)
        result_fail(result, "%zu GPUs counted as lost or in trouble while programs started", lost);
    else
        result_pass(
            result, "%zu programs started in %d s, and no GPU counted as lost", started, STORM_MS / 1000);
}

const struct check kit_agent_checks[] = {
    { "agent", "start of mgpud", 100, NEED_NVML, check_start, RANK_FIRST },
    { "doctor", "features", 50, NEED_MGPUD, check_doctor, RANK_HIGH },
    { "gpus", "the GPUs in mgpu", 50, NEED_MGPUD, check_gpus, RANK_HIGH },
    { "storm", "programs that start and end", 20100, NEED_JOBS, check_storm, RANK_LOW },
    { 0 },
};
