/* SPDX-License-Identifier: MIT */
/*
 * Creates the spool entry and the cgroups of a step from its LAUNCH, or from an earlier PREPARE. The entry of
 * a PREPARE is used only if the LAUNCH would create the same, byte for byte. Its description is kept in
 * memory for this, because the files also contain what confinement adds.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/host/hostfile.h"
#include "agent/host/notices.h"
#include "agent/host/user_logs.h"
#include "agent/launch/adopted.h"
#include "agent/launch/early.h"
#include "agent/launch/launch_spec.h"
#include "agent/launch/launcher_private.h"
#include "agent/launch/scripts.h"
#include "agent/launch/share_spec.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/gpu_vendor.h"
#include "base/memory.h"
#include "job/launch.h"
#include "job/start_failure.h"
#include "job/state.h"
#include "wire/order_check.h"

#define EXIT_CODE_REFUSED 125

static int make_entry(const struct launcher *launcher, const struct spool_id *id)
{
    char name[SPOOL_NAME_SIZE];
    spool_name(id, name);
    if (mkdirat(launcher->spool_fd, name, 0700) < 0 && errno != EEXIST)
        return -errno;
    return launcher_open_entry(launcher, id);
}

/* This can never run here, and elsewhere only if the class of its cause allows it. The record is written
 * first, because a verdict "go" without one would require an adopting shepherd. */
static int refuse(const struct launcher *launcher, const struct message_launch *launch,
    enum start_cause cause, struct error *err)
{
    const struct spool_id *id = &launch->id;
    _cleanup_close_ int fd = make_entry(launcher, id);
    if (fd < 0)
        return error_mark(err, START_SPOOL,
            error_set_errno(
                err, fd, "cannot create the spool directory of job %llu", (unsigned long long)id->job));
    struct launch_exit record = { .id = *id,
        .token = launch->token,
        .end = END_START_FAILED,
        .exit_code = EXIT_CODE_REFUSED,
        .is_refused = start_row(cause)->class == START_ELSEWHERE,
        .cause = cause,
        .ended_wall_ms = clock_wall_ms(),
        .ended_boot_ms = clock_boot_ms(),
        .text = err->message };
    int r = file_write_record(fd, SPOOL_EXIT, &launch_exit_record, &record, false);
    if (r == 0)
        r = spool_decide(fd, VERDICT_GO);
    if (r < 0)
        return error_mark(err, START_SPOOL,
            error_set_errno(err, r, "cannot write the end of job %llu", (unsigned long long)id->job));
    return r == VERDICT_GO ? LAUNCHER_REFUSED : LAUNCHER_STAGED;
}

static int read_request(const struct message_launch *launch, struct job_spec *ret, struct error *err)
{
    if (launch->defect != NULL)
        return error_set(err, -EBADMSG, "its request cannot be read: %s", launch->defect);
    if (launch->spec.length == 0)
        return error_set(err, -EBADMSG, "the launch message did not contain its request");
    int r = record_unpack(&job_spec_record, &launch->spec, ret, err);
    if (r == 0) {
        r = order_check(&job_spec_record, ret, err);
        if (r < 0)
            job_spec_clear(ret);
    }
    return r < 0 ? error_wrap(err, "its request cannot be read") : 0;
}

/* A library counts only the GPUs that a job may open; UUIDs are always correct. A job that starts early
 * cannot open any yet. */
static void confine_devices(const struct gpu_devices *devices, struct launch_spec *spec)
{
    const struct record_list none = { 0 };
    _cleanup_free_ char *visible = gpu_devices_visible(devices, &spec->gpus);
    const struct gpu_vendor *vendor = gpu_devices_vendor(devices, &spec->gpus);
    const char *numbers = visible != NULL ? strings_get_env(&spec->gpu_env, vendor->variables[0].name) : NULL;
    gpu_devices_rules(devices, spec->is_early ? &none : &spec->gpus, &spec->devices);
    if (numbers != NULL && isdigit((unsigned char)numbers[0]) && gpu_devices_has_nodes(devices, &spec->gpus))
        strings_set_env(&spec->gpu_env, vendor->variables[0].name, visible);
}

/* Finds what its container needs of this node for its GPUs. */
static void find_devices(const struct gpu_devices *devices, struct launch_spec *spec)
{
    struct launch_image *image = spec->image.count > 0 ? spec->image.items : NULL;
    if (image == NULL)
        return;
    gpu_devices_paths(devices, &spec->gpus, &image->devices);
    image->visible = gpu_devices_visible(devices, &spec->gpus);
    const struct gpu_vendor *vendor = gpu_devices_vendor(devices, &spec->gpus);
    image->vendor = vendor != NULL ? vendor->number : 0;
}

static int write_script(const struct launcher *launcher, const struct spool_id *id,
    const struct launch_spec *spec, const char *text, struct error *err)
{
    if (spec->script == NULL)
        return 0;
    return scripts_write(
        launcher->scripts_fd, id, strrchr(spec->script, '/') + 1, text, spec->uid, spec->gid, err);
}

/* Creates everything. The spec is written last, because a shepherd starts from it. */
static int write_entry(struct launcher *launcher, const struct message_launch *launch,
    const struct job_spec *job, struct launch_spec *spec, struct error *err)
{
    int shepherd_fd;
    const struct spool_id *id = &launch->id;
    int r = write_script(launcher, id, spec, job->script, err);
    if (r == 0)
        r = hostfile_write(launcher->run_dir, launch, spec->uid, spec->gid, launcher->users.is_root, err);
    if (r == 0 && spec->notices != NULL)
        r = notices_make(launcher->run_dir, id, spec->uid, spec->gid, launcher->users.is_root, err);
    if (r < 0)
        return error_mark(err, START_SPOOL, r);
    r = launcher->confine->prepare(launcher->cells, id, &spec->job_cgroup, &shepherd_fd, err);
    if (r >= 0)
        r = launcher->confine->limit(launcher->cells, id, spec, err);
    if (r < 0)
        return error_mark(err, START_CGROUP, r);
    r = launcher->confine->guard(launcher->cells, id, spec, err);
    if (r < 0)
        return error_mark(err, START_DEVICE, r);
    _cleanup_close_ int fd = make_entry(launcher, id);
    if (fd >= 0)
        (void)unlinkat(fd, SPOOL_EXIT, 0); // left by a refusal without a verdict: it would end this attempt
    r = fd >= 0 && spec->lease_ms > 0 ? spool_renew(fd, spec->lease_until_ms) : 0;
    if (r == 0 && fd >= 0 && spec->is_early)
        r = early_make_entry(fd);
    if (r == 0)
        r = fd < 0 ? fd : file_write_record(fd, SPOOL_SPEC, &launch_spec_record, spec, false);
    if (r < 0)
        return error_mark(err, START_SPOOL,
            error_set_errno(err, r, "cannot write the spool of job %llu", (unsigned long long)id->job));
    launcher->guarded = *id;
    return LAUNCHER_STAGED;
}

static bool is_staged(const struct launcher *launcher, const struct spool_id *id)
{
    struct stat st;
    _cleanup_close_ int fd = launcher_open_entry(launcher, id);
    return fd >= 0 &&
           (fstatat(fd, SPOOL_SPEC, &st, AT_SYMLINK_NOFOLLOW) == 0 || spool_verdict(fd) == VERDICT_NOGO);
}

static int stage_adopted(const struct launcher *launcher, const struct message_launch *launch,
    const struct job_spec *job, struct error *err)
{
    const struct spool_id *id = &launch->id;
    _cleanup_close_ int fd = make_entry(launcher, id);
    int r = fd < 0 ? fd : adopted_stage(fd, launch, job);
    if (r < 0)
        return error_set_errno(err, r, "cannot write the spool of job %llu", (unsigned long long)id->job);
    return LAUNCHER_STAGED;
}

/* The directory with one log directory per user. NULL: there is none, or another one was requested. */
static char *shared_logs(const struct launcher *launcher, const struct job_spec *job)
{
    if (!launcher->users.is_root || job->output != NULL || job->ask.adopted_pid != 0)
        return NULL;
    return strcmp(launcher->log_dir, "home") == 0 ? xasprintf("%s/" LOG_DIR, launcher->state_dir)
                                                  : xstrdup(launcher->log_dir);
}

static int find_user(const struct launcher *launcher, const struct message_launch *launch,
    const struct job_spec *job, struct user *ret, struct error *err)
{
    _cleanup_free_ char *logs = shared_logs(launcher, job);
    if (launcher->resolver != NULL)
        return user_resolver_find(launcher->resolver, &launch->id, launch->uid, launch->user, logs, ret, err);
    int r = job_user_find(&launcher->users, launch->uid, launch->user, ret, err);
    return r == 0 && logs != NULL ? user_logs_make(logs, ret->uid, ret->gid, err) : r;
}

/* Creates the spec for the shepherd of this step, except for its cgroups. */
static int make_spec(const struct launcher *launcher, const struct message_launch *launch,
    const struct job_spec *job, const struct user *user, struct launch_spec *ret, struct error *err)
{
    _cleanup_free_ char *script_dir = scripts_directory(launcher->run_dir, &launch->id);
    const struct share_parts shares = { launcher->shares, launcher->mps, launcher->confine, launcher->cells };
    struct launch_node node = { .name = launcher->node,
        .is_guarding = launcher->is_guarding,
        .run_dir = launcher->run_dir,
        .state_dir = launcher->state_dir,
        .log_dir = launcher->log_dir,
        .exit_dir = launcher->exit_dir,
        .script_dir = script_dir,
        .gpus = launcher->gpus,
        .is_root = launcher->users.is_root,
        .has_joined = launcher->has_joined,
        .nofile_soft = launcher->nofile_soft,
        .nofile_hard = launcher->nofile_hard,
        .limits = launcher->limits,
        .pids_max = launcher->pids_max,
        .has_no_new_privs = launcher->has_no_new_privs };
    if (job->ask.private_tmp && launcher->private_tmp_err != NULL && launcher->private_tmp_err->code != 0)
        return error_set(err, -ENOTSUP, "node %s cannot give the job its own /tmp: %s", launcher->node,
            launcher->private_tmp_err->message);
    int r = share_make_spec(&shares, launch, job, user, &node, ret, err);
    if (r == 0 && launcher->devices != NULL) {
        ret->numas = gpu_devices_numas(launcher->devices, &ret->gpus);
        find_devices(launcher->devices, ret);
    }
    ret->is_early = launch->is_early != 0;
    if (r == 0 && ret->is_early)
        r = early_check(ret, launcher->is_guarding, err);
    if (r == 0 && launcher->is_guarding)
        confine_devices(launcher->devices, ret);
    return r == 0 ? record_check(&launch_spec_record, ret, err) : r; // the shepherd must be able to read it
}

static bool has_grants(const struct launch_spec *spec, const struct record_list *grants)
{
    const struct gpu_grant *own = spec->gpus.items, *others = grants->items;
    bool is_same = spec->gpus.count == grants->count;
    for (size_t i = 0; is_same && i < grants->count; i++)
        is_same = text_equal(own[i].uuid, others[i].uuid);
    return is_same;
}

int launcher_move_gpus(const struct launcher *launcher, const struct spool_id *id,
    const struct record_list *grants, struct error *err)
{
    struct launch_spec spec;
    _cleanup_close_ int fd = launcher_open_entry(launcher, id);
    int r = fd < 0 ? fd : file_read_record(fd, SPOOL_SPEC, &launch_spec_record, &spec, err);
    if (r < 0)
        return error_set_errno(err, r, "cannot read the spec of job %llu", (unsigned long long)id->job);
    bool is_same = has_grants(&spec, grants);
    if (!is_same) {
        gpu_grants_clear(&spec.gpus);
        gpu_grants_copy(&spec.gpus, grants);
        if (launcher->is_guarding && spec.devices.count > 0) {
            free(spec.devices.items);
            gpu_devices_rules(launcher->devices, &spec.gpus, &spec.devices);
        }
        r = file_write_record(fd, SPOOL_SPEC, &launch_spec_record, &spec, false);
        if (r < 0)
            (void)error_set_errno(err, r, "cannot write the spool of job %llu", (unsigned long long)id->job);
    }
    if (r == 0)
        r = launcher->confine->guard(launcher->cells, id, &spec, err); // also after a crash in between
    record_clear(&launch_spec_record, &spec);
    return r < 0 ? r : !is_same;
}

static int stage(struct launcher *launcher, const struct message_launch *launch, const struct job_spec *job,
    struct error *err)
{
    _cleanup_user_ struct user user = { 0 };
    bool is_adopted = job->ask.adopted_pid != 0;
    bool is_others = is_adopted && !launcher->users.is_root && launch->uid != geteuid();
    if (is_others && job_user_check_adopted(&launcher->users, launch->uid, err) == 0)
        return stage_adopted(launcher, launch, job, err);
    int r = find_user(launcher, launch, job, &user, err);
    if (r == -EPERM) // an adopted process is on this node and no other
        return refuse(launcher, launch, is_adopted ? START_REQUEST : START_ACCOUNT, err);
    if (is_adopted && (r == 0 || r == -ENOENT)) // no process is started as its owner, who may not exist here
        return stage_adopted(launcher, launch, job, err);
    if (r < 0)
        return error_mark(err, r == -ENOENT ? START_USER : START_LOOKUP, r);
    struct launch_spec spec = { 0 };
    r = make_spec(launcher, launch, job, &user, &spec, err);
    if (r != -EINPROGRESS)
        r = r < 0 ? refuse(launcher, launch, START_FEATURE, err)
                  : write_entry(launcher, launch, job, &spec, err);
    record_clear(&launch_spec_record, &spec);
    return r;
}

int launcher_stage(struct launcher *launcher, const struct message_launch *launch, struct error *err)
{
    struct error local = { 0 };
    struct job_spec job;
    err = err != NULL ? err : &local;
    if (is_staged(launcher, &launch->id))
        return LAUNCHER_STAGED;
    if (read_request(launch, &job, err) < 0)
        return refuse(launcher, launch, START_REQUEST, err);
    int r = stage(launcher, launch, &job, err);
    job_spec_clear(&job);
    return r;
}

/* --- before it is its turn --- */

/* Equal bytes describe equal entries. The end of the lease is omitted, because it is renewed. */
static void describe(const struct job_spec *job, struct launch_spec *spec, struct buffer *ret)
{
    int64_t until_ms = spec->lease_until_ms;
    spec->lease_until_ms = 0;
    record_encode(&launch_spec_record, spec, ret);
    spec->lease_until_ms = until_ms;
    if (job->script != NULL)
        buffer_append_text(ret, job->script);
}

/* Not with a terminal, container or MPS, which need more processes, nor with exclusive CPUs, which others
 * need. */
static bool may_wait(const struct job_spec *job)
{
    return !job->tty && job->image == NULL && job->ask.adopted_pid == 0 && job->ask.cpu_milli == 0 &&
           share_kind_from_name(job->ask.share) == SHARE_NONE;
}

static int make_described(struct launcher *launcher, const struct message_launch *launch,
    struct job_spec *job, struct launch_spec *spec, struct buffer *description, struct error *err)
{
    _cleanup_user_ struct user user = { 0 };
    int r = may_wait(job) ? find_user(launcher, launch, job, &user, err)
                          : error_set(err, -EOPNOTSUPP, "such a job is not prepared");
    if (r == 0)
        r = make_spec(launcher, launch, job, &user, spec, err);
    if (r == 0)
        describe(job, spec, description);
    return r;
}

static struct prepared_entry *find_prepared(struct launcher *launcher, const struct spool_id *id)
{
    for (size_t i = 0; i < LAUNCHER_PREPARED_MAX; i++)
        if (spool_id_equal(&launcher->prepared[i].id, id))
            return &launcher->prepared[i];
    return NULL;
}

void launcher_forget_prepared(struct launcher *launcher, const struct spool_id *id)
{
    struct prepared_entry *entry = find_prepared(launcher, id);
    if (entry == NULL)
        return;
    buffer_clear(&entry->description);
    *entry = (struct prepared_entry){ 0 };
}

int launcher_prepare(struct launcher *launcher, const struct message_launch *launch, struct error *err)
{
    struct job_spec job;
    struct launch_spec spec = { 0 };
    struct buffer description = { 0 };
    struct prepared_entry *entry = find_prepared(launcher, &(struct spool_id){ 0 });
    int r = entry == NULL ? error_set(err, -EBUSY, "too many jobs are prepared")
                          : read_request(launch, &job, err);
    if (r < 0)
        return r;
    r = make_described(launcher, launch, &job, &spec, &description, err);
    spec.is_prepared = true;
    if (r == 0)
        r = write_entry(launcher, launch, &job, &spec, err);
    if (r == LAUNCHER_STAGED)
        *entry = (struct prepared_entry){ launch->id, description };
    else
        buffer_clear(&description);
    record_clear(&launch_spec_record, &spec);
    job_spec_clear(&job);
    return r < 0 ? r : 0;
}

int launcher_take(struct launcher *launcher, const struct message_launch *launch, struct error *err)
{
    struct job_spec job;
    struct launch_spec spec = { 0 };
    _cleanup_buffer_ struct buffer description = { 0 };
    const struct prepared_entry *entry = find_prepared(launcher, &launch->id);
    int r = entry == NULL ? error_set(err, -ENOENT, "it was not prepared") : read_request(launch, &job, err);
    if (r < 0)
        return r;
    r = make_described(launcher, launch, &job, &spec, &description, err);
    record_clear(&launch_spec_record, &spec);
    job_spec_clear(&job);
    if (r < 0)
        return r;
    if (description.length != entry->description.length ||
        memcmp(description.bytes, entry->description.bytes, description.length) != 0)
        return error_set(err, -ESTALE, "it was prepared otherwise");
    launcher_forget_prepared(launcher, &launch->id);
    return 0;
}
