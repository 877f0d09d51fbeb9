/* SPDX-License-Identifier: MIT */
/*
 * Podman is told not to create cgroups, which requires a PID namespace. Its processes are then members of the
 * attempt's cgroup like any other, and limits, device filter and the end of the job apply to them. Signals
 * are sent to the processes inside (shepherd/processes/tree.c), not through podman. Variables are passed by
 * name, so that no value appears on a command line.
 *
 * The directories that a user expects (home and the working directory) are mounted at the same paths.
 */
#include "shepherd/container.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/gpu_vendor.h"
#include "base/memory.h"
#include "job/image.h"
#include "job/spec.h"
#include "shepherd/container_gpus.h"
#include "shepherd/first.h"
#include "shepherd/processes/roll.h"

#define SYSTEM_PATH "/usr/local/bin:/usr/bin:/bin"
#define RANGES_MAX  (4U << 20)
#define LABEL       "mgpu.job"

/* Programs that can be the first process where ours cannot. */
static const char *const init_programs[] = { "/usr/libexec/podman/catatonit", "/usr/lib/podman/catatonit",
    "/usr/local/libexec/podman/catatonit", NULL };

/* Directories of the image that must not be hidden by those of the node, although a job may start in them. */
static const char *const image_directories[] = { "/", "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32",
    "/lib64", "/opt", "/proc", "/run", "/sbin", "/sys", "/usr", "/var", NULL };

/* Variables that refer to files of the node. */
static const char *const node_variables[] = { "PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "SHELL",
    "PYTHONHOME", "VIRTUAL_ENV", "TMPDIR", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "HOSTNAME",
    "OLDPWD", "PWD", "SHLVL", "_", NULL };

static bool is_one_of(const char *word, const char *const *words)
{
    for (; *words != NULL; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

static bool is_installed(const char *name)
{
    const char *path = getenv("PATH");
    _cleanup_free_ char *copy = xstrdup(path != NULL ? path : SYSTEM_PATH);
    char *rest = copy;
    for (char *directory; (directory = strsep(&rest, ":")) != NULL;) {
        struct stat st;
        _cleanup_free_ char *file = xasprintf("%s/%s", directory, name);
        if (directory[0] == '/' && access(file, X_OK) == 0 && stat(file, &st) == 0 && S_ISREG(st.st_mode))
            return true;
    }
    return false;
}

static const char *find_apptainer(void)
{
    return is_installed(IMAGE_APPTAINER) ? IMAGE_APPTAINER
           : is_installed("singularity") ? "singularity" // its name before
                                         : NULL;
}

/* The program, or NULL if it is not installed. */
static const char *choose_runtime(const struct launch_image *image)
{
    bool is_named = image->runtime != NULL;
    bool may_be_podman = is_named ? strcmp(image->runtime, IMAGE_PODMAN) == 0 : !image_is_sif(image->name);
    bool may_be_apptainer = !is_named || strcmp(image->runtime, IMAGE_APPTAINER) == 0;
    if (may_be_podman && is_installed(IMAGE_PODMAN))
        return IMAGE_PODMAN;
    return may_be_apptainer ? find_apptainer() : NULL;
}

/* --- places --- */

/* The name by which the user knows the directory, if it is still valid. */
static char *working_directory(void)
{
    const char *logical = getenv("PWD");
    struct stat named, real;
    if (logical != NULL && logical[0] == '/' && stat(logical, &named) == 0 && stat(".", &real) == 0 &&
        named.st_dev == real.st_dev && named.st_ino == real.st_ino)
        return xstrdup(logical);
    return getcwd(NULL, 0);
}

static bool is_below(const char *path, const char *parent)
{
    size_t length = strlen(parent);
    return strncmp(path, parent, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

static bool is_target(const struct launch_image *image, const char *path)
{
    for (size_t i = 0; i < image->mounts.count; i++) {
        struct image_mount mount = { 0 };
        bool is_same =
            image_mount_parse(image->mounts.items[i], &mount, NULL) == 0 && strcmp(mount.target, path) == 0;
        image_mount_clear(&mount);
        if (is_same)
            return true;
    }
    return false;
}

/* Home and working directory, unless the image or one of the user's mounts has something else there. */
static void find_places(const struct launch_image *image, const char *cwd, struct strings *ret)
{
    const char *home = getenv("HOME");
    const char *const wanted[] = { home, cwd };
    for (size_t i = 0; i < 2; i++) {
        const char *path = wanted[i];
        bool is_covered = ret->count > 0 && path != NULL && is_below(path, ret->items[0]);
        if (path != NULL && path[0] == '/' && !is_covered && !is_one_of(path, image_directories) &&
            !is_target(image, path) && access(path, X_OK) == 0)
            strings_add(ret, path);
    }
}

/* --- podman --- */

static void add_option(struct strings *words, const char *option, const char *value)
{
    strings_take(words, xasprintf("%s=%s", option, value));
}

static bool is_passed(const char *entry, size_t length)
{
    _cleanup_free_ char *name = xstrndup(entry, length);
    if (length == 0 || isdigit((unsigned char)name[0]))
        return false;
    for (const char *p = name; *p != '\0'; p++)
        if (!isalnum((unsigned char)*p) && *p != '_')
            return false;
    return strncmp(name, "CONDA_", 6) != 0 && !is_one_of(name, node_variables);
}

static void add_environment(struct strings *words)
{
    for (char **entry = environ; *entry != NULL; entry++) {
        size_t length = strcspn(*entry, "=");
        if (is_passed(*entry, length))
            strings_take(words, xasprintf("--env=%.*s", (int)length, *entry));
    }
}

/* True if a line of the file, "NAME_OR_UID:FIRST:COUNT", is for this user. */
static bool has_range(const char *text)
{
    const char *user = getenv("USER");
    char uid[16];
    (void)snprintf(uid, sizeof(uid), "%u:", geteuid());
    _cleanup_free_ char *name = xasprintf("%s:", user != NULL && user[0] != '\0' ? user : uid);
    for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, uid, strlen(uid)) == 0 || strncmp(line, name, strlen(name)) == 0)
            return true;
    }
    return false;
}

bool container_has_ids(const char *subuid, const char *nsswitch)
{
    _cleanup_buffer_ struct buffer ranges = { 0 }, services = { 0 };
    if (file_read(AT_FDCWD, nsswitch, RANGES_MAX, &services) == 0 &&
        strstr(buffer_text(&services), "subid:") != NULL)
        return true; // configured elsewhere
    return file_read(AT_FDCWD, subuid, RANGES_MAX, &ranges) == 0 && has_range(buffer_text(&ranges));
}

static void add_user(struct strings *words)
{
    if (geteuid() == 0)
        return;
    if (!container_has_ids("/etc/subuid", "/etc/nsswitch.conf"))
        (void)fprintf(stderr,
            "mgpu: uid %u has no range in /etc/subuid on this node: podman can unpack only images whose "
            "files "
            "belong to one user\n",
            geteuid());
    strings_add(words, "--userns=keep-id");
    strings_add(words, "--group-add=keep-groups");
}

static enum launch_step add_mounts(const struct launch_image *image, const char *cwd, struct strings *words)
{
    _cleanup_strings_ struct strings places = { 0 };
    find_places(image, cwd, &places);
    for (size_t i = 0; i < places.count; i++) {
        if (strpbrk(places.items[i], ":,") != NULL)
            return STEP_MOUNT;
        strings_take(words, xasprintf("--volume=%s:%s:rslave", places.items[i], places.items[i]));
    }
    for (size_t i = 0; i < image->mounts.count; i++) {
        struct image_mount mount = { 0 };
        if (image_mount_parse(image->mounts.items[i], &mount, NULL) < 0)
            return STEP_MOUNT;
        strings_take(words,
            xasprintf("--volume=%s:%s:%s", mount.source, mount.target, mount.is_read_only ? "ro" : "rw"));
        image_mount_clear(&mount);
    }
    return STEP_NONE;
}

/* The first process forwards signals and reaps children. */
static void add_first_process(struct strings *words)
{
    char program[SPEC_PATH_MAX] = "";
    /* The program must be in a directory that the user can access. */
    if (first_is_possible() && readlink("/proc/self/exe", program, sizeof(program) - 1) > 0 &&
        access(program, X_OK) == 0) {
        strings_add(words, "--init");
        add_option(words, "--init-path", program);
        return;
    }
    for (const char *const *path = init_programs; *path != NULL; path++)
        if (access(*path, X_OK) == 0) {
            strings_add(words, "--init");
            return;
        }
}

static enum launch_step podman_words(const struct launch_image *image, const char *cwd, struct strings *words)
{
    static const char *const fixed[] = { "run", "--rm", "--cgroups=disabled", "--network=host", "--ipc=host",
        "--ulimit=host", "--security-opt=label=disable", "--log-driver=none",
        "--entrypoint=", "--interactive", NULL };
    const char *job = getenv("MGPU_JOB_ID");
    for (const char *const *word = fixed; *word != NULL; word++)
        strings_add(words, *word);
    add_first_process(words);
    if (isatty(STDIN_FILENO) == 1)
        strings_add(words, "--tty");
    add_option(words, "--label", LABEL);
    strings_take(words, xasprintf("--label=" LABEL "=%s", job != NULL ? job : ""));
    add_option(words, "--workdir", cwd);
    add_user(words);
    container_add_gpus(image, words);
    add_environment(words);
    enum launch_step step = add_mounts(image, cwd, words);
    strings_add(words, "--");
    strings_add(words, image->name);
    return step;
}

/* --- apptainer --- */

/* The job's allocation takes precedence over variables of the image. */
static void insist_on_assignment(void)
{
    _cleanup_strings_ struct strings names = { 0 };
    for (char **entry = environ; *entry != NULL; entry++)
        if (strncmp(*entry, "MGPU_", strlen("MGPU_")) == 0 || gpu_vendor_has_prefix(*entry))
            strings_take(&names, xstrndup(*entry, strcspn(*entry, "=")));
    for (size_t i = 0; i < names.count; i++) {
        _cleanup_free_ char *inside = xasprintf("APPTAINERENV_%s", names.items[i]);
        (void)setenv(inside, getenv(names.items[i]), 1);
    }
}

static enum launch_step apptainer_words(
    const struct launch_image *image, const char *cwd, struct strings *words)
{
    _cleanup_strings_ struct strings places = { 0 };
    bool is_named_well = strstr(image->name, "://") != NULL || access(image->name, F_OK) == 0;
    strings_add(words, "exec");
    const char *option = gpu_vendor_of(image->vendor)->apptainer;
    if (option != NULL)
        strings_add(words, option);
    add_option(words, "--pwd", cwd);
    find_places(image, cwd, &places);
    for (size_t i = 0; i < places.count; i++) {
        if (strpbrk(places.items[i], ":,") != NULL)
            return STEP_MOUNT;
        add_option(words, "--bind", places.items[i]);
    }
    for (size_t i = 0; i < image->mounts.count; i++)
        add_option(words, "--bind", image->mounts.items[i]);
    insist_on_assignment();
    strings_add(words, "--");
    strings_take(
        words, xasprintf("%s%s", is_named_well || image_is_sif(image->name) ? "" : "docker://", image->name));
    return STEP_NONE;
}

enum launch_step container_words(
    const struct launch_image *image, const struct strings *command, struct strings *ret)
{
    const char *runtime = choose_runtime(image);
    _cleanup_free_ char *cwd = working_directory();
    if (runtime == NULL)
        return STEP_RUNTIME;
    if (cwd == NULL)
        return STEP_CWD;
    strings_add(ret, runtime);
    bool is_podman = strcmp(runtime, IMAGE_PODMAN) == 0;
    enum launch_step step = is_podman ? podman_words(image, cwd, ret) : apptainer_words(image, cwd, ret);
    for (size_t i = 0; i < command->count; i++)
        strings_add(ret, command->items[i]);
    return step;
}

/* --- what killed containers leave --- */

/* Podman does not notice that a container was killed. The script first gives the killed processes of a job
 * that has just ended time to be reaped, because they look alive until then. It leaves a container whose
 * process has just ended to its own podman for a while, and removes one without a process only 10 minutes
 * after its creation, because it may be about to start. */
static char tidy_text[] =
    "sleep 2; podman ps --filter label=" LABEL " --format '{{.ID}} {{.Pid}}' | while read -r id pid; do "
    "[ -d \"/proc/$pid\" ] || { sleep 5; podman rm --force \"$id\"; }; done; "
    "exec podman container prune --force --filter label=" LABEL " --filter until=10m";

void container_tidy(const struct strings *words)
{
    static char shell[] = "/bin/sh", from_text[] = "-c";
    char *argv[] = { shell, from_text, tidy_text, NULL };
    if (words->count == 0 || strcmp(words->items[0], IMAGE_PODMAN) != 0)
        return;
    pid_t pid = fork();
    if (pid > 0)
        (void)waitpid(pid, NULL, 0);
    if (pid != 0)
        return;
    /* The step's init becomes the parent of this process's child. */
    if (fork() != 0)
        _exit(0);
    (void)setsid();
    (void)prctl(PR_SET_NAME, ROLL_TIDY);
    pid = fork();
    if (pid > 0)
        (void)waitpid(pid, NULL, 0);
    if (pid != 0)
        _exit(0);
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = STDIN_FILENO; null_fd >= 0 && fd <= STDERR_FILENO; fd++)
        (void)dup2(null_fd, fd);
    (void)execv(shell, argv);
    _exit(127);
}
