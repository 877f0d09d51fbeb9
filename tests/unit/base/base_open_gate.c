/* SPDX-License-Identifier: MIT */
/* /dev/full stands for the device that waits. A process of the test enters the gate and has a child, which
 * opens things in some way; what the child is asked is answered in the process, as a job's init does. */

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/node/open_gate.h"
#include "unit_test.h"

#define FULL_MINOR 7U
#define ALARM_S    20
#define NOT_HERE   77 // the kernel has no such call

static bool is_full(const void *arg, uint32_t major_number, uint32_t minor_number)
{
    return major_number == 1 && minor_number == FULL_MINOR;
}

static int closed(int fd)
{
    if (fd < 0)
        return errno;
    (void)close(fd);
    return 0;
}

/* --- ways to open: 0 or a positive errno --- */

static int by_path(void)
{
    return closed(open("/dev/full", O_RDWR));
}

static int with_flags(void)
{
    return closed(open("/dev/full", O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

static int relative_to_cwd(void)
{
    return chdir("/dev") < 0 ? errno : closed(open("full", O_RDWR));
}

static int relative_to_a_directory(void)
{
    int fd = open("/dev", O_PATH | O_DIRECTORY);
    return fd < 0 ? errno : closed(openat(fd, "full", O_RDWR));
}

static int by_a_link(void)
{
    char path[] = "/tmp/mgpu-gate-XXXXXX";
    if (mkdtemp(path) == NULL || chdir(path) < 0 || symlink("/dev/full", "link") < 0)
        return errno;
    int r = closed(open("link", O_RDWR));
    (void)unlink("link");
    (void)rmdir(path);
    return r;
}

static int by_a_handle(void)
{
    char path[64];
    int fd = open("/dev/full", O_PATH);
    if (fd < 0)
        return errno;
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return closed(open(path, O_RDWR));
}

static int by_dev_fd(void)
{
    char path[64];
    int fd = open("/dev/full", O_PATH);
    if (fd < 0)
        return errno;
    (void)snprintf(path, sizeof(path), "/dev/fd/%d", fd);
    return closed(open(path, O_RDWR));
}

static int by_openat2(void)
{
    struct open_how how = { .flags = O_RDWR };
    int fd = (int)syscall(SYS_openat2, AT_FDCWD, "/dev/full", &how, sizeof(how));
    return fd < 0 && errno == ENOSYS ? NOT_HERE : closed(fd);
}

#ifdef SYS_open
static int by_the_old_call(void)
{
    return closed((int)syscall(SYS_open, "/dev/full", O_RDWR));
}
#endif

static int at_the_end_of_a_page(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || munmap(pages + page, page) < 0)
        return errno;
    char *path = pages + page - sizeof("/dev/full");
    memcpy(path, "/dev/full", sizeof("/dev/full"));
    return closed(open(path, O_RDWR));
}

static void *open_in_thread(void *arg)
{
    *(int *)arg = by_path();
    return NULL;
}

static int in_a_thread(void)
{
    pthread_t thread;
    int r = 0;
    if (pthread_create(&thread, NULL, open_in_thread, &r) != 0 || pthread_join(thread, NULL) != 0)
        return ECHILD;
    return r;
}

static int in_a_child(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(by_path());
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
}

#define OPENING "open" // the word by which this program opens the device itself

static int in_another_program(void)
{
    (void)execl("/proc/self/exe", "base_open_gate", OPENING, NULL);
    return errno;
}

/* Nobody may look into it. */
static int undumpable(void)
{
    (void)prctl(PR_SET_DUMPABLE, 0);
    return by_path();
}

static int to_read(void)
{
    return closed(open("/dev/full", O_RDONLY));
}

static int to_write(void)
{
    return closed(open("/dev/full", O_WRONLY));
}

static int as_a_handle_only(void)
{
    return closed(open("/dev/full", O_PATH | O_RDWR));
}

static int another_device(void)
{
    return closed(open("/dev/null", O_RDWR));
}

static int a_file_that_is_made(void)
{
    char path[] = "/tmp/mgpu-gate-XXXXXX";
    int r = closed(mkstemp(path));
    (void)unlink(path);
    return r;
}

static int what_is_missing(void)
{
    return open("/dev/no-such-device", O_RDWR) < 0 && errno == ENOENT ? 0 : EEXIST;
}

static int with_a_bad_address(void)
{
    return syscall(SYS_openat, AT_FDCWD, (char *)8, O_RDWR) < 0 && errno == EFAULT ? 0 : EEXIST;
}

static int with_no_name(void)
{
    return open("", O_RDWR) < 0 && errno == ENOENT ? 0 : EEXIST;
}

static int with_a_long_name(void)
{
    static char path[8192];
    memset(path, 'x', sizeof(path) - 1);
    return open(path, O_RDWR) < 0 && errno == ENAMETOOLONG ? 0 : EEXIST;
}

/* The ring's own thread of the kernel opens: no filter of seccomp sees it, and that of the cgroup does. */
static int by_a_ring(void)
{
    struct io_uring_params params = { 0 };
    int ring = (int)syscall(SYS_io_uring_setup, 2, &params);
    if (ring < 0)
        return errno == ENOSYS || errno == EPERM ? NOT_HERE : errno;
    char *sq = mmap(NULL, params.sq_off.array + params.sq_entries * sizeof(uint32_t), PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQ_RING);
    char *cq = mmap(NULL, params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe),
        PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_CQ_RING);
    struct io_uring_sqe *sqe = mmap(NULL, params.sq_entries * sizeof(*sqe), PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQES);
    if (sq == MAP_FAILED || cq == MAP_FAILED || sqe == MAP_FAILED)
        return ENOMEM;
    *sqe = (struct io_uring_sqe){
        .opcode = IORING_OP_OPENAT, .fd = AT_FDCWD, .addr = (uintptr_t) "/dev/full", .open_flags = O_RDWR
    };
    *(uint32_t *)(void *)(sq + params.sq_off.array) = 0;
    __atomic_store_n((uint32_t *)(void *)(sq + params.sq_off.tail), 1, __ATOMIC_RELEASE);
    if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
        return errno;
    const struct io_uring_cqe *cqe = (const struct io_uring_cqe *)(const void *)(cq + params.cq_off.cqes);
    return cqe->res < 0 ? -cqe->res : 0;
}

/* --- the test --- */

enum expected { WAITS, GOES_ON };

static const struct {
    const char *name;
    int (*open)(void);
    enum expected expected;
} ways[] = {
    { "by its path", by_path, WAITS },
    { "with other flags", with_flags, WAITS },
    { "relative to the working directory", relative_to_cwd, WAITS },
    { "relative to a directory", relative_to_a_directory, WAITS },
    { "by a link", by_a_link, WAITS },
    { "by a handle", by_a_handle, WAITS },
    { "by /dev/fd", by_dev_fd, WAITS },
    { "by openat2", by_openat2, WAITS },
#ifdef SYS_open
    { "by open", by_the_old_call, WAITS },
#endif
    { "by a name at the end of a page", at_the_end_of_a_page, WAITS },
    { "in a thread", in_a_thread, WAITS },
    { "in a child", in_a_child, WAITS },
    { "in another program", in_another_program, WAITS },
    { "by a process that nobody may look into", undumpable, WAITS },
    { "to read", to_read, GOES_ON },
    { "to write", to_write, GOES_ON },
    { "as a handle", as_a_handle_only, GOES_ON },
    { "another device", another_device, GOES_ON },
    { "a file that is made", a_file_that_is_made, GOES_ON },
    { "what is missing", what_is_missing, GOES_ON },
    { "by a bad address", with_a_bad_address, GOES_ON },
    { "by no name", with_no_name, GOES_ON },
    { "by a long name", with_a_long_name, GOES_ON },
    { "by io_uring", by_a_ring, GOES_ON },
};

/* Exit statuses of the process that answers. */
enum { AS_EXPECTED, NOT_AS_EXPECTED, NO_GATE, FAILED, MISSING = NOT_HERE };

static _Noreturn void answer(size_t way)
{
    static struct open_gate gate;
    int status = 0, n_waited = 0;
    (void)alarm(ALARM_S);
    if (open_gate_enter(&gate, is_full, NULL) < 0)
        _exit(NO_GATE);
    if (geteuid() == 0 && (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0))
        _exit(FAILED);
    int ends[2];
    if (pipe(ends) < 0)
        _exit(FAILED);
    pid_t pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_DUMPABLE, 1); // as after an exec
        _exit(ways[way].open());
    }
    (void)close(ends[1]); // the child holds it until it ends
    struct pollfd sources[] = { { gate.listener_fd, POLLIN, 0 }, { ends[0], POLLIN, 0 } };
    while (sources[1].revents == 0) {
        if (poll(sources, 2, -1) < 0)
            _exit(FAILED);
        if ((sources[0].revents & POLLIN) != 0 && open_gate_answer(&gate)) {
            n_waited++;
            if (waitpid(pid, &status, WNOHANG) != 0)
                _exit(NOT_AS_EXPECTED); // it did not wait
            open_gate_open(&gate);
        }
    }
    if (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
        _exit(FAILED);
    if (WEXITSTATUS(status) == NOT_HERE)
        _exit(MISSING);
    bool is_right = WEXITSTATUS(status) == 0 && (n_waited == 1) == (ways[way].expected == WAITS);
    _exit(is_right ? AS_EXPECTED : NOT_AS_EXPECTED);
}

static int try_way(size_t way)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        answer(way);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : FAILED;
}

TEST(a_device_waits_however_it_is_opened_and_nothing_else_does)
{
    int n_wrong = 0;
    for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++) {
        int status = try_way(way);
        if (status == NO_GATE)
            skip();
        if (status == AS_EXPECTED || status == MISSING)
            continue;
        print_error("%s: status %d\n", ways[way].name, status);
        n_wrong++;
    }
    assert_int_equal(n_wrong, 0);
}

/* Ends a process of the test that was waiting at a gate. */
static void expect_end(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_GATE)
        skip();
    assert_int_equal(WEXITSTATUS(status), AS_EXPECTED);
}

#define CROWD (OPEN_GATE_WAITING_FIRST + 100U)

/* The number of threads whose open did not succeed. */
static int open_in_many_threads(void)
{
    static pthread_t threads[CROWD];
    static int results[CROWD];
    pthread_attr_t small;
    int n_wrong = 0;
    (void)pthread_attr_init(&small);
    (void)pthread_attr_setstacksize(&small, 65536);
    for (size_t i = 0; i < CROWD; i++)
        if (pthread_create(&threads[i], &small, open_in_thread, &results[i]) != 0)
            return NOT_HERE;
    for (size_t i = 0; i < CROWD; i++)
        n_wrong += pthread_join(threads[i], NULL) != 0 || results[i] != 0;
    return n_wrong > 0;
}

static _Noreturn void hold_a_crowd(void)
{
    static struct open_gate gate;
    int status;
    (void)alarm(ALARM_S);
    if (open_gate_enter(&gate, is_full, NULL) < 0)
        _exit(NO_GATE);
    pid_t pid = fork();
    if (pid == 0)
        _exit(open_in_many_threads());
    while (gate.n_waiting < CROWD && waitpid(pid, &status, WNOHANG) == 0) {
        struct pollfd source = { gate.listener_fd, POLLIN, 0 };
        if (poll(&source, 1, 100) == 1)
            (void)open_gate_answer(&gate);
    }
    size_t n_held = gate.n_waiting;
    open_gate_open(&gate);
    bool is_over = waitpid(pid, &status, 0) == pid && status == 0;
    open_gate_close(&gate);
    _exit(n_held == CROWD && is_over ? AS_EXPECTED : NOT_AS_EXPECTED);
}

TEST(as_many_wait_as_there_are_threads)
{
    pid_t pid = fork();
    if (pid == 0)
        hold_a_crowd();
    expect_end(pid);
}

static _Noreturn void crowd(void)
{
    static struct open_gate gate;
    (void)alarm(ALARM_S);
    if (open_gate_enter(&gate, is_full, NULL) < 0)
        _exit(NO_GATE);
    gate.waiting = calloc(OPEN_GATE_WAITING_FIRST, sizeof(*gate.waiting));
    gate.n_waiting = gate.n_room = OPEN_GATE_WAITING_FIRST; // all of them have gone
    pid_t pid = fork();
    if (pid == 0)
        _exit(by_path());
    bool does_wait = open_gate_answer(&gate);
    bool is_alone = gate.n_waiting == 1 && gate.n_room == OPEN_GATE_WAITING_FIRST;
    open_gate_open(&gate);
    int status;
    bool is_over = waitpid(pid, &status, 0) == pid && status == 0;
    _exit(does_wait && is_alone && is_over ? AS_EXPECTED : NOT_AS_EXPECTED);
}

TEST(those_that_have_gone_make_room_for_others)
{
    pid_t pid = fork();
    if (pid == 0)
        crowd();
    expect_end(pid);
}

static _Noreturn void interrupt(void)
{
    static struct open_gate gate;
    (void)alarm(ALARM_S);
    if (open_gate_enter(&gate, is_full, NULL) < 0)
        _exit(NO_GATE);
    pid_t pid = fork();
    if (pid == 0)
        _exit(by_path());
    bool does_wait = open_gate_answer(&gate);
    int status;
    (void)kill(pid, SIGTERM);
    bool is_over = waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
    open_gate_open(&gate); // for one that has gone
    _exit(does_wait && is_over ? AS_EXPECTED : NOT_AS_EXPECTED);
}

TEST(one_that_waits_can_be_ended)
{
    pid_t pid = fork();
    if (pid == 0)
        interrupt();
    expect_end(pid);
}

TEST(the_probe_says_whether_it_works_here)
{
    struct error err = { 0 };
    int status = try_way(0), r = open_gate_probe(65534, &err);
    if (status == NO_GATE) {
        assert_true(r < 0);
        assert_non_null(strstr(err.message, "seccomp"));
    } else {
        assert_int_equal(r, 0);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], OPENING) == 0)
        return by_path();
    return unit_tests_run(NULL, NULL);
}
