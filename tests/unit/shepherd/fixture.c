/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/files.h"
#include "base/memory.h"
#include "unit_test.h"

#define DEADLINE_MS 20000

bool is_root(void)
{
    return geteuid() == 0;
}

static int open_hints(const struct fixture *fixture)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/spool/" SPOOL_HINTS, fixture->run_dir);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void set_identity(struct launch_spec *spec)
{
    spec->uid = is_root() ? FIXTURE_JOB_UID : geteuid();
    spec->gid = is_root() ? FIXTURE_JOB_UID : getegid();
    spec->groups.items = xcalloc(2, sizeof(struct group_id));
    spec->groups.count = 2;
    ((struct group_id *)spec->groups.items)[0].gid = spec->gid;
    ((struct group_id *)spec->groups.items)[1].gid = FIXTURE_GROUP;
}

int fixture_setup(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    char spool[96], name[SPOOL_NAME_SIZE];
    (void)snprintf(f->run_dir, sizeof(f->run_dir), "/tmp/mgpu-shepherd.XXXXXX");
    assert_non_null(mkdtemp(f->run_dir));
    assert_int_equal(chmod(f->run_dir, 0755), 0);
    (void)snprintf(spool, sizeof(spool), "%s/spool", f->run_dir);
    assert_int_equal(mkdir(spool, 0700), 0);
    f->id = (struct spool_id){ .job = 7, .attempt = 1 };
    spool_name(&f->id, name);
    (void)snprintf(f->dir, sizeof(f->dir), "%s/%.24s", spool, name);
    assert_int_equal(mkdir(f->dir, 0700), 0);
    (void)snprintf(f->home, sizeof(f->home), "%s/home", f->run_dir);
    (void)snprintf(f->log, sizeof(f->log), "%s/out.log", f->home);
    assert_int_equal(mkdir(f->home, 0755), 0);
    f->hints_fd = open_hints(f);
    f->spec = (struct launch_spec){ .id.job = 7,
        .id.attempt = 1,
        .token = 99,
        .umask = 022,
        .cwd = xstrdup(f->home),
        .output = xstrdup("out.log") };
    set_identity(&f->spec);
    assert_int_equal(chown(f->home, f->spec.uid, f->spec.gid), 0);
    strings_set_env(&f->spec.env, "PATH", "/usr/bin:/bin");
    strings_set_env(&f->spec.env, "FLAVOUR", "plain");
    strings_set_env(&f->spec.gpu_env, "CUDA_VISIBLE_DEVICES", "2,0");
    fixture_command(f, "true", NULL);
    *state = f;
    return 0;
}

int fixture_setup_cgroup(void **state)
{
    struct error err = { 0 };
    int shepherd_fd;
    int r = fixture_setup(state);
    struct fixture *f = *state;
    if (confine_cgroup2.open(f->run_dir, NULL, &f->cells, &err) < 0)
        return r;
    assert_int_equal(confine_cgroup2.prepare(f->cells, &f->id, &f->spec.job_cgroup, &shepherd_fd, &err), 0);
    return r;
}

static void remove_cells(struct fixture *f)
{
    (void)confine_cgroup2.kill(f->cells, &f->id);
    for (int64_t deadline = clock_boot_ms() + DEADLINE_MS;
         confine_cgroup2.remove(f->cells, &f->id) == -EBUSY && clock_boot_ms() < deadline;)
        (void)poll(NULL, 0, 1);
    confine_cgroup2.close(f->cells);
}

int fixture_teardown(void **state)
{
    struct fixture *f = *state;
    if (f->shepherd > 0) {
        (void)kill(f->shepherd, SIGKILL);
        (void)waitpid(f->shepherd, NULL, 0);
    }
    if (f->cells != NULL)
        remove_cells(f);
    record_clear(&launch_spec_record, &f->spec);
    record_clear(&launch_exit_record, &f->exit);
    closep(&f->hints_fd);
    (void)unit_test_remove(f->run_dir);
    free(f->output);
    free(f);
    return 0;
}

void fixture_command(struct fixture *fixture, ...)
{
    va_list words;
    strings_clear(&fixture->spec.command);
    va_start(words, fixture);
    for (const char *word; (word = va_arg(words, const char *)) != NULL;)
        strings_add(&fixture->spec.command, word);
    va_end(words);
}

void fixture_script(struct fixture *fixture, const char *script)
{
    fixture_command(fixture, "/bin/sh", "-c", script, NULL);
}

static void spawn(struct fixture *fixture, const char *option)
{
    const char *program = getenv("MGPU_SHEPHERD");
    assert_non_null(program);
    fixture->shepherd = fork();
    assert_true(fixture->shepherd >= 0);
    if (fixture->shepherd > 0)
        return;
    (void)setsid();
    (void)close_range(3, ~0U, 0);
    if (option != NULL)
        (void)execl(program, "mgpu-shepherd", option, fixture->dir, (char *)NULL);
    else
        (void)execl(program, "mgpu-shepherd", fixture->dir, (char *)NULL);
    _exit(127);
}

void fixture_start(struct fixture *fixture)
{
    int fd = open(fixture->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(file_write_record(fd, SPOOL_SPEC, &launch_spec_record, &fixture->spec, false), 0);
    (void)close(fd);
    spawn(fixture, NULL);
}

void fixture_adopt(struct fixture *fixture)
{
    spawn(fixture, "--adopt");
}

void fixture_await(struct fixture *fixture, const char *word)
{
    char expected[96], name[SPOOL_NAME_SIZE];
    spool_name(&fixture->id, name);
    (void)snprintf(expected, sizeof(expected), "%s %s", name, word);
    for (;;) {
        struct pollfd source = { fixture->hints_fd, POLLIN, 0 };
        char text[96] = "";
        assert_int_equal(poll(&source, 1, DEADLINE_MS), 1);
        ssize_t n = recv(fixture->hints_fd, text, sizeof(text) - 1, 0);
        assert_true(n > 0);
        if (strcmp(text, expected) == 0)
            return;
    }
}

static char *read_output(const struct fixture *fixture)
{
    _cleanup_buffer_ struct buffer bytes = { 0 };
    (void)file_read(AT_FDCWD, fixture->log, 1U << 20, &bytes);
    return bytes.length > 0 ? buffer_take(&bytes) : xstrdup("");
}

void fixture_await_output(struct fixture *fixture, const char *text)
{
    int64_t deadline = clock_boot_ms() + DEADLINE_MS;
    _cleanup_close_ int fd = inotify_init1(IN_CLOEXEC);
    assert_true(inotify_add_watch(fd, fixture->home, IN_MODIFY) >= 0);
    for (;;) {
        _cleanup_free_ char *output = read_output(fixture);
        if (strstr(output, text) != NULL)
            break;
        struct pollfd source = { fd, POLLIN, 0 };
        char events[4096];
        assert_true(clock_boot_ms() < deadline);
        assert_int_equal(poll(&source, 1, DEADLINE_MS), 1);
        assert_true(read(fd, events, sizeof(events)) > 0);
    }
}

void fixture_finish(struct fixture *fixture)
{
    fixture_await(fixture, "exit");
    fixture_read_exit(fixture);
}

void fixture_read_exit(struct fixture *fixture)
{
    struct error err = { 0 };
    int fd = open(fixture->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    record_clear(&launch_exit_record, &fixture->exit);
    if (file_read_record(fd, SPOOL_EXIT, &launch_exit_record, &fixture->exit, &err) < 0)
        fail_msg("%s", err.message);
    (void)close(fd);
    free(fixture->output);
    fixture->output = read_output(fixture);
}

void fixture_run(struct fixture *fixture)
{
    fixture_start(fixture);
    fixture_finish(fixture);
}

void fixture_assert_end(const struct fixture *fixture, enum job_end end, int exit_code)
{
    if (fixture->exit.end != end || fixture->exit.exit_code != exit_code)
        fail_msg("ended by %s with %d: %s\n%s", job_end_name(fixture->exit.end), fixture->exit.exit_code,
            fixture->exit.text != NULL ? fixture->exit.text : "", fixture->output);
}

static void command_shepherd(const struct fixture *fixture, const struct spool_command *command)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%.90s/" SPOOL_CTL, fixture->dir);
    _cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int64_t deadline = clock_boot_ms() + DEADLINE_MS;
    while (sendto(fd, command, sizeof(*command), 0, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        assert_true(clock_boot_ms() < deadline);
        (void)poll(NULL, 0, 1);
    }
}

void fixture_stop(struct fixture *fixture, int signal, int64_t grace_ms)
{
    command_shepherd(
        fixture, &(struct spool_command){
                     .magic = SPOOL_COMMAND_MAGIC, .signal = (uint32_t)signal, .grace_ms = grace_ms });
}

void fixture_checkpoint(struct fixture *fixture, int64_t grace_ms)
{
    command_shepherd(
        fixture, &(struct spool_command){ .magic = SPOOL_CHECKPOINT_MAGIC, .grace_ms = grace_ms });
}

void fixture_touch(const struct fixture *fixture, const char *name)
{
    _cleanup_free_ char *path = xasprintf("%s/%s", fixture->home, name);
    _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
}

int fixture_wait(struct fixture *fixture)
{
    int status;
    assert_int_equal(waitpid(fixture->shepherd, &status, 0), fixture->shepherd);
    fixture->shepherd = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int fixture_reap(struct fixture *fixture)
{
    char spool[96];
    (void)snprintf(spool, sizeof(spool), "%s/spool", fixture->run_dir);
    _cleanup_close_ int fd = open(spool, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_close_ int notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(spool_remove_and_notify(fd, strrchr(fixture->dir, '/') + 1, notify_fd), 0);
    return fixture_wait(fixture);
}

void fixture_kill_shepherd(struct fixture *fixture)
{
    assert_int_equal(kill(fixture->shepherd, SIGKILL), 0);
    assert_int_equal(waitpid(fixture->shepherd, NULL, 0), fixture->shepherd);
    fixture->shepherd = 0;
}

/* Other tests, and other checkouts, run the same sleepers at the same time: ours have the fixture's directory
 * as their own. */
static bool is_in(const char *pid, const char *directory)
{
    char path[300], target[PATH_MAX];
    (void)snprintf(path, sizeof(path), "/proc/%s/cwd", pid);
    ssize_t n = readlink(path, target, sizeof(target) - 1);
    target[n > 0 ? n : 0] = '\0';
    return strcmp(target, directory) == 0;
}

int fixture_count_sleepers(const struct fixture *fixture, const char *seconds)
{
    int count = 0;
    DIR *proc = opendir("/proc");
    for (struct dirent *entry; (entry = readdir(proc)) != NULL;) {
        char path[300], text[64] = "";
        (void)snprintf(path, sizeof(path), "/proc/%s/cmdline", entry->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            continue;
        ssize_t n = read(fd, text, sizeof(text) - 1);
        (void)close(fd);
        if (n > 6 && strcmp(text, "sleep") == 0 && strcmp(text + 6, seconds) == 0 &&
            is_in(entry->d_name, fixture->home))
            count++;
    }
    (void)closedir(proc);
    return count;
}
