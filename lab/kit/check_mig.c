/* SPDX-License-Identifier: MIT */
/*
 * MIG instances are GPUs of their own: a job on one sees that one with its memory, two users have two of them
 * on one GPU, and each profile can be asked for. The layout is the administrator's: for the check of an
 * instance that disappears, the operator removes one while the kit waits.
 */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/strings.h"
#include "lab/kit/instance.h"
#include "lab/kit/kit.h"
#include "lab/kit/parking.h"
#include "lab/kit/probe.h"

#define JOB_MS       40000
#define ASK_MS       20000
#define REMOVE_MS    180000
#define NUMBER       32
#define MIB          (1LL << 20)
#define LEAST_MEMORY 80 // percent of an instance's memory that CUDA shows: the driver keeps some

static const char *const list[] = { "list", NULL };
static const char *const hold[] = { "hold", "-m", "64M", "-s", "600", "--until-continued", NULL };

/* The MIG instances as `mgpu gpus` has them, an array; empty after result_skip(). The caller frees it. */
static json_t *find_instances(struct kit *kit, struct result *result)
{
    static const char *const gpus[] = { "gpus", NULL };
    struct error err = { 0 };
    json_t *answer = NULL, *instances = json_array(), *shown = json_array();
    const json_t *gpu;
    size_t i;
    (void)instance_ask(kit, gpus, ASK_MS, &answer, &err);
    json_array_foreach(json_object_get(answer, "gpus"), i, gpu)
    {
        if (!json_is_object(json_object_get(gpu, "mig")))
            continue;
        (void)json_array_append_new(instances, json_deep_copy(gpu));
        (void)json_array_append(shown, json_object_get(gpu, "mig"));
    }
    json_decref(answer);
    result_fact(result, "instances", shown);
    if (json_array_size(instances) == 0)
        result_skip(result, "no GPU has MIG instances");
    return instances;
}

static const char *number_of(const json_t *instance, char number[NUMBER])
{
    (void)snprintf(number, NUMBER, "%lld", (long long)json_integer_value(json_object_get(instance, "index")));
    return number;
}

static const json_t *mig_of(const json_t *instance)
{
    return json_object_get(instance, "mig");
}

/* --- one instance --- */

/* What a job on an instance sees, which must be that one. False after result_fail(). */
static bool sees_it(
    struct kit *kit, const json_t *instance, const char *option, const char *value, struct result *result)
{
    const char *const options[] = { option, value, NULL };
    int64_t job = probe_submit(kit, options, list, result);
    json_t *record = job < 0 ? NULL : probe_wait(kit, job, JOB_MS, result);
    const json_t *gpus = json_object_get(json_object_get(result->facts, "output"), "gpus");
    const json_t *seen = json_array_get(gpus, 0);
    long long bytes = json_integer_value(json_object_get(seen, "memory_bytes"));
    long long whole = json_integer_value(json_object_get(instance, "memory_bytes"));
    bool is_right = false;
    if (record == NULL)
        return false;
    if (json_array_size(gpus) != 1)
        result_fail(result, "a job with %s %s sees %zu GPUs", option, value, json_array_size(gpus));
    else if (!probe_is_same(record_word(instance, "uuid"), record_word(seen, "uuid")))
        result_fail(result, "a job with %s %s sees %s in place of %s", option, value,
            record_word(seen, "uuid"), record_word(instance, "uuid"));
    else if (bytes > whole || bytes < whole / 100 * LEAST_MEMORY)
        result_fail(result, "a job with %s %s sees %lld MiB, and the instance has %lld", option, value,
            bytes / MIB, whole / MIB);
    else
        is_right = true;
    json_decref(record);
    return is_right;
}

static void check_each(struct kit *kit, struct result *result)
{
    json_t *instances = find_instances(kit, result);
    size_t count = json_array_size(instances), good = 0;
    char number[NUMBER];
    while (good < count && sees_it(kit, json_array_get(instances, good), "-G",
                               number_of(json_array_get(instances, good), number), result))
        good++;
    if (count > 0 && good == count)
        result_pass(result, "%zu instances; a job on each sees that one, with its memory", count);
    json_decref(instances);
}

/* --- profiles --- */

/* Whether a job that names the profile is given one of it. False after result_fail(). */
static bool is_given(struct kit *kit, const char *profile, struct result *result)
{
    const char *const options[] = { "-g", profile, NULL };
    int64_t job = probe_submit(kit, options, list, result);
    json_t *record = job < 0 ? NULL : probe_wait(kit, job, JOB_MS, result);
    const json_t *granted = json_array_get(json_object_get(record, "granted"), 0), *instance;
    json_t *instances = find_instances(kit, result);
    bool is_right = false;
    size_t i;
    json_array_foreach(instances, i, instance) is_right |=
        text_equal(record_word(instance, "uuid"), record_word(granted, "uuid")) &&
        text_equal(record_word(mig_of(instance), "profile"), profile);
    if (record != NULL && !is_right)
        result_fail(result, "a job with -g %s was given %s", profile, record_word(granted, "uuid"));
    json_decref(instances);
    json_decref(record);
    return is_right;
}

static void check_profiles(struct kit *kit, struct result *result)
{
    json_t *instances = find_instances(kit, result), *profiles = json_object();
    const json_t *instance;
    const char *profile;
    json_t *unused;
    size_t i, good = 0;
    json_array_foreach(instances, i, instance)(void)
        json_object_set_new(profiles, record_word(mig_of(instance), "profile"), json_null());
    json_object_foreach(profiles, profile, unused) good += is_given(kit, profile, result);
    if (good > 0 && good == json_object_size(profiles))
        result_pass(result, "%zu profile%s: a job that names one is given it", good, good == 1 ? "" : "s");
    json_decref(profiles);
    json_decref(instances);
}

/* --- two users --- */

/* Two instances of one GPU; false: there are none. */
static bool find_pair(const json_t *instances, const json_t *pair[2])
{
    const json_t *left, *right;
    size_t i, k;
    json_array_foreach(instances, i, left) json_array_foreach(instances, k, right)
    {
        if (i >= k || !text_equal(record_word(mig_of(left), "parent"), record_word(mig_of(right), "parent")))
            continue;
        pair[0] = left;
        pair[1] = right;
        return true;
    }
    return false;
}

/* A job that asks for more memory than its instance has must end as out of memory, whatever the rest of the
 * GPU has. False after result_fail(). */
static bool is_bounded(struct kit *kit, const json_t *instance, struct result *result)
{
    char number[NUMBER], memory[NUMBER];
    (void)snprintf(memory, sizeof(memory), "%lldM",
        (long long)json_integer_value(json_object_get(instance, "memory_bytes")) / MIB + 1);
    const char *const options[] = { "-G", number_of(instance, number), NULL };
    const char *const need[] = { "need", "-m", memory, NULL };
    int64_t job = probe_submit(kit, options, need, result);
    json_t *record = job < 0 ? NULL : probe_wait(kit, job, JOB_MS, result);
    bool is_out = text_equal(record_word(record, "ended_by"), "gpu_oom");
    if (record != NULL && !is_out)
        result_fail(result, "a job that takes %s of an instance with 1 MiB less ended by %s", memory,
            record_word(record, "ended_by"));
    json_decref(record);
    return is_out;
}

static void check_users(struct kit *kit, struct result *result)
{
    json_t *instances = find_instances(kit, result);
    const json_t *pair[2];
    char number[2][NUMBER];
    if (json_array_size(instances) == 0 || !find_pair(instances, pair)) {
        result_skip(result, "no GPU has two MIG instances");
        json_decref(instances);
        return;
    }
    const char *const theirs[] = { "-G", number_of(pair[1], number[1]), NULL };
    bool is_other = instance_act_as(kit, INSTANCE_OTHER_UID);
    int64_t neighbour = parking_start(kit, theirs, hold, 1, JOB_MS, result);
    (void)instance_act_as(kit, -1);
    result_fact(result, "neighbour_is_another_user", json_boolean(is_other));
    bool is_right = neighbour >= 0 && sees_it(kit, pair[0], "-G", number_of(pair[0], number[0]), result) &&
                    is_bounded(kit, pair[0], result);
    (void)instance_act_as(kit, is_other ? INSTANCE_OTHER_UID : -1);
    if (neighbour >= 0)
        parking_judge(kit, neighbour,
            is_other ? "two users had an instance of one GPU each; one ran out of memory, and the other did "
                       "not notice"
                     : "two jobs had an instance of one GPU each; one ran out of memory, and the other did "
                       "not notice",
            result);
    (void)instance_act_as(kit, -1);
    if (neighbour >= 0 && !is_right)
        result->outcome = OUTCOME_FAILED;
    json_decref(instances);
}

/* --- an instance that disappears --- */

static void judge_gone(const json_t *record, struct result *result)
{
    if (!text_equal(record_word(record, "ended_by"), "gpu_fault"))
        result_fail(
            result, "the job on the instance that was removed ended by %s", record_word(record, "ended_by"));
    else
        result_pass(result, "the job ended with the reason, and that on another instance ran on: %s",
            record_word(record, "message"));
}

static void check_gone(struct kit *kit, struct result *result)
{
    json_t *instances = find_instances(kit, result);
    size_t count = json_array_size(instances);
    const json_t *last = json_array_get(instances, count - 1);
    char number[2][NUMBER];
    if (count < 2) {
        result_skip(result, "it needs two MIG instances");
        json_decref(instances);
        return;
    }
    const char *const going[] = { "-G", number_of(last, number[0]), NULL };
    const char *const staying[] = { "-G", number_of(json_array_get(instances, 0), number[1]), NULL };
    /* Its program does nothing on the GPU by then: a driver removes no instance that is used. */
    const char *const idle[] = { "idle", "-s", "600", NULL };
    int64_t other = parking_start(kit, staying, hold, 1, JOB_MS, result);
    int64_t job = other < 0 ? -1 : parking_start(kit, going, idle, 1, JOB_MS, result);
    if (job >= 0) {
        (void)printf(
            "mig-gone: now remove MIG instance %s (GPU %s of mgpu), with nvidia-smi mig -dci and -dgi\n",
            record_word(last, "uuid"), number[0]);
        (void)fflush(stdout);
    }
    json_t *record = job < 0 ? NULL : probe_wait(kit, job, REMOVE_MS, result);
    if (record != NULL)
        judge_gone(record, result);
    _cleanup_free_ char *text = xstrdup(result->text);
    if (other >= 0)
        parking_judge(kit, other, text, result);
    json_decref(record);
    json_decref(instances);
}

const struct check kit_mig_checks[] = {
    { "mig", "MIG instances", 400, NEED_JOBS, check_each, RANK_HIGH },
    { "mig-profiles", "MIG instances by profile", 400, NEED_JOBS, check_profiles, RANK_MIDDLE },
    { "mig-users", "two users on two MIG instances of one GPU", 2000, NEED_JOBS, check_users, RANK_HIGH },
    { "mig-gone", "a MIG instance that is removed", 60000, NEED_JOBS, check_gone, RANK_ASKED },
    { 0 },
};
