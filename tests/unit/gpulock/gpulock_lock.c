/* SPDX-License-Identifier: MIT */
/* Lock and unlock of a made-up machine: its nodes are those of /dev/null under other names. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "gpulock/lock.h"
#include "gpulock/state.h"
#include "unit_test.h"

#define KILLED    9
#define STEPS_MAX 100
#define ADMINS    4711
#define USER      4712
#define CONF      "etc/modprobe.d/mgpu-gpu-lock.conf"
#define RULES     "etc/udev/rules.d/72-mgpu-gpu-lock.rules"

static int steps_left = -1; // until this process is killed; -1: never

static void step(void)
{
    if (steps_left == 0)
        _exit(KILLED);
    steps_left -= steps_left > 0;
}

int __real_gpu_node_write(const char *path, const struct gpu_node_access *access);
int __wrap_gpu_node_write(const char *path, const struct gpu_node_access *access);
int __wrap_gpu_node_write(const char *path, const struct gpu_node_access *access)
{
    step();
    return __real_gpu_node_write(path, access);
}

int __real_file_write(int dirfd, const char *name, const void *bytes, size_t length, bool durable);
int __wrap_file_write(int dirfd, const char *name, const void *bytes, size_t length, bool durable);
int __wrap_file_write(int dirfd, const char *name, const void *bytes, size_t length, bool durable)
{
    step();
    return __real_file_write(dirfd, name, bytes, length, durable);
}

int __real_unlink(const char *path);
int __wrap_unlink(const char *path);
int __wrap_unlink(const char *path)
{
    step();
    return __real_unlink(path);
}

/* --- the machine --- */

struct machine {
    char top[64], state[96];
    struct gpu_lock_places places;
};

static char *path_of(const struct machine *machine, const char *name)
{
    return xasprintf("%s/%s", machine->top, name);
}

static void write_text(const struct machine *machine, const char *name, const char *text)
{
    _cleanup_free_ char *path = path_of(machine, name);
    _cleanup_free_ char *folder = xstrdup(path);
    *strrchr(folder, '/') = '\0';
    assert_int_equal(make_directories(folder, 0755), 0);
    assert_int_equal(__real_file_write(AT_FDCWD, path, text, strlen(text), false), 0);
}

static void make_node(const struct machine *machine, const char *name, uid_t uid, gid_t gid, mode_t mode)
{
    _cleanup_free_ char *path = path_of(machine, name);
    assert_int_equal(mknod(path, S_IFCHR | mode, makedev(1, 3)), 0);
    assert_int_equal(chown(path, uid, gid), 0);
    assert_int_equal(chmod(path, mode), 0);
}

/* NVIDIA's two GPUs, one of which a site has given to a group; AMD's one; and the console's graphics. */
static int setup(void **state)
{
    struct machine *machine = xcalloc(1, sizeof(*machine));
    (void)snprintf(machine->top, sizeof(machine->top), "/tmp/mgpu-gpulock.XXXXXX");
    assert_non_null(mkdtemp(machine->top));
    (void)snprintf(machine->state, sizeof(machine->state), "%s/var/lib/mgpu/gpu-lock", machine->top);
    machine->places = (struct gpu_lock_places){ .root = machine->top, .state = machine->state };
    write_text(machine, "sys/class/drm/renderD128/device/vendor", "0x1a03\n");
    write_text(machine, "sys/class/drm/renderD129/device/vendor", "0x1002\n");
    write_text(machine, "dev/dri/README", "");
    make_node(machine, "dev/nvidia0", 0, 0, 0666);
    make_node(machine, "dev/nvidia1", 0, USER, 0640);
    make_node(machine, "dev/nvidiactl", 0, 0, 0666);
    make_node(machine, "dev/nvidia-uvm", 0, 0, 0666);
    make_node(machine, "dev/nvidia-caps1", 0, 0, 0444);
    make_node(machine, "dev/kfd", 0, 44, 0660);
    make_node(machine, "dev/dri/renderD128", 0, 44, 0660);
    make_node(machine, "dev/dri/renderD129", 0, 44, 0660);
    make_node(machine, "dev/null", 0, 0, 0666);
    *state = machine;
    return 0;
}

static int teardown(void **state)
{
    struct machine *machine = *state;
    assert_int_equal(unit_test_remove(machine->top), 0);
    free(machine);
    return 0;
}

#define CASE(name, machine) TEST_ON(name, struct machine *machine, setup, teardown)

/* Every node as text, "nvidia0 0 0 666 0" with the bytes of its list. The caller frees it. */
static char *describe(const struct machine *machine)
{
    static const char *const all[] = { "nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-caps1", "kfd",
        "dri/renderD128", "dri/renderD129", "null" };
    struct buffer text = { 0 };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct gpu_node_access access;
        _cleanup_free_ char *path = xasprintf("%s/dev/%s", machine->top, all[i]);
        assert_int_equal(gpu_node_read(path, &access), 0);
        buffer_printf(
            &text, "%s %u %u %o %zu\n", all[i], access.uid, access.gid, access.mode, access.acl.length);
        gpu_node_access_clear(&access);
    }
    return buffer_take(&text);
}

static bool exists(const struct machine *machine, const char *name)
{
    _cleanup_free_ char *path = path_of(machine, name);
    return access(path, F_OK) == 0;
}

static int lock(const struct machine *machine, gid_t gid, struct error *err)
{
    _cleanup_(gpu_lock_result_clear) struct gpu_lock_result result;
    int r = gpu_lock_lock(&machine->places, gid, &result, err);
    return r;
}

static int unlock(const struct machine *machine, struct error *err)
{
    _cleanup_(gpu_lock_result_clear) struct gpu_lock_result result;
    int r = gpu_lock_unlock(&machine->places, &result, err);
    return r;
}

static const char locked_nodes[] = "nvidia0 0 4711 660 0\nnvidia1 0 4711 660 0\nnvidiactl 0 4711 660 0\n"
                                   "nvidia-uvm 0 0 666 0\nnvidia-caps1 0 0 444 0\nkfd 0 4711 660 0\n"
                                   "dri/renderD128 0 44 660 0\ndri/renderD129 0 4711 660 0\nnull 0 0 666 0\n";

static void assert_nodes(const struct machine *machine, const char *expected)
{
    _cleanup_free_ char *now = describe(machine);
    assert_string_equal(now, expected);
}

/* --- the tests --- */

CASE(nodes_of_gpus_are_locked_and_no_others, machine)
{
    struct error err = { 0 };
    _cleanup_buffer_ struct buffer conf = { 0 }, rules = { 0 };
    assert_int_equal(lock(machine, ADMINS, &err), 0);
    assert_nodes(machine, locked_nodes);
    _cleanup_free_ char *path = path_of(machine, CONF), *rules_path = path_of(machine, RULES);
    assert_int_equal(file_read(AT_FDCWD, path, 4096, &conf), 0);
    assert_non_null(strstr(buffer_text(&conf),
        "options nvidia NVreg_ModifyDeviceFiles=1 NVreg_DeviceFileUID=0 NVreg_DeviceFileGID=4711 "
        "NVreg_DeviceFileMode=0660\n"));
    assert_int_equal(file_read(AT_FDCWD, rules_path, 4096, &rules), 0);
    static const char *const matches[] = { "\nKERNEL==\"nvidia[0-9]*|nvidiactl|nvidia-modeset\", OWNER",
        "\nSUBSYSTEM==\"kfd\", KERNEL==\"kfd\", OWNER",
        "\nSUBSYSTEM==\"drm\", KERNEL==\"renderD*\", ATTRS{vendor}==\"0x10de|0x1002\", OWNER" };
    for (size_t i = 0; i < sizeof(matches) / sizeof(matches[0]); i++)
        assert_non_null(strstr(buffer_text(&rules), matches[i]));
    assert_non_null(strstr(buffer_text(&rules), "GROUP:=\"4711\""));
}

CASE(unlock_restores_what_was, machine)
{
    struct error err = { 0 };
    _cleanup_free_ char *before = describe(machine);
    assert_int_equal(lock(machine, ADMINS, &err), 0);
    assert_int_equal(lock(machine, 0, &err), 0); // once more, for another group
    assert_int_equal(unlock(machine, &err), 0);
    assert_nodes(machine, before);
    assert_false(exists(machine, CONF) || exists(machine, RULES) || exists(machine, "var/lib/mgpu/gpu-lock"));
    assert_int_equal(unlock(machine, &err), -ENOENT);
}

/* In a process of its own, which is killed before its step number `at`. True: it finished. */
static bool run_killed(const struct machine *machine, bool is_lock, int at)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        struct error err = { 0 };
        steps_left = at;
        _exit((is_lock ? lock(machine, ADMINS, &err) : unlock(machine, &err)) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == KILLED));
    return WEXITSTATUS(status) == 0;
}

CASE(a_lock_killed_at_any_step_is_completed_by_the_next, machine)
{
    struct error err = { 0 };
    int at = 0;
    _cleanup_free_ char *before = describe(machine);
    for (; at < STEPS_MAX && !run_killed(machine, true, at); at++) {
        assert_int_equal(lock(machine, ADMINS, &err), 0);
        assert_nodes(machine, locked_nodes);
        assert_int_equal(unlock(machine, &err), 0);
        assert_nodes(machine, before);
    }
    assert_in_range(at, 10, STEPS_MAX - 1);
}

CASE(a_lock_killed_at_any_step_can_be_undone, machine)
{
    struct error err = { 0 };
    _cleanup_free_ char *before = describe(machine);
    for (int at = 0; at < STEPS_MAX && !run_killed(machine, true, at); at++) {
        int r = unlock(machine, &err);
        assert_true(r == 0 || (r == -ENOENT && at == 0));
        assert_nodes(machine, before);
        assert_false(exists(machine, CONF) || exists(machine, RULES));
    }
}

CASE(an_unlock_killed_at_any_step_is_completed_by_the_next, machine)
{
    struct error err = { 0 };
    int at = 0;
    _cleanup_free_ char *before = describe(machine);
    assert_int_equal(lock(machine, ADMINS, &err), 0);
    for (; at < STEPS_MAX && !run_killed(machine, false, at); at++) {
        assert_int_equal(unlock(machine, &err), 0);
        assert_nodes(machine, before);
        assert_int_equal(lock(machine, ADMINS, &err), 0);
    }
    assert_in_range(at, 5, STEPS_MAX - 1);
}

CASE(a_node_that_came_later_is_unlocked_like_its_kind, machine)
{
    struct error err = { 0 };
    _cleanup_(gpu_node_access_clear) struct gpu_node_access access;
    assert_int_equal(lock(machine, ADMINS, &err), 0);
    make_node(machine, "dev/nvidia7", 0, ADMINS, 0660); // by the driver, as its options say
    assert_int_equal(lock(machine, ADMINS, &err), 0);
    assert_int_equal(unlock(machine, &err), 0);
    _cleanup_free_ char *path = path_of(machine, "dev/nvidia7");
    assert_int_equal(gpu_node_read(path, &access), 0);
    assert_int_equal(access.mode, 0666);
}

CASE(what_was_opened_while_locked_is_not_what_was_before, machine)
{
    struct error err = { 0 };
    _cleanup_free_ char *before = describe(machine), *path = path_of(machine, "dev/nvidia1");
    assert_int_equal(lock(machine, ADMINS, &err), 0);
    assert_int_equal(chown(path, 0, 0), 0); // by somebody, or a program of the driver
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(lock(machine, ADMINS, &err), 0);
    assert_nodes(machine, locked_nodes);
    assert_int_equal(unlock(machine, &err), 0);
    assert_nodes(machine, before);
}

CASE(users_of_running_jobs_keep_their_access_when_it_is_locked_again, machine)
{
    struct error err = { 0 };
    struct gpu_node_access listed, now;
    static const uid_t users[] = { USER, 12, USER };
    _cleanup_free_ char *path = path_of(machine, "dev/nvidia0");
    assert_int_equal(lock(machine, ADMINS, &err), 0);
    gpu_node_access_lock(ADMINS, users, 3, &listed);
    assert_int_equal(__real_gpu_node_write(path, &listed), 0);
    assert_int_equal(lock(machine, ADMINS, &err), 0);
    assert_int_equal(gpu_node_read(path, &now), 0);
    assert_int_equal(now.mode, 0660); // the mode that the driver's programs compare
    assert_int_equal(now.acl.length, 4 + 6 * 8);
    gpu_node_access_clear(&now);
    gpu_node_access_clear(&listed);
}

/* As this user, until the pipe is closed. Returns whether each open succeeded. */
static bool can_always_open(const char *path, int until)
{
    bool is_open = setgid(USER) == 0 && setuid(USER) == 0;
    char byte;
    do {
        _cleanup_close_ int fd = open(path, O_RDWR | O_CLOEXEC);
        is_open = is_open && fd >= 0;
    } while (read(until, &byte, 1) < 0 && is_open);
    return is_open;
}

CASE(a_running_job_always_opens_a_node_that_is_opened_to_all_and_closed_again, machine)
{
    _cleanup_(gpu_node_access_clear) struct gpu_node_access listed;
    static const uid_t user = USER;
    int until[2], status = -1;
    _cleanup_free_ char *path = path_of(machine, "dev/nvidia0");
    assert_int_equal(chmod(machine->top, 0755), 0);
    gpu_node_access_lock(ADMINS, &user, 1, &listed);
    assert_int_equal(__real_gpu_node_write(path, &listed), 0);
    assert_int_equal(pipe2(until, O_CLOEXEC | O_NONBLOCK), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(until[1]);
        _exit(can_always_open(path, until[0]) ? 0 : 1);
    }
    for (int i = 0; i < 5000; i++) { // as nvidia-modprobe does it, and the agent
        assert_int_equal(chmod(path, 0666), 0);
        assert_int_equal(__real_gpu_node_write(path, &listed), 0);
    }
    (void)close(until[1]);
    (void)close(until[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

CASE(the_options_of_the_loaded_driver_are_compared, machine)
{
    assert_false(gpu_lock_is_pending(machine->top, 0, true)); // no such driver
    write_text(machine, "proc/driver/nvidia/params",
        "ResmanDebugLevel: 4294967295\nModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: "
        "0\nDeviceFileMode: "
        "438\n");
    assert_true(gpu_lock_is_pending(machine->top, 0, true));
    assert_false(gpu_lock_is_pending(machine->top, 0, false));
    write_text(machine, "proc/driver/nvidia/params",
        "ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 4711\nDeviceFileMode: 432\n");
    assert_false(gpu_lock_is_pending(machine->top, ADMINS, true));
    assert_true(gpu_lock_is_pending(machine->top, 0, true));
}

CASE(what_is_not_ours_is_left_alone, machine)
{
    struct error err = { 0 };
    _cleanup_free_ char *before = describe(machine);
    write_text(machine, RULES, "KERNEL==\"nvidia*\", MODE=\"0600\"\n");
    assert_int_equal(lock(machine, 0, &err), -EEXIST);
    assert_non_null(strstr(err.message, "72-mgpu-gpu-lock.rules exists"));
    assert_nodes(machine, before);
    _cleanup_free_ char *path = path_of(machine, RULES);
    assert_int_equal(__real_unlink(path), 0);
    write_text(
        machine, "var/lib/mgpu/gpu-lock", "mgpu-gpu-lock 1 held 0\nnode ../../etc/passwd 0 0 0666 -\n");
    assert_int_equal(unlock(machine, &err), -EBADMSG);
    assert_int_equal(lock(machine, 0, &err), -EBADMSG);
    assert_nodes(machine, before);
}

static void assert_damaged(const struct machine *machine, const char *bytes, size_t length)
{
    _cleanup_(gpu_lock_state_clear) struct gpu_lock_state found = { 0 };
    struct error err = { 0 };
    _cleanup_free_ char *path = path_of(machine, "a-state");
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(gpu_lock_state_read(path, &found, &err), -EBADMSG);
}

/* Nodes behind the hole, and lists of access that are cut off, would be forgotten for ever. */
CASE(a_state_with_a_hole_or_a_cut_line_is_damaged, machine)
{
    static const char hole[] = "mgpu-gpu-lock 1 held 0\nnode a 0 0 0666 -\n\0\0\0\0\nnode b 0 0 0666 -\n",
                      cut[] = "mgpu-gpu-lock 1 held 0\nnode a 0 0 0666 ";
    assert_damaged(machine, hole, sizeof(hole) - 1);
    assert_damaged(machine, cut, sizeof(cut) - 1);
}

CASE(without_gpus_nothing_is_locked, machine)
{
    struct error err = { 0 };
    _cleanup_free_ char *dev = path_of(machine, "dev");
    assert_int_equal(unit_test_remove(dev), 0);
    assert_int_equal(lock(machine, 0, &err), -ENODEV);
    assert_false(exists(machine, CONF) || exists(machine, "var/lib/mgpu/gpu-lock"));
}

CASE(a_link_in_the_place_of_a_node_is_not_followed, machine)
{
    struct error err = { 0 };
    _cleanup_free_ char *path = path_of(machine, "dev/nvidia0");
    assert_int_equal(__real_unlink(path), 0);
    assert_int_equal(symlink("null", path), 0);
    assert_true(lock(machine, 0, &err) < 0);
}

int main(void)
{
    if (geteuid() != 0)
        return 77; // nodes are root's
    return unit_tests_run(NULL, NULL);
}
