/* SPDX-License-Identifier: MIT */
/*
 * The path of an open is in the memory of a process that may change it after it was read. That does no harm,
 * because the answer is always "continue": the path only decides whether the open waits. If it cannot be read
 * (the memory of a set-user-id program), the open waits, because a late open can succeed and an early one
 * cannot.
 *
 * Paths are resolved through /proc/PID/root, cwd and fd of the opening thread, so a path in a container means
 * the container's file.
 */
#include "base/node/open_gate.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/node/probe.h"

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH 0U // no gate
#endif

#define ASKED_FLAGS (O_ACCMODE | O_CREAT | O_PATH)
#define PLACE_SIZE  (PATH_MAX + 64U)
#define PROBE_S     10 // a probe that takes longer has hung

void open_gate_close(struct open_gate *gate)
{
    closep(&gate->listener_fd);
    free(gate->waiting);
    gate->waiting = NULL;
    gate->n_waiting = gate->n_room = 0;
}

/* --- the filter --- */

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define ARGUMENT(n)                                                                                          \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + (n) * sizeof(uint64_t))
#define EQUALS(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (yes), (no))
#define RETURN(value)          BPF_STMT(BPF_RET | BPF_K, (value))

#ifdef SYS_open
#define OLD_OPEN SYS_open
#else
#define OLD_OPEN UINT32_MAX // there is none
#endif

/* The lower half of an argument comes first: both machines are little-endian. */
static struct sock_filter program[] = {
    LOAD(arch),
    EQUALS(ARCH, 0, 10),
    LOAD(nr),
    EQUALS(SYS_openat2, 7, 0), // its flags are in memory
    EQUALS(SYS_openat, 1, 0),
    EQUALS(OLD_OPEN, 2, 6),
    ARGUMENT(2),
    BPF_STMT(BPF_JMP | BPF_JA, 1),
    ARGUMENT(1),
    BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ASKED_FLAGS),
    EQUALS(O_RDWR, 0, 1),
    RETURN(SECCOMP_RET_USER_NOTIF),
    RETURN(SECCOMP_RET_ALLOW),
};

/* The kernel writes as much as it has. */
struct question {
    struct seccomp_notif notif;
    uint8_t room[256];
};

static int check_sizes(void)
{
    struct seccomp_notif_sizes sizes;
    if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) < 0)
        return -errno;
    bool does_fit = sizes.seccomp_notif <= sizeof(struct question) &&
                    sizes.seccomp_notif_resp == sizeof(struct seccomp_notif_resp);
    return does_fit ? 0 : -EPROTO;
}

int open_gate_enter(struct open_gate *gate, open_gate_waits_fn *waits, const void *arg)
{
    const struct sock_fprog filter = {
        .len = sizeof(program) / sizeof(program[0]),
        .filter = program,
    };
    int r = ARCH == 0 ? -ENOSYS : check_sizes();
    if (r < 0)
        return r;
    int fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
    if (fd < 0)
        return -errno;
    *gate = (struct open_gate){ .listener_fd = fd, .waits = waits, .arg = arg };
    return 0;
}

/* --- what is asked --- */

/* Negative: it cannot be read. */
static int read_memory(pid_t pid, uint64_t address, char *to, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), first = page - address % page;
    first = first < size ? first : size;
    struct iovec local = { to, size };
    struct iovec remote[] = { { (void *)(uintptr_t)address, first }, // NOLINT(performance-no-int-to-ptr)
        { (void *)(uintptr_t)(address + first), size - first } };    // NOLINT(performance-no-int-to-ptr)
    ssize_t n = process_vm_readv(pid, &local, 1, remote, first < size ? 2 : 1, 0);
    return n < 0 ? -errno : (int)n;
}

/* Files that differ for each process: their names would resolve to those of this process. */
static const struct {
    const char *prefix, *place;
} own_places[] = {
    { "/proc/self/", "" },
    { "/proc/thread-self/", "" },
    { "/dev/fd/", "fd/" },
    { "/dev/stdin", "fd/0" },
    { "/dev/stdout", "fd/1" },
    { "/dev/stderr", "fd/2" },
};

/* The path as this process can open it; false: it is too long. */
static bool name_place(pid_t pid, int dirfd, const char *path, char ret[PLACE_SIZE])
{
    int n = -1;
    for (size_t i = 0; i < sizeof(own_places) / sizeof(own_places[0]); i++) {
        size_t length = strlen(own_places[i].prefix);
        if (strncmp(path, own_places[i].prefix, length) == 0) {
            n = snprintf(ret, PLACE_SIZE, "/proc/%d/%s%s", (int)pid, own_places[i].place, path + length);
            return n > 0 && n < (int)PLACE_SIZE;
        }
    }
    if (path[0] == '/')
        n = snprintf(ret, PLACE_SIZE, "/proc/%d/root%s", (int)pid, path);
    else if (dirfd == AT_FDCWD)
        n = snprintf(ret, PLACE_SIZE, "/proc/%d/cwd/%s", (int)pid, path);
    else
        n = snprintf(ret, PLACE_SIZE, "/proc/%d/fd/%d/%s", (int)pid, dirfd, path);
    return n > 0 && n < (int)PLACE_SIZE;
}

/* Cached attributes are enough: a file server that hangs must not delay other
 * processes. */
static bool is_waiting_device(const struct open_gate *gate, const char *place)
{
    struct statx found;
    if (statx(AT_FDCWD, place, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &found) < 0)
        return false; // the open reports the reason
    return S_ISCHR(found.stx_mode) && gate->waits(gate->arg, found.stx_rdev_major, found.stx_rdev_minor);
}

static bool must_wait(const struct open_gate *gate, const struct seccomp_notif *asked)
{
    char path[PATH_MAX + 1] = "", place[PLACE_SIZE];
    const __u64 *args = asked->data.args;
    bool has_directory = asked->data.nr != (int)OLD_OPEN;
    pid_t pid = (pid_t)asked->pid;
    if (asked->data.nr == SYS_openat2) {
        uint64_t flags = 0;
        int n = read_memory(pid, args[2], (char *)&flags, sizeof(flags));
        if (n != (int)sizeof(flags))
            return n == -EPERM;
        if ((flags & ASKED_FLAGS) != O_RDWR)
            return false;
    }
    int n = read_memory(pid, args[has_directory ? 1 : 0], path, PATH_MAX);
    if (n < 0)
        return n == -EPERM;
    if (path[0] == '\0' || !name_place(pid, has_directory ? (int)args[0] : AT_FDCWD, path, place))
        return false;
    return is_waiting_device(gate, place);
}

/* --- answers --- */

/* A process that was interrupted or has died needs no answer. */
static void resume_open(const struct open_gate *gate, uint64_t id)
{
    struct seccomp_notif_resp response = { .id = id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
    int r;
    do
        r = ioctl(gate->listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &response);
    while (r < 0 && errno == EINTR);
}

/* A process that was interrupted notifies again; one that has died does not. */
static void forget_gone(struct open_gate *gate)
{
    size_t left = 0;
    for (size_t i = 0; i < gate->n_waiting; i++)
        if (ioctl(gate->listener_fd, SECCOMP_IOCTL_NOTIF_ID_VALID, &gate->waiting[i]) == 0)
            gate->waiting[left++] = gate->waiting[i];
    gate->n_waiting = left;
}

/* Every thread of the job may wait. False: there is no memory; the open is answered immediately, and the
 * device filter decides. */
static bool make_room(struct open_gate *gate)
{
    if (gate->n_waiting < gate->n_room)
        return true;
    forget_gone(gate);
    if (gate->n_waiting < gate->n_room / 2)
        return true;
    size_t more = gate->n_room == 0 ? OPEN_GATE_WAITING_FIRST : 2 * gate->n_room;
    uint64_t *waiting =
        more <= OPEN_GATE_WAITING_MAX ? reallocarray(gate->waiting, more, sizeof(*waiting)) : NULL;
    if (waiting == NULL)
        return gate->n_waiting < gate->n_room;
    gate->waiting = waiting;
    gate->n_room = more;
    return true;
}

bool open_gate_answer(struct open_gate *gate)
{
    struct question question;
    memset(&question, 0, sizeof(question));
    const struct seccomp_notif *asked = &question.notif;
    if (ioctl(gate->listener_fd, SECCOMP_IOCTL_NOTIF_RECV, &question.notif) < 0)
        return false; // it has gone
    bool waits = !gate->is_open && must_wait(gate, asked);
    if (waits && make_room(gate))
        gate->waiting[gate->n_waiting++] = asked->id;
    else
        resume_open(gate, asked->id);
    return waits;
}

void open_gate_open(struct open_gate *gate)
{
    gate->is_open = true;
    for (size_t i = 0; i < gate->n_waiting; i++)
        resume_open(gate, gate->waiting[i]);
    gate->n_waiting = 0;
}

/* --- a try --- */

#define PROBED_MAJOR 1U // /dev/null
#define PROBED_MINOR 3U

/* `arg` records that the gate passed the right device. */
static bool is_probed(const void *arg, uint32_t major_number, uint32_t minor_number)
{
    bool *const *ret_is_seen = arg;
    **ret_is_seen = major_number == PROBED_MAJOR && minor_number == PROBED_MINOR;
    return **ret_is_seen;
}

static _Noreturn void open_null(void)
{
    (void)prctl(PR_SET_DUMPABLE, 1); // as after an exec
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    _exit(fd < 0 ? errno : 0);
}

/* In a child: becomes another user behind a gate, as a job does, and delays its own child. Returns a
 * positive errno, or 0. */
static int try_gate(uint32_t uid)
{
    struct open_gate gate;
    int status;
    bool is_seen = false, *const note = &is_seen;
    (void)alarm(PROBE_S); // the kernel never answers
    int r = open_gate_enter(&gate, is_probed, &note);
    if (r < 0)
        return -r;
    if (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
        return errno;
    pid_t pid = fork();
    if (pid < 0)
        return errno;
    if (pid == 0)
        open_null();
    (void)open_gate_answer(&gate);
    open_gate_open(&gate);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return errno;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
    return is_seen ? 0 : EACCES; // its memory cannot be read
}

int open_gate_probe(uint32_t uid, struct error *err)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(try_gate(uid));
    return probe_wait(pid, "cannot make an open wait with seccomp", err);
}
