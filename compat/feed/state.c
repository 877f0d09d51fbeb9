/* SPDX-License-Identifier: MIT */
/*
 * gpu_status         by GPU, the allocated fraction: [0.5, 0, 1]
 * paused_gpus        [1]; edited by the user to pause and resume GPUs
 * known_paused_gpus  the value this program wrote to paused_gpus: the difference is an edit
 * instance           of the store that the job numbers belong to
 * session            random; in the submit keys, so that a line is submitted once however often it is tried
 * jobs               by hash of the line: id, status, script, gpus, tries
 */
#include "compat/feed/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/json/field.h"

#define SESSION_BYTES 8

static bool is_gpu_list(const json_t *list)
{
    size_t index = 0;
    const json_t *gpu = NULL;
    json_array_foreach(list, index, gpu) if (!(json_is_integer(gpu) && json_integer_value(gpu) >= 0) &&
                                             !json_is_string(gpu)) return false;
    return list == NULL || json_is_array(list);
}

static bool is_job_table(json_t *jobs)
{
    const char *hash = NULL;
    json_t *job = NULL;
    json_object_foreach(jobs, hash, job) if (!json_is_integer(json_object_get(job, "id")) ||
                                             field_text(job, "status") == NULL) return false;
    return jobs == NULL || json_is_object(jobs);
}

int feed_state_parse(const char *text, size_t length, const char *path, json_t **ret, struct error *err)
{
    json_error_t where = { 0 };
    _cleanup_json_ json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
    if (root == NULL)
        return error_set(err, -EINVAL, "%.200s:%d: %.160s", path, where.line, where.text);
    if (!json_is_object(root))
        return error_set(err, -EINVAL, "%.200s: not an object with paused_gpus and jobs", path);
    if (!is_gpu_list(json_object_get(root, "paused_gpus")) ||
        !is_gpu_list(json_object_get(root, "known_paused_gpus")))
        return error_set(
            err, -EINVAL, "%.200s: paused_gpus is not a list of GPU numbers such as [0, 2]", path);
    if (!is_job_table(json_object_get(root, "jobs")))
        return error_set(err, -EINVAL, "%.200s: jobs is not an object of jobs with id and status", path);
    *ret = take_ptr(root);
    return 0;
}

int feed_state_reset(struct feed_state *state, struct error *err)
{
    unsigned char bytes[SESSION_BYTES];
    char session[2 * SESSION_BYTES + 1] = "";
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return error_set_errno(err, -errno, "cannot get random bytes");
    for (size_t i = 0; i < SESSION_BYTES; i++)
        (void)snprintf(session + 2 * i, 3, "%02x", bytes[i]);
    json_decref(state->root);
    state->root = json_pack("{s:[], s:[], s:[], s:s, s:{}}", "gpu_status", "paused_gpus", "known_paused_gpus",
        "session", session, "jobs");
    free(take_ptr(state->written));
    state->is_dirty = true;
    return 0;
}

/* Adds what a file written by hand may lack. */
static int complete(struct feed_state *state, struct error *err)
{
    _cleanup_(feed_state_clear) struct feed_state fresh = { 0 };
    int r = feed_state_reset(&fresh, err);
    if (r == 0)
        (void)json_object_update_missing(state->root, fresh.root);
    return r;
}

static int read_file(const char *path, char **ret, size_t *ret_length, struct error *err)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    int r = file_read(AT_FDCWD, path, FEED_STATE_MAX, &bytes);
    if (r < 0)
        return error_set_errno(err, r, "cannot read %.200s", path);
    *ret_length = bytes.length;
    *ret = buffer_take(&bytes);
    return 0;
}

int feed_state_open(struct feed_state *state, const char *path, bool *ret_is_new, struct error *err)
{
    _cleanup_free_ char *text = NULL;
    size_t length = 0;
    *state = (struct feed_state){ .path = path };
    int r = read_file(path, &text, &length, err);
    *ret_is_new = r == -ENOENT;
    if (r == -ENOENT)
        return feed_state_reset(state, err);
    if (r == 0)
        r = feed_state_parse(text, length, path, &state->root, err);
    if (r == -EINVAL)
        return error_hint(err, "repair it, or delete it to queue all lines of the jobs file again");
    if (r < 0)
        return r;
    state->written = take_ptr(text);
    return complete(state, err);
}

int feed_state_compare(
    const struct feed_state *state, enum feed_state_compare *ret, char **ret_text, struct error *err)
{
    _cleanup_free_ char *text = NULL;
    size_t length = 0;
    int r = read_file(state->path, &text, &length, err);
    if (r < 0 && r != -ENOENT)
        return r;
    bool is_same = text != NULL && state->written != NULL && strcmp(text, state->written) == 0;
    *ret = r == -ENOENT ? FEED_STATE_MISSING : is_same ? FEED_STATE_SAME : FEED_STATE_EDITED;
    if (*ret == FEED_STATE_EDITED)
        *ret_text = take_ptr(text);
    return 0;
}

/* Swaps the file with the new one, so that its previous contents can be checked afterwards. If the file
 * system does not support that, the file is replaced. */
static int swap(int folder, const char *fresh, const char *name, const char *expected)
{
    _cleanup_buffer_ struct buffer old = { 0 };
    if (renameat2(folder, fresh, folder, name, RENAME_EXCHANGE) < 0) {
        if (errno != EINVAL && errno != ENOSYS)
            return -errno;
        return renameat(folder, fresh, folder, name) < 0 ? -errno : 0;
    }
    int r = file_read(folder, fresh, FEED_STATE_MAX, &old);
    bool is_expected = r == 0 && strcmp(buffer_text(&old), expected) == 0;
    if (is_expected)
        return unlinkat(folder, fresh, 0) < 0 ? -errno : 0;
    (void)renameat2(folder, fresh, folder, name, RENAME_EXCHANGE);
    return -ESTALE;
}

static int write_file(const struct feed_state *state, const char *text, struct error *err)
{
    const char *slash = strrchr(state->path, '/'), *name = slash == NULL ? state->path : slash + 1;
    _cleanup_free_ char *folder =
        slash == NULL ? xstrdup(".")
                      : xstrndup(state->path, slash == state->path ? 1 : (size_t)(slash - state->path));
    _cleanup_free_ char *fresh = xasprintf("%s.new", name);
    _cleanup_close_ int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_set_errno(err, -errno, "cannot open %.200s", folder);
    int r = file_write(fd, state->written == NULL ? name : fresh, text, strlen(text), true);
    if (r == 0 && state->written != NULL) {
        r = swap(fd, fresh, name, state->written);
        if (r < 0)
            (void)unlinkat(fd, fresh, 0);
    }
    return r < 0 ? error_set_errno(err, r, "cannot write %.200s", state->path) : 0;
}

int feed_state_save(struct feed_state *state, struct error *err)
{
    _cleanup_free_ char *text = json_dumps(state->root, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    _cleanup_free_ char *lines = xasprintf("%s\n", text);
    int r = write_file(state, lines, err);
    if (r < 0)
        return r;
    free(state->written);
    state->written = take_ptr(lines);
    state->is_dirty = false;
    return 0;
}

json_t *feed_state_job(const struct feed_state *state, const char *hash)
{
    return json_object_get(json_object_get(state->root, "jobs"), hash);
}

void feed_state_clear(struct feed_state *state)
{
    json_decref(state->root);
    free(state->written);
    *state = (struct feed_state){ 0 };
}
