/* SPDX-License-Identifier: MIT */
/*
 * One row per step: what was attempted, and on which object. The messages are worded for the user of the job,
 * not in terms of system calls.
 */
#include "shepherd/steps.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "job/image.h"

#define EXIT_NOT_STARTED    125
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND      127

enum object {
    OBJECT_NONE,
    OBJECT_CGROUP,
    OBJECT_USER,
    OBJECT_CWD,
    OBJECT_LOG,
    OBJECT_SHELL,
    OBJECT_COMMAND,
    OBJECT_ERROR,
    OBJECT_INPUT,
    OBJECT_HOME,
};

struct step_row {
    const char *text, *tail; // the object is inserted between the two
    enum object object;
    bool has_errno;
    enum start_cause cause; // of errors that are not temporary
};

static const struct step_row rows[STEPS] = {
    [STEP_NONE] = { "no failure", "", OBJECT_NONE, false, START_UNNAMED },
    [STEP_CLONE] = { "cannot start a process in the step's cgroup ", "", OBJECT_CGROUP, true, START_CGROUP },
    [STEP_STARTED] = { "cannot write the start record", "", OBJECT_NONE, true, START_SPOOL },
    [STEP_INIT] = { "the job's init ended before the command could be started", "", OBJECT_NONE, false,
        START_INIT },
    [STEP_SESSION] = { "cannot create a session", "", OBJECT_NONE, true, START_RIGHTS },
    [STEP_OOM] = { "cannot reset the out-of-memory score", "", OBJECT_NONE, true, START_RIGHTS },
    [STEP_LIMITS] = { "cannot set the limits of the job (--job-limits)", "", OBJECT_NONE, true,
        START_RIGHTS },
    [STEP_GROUPS] = { "cannot set the groups of uid ", "", OBJECT_USER, true, START_RIGHTS },
    [STEP_GID] = { "cannot switch to the group of uid ", "", OBJECT_USER, true, START_RIGHTS },
    [STEP_UID] = { "cannot switch to uid ", "", OBJECT_USER, true, START_RIGHTS },
    [STEP_PROOF] = { "the switch to uid ", " could not be verified", OBJECT_USER, true, START_RIGHTS },
    [STEP_CWD] = { "cannot change to directory ", "", OBJECT_CWD, true, START_PLACE },
    [STEP_LOG_DIRECTORY] = { "cannot create the directory of the log ", "", OBJECT_LOG, true, START_PLACE },
    [STEP_LOG] = { "cannot open the log ", "", OBJECT_LOG, true, START_PLACE },
    [STEP_LOG_KIND] = { "the log ", " is not a regular file", OBJECT_LOG, false, START_PLACE },
    [STEP_LOG_OWNER] = { "the log ", " belongs to another user", OBJECT_LOG, false, START_PLACE },
    [STEP_REPORT] = { "cannot report to the shepherd", "", OBJECT_NONE, true, START_SPAWN },
    [STEP_SPAWN] = { "cannot start a process for the command", "", OBJECT_NONE, true, START_SPAWN },
    [STEP_SHELL] = { "cannot execute ", " for the setup command", OBJECT_SHELL, true, START_COMMAND },
    [STEP_SETUP] = { "the setup command ended before the command could be started", "", OBJECT_NONE, false,
        START_UNNAMED },
    [STEP_TERMINAL] = { "cannot open a terminal", "", OBJECT_NONE, true, START_PROCESS },
    [STEP_SAYING] = { "cannot create the pipe MGPU_NOTIFY", "", OBJECT_NONE, true, START_SPOOL },
    [STEP_LATE] = { "its start timed out: the directory ",
        " or the log does not respond, or its init was stopped", OBJECT_CWD, false, START_SLOW },
    [STEP_ERROR] = { "cannot write the file of standard error ", "", OBJECT_ERROR, true, START_PLACE },
    [STEP_INPUT] = { "cannot read the file of standard input ", "", OBJECT_INPUT, true, START_PLACE },
    [STEP_EXEC] = { "cannot execute ", "", OBJECT_COMMAND, true, START_COMMAND },
    [STEP_RUNTIME] = { "", "", OBJECT_NONE, false, START_FEATURE },
    [STEP_MOUNT] = { "cannot mount into the container the directory ",
        ", or the home directory: a path contains a colon or comma", OBJECT_CWD, false, START_REQUEST },
    [STEP_PRIVATE_TMP] = { "cannot give the job its own /tmp", "", OBJECT_NONE, true, START_FEATURE },
    [STEP_EARLY] = { "cannot make the job wait for its GPUs", "", OBJECT_NONE, true, START_FEATURE },
    [STEP_LOG_PRIVATE] = { "the log ", " is in a directory that only the job has, and would end with it",
        OBJECT_LOG, false, START_PLACE },
    [STEP_ERROR_PRIVATE] = { "the file of standard error ",
        " is in a directory that only the job has, and would end with it", OBJECT_ERROR, false, START_PLACE },
    [STEP_ENTER] = { "cannot enter the cgroups that limit the job", "", OBJECT_NONE, true, START_CGROUP },
    [STEP_HOME] = { "the home directory ", " of its user is missing on this node", OBJECT_HOME, false,
        START_HOME },
};

static const char *object_name(
    enum object object, const struct launch_spec *spec, const char *log_path, char *number, size_t size)
{
    const char *name = "";
    switch (object) {
    case OBJECT_NONE: break;
    case OBJECT_CGROUP: name = spec->job_cgroup; break;
    case OBJECT_USER: (void)snprintf(number, size, "%u", spec->uid); return number;
    case OBJECT_CWD: name = spec->cwd; break;
    case OBJECT_LOG: name = log_path; break;
    case OBJECT_SHELL: name = spec->shell; break;
    case OBJECT_ERROR: name = spec->error; break;
    case OBJECT_INPUT: name = spec->input; break;
    case OBJECT_HOME: name = strings_get_env(&spec->env, "HOME"); break;
    case OBJECT_COMMAND: name = spec->command.count > 0 ? spec->command.items[0] : NULL; break;
    }
    return name != NULL ? name : "";
}

/* Describes the requested runtime, the one that reads this kind of file, or any. */
static void describe_runtime(const struct launch_spec *spec, char *text, size_t size)
{
    const struct launch_image *image = spec->image.count > 0 ? spec->image.items : NULL;
    const char *node = strings_get_env(&spec->gpu_env, "MGPU_NODE");
    const char *only = image == NULL || image->name == NULL ? NULL
                       : image->runtime != NULL             ? image->runtime
                       : image_is_sif(image->name)          ? IMAGE_APPTAINER
                                                            : NULL;
    node = node != NULL ? node : "this node";
    if (only != NULL)
        (void)snprintf(text, size, "%s is not installed on %.100s; install it, or omit --image", only, node);
    else
        (void)snprintf(text, size,
            "neither podman nor apptainer is installed on %.100s; install one, or omit --image", node);
}

void step_describe(enum launch_step step, int error, const struct launch_spec *spec, const char *log_path,
    char *text, size_t size)
{
    if (step == STEP_RUNTIME) {
        describe_runtime(spec, text, size);
        return;
    }
    const struct step_row *row = &rows[step < STEPS ? step : STEP_INIT];
    char number[16];
    const char *object = object_name(row->object, spec, log_path, number, sizeof(number));
    /* strerror(3) may access translations; this function returns a constant. */
    const char *why = row->has_errno ? strerrordesc_np(error) : NULL;
    if (step == STEP_EXEC && error == STEP_NO_INTERPRETER)
        why = "the interpreter named in its first line does not exist";
    (void)snprintf(text, size, "%s%.400s%s%s%s", row->text, object, row->tail, why != NULL ? ": " : "",
        why != NULL ? why : "");
}

/* True for temporary shortages on the node or within the limits of the user. */
static bool is_shortage(int error)
{
    return error == EAGAIN || error == ENOMEM || error == ENFILE || error == EMFILE;
}

/* True for steps done by the shepherd, before the user can influence anything. */
static bool is_of_node(enum launch_step step)
{
    return step == STEP_CLONE || step == STEP_TERMINAL || step == STEP_SAYING || step == STEP_STARTED;
}

/* True for opening a file of the user or entering a directory. */
static bool is_of_files(enum launch_step step)
{
    return step == STEP_CWD || step == STEP_LOG || step == STEP_LOG_DIRECTORY || step == STEP_ERROR ||
           step == STEP_INPUT;
}

enum start_cause step_cause(enum launch_step step, int error, bool is_output_default)
{
    const struct step_row *row = &rows[step < STEPS ? step : STEP_INIT];
    if (row->has_errno && is_shortage(error))
        return is_of_node(step) ? START_PROCESS : START_SPAWN;
    if (is_output_default && (step == STEP_LOG || step == STEP_LOG_DIRECTORY))
        return START_HOME;
    return is_of_files(step) && start_error_may_pass(error) ? START_FILES : row->cause;
}

bool step_is_transient(enum launch_step step, int error, bool is_output_default)
{
    return start_row(step_cause(step, error, is_output_default))->class == START_WAITS;
}

int step_exit_code(enum launch_step step, int error)
{
    if (step != STEP_EXEC)
        return EXIT_NOT_STARTED;
    return error == ENOENT || error == ENOTDIR ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}
