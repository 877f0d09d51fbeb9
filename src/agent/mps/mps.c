/* SPDX-License-Identifier: MIT */
/*
 * Answers make their receiver call mps_join() again, so they are given only when the daemon is in its next
 * state. Failures are reported by that next call.
 */
#include "agent/mps/mps.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/mps/daemon.h"
#include "agent/mps/folder.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/process.h"

/* Reported to the client by its next call. */
struct failure {
    struct spool_id id;
    struct error err;
};

struct mps {
    struct mps_owner owner;
    char *program, *folder, *proc;
    bool is_root;
    mps_ready_fn *on_ready;
    void *arg;
    struct mps_daemon **daemons;
    size_t n_daemons;
    struct failure *failures;
    size_t n_failures;
};

/* --- daemons --- */

static struct mps_daemon *find_daemon(const struct mps *mps, const char *name)
{
    for (size_t i = 0; i < mps->n_daemons; i++)
        if (strcmp(mps->daemons[i]->name, name) == 0)
            return mps->daemons[i];
    return NULL;
}

static struct mps_daemon *add_daemon(struct mps *mps, const char *name)
{
    _cleanup_free_ char *directory = xasprintf("%s/%s", mps->folder, name);
    struct mps_daemon *daemon = mps_daemon_new(&mps->owner, name, directory);
    mps->daemons = xreallocarray(mps->daemons, mps->n_daemons + 1, sizeof(struct mps_daemon *));
    mps->daemons[mps->n_daemons++] = daemon;
    return daemon;
}

static void on_answer(void *arg, const struct spool_id *ids, size_t count, const struct error *err)
{
    struct mps *mps = arg;
    for (size_t i = 0; err != NULL && i < count; i++) {
        mps->failures = xreallocarray(mps->failures, mps->n_failures + 1, sizeof(struct failure));
        mps->failures[mps->n_failures++] = (struct failure){ .id = ids[i], .err = *err };
    }
    for (size_t i = 0; i < count; i++)
        mps->on_ready(mps->arg, &ids[i]);
}

/* A client that joined while it was ending joins again, which creates a new one. */
static void on_gone(void *arg, struct mps_daemon *daemon)
{
    struct mps *mps = arg;
    size_t count = daemon->n_members;
    _cleanup_free_ struct spool_id *ids = xcalloc(count + 1, sizeof(*ids));
    for (size_t i = 0; i < count; i++)
        ids[i] = daemon->members[i].id;
    for (size_t i = 0; i < mps->n_daemons; i++)
        if (mps->daemons[i] == daemon)
            mps->daemons[i] = mps->daemons[--mps->n_daemons];
    mps_folder_remove(daemon->directory);
    mps_daemon_free(daemon);
    on_answer(mps, ids, count, NULL);
}

/* --- jobs --- */

static bool take_failure(struct mps *mps, const struct spool_id *id, struct error *err)
{
    for (size_t i = 0; i < mps->n_failures; i++) {
        if (!spool_id_equal(&mps->failures[i].id, id))
            continue;
        *err = mps->failures[i].err;
        mps->failures[i] = mps->failures[--mps->n_failures];
        return true;
    }
    return false;
}

static int start_daemon(struct mps *mps, const char *name, const struct mps_client *client,
    struct mps_daemon **ret, struct error *err)
{
    struct mps_daemon *daemon = add_daemon(mps, name);
    daemon->record.uid = client->uid;
    daemon->record.uuid = xstrdup(client->uuid);
    mps_folder_remove(daemon->directory);
    int r = make_directories(mps->folder, mps->is_root ? 0711 : 0700);
    if (r == 0)
        r = mps_folder_make(daemon->directory, client->uid, client->gid, mps->is_root);
    if (r < 0)
        (void)error_set_errno(err, r, "cannot create %s", daemon->directory);
    else
        r = mps_daemon_start(daemon, &client->limits, client->cgroup_fd, err);
    if (r < 0)
        on_gone(mps, daemon);
    else
        *ret = daemon;
    return r;
}

static bool has_limits(const struct mps_daemon *daemon, const struct mps_limits *limits)
{
    return limits->bytes <= daemon->record.bytes && limits->percent <= daemon->record.percent;
}

int mps_join(struct mps *mps, const struct mps_client *client, char **ret_name, struct error *err)
{
    char name[MPS_NAME_SIZE];
    if (take_failure(mps, &client->id, err))
        return err->code;
    mps_folder_name(client->uid, client->uuid, name);
    struct mps_daemon *daemon = find_daemon(mps, name);
    if (daemon != NULL && daemon->phase == MPS_LOST)
        return error_set(err, -EBUSY, "jobs still use the server of an MPS control daemon that has died");
    if (daemon != NULL && !text_equal(daemon->record.uuid, client->uuid))
        return error_set(err, -EBUSY, "two GPUs have UUIDs with the same beginning");
    int r = daemon == NULL ? start_daemon(mps, name, client, &daemon, err) : 0;
    if (r < 0)
        return r;
    struct mps_member *member = mps_daemon_add(daemon, &client->id, client->notices);
    bool is_settled = daemon->phase == MPS_READY && daemon->command == NULL;
    if (is_settled && has_limits(daemon, &client->limits)) {
        *ret_name = xstrdup(name);
        return 0;
    }
    member->is_waiting = true;
    if (is_settled)
        mps_daemon_raise(daemon, &client->limits);
    return error_set(err, -EINPROGRESS, "the MPS control daemon is being prepared");
}

void mps_hold(struct mps *mps, const struct launch_spec *spec)
{
    struct mps_daemon *daemon = spec->mps != NULL ? find_daemon(mps, spec->mps) : NULL;
    if (daemon != NULL)
        (void)mps_daemon_add(daemon, &spec->id, spec->notices);
    else if (spec->mps != NULL)
        mps_daemon_notify(&spec->id, spec->notices, MPS_DAEMON_DIED);
}

void mps_drop(struct mps *mps, const struct spool_id *id)
{
    struct error ignored;
    (void)take_failure(mps, id, &ignored);
    for (size_t i = 0; i < mps->n_daemons; i++) {
        struct mps_daemon *daemon = mps->daemons[i];
        if (!mps_daemon_drop(daemon, id))
            continue;
        if (daemon->n_members == 0 && daemon->phase != MPS_ENDING)
            mps_daemon_end(daemon);
        return;
    }
}

/* --- while they run --- */

void mps_set_env(
    const struct mps *mps, const char *name, const struct mps_client *client, struct strings *env)
{
    char percent[16];
    _cleanup_free_ char *pipes = xasprintf("%s/%s", mps->folder, name);
    _cleanup_free_ char *log = xasprintf("%s/log", pipes);
    _cleanup_free_ char *limit = xasprintf("0=%" PRIu64 "M", client->limits.bytes >> 20);
    (void)snprintf(percent, sizeof(percent), "%u", client->limits.percent);
    strings_set_env(env, "CUDA_MPS_PIPE_DIRECTORY", pipes);
    strings_set_env(env, "CUDA_MPS_LOG_DIRECTORY", log);
    strings_set_env(env, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", limit);
    strings_set_env(env, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percent);
    strings_set_env(env, "CUDA_VISIBLE_DEVICES", client->uuid);
}

void mps_check_servers(struct mps *mps)
{
    for (size_t i = mps->n_daemons; i-- > 0;) {
        struct mps_daemon *daemon = mps->daemons[i];
        mps_daemon_check_servers(daemon);
        if (daemon->phase == MPS_READY && daemon->n_members == 0)
            mps_daemon_end(daemon); // left by an earlier agent whose jobs have ended
    }
}

bool mps_is_server(const struct mps *mps, pid_t pid, uint64_t start)
{
    const struct mps_server server = { pid, start };
    for (size_t i = 0; i < mps->n_daemons; i++)
        if (mps_server_is_listed(mps->daemons[i]->servers, mps->daemons[i]->n_servers, &server))
            return true;
    return false;
}

/* --- the whole --- */

char *mps_find(const char *wanted)
{
    static const char *const folders[] = { "/usr/bin", "/usr/local/bin", "/usr/local/cuda/bin" };
    if (wanted != NULL)
        return access(wanted, X_OK) == 0 ? xstrdup(wanted) : NULL;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        char *path = xasprintf("%s/" MPS_CONTROL, folders[i]);
        if (access(path, X_OK) == 0)
            return path;
        free(path);
    }
    return NULL;
}

static void adopt(struct mps *mps, const char *name)
{
    struct mps_record record;
    _cleanup_free_ char *path = xasprintf("%s/%s", mps->folder, name);
    if (mps_folder_read(path, &record) < 0)
        record = (struct mps_record){ 0 };
    bool is_usable = record.pid != 0 && record.uuid != NULL && strlen(name) < MPS_NAME_SIZE;
    int pidfd = is_usable ? process_open((pid_t)record.pid, record.start) : -1;
    if (pidfd < 0) {
        record_clear(&mps_record_type, &record);
        mps_folder_remove(path);
        return;
    }
    struct mps_daemon *daemon = add_daemon(mps, name);
    daemon->record = record;
    mps_daemon_adopt(daemon, pidfd);
}

struct mps *mps_new(
    struct event_base *base, const struct mps_options *options, mps_ready_fn *on_ready, void *arg)
{
    struct mps *mps = xcalloc(1, sizeof(*mps));
    mps->program = xstrdup(options->program);
    mps->folder = xasprintf("%s/mps", options->run_dir);
    mps->proc = xstrdup(options->proc);
    mps->is_root = options->is_root;
    mps->on_ready = on_ready;
    mps->arg = arg;
    mps->owner = (struct mps_owner){ .arg = mps,
        .base = base,
        .program = mps->program,
        .proc = mps->proc,
        .answer_ms = options->answer_ms,
        .on_answer = on_answer,
        .on_gone = on_gone };
    DIR *dir = opendir(mps->folder);
    for (const struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;)
        if (entry->d_name[0] != '.')
            adopt(mps, entry->d_name);
    if (dir != NULL)
        (void)closedir(dir);
    return mps;
}

void mps_free(struct mps *mps)
{
    if (mps == NULL)
        return;
    for (size_t i = 0; i < mps->n_daemons; i++)
        mps_daemon_free(mps->daemons[i]);
    free(mps->daemons);
    free(mps->failures);
    free(mps->program);
    free(mps->folder);
    free(mps->proc);
    free(mps);
}
