/* SPDX-License-Identifier: MIT */
#include "agent/launch/launch_spec.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/gpu/env.h"
#include "agent/host/hostfile.h"
#include "agent/host/notices.h"
#include "agent/launch/rendezvous.h"
#include "agent/launch/share.h"
#include "agent/launch/slurm_env.h"
#include "agent/launch/socket_interface.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "base/spool.h"
#include "base/system_mgpud.h"
#include "job/inherited.h"
#include "job/interpreter.h"
#include "job/launch.h"
#include "job/slurm.h"
#include "job/spec.h"
#include "job/start_failure.h"
#include "wire/resource_limits.h"

#define DEFAULT_PATH      "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"
#define DEFAULT_PATH_ROOT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define WIDTH_MAX         10 // digits of a number in a path
#define HOME_LOGS         ".local/state/mgpu/logs"

/* --- environment --- */

static void set_missing(struct strings *env, const char *name, const char *value)
{
    if (strings_get_env(env, name) == NULL)
        strings_set_env(env, name, value);
}

static void set_number(struct strings *env, const char *name, uint64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%" PRIu64, value);
    strings_set_env(env, name, text);
}

/* "2,0": the indexes in the requested order. */
static char *list_gpus(const struct record_list *grants)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    const struct gpu_grant *gpus = grants->items;
    for (size_t i = 0; i < grants->count; i++)
        buffer_printf(&text, "%s%u", i > 0 ? "," : "", gpus[i].index);
    return text.length > 0 ? buffer_take(&text) : xstrdup("");
}

static char *hostfile_of(const struct message_launch *launch, const struct launch_node *node)
{
    return hostfile_path(node->run_dir, &launch->id);
}

/* Overrides values of the submitter or of a setup command, because these variables describe the
 * allocation. */
static void set_assignment(struct strings *env, const struct message_launch *launch, const char *job_name,
    const struct launch_node *node, const char *pipe)
{
    _cleanup_free_ char *gpus = list_gpus(&launch->gpus);
    _cleanup_free_ char *socket =
        xasprintf("%s/%s", node->run_dir, node->has_joined ? JOB_SOCKET : "mgpud.sock");
    gpu_env_set(node->gpus, &launch->gpus, node->is_guarding, env);
    set_number(env, "MGPU_JOB_ID", launch->id.job);
    strings_set_env(env, "MGPU_JOB_NAME", job_name);
    set_number(env, "MGPU_ATTEMPT", launch->id.attempt);
    if (launch->array_job != 0) {
        set_number(env, "MGPU_ARRAY_JOB", launch->array_job);
        set_number(env, "MGPU_ARRAY_INDEX", launch->array_index);
    }
    set_number(env, "MGPU_STEP", launch->id.step);
    set_number(env, "MGPU_TASK", launch->id.rank);
    strings_set_env(env, "MGPU_GPUS", gpus);
    set_number(env, "MGPU_NUM_GPUS", launch->gpus.count);
    strings_set_env(env, "MGPU_NODE", node->name);
    strings_set_env(env, "MGPU_SOCKET", socket);
    strings_set_env(env, "MGPU_NOTIFY", pipe);
    _cleanup_free_ char *hostfile = hostfile_of(launch, node);
    rendezvous_set(env, launch, hostfile);
}

/* NCCL and Gloo choose an interface by name, regardless of where the other ranks are. Values set by the user
 * are kept. */
static void set_interface(struct strings *env, const struct message_launch *launch)
{
    const struct launch_peer *peers = launch->peers.items;
    if (launch->peers.count < 2 || launch->id.rank >= launch->peers.count)
        return;
    const char *address = peers[launch->id.rank].address;
    _cleanup_free_ char *name = address != NULL ? socket_interface_find(address) : NULL;
    if (name == NULL)
        return;
    _cleanup_free_ char *exactly = xasprintf("=%s", name); // without "=" it is a prefix for NCCL
    set_missing(env, "NCCL_SOCKET_IFNAME", exactly);
    set_missing(env, "GLOO_SOCKET_IFNAME", name);
}

static void complete_environment(
    struct strings *env, const struct message_launch *launch, const struct user *user, const char *cwd)
{
    set_interface(env, launch);
    set_missing(env, "HOME", user->home);
    set_missing(env, "USER", user->name);
    set_missing(env, "LOGNAME", user->name);
    set_missing(env, "SHELL", user->shell);
    set_missing(env, "PATH", user->uid == 0 ? DEFAULT_PATH_ROOT : DEFAULT_PATH);
    strings_set_env(env, "PWD", cwd);
}

/* --- paths --- */

/* Appends a name as text, not as a path. */
static void append_name(struct buffer *out, const char *name)
{
    for (const char *p = name; *p != '\0'; p++)
        buffer_append(out, *p == '/' ? "_" : p, 1);
}

char *launch_expand_path(
    const char *pattern, const struct message_launch *launch, const char *name, const char *node)
{
    _cleanup_buffer_ struct buffer path = { 0 };
    for (const char *p = pattern; *p != '\0'; p++) {
        size_t digits = *p == '%' ? strspn(p + 1, "0123456789") : 0;
        if (*p != '%' || p[1 + digits] == '\0' || strchr(SPEC_FILE_CODES, p[1 + digits]) == NULL) {
            buffer_append(&path, p, 1);
            continue;
        }
        int width = digits == 1 ? p[1] - '0' : digits > 1 ? WIDTH_MAX : 0;
        p += digits;
        switch (*++p) {
        case 'j': buffer_printf(&path, "%0*" PRIu64, width, launch->id.job); break;
        case 'a':
            buffer_printf(
                &path, "%0*u", width, launch->array_job != 0 ? launch->array_index : launch->id.attempt);
            break;
        case 'A':
            buffer_printf(
                &path, "%0*" PRIu64, width, launch->array_job != 0 ? launch->array_job : launch->id.job);
            break;
        case 'n': append_name(&path, name); break;
        case 'r': buffer_printf(&path, "%0*u", width, launch->id.rank); break;
        case 'h': append_name(&path, node); break;
        default: buffer_append(&path, "%", 1); break;
        }
    }
    return buffer_take(&path);
}

/* Names are 42.log, 42.2.log for the second attempt, 42.1.s3.log and so on for further steps and tasks. */
static char *log_name(const struct message_launch *launch)
{
    _cleanup_buffer_ struct buffer name = { 0 };
    buffer_printf(&name, "%" PRIu64, launch->id.job);
    if (launch->id.attempt > 1)
        buffer_printf(&name, ".%u", launch->id.attempt);
    if (launch->id.step > 0)
        buffer_printf(&name, ".s%u", launch->id.step);
    if (launch->id.rank > 0)
        buffer_printf(&name, ".t%u", launch->id.rank);
    buffer_append_text(&name, ".log");
    return buffer_take(&name);
}

/* In a directory shared by all users, each has a subdirectory; a rootless instance has only one user. */
static char *user_log(const char *dir, const struct launch_node *node, uid_t uid, const char *name)
{
    return node->is_root ? xasprintf("%s/%u/%s", dir, uid, name) : xasprintf("%s/%s", dir, name);
}

/* Nodes may share the directory. Two ranks write to the same file only if neither the file nor the pattern
 * distinguishes them intentionally, as with a device. */
static bool is_one_for_all(const char *pattern)
{
    if (strncmp(pattern, "/dev/", 5) == 0)
        return true;
    for (const char *p = strchr(pattern, '%'); p != NULL && p[1] != '\0'; p = strchr(p + 2, '%'))
        if (p[1] == 'h' || p[1] == 'r')
            return true;
    return false;
}

/* Nodes that only wait for the steps of a script on the first node write nothing. */
static char *expand_output(const char *pattern, const struct message_launch *launch,
    const struct job_spec *job, const char *job_name, const struct launch_node *node)
{
    if (launch->id.rank > 0 && launch->id.step == 0 && slurm_is_on_first(&job->ask.slurm))
        return xstrdup("/dev/null");
    _cleanup_free_ char *path = launch_expand_path(pattern, launch, job_name, node->name);
    return launch->id.rank == 0 || is_one_for_all(pattern) ? take_ptr(path)
                                                           : xasprintf("%s.%u", path, launch->id.rank);
}

static void set_output(const struct message_launch *launch, const struct job_spec *job, const char *job_name,
    const struct user *user, const struct launch_node *node, struct launch_spec *ret)
{
    if (job->output != NULL) {
        ret->output = expand_output(job->output, launch, job, job_name, node);
        return;
    }
    _cleanup_free_ char *name = log_name(launch);
    _cleanup_free_ char *shared = xasprintf("%s/logs", node->state_dir);
    bool is_home = strcmp(node->log_dir, "home") == 0;
    ret->is_output_default = true;
    ret->output = is_home ? xasprintf("%s/" HOME_LOGS "/%s", user->home, name)
                          : user_log(node->log_dir, node, user->uid, name);
    if (is_home)
        ret->output_fallback = user_log(shared, node, user->uid, name);
}

/* Sets the files of standard error and input that the user named. */
static void set_files(const struct message_launch *launch, const struct job_spec *job, const char *job_name,
    const struct launch_node *node, struct launch_spec *ret)
{
    ret->is_truncated = job->truncate;
    if (job->error != NULL)
        ret->error = expand_output(job->error, launch, job, job_name, node);
    ret->is_input_sent = job_spec_has_sent_input(job) && launch->id.rank == 0;
    if (job->input != NULL && !job_spec_has_sent_input(job))
        ret->input = launch_expand_path(job->input, launch, job_name, node->name);
}

/* The user's own shell if it is compatible with sh, else sh. */
static char *setup_shell(const struct user *user)
{
    static const char *const known[] = { "bash", "sh", "dash", "zsh", "ksh", "mksh", NULL };
    const char *slash = strrchr(user->shell, '/');
    for (size_t i = 0; known[i] != NULL; i++)
        if (slash != NULL && strcmp(slash + 1, known[i]) == 0)
            return xstrdup(user->shell);
    return xstrdup(access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh");
}

/* --- the script --- */

/* The name of the submitted file, if it is usable. */
static const char *script_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    bool is_usable = name[0] != '\0' && name[0] != '.' && strlen(name) <= NAME_MAX;
    return is_usable ? name : "script";
}

/* Modules in the directory of the submitted script are found as if that script itself ran. */
static void find_modules(const char *path, struct strings *env)
{
    const char *slash = strrchr(path, '/'), *others = strings_get_env(env, "PYTHONPATH");
    if (slash == NULL)
        return;
    bool has_others = others != NULL && others[0] != '\0';
    _cleanup_free_ char *all =
        xasprintf("%.*s%s%s", (int)(slash - path), path, has_others ? ":" : "", has_others ? others : "");
    strings_set_env(env, "PYTHONPATH", all);
}

/* The command becomes: interpreter, our copy, the arguments behind the path. */
static void set_script(const struct job_spec *job, const struct launch_node *node, struct launch_spec *ret)
{
    const char *path = job->command.items[0];
    ret->script = xasprintf("%s/%s", node->script_dir, script_name(path));
    strings_clear(&ret->command);
    interpreter_add(job->script, &ret->command);
    if (interpreter_is_python(&ret->command))
        find_modules(path, &ret->env);
    strings_add(&ret->command, ret->script);
    for (size_t i = 1; i < job->command.count; i++)
        strings_add(&ret->command, job->command.items[i]);
    strings_set_env(&ret->gpu_env, "MGPU_SCRIPT", path);
}

/* For a node of a batch script or srun that runs on another node: the attempt exists there for its steps. */
static void hold_open(struct launch_spec *ret)
{
    strings_clear(&ret->command);
    strings_add(&ret->command, "sleep");
    strings_add(&ret->command, "infinity");
}

/* --- the container --- */

static void set_image(const struct job_spec *job, const struct launch_node *node, struct launch_spec *ret)
{
    struct launch_image *image = xcalloc(1, sizeof(*image));
    const struct gpu_grant *gpus = ret->gpus.items;
    ret->image = (struct record_list){ image, 1 };
    image->name = xstrdup(job->image);
    /* The runtime is searched for when the command's turn comes, which is after a setup. */
    if (ret->setup == NULL)
        ret->setup = xstrdup(":");
    image->runtime = xstrdup(job->image_runtime);
    strings_copy(&image->mounts, &job->image_mounts);
    if (ret->script != NULL)
        strings_take(&image->mounts, xasprintf("%s:%s:ro", node->script_dir, node->script_dir));
    const char *hostfile = strings_get_env(&ret->gpu_env, "MGPU_HOSTFILE");
    if (hostfile != NULL)
        strings_take(&image->mounts, xasprintf("%s:%s:ro", hostfile, hostfile));
    if (ret->notices != NULL)
        strings_take(&image->mounts, xasprintf("%s:%s:ro", ret->notices, ret->notices));
    for (size_t i = 0; i < ret->gpus.count; i++)
        strings_take(
            &image->gpus, xasprintf("%u %s", gpus[i].index, gpus[i].uuid != NULL ? gpus[i].uuid : ""));
}

/* --- the whole --- */

/* The submitter's group at the time, if the user is a member of it on this node. */
static gid_t pick_group(const struct message_launch *launch, const struct user *user)
{
    return user_is_member(user, launch->gid) ? launch->gid : user->gid;
}

static void set_identity(
    const struct message_launch *launch, const struct user *user, struct launch_spec *ret)
{
    ret->uid = user->uid;
    ret->gid = pick_group(launch, user);
    ret->groups.items = xcalloc(user->n_groups, sizeof(struct group_id));
    ret->groups.count = user->n_groups;
    for (size_t i = 0; i < user->n_groups; i++)
        ((struct group_id *)ret->groups.items)[i].gid = user->groups[i];
}

/* The request was checked before it was stored; an unreadable one requests nothing. */
static void set_warning(const struct job_ask *ask, struct launch_spec *ret)
{
    struct error ignored;
    int signal = 0;
    if (ask->warn_signal != NULL &&
        parse_warn_signal(ask->warn_signal, &signal, &ret->warn_before_ms, &ignored) == 0)
        ret->warn_signal = (uint32_t)signal;
    const char *slurm = slurm_note(&ask->slurm, SLURM_NOTE_SIGNAL);
    if (slurm != NULL && slurm_is_batch(&ask->slurm))
        ret->warn_scope = strncmp(slurm, "B:", 2) == 0 ? SIGNAL_COMMAND : SIGNAL_OTHERS;
    if (!ask->checkpoint)
        return;
    ret->checkpoint_signal = ret->warn_signal != 0 ? ret->warn_signal : (uint32_t)SIGTERM;
    ret->is_requeued_at_limit = ask->requeue_on_timeout;
}

/* The site's limits were checked when the agent started. */
static void set_limits(const struct launch_node *node, struct launch_spec *ret)
{
    struct error ignored;
    ret->nofile_soft = node->nofile_soft;
    ret->nofile_hard = node->nofile_hard;
    ret->pids_max = node->pids_max;
    if (node->limits != NULL && node->limits[0] != '\0')
        (void)resource_limits_parse(node->limits, "limits", &ret->limits, &ignored);
}

static char *fallback_directory(const char *cwd, const struct user *user)
{
    if (cwd == NULL || cwd[0] == '/')
        return xstrdup(cwd);
    return xstrdup(strcmp(cwd, SPEC_CWD_HOME) == 0 ? user->home : "/tmp");
}

static char *status_pipe_path(const struct message_launch *launch, const struct launch_node *node)
{
    char name[SPOOL_NAME_SIZE];
    spool_name(&launch->id, name);
    return xasprintf("%s/" SPOOL_PIPES_DIR "/%s", node->run_dir, name);
}

/* The file with notices to the job: created at the start for a share, else with the first notice. */
static void set_notices(
    const struct message_launch *launch, const struct launch_node *node, struct launch_spec *ret)
{
    _cleanup_free_ char *path = notices_path(node->run_dir, &launch->id);
    if (ret->gpus.count == 0)
        return;
    strings_set_env(&ret->gpu_env, "MGPU_NOTICES", path);
    if (ret->share != NULL)
        ret->notices = take_ptr(path);
}

/* Sets how its share is enforced. */
static int set_share(const struct message_launch *launch, const struct job_spec *job,
    const struct launch_node *node, struct launch_spec *ret, struct error *err)
{
    int r = node->shares != NULL ? share_choose(node->shares, node->gpus, job, ret, err) : 0;
    if (r == 0)
        set_notices(launch, node, ret);
    return r;
}

static int check(const struct launch_spec *spec, struct error *err)
{
    const char *const paths[] = { spec->output, spec->output_fallback, spec->error, spec->input };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        if (paths[i] != NULL && strlen(paths[i]) >= SPEC_PATH_MAX)
            return error_set(err, -ENAMETOOLONG, "the path of the log has more than %u bytes", SPEC_PATH_MAX);
    if (spec->script != NULL && strlen(spec->script) >= SPEC_PATH_MAX)
        return error_set(err, -ENAMETOOLONG, "the path of the script has more than %u bytes", SPEC_PATH_MAX);
    return 0;
}

int launch_spec_make(const struct message_launch *launch, const struct job_spec *job, const struct user *user,
    const struct launch_node *node, struct launch_spec *ret, struct error *err)
{
    if (job->command.count == 0)
        return error_set(err, -EINVAL, "the job has no command");
    _cleanup_free_ char *job_name = job_spec_display_name(job);
    *ret = (struct launch_spec){
        .id = launch->id,
        .token = launch->token,
        .umask = job->umask,
        .cwd = xstrdup(job->cwd != NULL ? job->cwd : user->home),
        .cwd_fallback = fallback_directory(job->cwd_fallback, user),
        .setup = xstrdup(job->setup),
        .exit_copy_dir = xstrdup(node->exit_dir),
        .memory_limit = job->ask.memory,
        .cpu_milli = job->ask.cpu_milli,
        .has_no_new_privs = node->has_no_new_privs,
        .is_tty = job->tty,
        .tty_rows = job->tty_rows,
        .tty_columns = job->tty_columns,
        .time_limit_ms = job->ask.time_limit_ms,
        .grace_ms = job->ask.grace_ms,
        .say_pipe = status_pipe_path(launch, node),
        .is_gated = launch->peers.count > 0,
        .start_ms = LAUNCH_START_MS,
        .files_ms = START_FILES_MS,
        .meeting_port = launch->id.rank == 0 ? launch->port : 0,
        .lease_ms = launch->lease_ms,
        .lease_until_ms = launch->lease_until_ms,
    };
    struct job_ask *ask = xcalloc(1, sizeof(*ask));
    job_ask_copy(ask, &job->ask);
    ret->ask = (struct record_list){ ask, 1 };
    set_warning(&job->ask, ret);
    set_identity(launch, user, ret);
    set_limits(node, ret);
    gpu_grants_copy(&ret->gpus, &launch->gpus);
    strings_copy(&ret->command, &job->command);
    strings_copy(&ret->env, &job->env);
    inherited_drop(&ret->env);
    complete_environment(&ret->env, launch, user, ret->cwd);
    set_assignment(&ret->gpu_env, launch, job_name, node, ret->say_pipe);
    slurm_env_set(&ret->gpu_env, launch, job, job_name, node->name);
    int r = set_share(launch, job, node, ret, err);
    if (r < 0)
        return r;
    bool is_held_open = launch->id.rank > 0 && slurm_is_on_first(&job->ask.slurm);
    if (is_held_open)
        hold_open(ret);
    else if (job->script != NULL)
        set_script(job, node, ret);
    if (job->image != NULL)
        set_image(job, node, ret);
    if (ret->setup != NULL)
        ret->shell = setup_shell(user);
    set_output(launch, job, job_name, user, node, ret);
    set_files(launch, job, job_name, node, ret);
    return check(ret, err);
}
