/* SPDX-License-Identifier: MIT */
/* What depends on the driver, on programs of the machine, or on the version of mgpu. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "lab/kit/child.h"
#include "lab/kit/instance.h"
#include "lab/kit/kit.h"
#include "lab/kit/parking.h"
#include "lab/kit/probe.h"

#define JOB_MS       60000
#define TORCH_MS     90000
#define ASK_MS       20000
#define NUMBER       32
#define LESS_PERCENT 25U // of the free memory
#define GIB_MIB      1024
#define GIB          (1LL << 30)
#define MIB          (1LL << 20)

static const char *const one[] = { "-G", KIT_GPU, NULL };

static void check_gpu_test(struct kit *kit, struct result *result)
{
    static const char *const arguments[] = { "gpu", "test", KIT_GPU, NULL };
    struct error err = { 0 };
    json_t *answer = NULL;
    if (!probe_has_verb(kit, "gpu", "test", result))
        return;
    int status = instance_ask(kit, arguments, JOB_MS, &answer, &err);
    result_fact(result, "answer", answer != NULL ? json_incref(answer) : json_null());
    const json_t *test = json_array_get(json_object_get(answer, "tests"), 0);
    const char *word = record_word(test, "result"); // slow: this machine's figures differ from time to time
    if (status >= 0 && (strcmp(word, "passed") == 0 || strcmp(word, "slow") == 0))
        result_pass(result, "the job reports: %s%s%s", word, record_word(test, "text")[0] != '\0' ? " " : "",
            record_word(test, "text"));
    else
        result_fail(result, "%s %s", err.message, record_word(test, "text"));
    json_decref(answer);
}

/* Submits a job that needs more than the GPU has, and waits for its end. NULL after result_fail(). */
static json_t *run_out(struct kit *kit, const char *const *options, struct result *result)
{
    const json_t *gpu = json_array_get(kit->nvml_gpus, kit->gpu);
    char memory[NUMBER];
    (void)snprintf(memory, sizeof(memory), "%lldG",
        (long long)(json_integer_value(json_object_get(gpu, "memory_bytes")) / GIB + 2));
    const char *const need[] = { "need", "-m", memory, NULL };
    int64_t job = probe_submit(kit, options, need, result);
    return job < 0 ? NULL : probe_wait(kit, job, JOB_MS, result);
}

/* False after result_fail(). */
static bool is_out_of_memory(const json_t *record, struct result *result)
{
    if (strcmp(record_word(record, "state"), "failed") != 0 &&
        strcmp(record_word(record, "state"), "gpu_oom") != 0)
        result_fail(result, "the job ended as %s", record_word(record, "state"));
    else if (strcmp(record_word(record, "ended_by"), "gpu_oom") != 0 &&
             strcmp(record_word(record, "state"), "gpu_oom") != 0)
        result_fail(result, "mgpu does not say that GPU memory ran out: ended by %s",
            record_word(record, "ended_by"));
    else
        return true;
    return false;
}

/* Again with more, until the GPU has no more. */
static void check_oom(struct kit *kit, struct result *result)
{
    char share[PROBE_SIZE];
    probe_size(kit, LESS_PERCENT, GIB_MIB, share);
    /* From 1 GiB to all of a large GPU in a few attempts. */
    const char *const options[] = { "-G", KIT_GPU, "-m", share, "--retry-oom", "x4", NULL };
    json_t *record = run_out(kit, options, result);
    if (record == NULL)
        return;
    long long attempts = json_integer_value(json_object_get(record, "attempt"));
    result_fact(result, "attempts", json_integer(attempts));
    if (is_out_of_memory(record, result))
        result_pass(result, "recognised as gpu_oom after %lld attempts", attempts);
    json_decref(record);
}

/* A job that ends within a moment: its peak may not have been measured, and is then no number. */
static void check_oom_first(struct kit *kit, struct result *result)
{
    json_t *record = run_out(kit, one, result);
    if (record == NULL)
        return;
    const json_t *peak = json_object_get(json_object_get(record, "usage"), "gpu_memory_peak_bytes");
    if (!is_out_of_memory(record, result)) {
        json_decref(record);
        return;
    }
    if (json_is_integer(peak) && json_integer_value(peak) == 0)
        result_fail(result, "the job's peak is reported as 0 bytes, but was not measured");
    else if (json_is_integer(peak))
        result_pass(result, "recognised as gpu_oom at the first attempt, with a peak of %lld MiB",
            (long long)json_integer_value(peak) / MIB);
    else
        result_pass(result, "recognised as gpu_oom at the first attempt; its peak was not measured");
    json_decref(record);
}

/* A job in a share takes `memory`; 1: it was given, 0: refused, -1 after result_fail(). */
static int take_of_share(
    struct kit *kit, const char *const *options, const char *memory, struct result *result)
{
    const char *const need[] = { "need", "-m", memory, NULL };
    int64_t job = probe_submit(kit, options, need, result);
    json_t *record = job < 0 ? NULL : probe_wait(kit, job, JOB_MS, result);
    int given = record == NULL ? -1 : strcmp(record_word(record, "state"), "done") == 0;
    json_decref(record);
    return given;
}

/* What a share must give and refuse, beside the share of a neighbour. */
static void judge_share(
    struct kit *kit, const char *const *options, const char *const sizes[3], struct result *result)
{
    int less = take_of_share(kit, options, sizes[0], result);
    int more = less == 1 ? take_of_share(kit, options, sizes[2], result) : -1;
    if (more == 1)
        result_fail(result, "%s were given to a share of %s", sizes[2], sizes[1]);
    else if (less == 0)
        result_fail(result, "a job under MPS could not take %s of its %s", sizes[0], sizes[1]);
    else if (more == 0)
        result_pass(result, "%s of a share of %s were given, %s were refused", sizes[0], sizes[1], sizes[2]);
}

/* A share under MPS: what is beyond it must be refused to the job, and its neighbour, of another user where
 * there can be one, must not notice. */
static void check_mps(struct kit *kit, struct result *result)
{
    static const char *const control[] = { "nvidia-cuda-mps-control", "-v", NULL };
    char less[PROBE_SIZE], share[PROBE_SIZE], more[PROBE_SIZE];
    _cleanup_output_ struct child_output output = { 0 };
    probe_size(kit, LESS_PERCENT / 4, GIB_MIB / 4, less);
    probe_size(kit, LESS_PERCENT, GIB_MIB, share);
    probe_size(kit, LESS_PERCENT * 2, GIB_MIB * 2, more);
    const char *const options[] = { "-G", KIT_GPU, "-m", share, "--share", "mps", NULL };
    const char *const arguments[] = { "submit", "-G", KIT_GPU, "-m", share, "--share", "mps", "--dry-run",
        "true", NULL };
    const char *const hold[] = { "hold", "-m", less, "-s", "600", "--until-continued", NULL };
    const char *const sizes[3] = { less, share, more };
    struct error err = { 0 };
    if (child_run(control, ASK_MS, &output) < 0) {
        result_skip(result, "nvidia-cuda-mps-control is not installed");
        return;
    }
    if (instance_ask(kit, arguments, ASK_MS, NULL, &err) != 0) {
        result_skip(result, "this mgpu cannot share by MPS here: %s", err.message);
        return;
    }
    bool is_other = instance_act_as(kit, INSTANCE_OTHER_UID);
    int64_t neighbour = parking_start(kit, options, hold, 1, JOB_MS, result);
    (void)instance_act_as(kit, -1);
    result_fact(result, "neighbour_is_another_user", json_boolean(is_other));
    if (neighbour < 0)
        return;
    judge_share(kit, options, sizes, result);
    (void)instance_act_as(kit, is_other ? INSTANCE_OTHER_UID : -1);
    _cleanup_free_ char *text =
        xasprintf("%s; the neighbour%s did not notice", result->text, is_other ? ", another user," : "");
    parking_judge(kit, neighbour, text, result);
    (void)instance_act_as(kit, -1);
}

static void check_torch(struct kit *kit, struct result *result)
{
    static const char *const import[] = { "python3", "-c",
        "import torch; print(torch.__version__); assert torch.cuda.is_available()", NULL };
    static const char *const train[] = { "python3", "-c",
        "import torch as t\n"
        "assert t.cuda.device_count() == 1, t.cuda.device_count()\n"
        "t.manual_seed(0); d = t.device('cuda')\n"
        "m = t.nn.Sequential(t.nn.Linear(256, 512), t.nn.ReLU(), t.nn.Linear(512, 1)).to(d)\n"
        "o = t.optim.SGD(m.parameters(), lr=0.01); x = t.randn(4096, 256, device=d)\n"
        "y = x.sum(1, keepdim=True) / 16; losses = []\n"
        "for _ in range(100):\n"
        "    o.zero_grad(); l = ((m(x) - y) ** 2).mean(); l.backward(); o.step(); losses.append(l.item())\n"
        "print('{\"result\": \"passed\", \"device\": \"%s\", \"first\": %g, \"last\": %g}'\n"
        "      % (t.cuda.get_device_name(0), losses[0], losses[-1]))\n"
        "assert losses[-1] < losses[0]",
        NULL };
    _cleanup_output_ struct child_output output = { 0 };
    struct error err = { 0 };
    char line[200];
    int r = child_run(import, kit_left_ms(kit, TORCH_MS), &output);
    text_last_line(output.out, line, sizeof(line));
    if (r < 0 || output.status != 0) {
        result_skip(result, "%s%s", line[0] != '\0' ? line : "there is no python3 with PyTorch",
            line[0] != '\0' ? " is a PyTorch that sees no GPU outside mgpu" : "");
        return;
    }
    result_fact(result, "version", json_string(line));
    int64_t job = instance_submit(kit, one, train, &err);
    if (job < 0) {
        result_fail(result, "%s", err.message);
        return;
    }
    json_t *record = probe_wait(kit, job, TORCH_MS, result);
    if (record == NULL)
        return;
    if (strcmp(record_word(record, "state"), "done") == 0)
        result_pass(result, "PyTorch %s trained on the job's GPU", line);
    else
        result_fail(result, "the job ended as %s", record_word(record, "state"));
    json_decref(record);
}

const struct check kit_feature_checks[] = {
    { "gpu-test", "mgpu gpu test", 3300, NEED_JOBS, check_gpu_test, RANK_LOW },
    { "oom-first", "a job that runs out of the memory of a whole GPU", 400, NEED_JOBS, check_oom_first,
        RANK_HIGH },
    { "oom", "a job that runs out of GPU memory", 2000, NEED_JOBS, check_oom, RANK_MIDDLE },
    { "mps", "a share as a cap (MPS)", 2000, NEED_JOBS, check_mps, RANK_HIGH },
    { "pytorch", "a training job", 13500, NEED_JOBS, check_torch, RANK_MIDDLE },
    { 0 },
};
