/* SPDX-License-Identifier: MIT */
/* Converts a line of the jobs file to a request. The number of GPUs comes from the configuration of
 * models. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/json/field.h"
#include "base/memory.h"
#include "base/parse.h"
#include "cli/submit/submit.h"
#include "compat/feed/feed.h"
#include "job/ask.h"

#define SHARE_WHOLE 1000

bool feed_is_on_path(const char *name)
{
    _cleanup_free_ char *path = xstrdup(getenv("PATH") != NULL ? getenv("PATH") : "/usr/bin:/bin");
    char *rest = path;
    for (char *folder = NULL; (folder = strsep(&rest, ":")) != NULL;) {
        _cleanup_free_ char *file = xasprintf("%s/%s", folder[0] == '\0' ? "." : folder, name);
        if (access(file, X_OK) == 0)
            return true;
    }
    return false;
}

/* The GPUs of the line that are among the first `gpus`; *ret is NULL for any at all. */
static int allow_gpus(const struct feed_line *line, int64_t gpus, char **ret, struct error *err)
{
    _cleanup_free_ uint32_t *ids = NULL;
    _cleanup_buffer_ struct buffer text = { 0 };
    size_t count = 0;
    if (line->gpus == NULL) {
        *ret = gpus > 0 ? xasprintf("0-%d", (int)gpus - 1) : NULL;
        return 0;
    }
    int r = parse_id_list(line->gpus, "allowed_gpus", ASK_GPU_INDEX_MAX, &ids, &count, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++)
        if (gpus == 0 || ids[i] < gpus)
            buffer_printf(&text, "%s%u", text.length > 0 ? "," : "", ids[i]);
    if (text.length == 0)
        return error_set(
            err, -EINVAL, "allowed_gpus: none of %s is among the first %d GPUs", line->gpus, (int)gpus);
    *ret = buffer_take(&text);
    return 0;
}

static void add_requirement(const struct feed *feed, const struct feed_line *line, json_t *ask)
{
    const char *unknown = NULL;
    double wanted = feed_llm_requirement(&feed->llm, &line->words, &unknown);
    if (unknown != NULL)
        feed_log_say(&feed->log, "%s:%u: model '%s' is not in %s: it gets the default of %g",
            feed->settings->jobs_path, line->number, unknown, feed->settings->llm_path, wanted);
    int share = (int)(wanted * SHARE_WHOLE + 0.5);
    int whole = (int)wanted;
    if (share < SHARE_WHOLE)
        (void)json_object_set_new(ask, "gpu_share", json_integer(share));
    else
        (void)json_object_set_new(ask, "gpus", json_integer(whole + (wanted > whole)));
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : path;
}

static int make_ask(const struct feed *feed, const struct feed_line *line, json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *ask = json_object();
    _cleanup_free_ char *allow = NULL, *name = text_escape(base_name(line->script), 60);
    int r = allow_gpus(line, feed->settings->gpus, &allow, err);
    if (r < 0)
        return r;
    if (allow != NULL)
        (void)json_object_set_new(ask, "gpu_allow", json_string(allow));
    add_requirement(feed, line, ask);
    /* A script of the jobs file is one process on one node. */
    (void)json_object_set_new(ask, "nodes", json_integer(1));
    (void)json_object_set_new(ask, "priority", json_integer(-line->priority));
    (void)json_object_set_new(ask, "name", json_string(name));
    if (feed->settings->max_attempts > 1)
        (void)json_object_set_new(ask, "retry", json_integer(feed->settings->max_attempts - 1));
    *ret = take_ptr(ask);
    return 0;
}

/* In the usual directory, which may have been removed, with the current time; NULL: mgpud's default log, as
 * on other machines, which do not have that directory. */
static char *choose_output(const struct feed *feed)
{
    char at[FEED_STAMP_SIZE];
    feed_log_stamp(at);
    if (feed->is_spread)
        return NULL;
    return feed_log_folder(FEED_LOG_FOLDER, NULL) == 0 ? xasprintf(FEED_LOG_FOLDER "/job_%%j_%s.log", at)
                                                       : NULL;
}

static char *make_command(const struct feed *feed, const struct feed_line *line, const char *mode)
{
    enum feed_inject inject = feed->settings->inject;
    bool is_screen = feed->settings->is_screen && feed->has_screen;
    const char *python = line->conda != NULL || feed_is_on_path("python") ? "python" : "python3";
    if (inject == FEED_INJECT_PHYSICAL && feed->is_enforced)
        inject = FEED_INJECT_LOCAL;
    return feed_command_make(python, line->script, &line->words, inject, is_screen ? mode : NULL);
}

int feed_request_make(
    const struct feed *feed, const struct feed_line *line, const char *key, json_t **ret, struct error *err)
{
    _cleanup_json_ json_t *ask = NULL, *command = NULL;
    _cleanup_free_ char *output = choose_output(feed);
    _cleanup_free_ char *mode = feed_command_mode(&line->words);
    _cleanup_free_ char *text = make_command(feed, line, mode);
    unsigned left_out = 0;
    int r = make_ask(feed, line, &ask, err);
    if (r < 0)
        return r;
    command = json_string(text);
    if (command == NULL)
        return error_set(err, -EINVAL, "script and arguments are not UTF-8 text");
    struct submit_options options = { .ask = ask, .output = output };
    options.setup.conda = line->conda;
    options.is_tty = feed->settings->is_screen && !feed->has_screen;
    if (feed->settings->is_screen)
        strings_take(&options.env, xasprintf(FEED_MODE_VARIABLE "=%s", mode));
    r = submit_build(&options, command, ret, &left_out, err);
    strings_clear(&options.env);
    if (r == 0)
        (void)json_object_set_new(*ret, "submit_key", json_string(key));
    return r;
}
