/* SPDX-License-Identifier: MIT */
/*
 * The library is optional, so it must not do harm if it hangs or crashes: all its calls are made by a
 * separate process, mgpu-rocm (gpu/rocm_reader.c), which writes values to a pipe once a second. The last
 * values are used while they are fresh. If the process is silent, its values are omitted until it continues.
 * A process that has ended is not restarted.
 */
#include "agent/gpu/rocm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/gpu/rocm_reader.h"
#include "agent/host/child.h"
#include "agent/host/helper_rights.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/process.h"

#define FIRST_MS  2000                    // time for the library to start
#define SILENT_MS (ROCM_PERIOD_MS + 2000) // after this time a silent library counts as hanging
#define END_MS    1000                    // a process that the kernel does not release is abandoned
#define FRESH_MS  5000                    // older values are not reported

struct rocm_gpu {
    uint32_t provided;         // values that sysfs has ever provided
    struct rocm_values values; // the last ones
    int64_t read_ms;           // boot clock; 0: never
};

struct rocm {
    int pidfd;
    pthread_mutex_t lock;   // of what follows
    int fd;                 // pipe with new values; -1: the process has ended
    int64_t last_values_ms; // boot clock: when the last values arrived
    bool is_read;           // all GPUs have been read once
    char why[ROCM_WHY_SIZE];
    size_t count;
    struct rocm_gpu gpus[NODE_GPUS_MAX];
};

static _Noreturn void run(pid_t parent, const char *library, const char *const *addresses, size_t count)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    helper_enter(HELPER_ROCM);
    if (getppid() == parent) // else the parent has ended already
        rocm_reader_run(CHILD_FD, library, addresses, count);
    _exit(EXIT_SUCCESS);
}

/* Called with the lock held. */
static void take_news(struct rocm *rocm, const struct rocm_news *news)
{
    rocm->last_values_ms = clock_boot_ms();
    if (news->position < rocm->count) {
        rocm->gpus[news->position].values = news->values;
        rocm->gpus[news->position].read_ms = rocm->last_values_ms;
    } else {
        rocm->is_read = true;
        (void)snprintf(rocm->why, sizeof(rocm->why), "%.*s", (int)sizeof(news->why) - 1, news->why);
    }
}

/* Takes all that is available; called with the lock held. */
static void take_all_news(struct rocm *rocm)
{
    struct rocm_news news;
    ssize_t n = 0;
    while (rocm->fd >= 0 && ((n = read(rocm->fd, &news, sizeof(news))) == (ssize_t)sizeof(news)))
        take_news(rocm, &news);
    if (rocm->fd < 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    if (rocm->why[0] == '\0')
        (void)snprintf(rocm->why, sizeof(rocm->why), "it crashed");
    (void)close(rocm->fd);
    rocm->fd = -1;
}

/* Waits for the first values, so that the first sample is complete. */
static void await_first(struct rocm *rocm)
{
    int64_t until_ms = clock_boot_ms() + FIRST_MS, left_ms = FIRST_MS;
    while (rocm->fd >= 0 && !rocm->is_read && left_ms > 0) {
        struct pollfd news = { .fd = rocm->fd, .events = POLLIN };
        if (poll(&news, 1, (int)left_ms) > 0)
            take_all_news(rocm);
        left_ms = until_ms - clock_boot_ms();
    }
}

struct rocm *rocm_start(const char *library, const char *const *addresses, size_t count)
{
    int pipe_fds[2], pidfd;
    pid_t self = getpid();
    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return NULL;
    pid_t pid = child_fork(pipe_fds[1], &pidfd);
    if (pid == 0)
        run(self, library, addresses, count);
    (void)close(pipe_fds[1]);
    if (pid < 0) {
        (void)close(pipe_fds[0]);
        return NULL;
    }
    struct rocm *rocm = xcalloc(1, sizeof(*rocm));
    rocm->pidfd = pidfd;
    rocm->fd = pipe_fds[0];
    rocm->count = count < NODE_GPUS_MAX ? count : NODE_GPUS_MAX;
    rocm->last_values_ms = clock_boot_ms();
    (void)fcntl(rocm->fd, F_SETFL, O_NONBLOCK);
    (void)pthread_mutex_init(&rocm->lock, NULL);
    await_first(rocm);
    return rocm;
}

static const struct {
    enum gpu_value bit;
    size_t from, to, size; // offsets in struct rocm_values and struct gpu_state
} fields[] = {
#define FIELD(bit, member)                                                                                   \
    {                                                                                                        \
        bit, offsetof(struct rocm_values, member), offsetof(struct gpu_state, member),                       \
            sizeof(((struct gpu_state *)NULL)->member)                                                       \
    }
    FIELD(GPU_ENERGY, energy_mj),
    FIELD(GPU_ECC, ecc_corrected),
    FIELD(GPU_ECC, ecc_uncorrected),
    FIELD(GPU_POWER_LIMIT, power_limit_mw),
    FIELD(GPU_SM_CLOCK, sm_clock_mhz),
    FIELD(GPU_MEMORY_CLOCK, memory_clock_mhz),
};

void rocm_fill(struct rocm *rocm, size_t i, struct gpu_state *gpu)
{
    if (rocm == NULL)
        return;
    (void)pthread_mutex_lock(&rocm->lock);
    take_all_news(rocm);
    struct rocm_gpu *from = &rocm->gpus[i];
    bool is_fresh = from->read_ms != 0 && clock_boot_ms() - from->read_ms <= FRESH_MS;
    from->provided |= gpu->valid;
    uint32_t taken = is_fresh ? from->values.valid & ~from->provided : 0;
    for (size_t k = 0; k < sizeof(fields) / sizeof(fields[0]); k++)
        if ((taken & (uint32_t)fields[k].bit) != 0)
            memcpy((char *)gpu + fields[k].to, (const char *)&from->values + fields[k].from, fields[k].size);
    gpu->valid |= taken;
    (void)pthread_mutex_unlock(&rocm->lock);
}

void rocm_remark(struct rocm *rocm, char *text, size_t size)
{
    *text = '\0';
    if (rocm == NULL)
        return;
    (void)pthread_mutex_lock(&rocm->lock);
    take_all_news(rocm);
    bool is_silent = clock_boot_ms() - rocm->last_values_ms >= SILENT_MS;
    const char *why = rocm->why[0] != '\0' ? rocm->why : is_silent ? "it does not respond" : NULL;
    if (why != NULL)
        (void)snprintf(text, size, "ROCm's library is not used: %s", why);
    (void)pthread_mutex_unlock(&rocm->lock);
}

void rocm_stop(struct rocm *rocm)
{
    if (rocm == NULL)
        return;
    siginfo_t end;
    struct pollfd ended = { .fd = rocm->pidfd, .events = POLLIN };
    (void)process_signal(rocm->pidfd, SIGKILL);
    if (poll(&ended, 1, END_MS) > 0)
        (void)waitid(P_PIDFD, (id_t)rocm->pidfd, &end, WEXITED);
    closep(&rocm->pidfd);
    closep(&rocm->fd);
    (void)pthread_mutex_destroy(&rocm->lock);
    free(rocm);
}
