/* SPDX-License-Identifier: MIT */
#include "cli/submit/sbatch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "cli/api/client.h"
#include "cli/options/talk.h"
#include "cli/submit/slurm_job.h"
#include "cli/submit/slurm_lines.h"
#include "cli/submit/slurm_values.h"

struct sbatch {
    struct slurm_job job;   // must be first: the target of the options
    struct buffer left_out; // "--partition (line 3), ..."
};

static void leave_out(struct sbatch *sbatch, const char *option, unsigned line)
{
    buffer_printf(&sbatch->left_out, "%s--%s", sbatch->left_out.length > 0 ? ", " : "", option);
    if (line > 0)
        buffer_printf(&sbatch->left_out, " (line %u)", line);
}

/* A slurm_record_fn. */
static void on_ignored(
    const struct slurm_reading *reading, const struct slurm_option *option, const char *value)
{
    leave_out(reading->target, option->name, reading->line);
}

/* Scripts of other clusters name partitions that do not exist here. */
static void check_partition(struct sbatch *sbatch, struct call *call)
{
    json_t *ask = sbatch->job.submit.ask;
    const char *names = json_string_value(json_object_get(ask, "partition"));
    _cleanup_json_ json_t *answer = NULL;
    if (names == NULL)
        return;
    (void)client_get(&call->client, API_PATH "/partitions", &answer, NULL);
    _cleanup_free_ char *copy = xstrdup(names);
    char *rest = copy;
    bool is_known = true;
    for (char *name = NULL; (name = strsep(&rest, ",")) != NULL;) {
        size_t index = 0;
        const json_t *partition = NULL;
        bool is_found = false;
        json_array_foreach(json_object_get(answer, "partitions"), index, partition) is_found |=
            field_is(partition, "name", name);
        is_known &= is_found;
    }
    if (is_known)
        return;
    leave_out(sbatch, "partition", 0);
    (void)json_object_del(ask, "partition");
}

/* In the form of -g, which then replaces both number and model. Without a request, the job gets mgpu's
 * default. */
static void resolve_gpus(struct slurm_job *job)
{
    json_t *ask = job->submit.ask;
    const char *model = json_string_value(json_object_get(ask, "gpu_model"));
    bool is_asked =
        job->gpus != SLURM_UNSET || job->gpus_per_node != SLURM_UNSET || job->gpus_per_task != SLURM_UNSET;
    if (!is_asked)
        (void)json_object_del(ask, "gpus");
    if (model == NULL)
        return;
    _cleanup_free_ char *text =
        xasprintf("%lld:%s", (long long)json_integer_value(json_object_get(ask, "gpus")), model);
    (void)json_object_set_new(ask, "gpus", json_string(text));
    (void)json_object_del(ask, "gpu_model");
}

/* Targets of notifications are added to those of the user's defaults; everything else replaces them. */
static void give_request(json_t *from, json_t *to)
{
    json_t *before = json_object_get(to, "notify"), *added = json_object_get(from, "notify");
    if (before != NULL && added != NULL) {
        json_t *all = json_copy(before);
        (void)json_array_extend(all, added);
        (void)json_object_set_new(from, "notify", all);
    }
    (void)json_object_update(to, from);
}

static void give_image(struct image_options *from, struct image_options *to)
{
    if (from->name != NULL) {
        free(to->name);
        to->name = take_ptr(from->name);
    }
    for (size_t i = 0; i < from->mounts.count; i++)
        strings_add(&to->mounts, from->mounts.items[i]);
}

/* Passes the request to the options of the verb, which the command line then overrides. */
static void give(struct call *call, struct slurm_job *job)
{
    struct submit_options *to = call->options, *from = &job->submit;
    const struct {
        const char *from, **to;
        bool is_path; // with Slurm's codes
    } texts[] = { { from->directory, &to->directory, false }, { from->export, &to->export, false },
        { job->output, &to->output, true }, { job->error, &to->error, true },
        { job->input, &to->input, true } };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (texts[i].from != NULL) {
            _cleanup_free_ char *path = texts[i].is_path ? slurm_path(texts[i].from) : NULL;
            *texts[i].to = call_keep(call, path != NULL ? path : texts[i].from);
        }
    for (size_t i = 0; i < from->after.count; i++)
        strings_add(&to->after, from->after.items[i]);
    for (size_t i = 0; i < from->env.count; i++)
        strings_add(&to->env, from->env.items[i]);
    to->is_held |= from->is_held;
    to->is_truncated |= job->open_mode != NULL && strcmp(job->open_mode, "truncate") == 0;
    give_image(&from->image, &to->image);
    if (json_object_size(from->ask) > 0 && to->ask == NULL)
        to->ask = json_object();
    give_request(from->ask, to->ask);
}

int sbatch_apply(struct call *call, const char *text, const char *path, struct error *err)
{
    static const struct slurm_program program = {
        .name = "sbatch", .bit = SLURM_SBATCH, .options = slurm_submit_options
    };
    struct sbatch sbatch = { 0 };
    const struct slurm_reading reading = {
        .program = &program, .target = &sbatch, .record = on_ignored, .ignore = on_ignored, .is_strict = true
    };
    slurm_job_init(&sbatch.job);
    int r = slurm_lines_read(text, path, &reading, &sbatch.job.kept, err);
    if (r == 0 && sbatch.job.is_tested)
        r = error_set(err, -EINVAL, "%.200s: --test-only is only allowed on the command line", path);
    if (r == 0 && (r = slurm_job_resolve_request(&sbatch.job, err)) < 0)
        r = error_wrap(err, "%.200s", path);
    if (r == 0) {
        if (sbatch.job.is_waited)
            leave_out(&sbatch, "wait", 0);
        check_partition(&sbatch, call);
        resolve_gpus(&sbatch.job);
        give(call, &sbatch.job);
    }
    if (r == 0 && sbatch.left_out.length > 0 && !call->is_quiet)
        talk_line("%s: ignored, not supported: %s", path, buffer_text(&sbatch.left_out));
    slurm_job_clear(&sbatch.job);
    buffer_clear(&sbatch.left_out);
    return r;
}
