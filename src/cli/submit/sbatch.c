/* SPDX-License-Identifier: MIT */
#include "cli/submit/sbatch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/parse.h"
#include "base/strings.h"
#include "cli/api/client.h"
#include "cli/submit/slurm_notes.h"
#include "cli/submit/slurm_values.h"
#include "cli/options/talk.h"
#include "cli/term/field.h"
#include "cli/term/words.h"
#include "job/ask.h"

struct row {
    const char *name;
    const char *option; // of submit; NULL: `read` says it all
    /* Converts the value of `option`; *ret stays NULL if there is nothing to request. NULL: unchanged. */
    int (*read)(struct sbatch *sbatch, const char *value, char **ret, struct error *err);
    char letter;
    bool is_flag;
};

static int read_time(struct sbatch *sbatch, const char *value, char **ret, struct error *err)
{
    int64_t seconds = 0;
    (void)sbatch;
    int r = slurm_parse_time("--time", value, &seconds, err);
    if (r == 0 && seconds != SLURM_NO_LIMIT)
        *ret = xasprintf("%" PRId64 "s", seconds);
    return r;
}

static char *join_gpus(int64_t count, const char *model)
{
    return count == 0 || model == NULL ? xasprintf("%" PRId64, count)
                                       : xasprintf("%" PRId64 ":%s", count, model);
}

static int read_gpus(struct sbatch *sbatch, const char *value, char **ret, struct error *err)
{
    int64_t count = 0;
    _cleanup_free_ char *model = NULL;
    (void)sbatch;
    int r = slurm_parse_gpus("--gpus", value, &count, &model, err);
    if (r == 0)
        *ret = join_gpus(count, model);
    return r;
}

/* Both are counted on each node. */
static int read_gpus_per_node(struct sbatch *sbatch, const char *value, char **ret, struct error *err)
{
    (void)ret;
    free(sbatch->model);
    sbatch->model = NULL;
    sbatch->has_gpus_per_node = true;
    return slurm_parse_gpus("--gpus-per-node", value, &sbatch->gpus_per_node, &sbatch->model, err);
}

static int read_gres(struct sbatch *sbatch, const char *value, char **ret, struct error *err)
{
    (void)ret;
    free(sbatch->model);
    sbatch->model = NULL;
    sbatch->has_gpus_per_node = true;
    return slurm_parse_gres(value, &sbatch->gpus_per_node, &sbatch->model, err);
}

static int read_nodes(struct sbatch *sbatch, const char *value, char **ret, struct error *err)
{
    int r = parse_integer(value, "--nodes", 1, ASK_NODES_MAX, &sbatch->nodes, err);
    if (r == 0)
        *ret = xstrdup(value);
    return r;
}

/* 0 is all memory of the node, which is what a job may use that asks for none. */
static int read_memory(struct sbatch *sbatch, const char *value, char **ret, struct error *err)
{
    (void)sbatch, (void)err;
    if (strcmp(value, "0") != 0)
        *ret = xstrdup(value);
    return 0;
}

static int read_output(struct sbatch *sbatch, const char *value, char **ret, struct error *err)
{
    (void)sbatch, (void)err;
    *ret = slurm_path(value);
    return 0;
}

static int add_after(char *words, struct buffer *out)
{
    static const struct {
        const char *slurm, *kind;
    } kinds[] = { { "afterok", "ok" }, { "afterany", "any" }, { "afternotok", "fail" } };
    char *rest = words;
    const char *name = strsep(&rest, ":"), *kind = NULL;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(name, kinds[i].slurm) == 0)
            kind = kinds[i].kind;
    if (kind == NULL || rest == NULL)
        return -EINVAL;
    for (char *job = NULL; (job = strsep(&rest, ":")) != NULL;) {
        if (job[0] == '\0' || job[strspn(job, "0123456789_")] != '\0')
            return -EINVAL;
        if (strchr(job, '_') != NULL)
            *strchr(job, '_') = '.';
        buffer_printf(out, "%s%s:%s", out->length > 0 ? "," : "", job, kind);
    }
    return 0;
}

static int read_dependency(struct sbatch *sbatch, const char *value, char **ret, struct error *err)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    _cleanup_free_ char *copy = xstrdup(value);
    char *rest = copy;
    (void)sbatch;
    for (char *one = NULL; (one = strsep(&rest, ",")) != NULL;)
        if (add_after(one, &out) < 0) {
            (void)error_set(err, -EINVAL, "--dependency=%.80s is not supported", value);
            return error_hint(err, "supported are afterok:, afterany: and afternotok: with job numbers");
        }
    *ret = buffer_take(&out);
    return 0;
}

static int read_begin(struct sbatch *sbatch, const char *value, char **ret, struct error *err)
{
    (void)sbatch, (void)err;
    *ret = slurm_moment(value);
    return 0;
}

static int read_export(struct sbatch *sbatch, const char *value, char **ret, struct error *err)
{
    (void)sbatch, (void)err;
    bool is_all = strncmp(value, "ALL", 3) == 0 && (value[3] == '\0' || value[3] == ',');
    bool is_none = strcmp(value, "NONE") == 0 || strcmp(value, "NIL") == 0;
    if (is_all && strchr(value, '=') == NULL)
        *ret = xstrdup("all");
    else
        *ret = xstrdup(is_none ? "minimal" : value);
    return 0;
}

static void leave_out(struct sbatch *sbatch, const char *option)
{
    const char *note = slurm_option_note(option);
    if (note == NULL)
        buffer_printf(&sbatch->left_out, "%s%.60s (line %u)", sbatch->left_out.length > 0 ? ", " : "", option,
            sbatch->line);
    else if (!sbatch->call->is_quiet)
        talk_line("line %u: %s is ignored: %s", sbatch->line, option, note);
}

/* One task is what a job is. */
static int read_tasks(struct sbatch *sbatch, const char *value, char **ret, struct error *err)
{
    (void)ret, (void)err;
    if (strcmp(value, "1") != 0)
        leave_out(sbatch, "--ntasks");
    return 0;
}

/* Scripts of other clusters name partitions that this one does not have. */
static int read_partition(struct sbatch *sbatch, const char *value, char **ret, struct error *err)
{
    _cleanup_json_ json_t *answer = NULL;
    size_t index = 0;
    const json_t *partition = NULL;
    (void)err;
    if (client_get(&sbatch->call->client, API_PATH "/partitions", &answer, NULL) == 0)
        json_array_foreach(json_object_get(answer, "partitions"), index,
            partition) if (field_is(partition, "name", value)) *ret = xstrdup(value);
    if (*ret == NULL)
        leave_out(sbatch, "--partition");
    return 0;
}

/* The container of pyxis: there '#' ends the name of a registry. */
static int read_image(struct sbatch *sbatch, const char *value, char **ret, struct error *err)
{
    (void)sbatch, (void)err;
    *ret = xstrdup(value);
    for (char *p = *ret; *p != '\0'; p++)
        if (*p == '#')
            *p = '/';
    return 0;
}

static int read_mounts(struct sbatch *sbatch, const char *value, char **ret, struct error *err)
{
    const struct option_row *option = call_find_option(sbatch->call, "image-mount");
    _cleanup_free_ char *copy = xstrdup(value);
    char *rest = copy;
    int r = 0;
    (void)ret;
    for (char *one = NULL; r == 0 && (one = strsep(&rest, ",")) != NULL;)
        r = options_set(sbatch->call, option, call_keep(sbatch->call, one), err);
    return r;
}

/* Slurm's names and mgpu's. Others are left out with a message. */
static int read_mail_type(struct sbatch *sbatch, const char *value, char **ret, struct error *err)
{
    static const struct {
        const char *slurm, *event;
    } types[] = { { "BEGIN", "start" }, { "END", "end" }, { "FAIL", "fail" }, { "REQUEUE", "requeue" },
        { "ALL", "start,end,fail,requeue" } };
    _cleanup_buffer_ struct buffer out = { 0 };
    _cleanup_free_ char *copy = xstrdup(value);
    char *rest = copy;
    (void)ret, (void)err;
    for (char *word = NULL; (word = strsep(&rest, ",")) != NULL;) {
        const char *event = NULL;
        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
            if (strcasecmp(word, types[i].slurm) == 0)
                event = types[i].event;
        if (event != NULL)
            buffer_printf(&out, "%s%s", out.length > 0 ? "," : "", event);
        else if (strcasecmp(word, "NONE") != 0)
            leave_out(sbatch, "--mail-type");
    }
    free(sbatch->mail_on);
    sbatch->mail_on = out.length > 0 ? buffer_take(&out) : NULL;
    return 0;
}

static int read_mail_user(struct sbatch *sbatch, const char *value, char **ret, struct error *err)
{
    (void)ret, (void)err;
    free(sbatch->mail_user);
    sbatch->mail_user = xstrdup(value);
    return 0;
}

static int read_requeue(struct sbatch *sbatch, const char *value, char **ret, struct error *err)
{
    (void)sbatch, (void)value, (void)err;
    *ret = xstrdup("node-lost");
    return 0;
}

static int read_no_requeue(struct sbatch *sbatch, const char *value, char **ret, struct error *err)
{
    (void)sbatch, (void)value, (void)err;
    *ret = xstrdup("none");
    return 0;
}

static const struct row rows[] = {
    { "job-name", "name", NULL, 'J' },
    { "time", "time", read_time, 't' },
    { "gres", "gpus", read_gres, 0 },
    { "gpus", "gpus", read_gpus, 'G' },
    { "gpus-per-node", "gpus", read_gpus_per_node, 0 },
    { "nodes", "nodes", read_nodes, 'N' },
    { "ntasks", NULL, read_tasks, 'n' },
    { "ntasks-per-node", NULL, read_tasks, 0 },
    { "cpus-per-task", "cpus", NULL, 'c' },
    { "partition", "partition", read_partition, 'p' },
    { "mem", "ram", read_memory, 0 },
    { "output", "output", read_output, 'o' },
    { "error", "error", read_output, 'e' },
    { "input", "input", read_output, 'i' },
    { "array", "array", NULL, 'a' },
    { "dependency", "after", read_dependency, 'd' },
    { "begin", "begin", read_begin, 'b' },
    { "deadline", "deadline", read_begin, 0 },
    { "chdir", "chdir", NULL, 'D' },
    { "export", "export", read_export, 0 },
    { "hold", "hold", NULL, 'H', true },
    { "container-image", "image", read_image, 0 },
    { "container-mounts", "image-mount", read_mounts, 0 },
    { "mail-type", NULL, read_mail_type, 0 },
    { "mail-user", NULL, read_mail_user, 0 },
    { "requeue", "requeue-on", read_requeue, 0, true },
    { "no-requeue", "requeue-on", read_no_requeue, 0, true },
    { 0 },
};

static int apply(struct sbatch *sbatch, const struct row *row, const char *value, struct error *err)
{
    _cleanup_free_ char *made = NULL;
    int r = row->read != NULL ? row->read(sbatch, value, &made, err) : 0;
    if (row->read == NULL && !row->is_flag)
        made = xstrdup(value);
    if (r < 0 || row->option == NULL || (made == NULL && !row->is_flag))
        return r;
    const struct option_row *option = call_find_option(sbatch->call, row->option);
    return options_set(sbatch->call, option, made != NULL ? call_keep(sbatch->call, made) : NULL, err);
}

static const struct row *find(const char *word, size_t length)
{
    bool is_long = word[1] == '-';
    for (const struct row *row = rows; row->name != NULL; row++)
        if (is_long ? strlen(row->name) == length - 2 && strncmp(row->name, word + 2, length - 2) == 0
                    : row->letter == word[1])
            return row;
    return NULL;
}

/* The value joined to the option, or NULL. */
static const char *joined_value(const char *word, size_t length)
{
    if (word[1] != '-')
        return word[1] != '\0' && word[2] != '\0' ? word + 2 + (word[2] == '=') : NULL;
    return word[length] == '=' ? word + length + 1 : NULL;
}

int sbatch_read(struct sbatch *sbatch, const char *text, unsigned number, struct error *err)
{
    _cleanup_strings_ struct strings words = { 0 };
    sbatch->line = number;
    int r = words_split(text, &words, err);
    for (size_t i = 0; r == 0 && i < words.count; i++) {
        const char *word = words.items[i];
        if (word[0] != '-' || word[1] == '\0')
            return error_set(err, -EINVAL, "'%.60s' is not an option", word);
        size_t length = word[1] == '-' ? strcspn(word, "=") : 2;
        const struct row *row = find(word, length);
        const char *value = joined_value(word, length);
        bool is_flag = row != NULL && row->is_flag;
        bool may_follow = value == NULL && !is_flag && i + 1 < words.count;
        if (may_follow && (row != NULL || words.items[i + 1][0] != '-'))
            value = words.items[++i];
        if (row == NULL) {
            _cleanup_free_ char *option = xstrndup(word, length);
            leave_out(sbatch, option);
        } else if (value == NULL && !is_flag) {
            r = error_set(err, -EINVAL, "--%s needs a value", row->name);
        } else {
            r = apply(sbatch, row, value, err);
        }
    }
    return r;
}

static int settle_gpus(struct sbatch *sbatch, struct error *err)
{
    char each[24];
    bool is_many = sbatch->nodes > 1;
    int64_t count = sbatch->gpus_per_node * (is_many ? sbatch->nodes : 1);
    if (!sbatch->has_gpus_per_node)
        return 0;
    _cleanup_free_ char *gpus = join_gpus(count, sbatch->model);
    int r = options_set(sbatch->call, call_find_option(sbatch->call, "gpus"), gpus, err);
    if (r < 0 || !is_many || count == 0)
        return r;
    (void)snprintf(each, sizeof(each), "%" PRId64, sbatch->gpus_per_node);
    return options_set(sbatch->call, call_find_option(sbatch->call, "gpus-per-node"), each, err);
}

/* Without a type no mail is sent, whoever would get it. */
static int settle_mail(struct sbatch *sbatch, struct error *err)
{
    const struct call *call = sbatch->call;
    if (sbatch->mail_on == NULL)
        return 0;
    _cleanup_free_ char *to = sbatch->mail_user != NULL ? xasprintf("mail:%s", sbatch->mail_user) : NULL;
    int r = options_set(sbatch->call, call_find_option(call, "notify"), to != NULL ? to : "mail", err);
    return r < 0 ? r : options_set(sbatch->call, call_find_option(call, "notify-on"), sbatch->mail_on, err);
}

int sbatch_settle(struct sbatch *sbatch, const char *path, struct error *err)
{
    int r = settle_gpus(sbatch, err);
    if (r == 0)
        r = settle_mail(sbatch, err);
    if (r < 0)
        return error_wrap(err, "%.200s", path);
    if (sbatch->left_out.length > 0 && !sbatch->call->is_quiet)
        talk_line("%s: ignored, not supported: %s", path, buffer_text(&sbatch->left_out));
    return 0;
}

void sbatch_clear(struct sbatch *sbatch)
{
    free(sbatch->model);
    free(sbatch->mail_on);
    free(sbatch->mail_user);
    buffer_clear(&sbatch->left_out);
}
