/* SPDX-License-Identifier: MIT */
/* These commands apply to the machine on which they run, require root, and need no mgpud: a node may be
 * locked before it has one. */
#include "cli/cluster/gpu_lock.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/option_values.h"
#include "base/system_mgpud.h"
#include "cli/api/exit_code.h"
#include "cli/api/show_json.h"
#include "gpulock/lock.h"

struct lock_options {
    const char *group, *root, *state_dir;
    gid_t gid; // of the group
};

static int set_group(void *target, const char *value, struct error *err)
{
    struct lock_options *options = ((struct call *)target)->options;
    const struct group *group = getgrnam(value);
    if (group == NULL)
        return error_set(err, -EINVAL, "--group: there is no group '%.60s'", value);
    options->group = value;
    options->gid = group->gr_gid;
    return 0;
}

#define PLACE_ROWS                                                                                           \
    { 0, "root", "DIR", "the directory of the system (/)", OPTION_INNER(text, struct lock_options, root) },  \
    {                                                                                                        \
        0, "state-dir", "DIR", "that of mgpud or mgpu-agent (" SYSTEM_STATE_DIR ")",                         \
            OPTION_INNER(text, struct lock_options, state_dir)                                               \
    }

static const struct option_row lock_rows[] = {
    { 'g', "group", "GROUP", "members of this group can also open the GPUs without a job (none)", set_group },
    PLACE_ROWS,
    { 0 },
};
static const struct option_row unlock_rows[] = { PLACE_ROWS, { 0 } };

/* The path of the state file, which the caller frees; NULL with the reason. */
static char *find_places(const struct call *call, struct gpu_lock_places *ret, struct error *err)
{
    const struct lock_options *options = call->options;
    if (geteuid() != 0) {
        (void)error_set(err, -EPERM, "only root can change the access to GPUs");
        return NULL;
    }
    const char *state = options->state_dir != NULL ? options->state_dir : SYSTEM_STATE_DIR;
    ret->root = options->root != NULL ? options->root : "";
    _cleanup_free_ char *path =
        xasprintf("%s%s/" GPU_LOCK_STATE, options->state_dir != NULL ? "" : ret->root, state);
    ret->state = path;
    if (path[0] == '/')
        return take_ptr(path);
    (void)error_set(err, -EINVAL, "--root and --state-dir must begin with '/'");
    return NULL;
}

/* --- what mgpud shows --- */

#define SHOWN_MS 1500 // the agent checks once a second; a lock that already existed changes nothing
#define LOOK_MS  50

/* How this machine's node describes the lock: "only jobs and root can open GPUs". NULL: no mgpud reports
 * it. */
static char *read_shown(struct call *call)
{
    _cleanup_json_ json_t *answer = NULL;
    const json_t *node = NULL, *feature = NULL;
    size_t i = 0, k = 0;
    client_hurry(&call->client);
    if (client_get(&call->client, API_PATH "/nodes", &answer, NULL) < 0)
        return NULL;
    json_array_foreach(json_object_get(answer, "nodes"), i, node)
    {
        if (field_text(node, "address") != NULL)
            continue;
        json_array_foreach(json_object_get(node, "features"), k, feature)
        {
            if (field_is(feature, "name", "gpu-lock"))
                return xasprintf("%s", field_text(feature, "text"));
        }
    }
    return NULL;
}

/* Returns when mgpud shows something other than `before`, so a doctor run next reports the current state. */
static void await_shown(struct call *call, const char *before)
{
    for (int waited_ms = 0; before != NULL && waited_ms < SHOWN_MS; waited_ms += LOOK_MS) {
        _cleanup_free_ char *now = read_shown(call);
        if (now == NULL || strcmp(now, before) != 0)
            return;
        (void)poll(NULL, 0, LOOK_MS);
    }
}

/* --- the verbs --- */

static void print_json(const struct gpu_lock_result *result, bool is_locked)
{
    _cleanup_json_ json_t *answer =
        json_pack("{s:b, s:b, s:[]}", "locked", is_locked, "driver_pending", result->is_pending, "nodes");
    for (size_t i = 0; i < result->nodes.count; i++)
        (void)json_array_append_new(json_object_get(answer, "nodes"), json_string(result->nodes.items[i]));
    show_json_page(answer, stdout);
}

static void print_words(const struct call *call, const struct gpu_lock_result *result, bool is_locked)
{
    const struct lock_options *options = call->options;
    if (call->is_quiet)
        return;
    (void)printf("%zu device node%s ", result->nodes.count, result->nodes.count == 1 ? "" : "s");
    if (!is_locked)
        (void)puts("unlocked: access is as it was before mgpu gpu lock");
    else if (options->group != NULL)
        (void)printf("locked: only jobs, root and members of %s can open the GPUs\n", options->group);
    else
        (void)puts("locked: only jobs and root can open the GPUs");
    if (result->is_pending)
        (void)fprintf(stderr, "warning: the NVIDIA driver was loaded with other options, and its programs "
                              "will undo this: load it "
                              "again or restart the machine\n");
}

static int finish(struct call *call, int r, struct gpu_lock_result *result, bool is_locked, const char *shown)
{
    if (r == 0)
        await_shown(call, shown);
    if (r == 0 && call->is_json)
        print_json(result, is_locked);
    else if (r == 0)
        print_words(call, result, is_locked);
    gpu_lock_result_clear(result);
    return r < 0 ? r : EXIT_OK;
}

static int run_lock(struct call *call, int argc, char **argv, struct error *err)
{
    const struct lock_options *options = call->options;
    struct gpu_lock_places places = { 0 };
    struct gpu_lock_result result = { 0 };
    _cleanup_free_ char *state = find_places(call, &places, err);
    _cleanup_free_ char *shown = state != NULL ? read_shown(call) : NULL;
    int r = state == NULL ? err->code : gpu_lock_lock(&places, options->gid, &result, err);
    return finish(call, r, &result, true, shown);
}

static int run_unlock(struct call *call, int argc, char **argv, struct error *err)
{
    struct gpu_lock_places places = { 0 };
    struct gpu_lock_result result = { 0 };
    _cleanup_free_ char *state = find_places(call, &places, err);
    _cleanup_free_ char *shown = state != NULL ? read_shown(call) : NULL;
    int r = state == NULL ? err->code : gpu_lock_unlock(&places, &result, err);
    return finish(call, r, &result, false, shown);
}

const struct command command_gpu_lock = {
    .name = "gpu lock",
    .usage = "[OPTIONS]",
    .help = "Close the GPUs of this machine to logins (root)",
    .detail =
        "The device nodes can then be opened by jobs, by root, and by a group; also after a reboot. Run it "
        "on each node.",
    .tables = { lock_rows },
    .options_size = sizeof(struct lock_options),
    .takes_nothing = true,
    .run = run_lock,
};

const struct command command_gpu_unlock = {
    .name = "gpu unlock",
    .usage = "[OPTIONS]",
    .help = "Open the GPUs of this machine to logins again (root)",
    .detail = "All users have the same access as before mgpu gpu lock.",
    .tables = { unlock_rows },
    .options_size = sizeof(struct lock_options),
    .takes_nothing = true,
    .run = run_unlock,
};
