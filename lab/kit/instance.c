/* SPDX-License-Identifier: MIT */
/*
 * Readiness comes as a datagram (NOTIFY_SOCKET). The processes of the instance are those of the kit's
 * programs whose command line names its folder; jobs of the kit do so too, because their output is there,
 * which is how nothing is left behind.
 */
#include "lab/kit/instance.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/strings.h"
#include "lab/kit/child.h"

#define READY_MS      60000 // opening a GPU takes seconds without persistence
#define STOP_MS       5000
#define END_ASK_MS    2000 // within SPARE_MS of main.c, with the two around it
#define END_JOBS_MS   4000
#define ASK_MS        20000
#define LOOK_MS       50
#define LOG_MAX       ((size_t)1 << 20)
#define COMMAND_MAX   65536U
#define NOBODY_NUMBER "65534"
#define JOBS          "jobs" // the folder of their output
#define ARGUMENTS     40U
#define LOOKS         10U // at a job's output, for one at its state
#define MODE_PUBLIC   0755
#define MODE_SHARED   0777

struct instance {
    pid_t pid;
    bool is_root;
    int64_t uid;        // whose it is, if not this process's; else -1
    int64_t client_uid; // whose requests are
};

bool instance_is_root(const struct instance *instance)
{
    return instance->is_root;
}

/* --- start --- */

static char *path_in(const struct kit *kit, const char *name)
{
    return xasprintf("%s/%s", kit->work, name);
}

static char *path_of(const struct kit *kit, const char *program)
{
    return xasprintf("%s/%s", kit->programs, program);
}

static int open_ready(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || strlen(path) >= sizeof(address.sun_path))
        return fd < 0 ? -errno : -ENAMETOOLONG;
    memcpy(address.sun_path, path, strlen(path) + 1);
    (void)unlink(path);
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 || chmod(path, MODE_SHARED) < 0)
        return -errno;
    return take_fd(&fd);
}

static void describe_log(const struct kit *kit, char *line, size_t size)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    _cleanup_free_ char *path = path_in(kit, "log");
    (void)file_read(AT_FDCWD, path, LOG_MAX, &text);
    text_last_line(buffer_text(&text), line, size);
}

/* Waits for the datagram, or for mgpud's end. */
static int await_ready(struct kit *kit, pid_t pid, int ready, struct error *err)
{
    struct pollfd wait = { .fd = ready, .events = POLLIN };
    int64_t end_ms = clock_boot_ms() + kit_left_ms(kit, READY_MS);
    char line[256];
    int status = -1;
    while (clock_boot_ms() < end_ms && status < 0) {
        if (poll(&wait, 1, LOOK_MS) > 0)
            return 0;
        status = child_wait(pid, 1);
    }
    describe_log(kit, line, sizeof(line));
    if (status >= 0)
        return error_set(err, -EIO, "mgpud ended with %d: %s", status, line);
    (void)child_stop(pid, SIGTERM, STOP_MS);
    return error_set(err, -EIO, "mgpud was not ready in time: %s", line);
}

/* The path of that program as a shell finds it; NULL: there is none. The caller frees it. */
static char *find_in_path(const char *name)
{
    const char *path = getenv("PATH");
    _cleanup_free_ char *copy = xstrdup(path != NULL ? path : "");
    char *rest = copy;
    for (char *folder = strsep(&rest, ":"); folder != NULL; folder = strsep(&rest, ":")) {
        char *found = folder[0] == '/' ? xasprintf("%s/%s", folder, name) : NULL;
        if (found != NULL && access(found, X_OK) == 0)
            return found;
        free(found);
    }
    return NULL;
}

/* CUDA's library is installed beside NVML. The loader may have found both by a variable of the environment,
 * which the agent's processes do not have. The caller frees it. */
static char *cuda_library_of(const struct kit *kit)
{
    const char *slash = kit->nvml_library != NULL ? strrchr(kit->nvml_library, '/') : NULL;
    char *path = slash != NULL
                     ? xasprintf("%.*s/libcuda.so.1", (int)(slash - kit->nvml_library), kit->nvml_library)
                     : NULL;
    if (path != NULL && access(path, R_OK) == 0)
        return path;
    free(path);
    return xstrdup("auto");
}

/* `more`: further options, ending in NULL. */
static int start(struct kit *kit, bool is_root, const char *const *more, struct error *err)
{
    _cleanup_free_ char *cuda_library = cuda_library_of(kit);
    _cleanup_free_ char *program = xasprintf("%s/mgpud", kit->programs);
    _cleanup_free_ char *state = path_in(kit, is_root ? "state" : "state-user");
    _cleanup_free_ char *run = path_in(kit, is_root ? "run" : "run-user");
    _cleanup_free_ char *log = path_in(kit, "log"), *ready_path = path_in(kit, "ready");
    _cleanup_free_ char *api = xasprintf("%s/mgpud.sock", run);
    _cleanup_free_ char *mps = find_in_path("nvidia-cuda-mps-control");
    const char *argv[ARGUMENTS] = { program, "--state-dir", state, "--run-dir", run, "--listen", "none",
        "--nodes-listen", "none", "--gpus", kit->nvml_gpus == NULL && kit->amd_gpus != NULL ? "amd" : "auto",
        "--nvml-library", kit->nvml_library != NULL ? kit->nvml_library : "auto", "--cuda-library",
        cuda_library, "--mps-control", mps != NULL ? mps : "auto", "--allow-root-jobs",
        is_root ? "--user" : NULL, getpwnam("nobody") != NULL ? "nobody" : NOBODY_NUMBER, NULL };
    size_t n = 0;
    while (argv[n] != NULL)
        n++;
    const char *const of_amd[] = { "--sysfs-root", kit->sysfs_root, "--rocm-library", kit->rocm_library };
    for (size_t i = 0; i < sizeof(of_amd) / sizeof(of_amd[0]); i += 2) {
        if (of_amd[i + 1] == NULL)
            continue;
        argv[n++] = of_amd[i];
        argv[n++] = of_amd[i + 1];
    }
    while (*more != NULL && n < ARGUMENTS - 1)
        argv[n++] = *more++;
    _cleanup_close_ int ready = open_ready(ready_path);
    if (ready < 0)
        return error_set_errno(err, ready, "cannot wait for mgpud at %s", ready_path);
    (void)setenv("HOME", kit->work, 0); // mgpud requires one, and a container may have none
    (void)setenv("NOTIFY_SOCKET", ready_path, 1);
    int64_t uid = !is_root && geteuid() == 0 ? INSTANCE_OTHER_UID : -1;
    pid_t pid = child_start(argv, log, uid);
    (void)unsetenv("NOTIFY_SOCKET");
    if (pid < 0)
        return error_set_errno(err, (int)pid, "cannot start %s", program);
    int r = await_ready(kit, pid, ready, err);
    if (r < 0)
        return r;
    (void)setenv("MGPU_SOCKET", api, 1);
    kit->instance = xcalloc(1, sizeof(*kit->instance));
    *kit->instance = (struct instance){ .pid = pid, .is_root = is_root, .uid = uid, .client_uid = uid };
    return 0;
}

static const char *const no_options[] = { NULL };

/* Every user whose jobs the kit runs writes their output there. */
static int make_jobs(const struct kit *kit, struct error *err)
{
    _cleanup_free_ char *jobs = path_in(kit, JOBS);
    if ((mkdir(jobs, MODE_SHARED) == 0 || errno == EEXIST) && chmod(jobs, MODE_SHARED | S_ISVTX) == 0)
        return 0;
    return error_set_errno(err, -errno, "cannot make %s", jobs);
}

int instance_start(struct kit *kit, struct error *err)
{
    struct error second = { 0 };
    bool is_root = geteuid() == 0;
    int r = make_jobs(kit, err);
    if (r == 0)
        r = start(kit, is_root, no_options, err);
    if (r == 0 || !is_root)
        return r;
    (void)chmod(kit->work, MODE_SHARED | S_ISVTX);
    if (start(kit, false, no_options, &second) == 0)
        return 0;
    return error_wrap(err, "as root"); // the first reason is the one to mend
}

/* --- its processes --- */

/* The path of its program, or "". */
static void read_program(pid_t pid, char program[PATH_MAX])
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    ssize_t n = readlink(path, program, PATH_MAX - 1);
    program[n > 0 ? n : 0] = '\0';
}

/* True if its command line names the kit's folder. */
static bool names_work(const struct kit *kit, pid_t pid)
{
    _cleanup_buffer_ struct buffer text = { 0 };
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    if (file_read(AT_FDCWD, path, COMMAND_MAX, &text) < 0)
        return false;
    return text.length > 0 && memmem(text.bytes, text.length, kit->work, strlen(kit->work)) != NULL;
}

void instance_each(const struct kit *kit, instance_visit_fn *visit, void *arg)
{
    _cleanup_free_ char *programs = realpath(kit->programs, NULL);
    DIR *dir = programs != NULL ? opendir("/proc") : NULL;
    if (dir == NULL)
        return;
    size_t length = strlen(programs);
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;
        char program[PATH_MAX];
        if (pid <= 1 || pid == getpid())
            continue;
        _cleanup_close_ int pidfd = process_open(pid, process_start_time(pid));
        read_program(pid, program);
        if (pidfd >= 0 && strncmp(program, programs, length) == 0 && program[length] == '/' &&
            names_work(kit, pid))
            visit(pid, pidfd, program + length + 1, arg);
    }
    (void)closedir(dir);
}

static void kill_any(pid_t pid, int pidfd, const char *program, void *arg)
{
    (void)process_signal(pidfd, SIGKILL);
}

struct search {
    bool (*is_wanted)(pid_t pid);
    pid_t found;
};

static void match_process(pid_t pid, int pidfd, const char *program, void *arg)
{
    struct search *search = arg;
    if (search->found == 0 && search->is_wanted(pid))
        search->found = pid;
}

pid_t instance_find(const struct kit *kit, bool (*is_wanted)(pid_t pid))
{
    struct search search = { .is_wanted = is_wanted };
    instance_each(kit, match_process, &search);
    return search.found;
}

static void kill_daemon(pid_t pid, int pidfd, const char *program, void *arg)
{
    if (strcmp(program, "mgpud") == 0 || strncmp(program, "mgpu-agent", strlen("mgpu-agent")) == 0)
        (void)process_signal(pidfd, SIGKILL);
}

static void forget(struct kit *kit)
{
    free(take_ptr(kit->instance));
}

/* Runs mgpu when the kit's time may be over: it must end its jobs all the same. */
static json_t *ask_at_end(struct kit *kit, int64_t uid, const char *const *arguments)
{
    _cleanup_free_ char *program = path_of(kit, "mgpu");
    const char *argv[ARGUMENTS] = { program, "--json" };
    _cleanup_output_ struct child_output output = { 0 };
    for (size_t i = 0; arguments[i] != NULL && i + 3 < ARGUMENTS; i++)
        argv[i + 2] = arguments[i];
    return child_run_as(uid, argv, END_ASK_MS, &output) == 0 ? json_loads(output.out, 0, NULL) : NULL;
}

/* Jobs that mgpud leaves behind would go on, and use the GPU. */
static void end_jobs(struct kit *kit)
{
    static const char *const cancel[] = { "cancel", "--all", "--yes", "--grace", "0", NULL };
    static const char *const open[] = { "ps", "--all-users", "--state",
        "queued,held,starting,running,stopping", NULL };
    json_decref(ask_at_end(kit, kit->instance->uid, cancel));
    if (geteuid() == 0 && kit->instance->is_root)
        json_decref(ask_at_end(kit, INSTANCE_OTHER_UID, cancel));
    int64_t end_ms = clock_boot_ms() + END_JOBS_MS;
    for (size_t count = 1; count > 0 && clock_boot_ms() < end_ms;) {
        json_t *answer = ask_at_end(kit, kit->instance->uid, open);
        count = json_array_size(json_object_get(answer, "jobs"));
        json_decref(answer);
        if (count > 0)
            (void)poll(NULL, 0, LOOK_MS);
    }
}

void instance_stop(struct kit *kit)
{
    if (kit->instance != NULL) {
        end_jobs(kit);
        (void)child_stop(kit->instance->pid, SIGTERM, STOP_MS);
        forget(kit);
    }
    instance_each(kit, kill_any, NULL);
}

int instance_crash(struct kit *kit, struct error *err)
{
    bool is_root = kit->instance->is_root;
    instance_each(kit, kill_daemon, NULL);
    (void)child_wait(kit->instance->pid, STOP_MS);
    forget(kit);
    return start(kit, is_root, no_options, err);
}

int instance_restart(struct kit *kit, const char *const *options, struct error *err)
{
    bool is_root = kit->instance->is_root;
    instance_stop(kit);
    return start(kit, is_root, options, err);
}

bool instance_act_as(struct kit *kit, int64_t uid)
{
    _cleanup_free_ char *program = path_of(kit, "mgpu-gpu-test");
    const char *const argv[] = { program, "--version", NULL };
    _cleanup_output_ struct child_output output = { 0 };
    if (kit->instance == NULL)
        return false;
    kit->instance->client_uid = uid < 0 ? kit->instance->uid : uid;
    if (uid < 0)
        return true;
    bool can_be = geteuid() == 0 && kit->instance->is_root && child_run_as(uid, argv, ASK_MS, &output) == 0 &&
                  output.status == 0;
    if (!can_be)
        kit->instance->client_uid = kit->instance->uid;
    return can_be;
}

/* --- its command line --- */

static int run(struct kit *kit, const char *const *arguments, bool is_json, int64_t timeout_ms,
    struct child_output *ret, struct error *err)
{
    _cleanup_free_ char *program = xasprintf("%s/mgpu", kit->programs);
    const char *argv[ARGUMENTS + 3] = { program };
    size_t n = 1;
    _cleanup_free_ char *gpu = xasprintf("%lld",
        (long long)json_integer_value(json_object_get(json_array_get(kit->nvml_gpus, kit->gpu), "index")));
    if (is_json)
        argv[n++] = "--json";
    for (size_t i = 0; arguments[i] != NULL && n < ARGUMENTS; i++)
        argv[n++] = strcmp(arguments[i], KIT_GPU) == 0 ? gpu : arguments[i];
    int r = child_run_as(kit->instance->client_uid, argv, kit_left_ms(kit, timeout_ms), ret);
    if (r < 0)
        return error_set_errno(err, r, "cannot run %s", program);
    return ret->is_late ? error_set(err, -ETIMEDOUT, "mgpu %s took longer than %lld ms", arguments[0],
                              (long long)timeout_ms)
                        : 0;
}

int instance_ask(
    struct kit *kit, const char *const *arguments, int64_t timeout_ms, json_t **ret_answer, struct error *err)
{
    _cleanup_output_ struct child_output output = { 0 };
    char line[256];
    int r = run(kit, arguments, true, timeout_ms, &output, err);
    if (r < 0)
        return r;
    text_last_line(output.err, line, sizeof(line));
    if (output.status != 0)
        (void)error_set(err, -EIO, "mgpu %s: %s", arguments[0], line);
    if (ret_answer != NULL)
        *ret_answer = json_loads(output.out, 0, NULL);
    return output.status;
}

char *instance_print(struct kit *kit, const char *const *arguments, int64_t timeout_ms)
{
    _cleanup_output_ struct child_output output = { 0 };
    struct error err = { 0 };
    (void)run(kit, arguments, false, timeout_ms, &output, &err);
    return xstrdup(output.out != NULL ? output.out : "");
}

int64_t instance_submit(
    struct kit *kit, const char *const *options, const char *const *command, struct error *err)
{
    _cleanup_output_ struct child_output output = { 0 };
    _cleanup_free_ char *log = path_in(kit, JOBS "/out.%j");
    const char *arguments[ARGUMENTS] = { "submit", "-o", log, "-C", kit->work };
    char line[256];
    size_t n = 5;
    for (size_t i = 0; options[i] != NULL && n < ARGUMENTS - 2; i++)
        arguments[n++] = options[i];
    arguments[n++] = "--";
    for (size_t i = 0; command[i] != NULL && n < ARGUMENTS - 1; i++)
        arguments[n++] = command[i];
    int r = run(kit, arguments, false, ASK_MS, &output, err);
    if (r < 0)
        return r;
    int64_t job = strtoll(output.out, NULL, 10);
    text_last_line(output.err, line, sizeof(line));
    return output.status == 0 && job > 0 ? job : error_set(err, -EIO, "mgpu submit: %s", line);
}

/* Says why the job has not ended, and ends it: those after it need its GPU. */
static void give_up(struct kit *kit, const char *number, const json_t *record, struct error *err)
{
    const char *const cancel[] = { "cancel", "--grace", "0", number, NULL };
    const char *state = json_string_value(json_object_get(record, "state"));
    const char *reason = json_string_value(json_object_get(record, "reason_text"));
    struct error ignored = { 0 };
    (void)instance_ask(kit, cancel, ASK_MS, NULL, &ignored);
    if (state != NULL)
        (void)error_set(err, -ETIMEDOUT, "it is still %s%s%s", state, reason != NULL ? ": " : "",
            reason != NULL ? reason : "");
}

int instance_wait(struct kit *kit, int64_t job, int64_t timeout_ms, json_t **ret, struct error *err)
{
    char number[32];
    (void)snprintf(number, sizeof(number), "%lld", (long long)job);
    const char *const wait[] = { "wait", number, NULL }, *const show[] = { "show", number, NULL };
    _cleanup_output_ struct child_output output = { 0 };
    int r = run(kit, wait, false, timeout_ms, &output, err);
    int shown = instance_ask(kit, show, ASK_MS, ret, err);
    if (r == -ETIMEDOUT)
        give_up(kit, number, shown == 0 ? *ret : NULL, err);
    if (r < 0 || shown != 0)
        return r < 0 ? r : -EIO;
    return *ret != NULL ? 0 : error_set(err, -EIO, "mgpu show %s printed no JSON", number);
}

/* From the file: where the user has no name, `mgpu logs` has none either. */
char *instance_output(struct kit *kit, int64_t job)
{
    struct buffer text = { 0 };
    _cleanup_free_ char *path = xasprintf("%s/" JOBS "/out.%lld", kit->work, (long long)job);
    (void)file_read(AT_FDCWD, path, LOG_MAX, &text);
    return buffer_take(&text);
}

static bool has_ended(struct kit *kit, int64_t job)
{
    char number[32];
    (void)snprintf(number, sizeof(number), "%lld", (long long)job);
    const char *const show[] = { "show", number, NULL };
    struct error err = { 0 };
    json_t *record = NULL;
    bool is_shown = instance_ask(kit, show, ASK_MS, &record, &err) == 0;
    bool is_ended = is_shown && json_is_string(json_object_get(record, "ended_at"));
    json_decref(record);
    return is_ended;
}

static size_t count_words(const char *text, const char *word)
{
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += strlen(word))
        count++;
    return count;
}

int instance_await_output(struct kit *kit, int64_t job, const char *text, size_t times, int64_t timeout_ms)
{
    int64_t end_ms = clock_boot_ms() + kit_left_ms(kit, timeout_ms);
    for (size_t looks = 1; clock_boot_ms() < end_ms; looks++) {
        bool is_over = looks % LOOKS == 0 && has_ended(kit, job); // asked before its output is read
        _cleanup_free_ char *output = instance_output(kit, job);
        if (count_words(output, text) >= times)
            return 0;
        if (is_over)
            return -ESRCH;
        (void)poll(NULL, 0, LOOK_MS);
    }
    return -ETIMEDOUT;
}

const json_t *instance_feature(const json_t *doctor, const char *name)
{
    const json_t *node = json_array_get(json_object_get(doctor, "nodes"), 0);
    const json_t *features = json_object_get(node, "features"), *feature;
    size_t i;
    json_array_foreach(features, i,
        feature) if (text_equal(json_string_value(json_object_get(feature, "name")), name)) return feature;
    return NULL;
}
