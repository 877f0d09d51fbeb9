/* SPDX-License-Identifier: MIT */
/* mgpu gpu pause|resume|drain|release|policy, for operators; test is in gpu_test.c. Running jobs are not
 * affected. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/api/exit_code.h"
#include "cli/cluster/gpu_lock.h"
#include "cli/cluster/gpu_test.h"
#include "cli/complete/complete.h"
#include "cli/options/maintenance.h"
#include "cli/options/maintenance_wait.h"
#include "cli/verbs/verbs.h"
#include "job/ask.h"
#include "job/external.h"

/* "0,2-3" and "gpu1:0,1" become "0", "2", "3", "gpu1:0", "gpu1:1". */
static int add_gpus(json_t *names, const char *word, struct error *err)
{
    struct ask_gpu *gpus = NULL;
    size_t count = 0;
    int r = parse_gpu_ids(word, &gpus, &count, NULL);
    if (r < 0) {
        (void)error_set(err, -EINVAL, "'%.60s' is not a GPU", word);
        return error_hint(err, "give a number or node:number as shown by mgpu gpus; "
                               "for jobs: mgpu suspend, mgpu continue");
    }
    for (size_t i = 0; r == 0 && i < count; i++) {
        _cleanup_free_ char *name = gpus[i].node == NULL ? xasprintf("%u", gpus[i].index)
                                                         : xasprintf("%s:%u", gpus[i].node, gpus[i].index);
        if (json_array_append_new(names, json_string(name)) < 0)
            r = error_set(err, -EINVAL, "the name of the node is not UTF-8 text");
    }
    ask_gpus_free(gpus, count);
    return r;
}

/* `names` receives the GPUs. */
static int run_on(
    struct call *call, const char *path, int argc, char **argv, json_t *names, struct error *err)
{
    _cleanup_json_ json_t *body = json_object();
    (void)json_object_set(body, "gpus", names);
    if (argc == 0) {
        (void)error_set(err, -EINVAL, "no GPU given");
        return error_hint(err, "give a number or node:number as shown by mgpu gpus");
    }
    for (int i = 0; i < argc; i++) {
        int r = add_gpus(names, argv[i], err);
        if (r < 0)
            return r;
    }
    return maintenance_post(call, path, body, err);
}

static int run_pause(struct call *call, int argc, char **argv, struct error *err)
{
    _cleanup_json_ json_t *names = json_array();
    int r = run_on(call, API_PATH "/gpus/pause", argc, argv, names, err);
    if (r == EXIT_OK && ((const struct maintenance_options *)call->options)->is_waiting)
        r = maintenance_wait_gpus(call, names, err);
    return r;
}

static int run_release(struct call *call, int argc, char **argv, struct error *err)
{
    _cleanup_json_ json_t *names = json_array();
    int r = run_on(call, API_PATH "/gpus/release", argc, argv, names, err);
    return r == EXIT_OK ? maintenance_wait_released(call, names, err) : r;
}

static int run_resume(struct call *call, int argc, char **argv, struct error *err)
{
    _cleanup_json_ json_t *names = json_array();
    return run_on(call, API_PATH "/gpus/resume", argc, argv, names, err);
}

static int refuse_policy(const char *word, struct error *err)
{
    const char *names[EXTERNAL_POLICIES + 2] = { NULL };
    for (unsigned i = 0; i < EXTERNAL_POLICIES; i++)
        names[i] = external_policy_name((enum external_policy)i);
    names[EXTERNAL_POLICIES] = "default";
    _cleanup_free_ char *shown = text_escape(word, 60);
    const char *near = text_nearest(word, names);
    if (near != NULL)
        return error_set(err, -EINVAL, "no policy '%s'. Did you mean '%s'?", shown, near);
    if (word[0] == '\0' || isdigit((unsigned char)word[0]) || strchr(word, ':') != NULL) // a GPU
        (void)error_set(err, -EINVAL, "no policy given");
    else
        (void)error_set(err, -EINVAL, "'%s' is not a policy", shown);
    return error_hint(err, "the last argument must be avoid, fit-around, ignore or default");
}

/* The policy is the last operand, so a list of GPUs may have any length. */
static int run_policy(struct call *call, int argc, char **argv, struct error *err)
{
    const char *policy = argc > 0 ? argv[argc - 1] : "";
    _cleanup_json_ json_t *body = json_object();
    json_t *names = json_array();
    (void)json_object_set_new(body, "gpus", names);
    if (strcmp(policy, "default") != 0 && external_policy_find(policy) == EXTERNAL_POLICIES) {
        return refuse_policy(policy, err);
    }
    if (argc == 1) {
        (void)error_set(err, -EINVAL, "no GPU given");
        return error_hint(err, "give a number or node:number as shown by mgpu gpus");
    }
    for (int i = 0; i < argc - 1; i++) {
        int r = add_gpus(names, argv[i], err);
        if (r < 0)
            return r;
    }
    (void)json_object_set_new(body, "policy", json_string(policy));
    return maintenance_post(call, API_PATH "/gpus/policy", body, err);
}

static void complete_policy(const struct completion *completion)
{
    complete_gpus(completion);
    for (unsigned i = 0; completion->operands > 0 && i < EXTERNAL_POLICIES; i++)
        complete_add(completion, external_policy_name((enum external_policy)i), NULL);
    if (completion->operands > 0)
        complete_add(completion, "default", "as set by mgpud --foreign");
}

static const struct command pause_command = {
    .name = "gpu pause",
    .aliases = { "pause" },
    .usage = "[OPTIONS] GPU...",
    .help = "Start no new jobs on these GPUs (operators)",
    .detail = "A GPU is a number, a list such as 0,2-3, or node:list. Running jobs are not affected.",
    .tables = { maintenance_rows },
    .options_size = sizeof(struct maintenance_options),
    .complete_operand = complete_gpus,
    .run = run_pause,
};

static const struct command drain_command = {
    .name = "gpu drain",
    .usage = "[OPTIONS] GPU...",
    .help = "Like pause, but accepts --wait (operators)",
    .detail = "A GPU is a number, a list such as 0,2-3, or node:list. Running jobs continue to their end.",
    .tables = { maintenance_rows, maintenance_wait_rows },
    .options_size = sizeof(struct maintenance_options),
    .complete_operand = complete_gpus,
    .run = run_pause,
};

static const struct command release_command = {
    .name = "gpu release",
    .usage = "[OPTIONS] GPU...",
    .help = "Pause these GPUs and close them, for a reset (operators)",
    .detail =
        "A GPU is a number, a list such as 0,2-3, or node:list. It must have no job. Returns when no mgpu\n"
        "process has them open any more; resume opens them again.",
    .tables = { maintenance_rows },
    .options_size = sizeof(struct maintenance_options),
    .complete_operand = complete_gpus,
    .run = run_release,
};

static const struct command resume_command = {
    .name = "gpu resume",
    .aliases = { "resume" },
    .usage = "GPU...",
    .help = "Put these GPUs back into service (operators)",
    .detail = "Includes GPUs that mgpu has drained because they failed: mgpu gpus shows why.",
    .options_size = sizeof(struct maintenance_options),
    .complete_operand = complete_gpus,
    .run = run_resume,
};

static const struct command policy_command = {
    .name = "gpu policy",
    .usage = "GPU... avoid|fit-around|ignore|default",
    .help = "Set how to treat external processes on these GPUs (operators)",
    .detail = "avoid: start no new jobs there. fit-around: shared jobs get the remaining memory. ignore: "
              "disregard\n"
              "external processes. default: as set by mgpud --foreign.",
    .options_size = sizeof(struct maintenance_options),
    .complete_operand = complete_policy,
    .run = run_policy,
};

static const struct command *const actions[] = { &pause_command, &resume_command, &drain_command,
    &release_command, &policy_command, &command_gpu_test, &command_gpu_lock, &command_gpu_unlock, NULL };

const struct command command_gpu = {
    .name = "gpu",
    .usage = "pause|resume|drain|release|policy|test|lock|unlock [GPU]...",
    .help = "Take GPUs out of service and resume them (operators); test them; lock them",
    .actions = actions,
    .list_command = "gpus",
};
