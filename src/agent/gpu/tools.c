/* SPDX-License-Identifier: MIT */
#include "agent/gpu/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/host/child.h"
#include "agent/host/helper_rights.h"
#include "base/buffer.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/strings.h"
#include "wire/message.h"

#define OUTPUT_MAX 16384U
#define WHY_MAX    200U
#define GONE_MAX   8U // pids of programs that have ended

struct run {
    struct gpu_tools *tools;
    char *uuid;
    pid_t pid;
    struct child *child;
    struct event *timer;
    int output; // the reading end of the pipe
    int64_t timeout_ms;
    gpu_tool_fn *on_end; // NULL: it has been called
    void *arg;
    bool is_killed;
    struct run *next;
};

struct gpu_tools {
    struct event_base *base;
    char *program, *library;
    struct run *first;
    pid_t gone[GONE_MAX];
    size_t n_gone;
};

struct gpu_tools *gpu_tools_new(struct event_base *base, const char *program, const char *library)
{
    struct gpu_tools *tools = xcalloc(1, sizeof(*tools));
    tools->base = base;
    tools->program = xstrdup(program);
    tools->library = xstrdup(library);
    return tools;
}

static void run_free(struct run *run)
{
    struct run **at = &run->tools->first;
    while (*at != run)
        at = &(*at)->next;
    *at = run->next;
    child_free(run->child);
    event_free(run->timer);
    closep(&run->output);
    free(run->uuid);
    free(run);
}

void gpu_tools_free(struct gpu_tools *tools)
{
    if (tools == NULL)
        return;
    while (tools->first != NULL) {
        if (tools->first->child != NULL)
            (void)process_signal(child_pidfd(tools->first->child), SIGKILL);
        run_free(tools->first);
    }
    free(tools->program);
    free(tools->library);
    free(tools);
}

static void report_end(struct run *run, const char *output, const char *why)
{
    gpu_tool_fn *on_end = run->on_end;
    run->on_end = NULL;
    if (on_end != NULL)
        on_end(run->arg, run->uuid, output, why);
}

/* All its output fits in the pipe. */
static char *read_output(struct run *run)
{
    struct buffer text = { 0 };
    char chunk[4096];
    for (ssize_t n; text.length < OUTPUT_MAX && (n = read(run->output, chunk, sizeof(chunk))) > 0;)
        buffer_append(&text, chunk, (size_t)n);
    return buffer_take(&text);
}

/* The value of "error" in the last line that contains it; the caller frees it. */
static char *find_error(const char *output)
{
    static const char key[] = "\"error\":\"";
    const char *found = NULL;
    for (const char *at = output; (at = strstr(at, key)) != NULL; at++)
        found = at + strlen(key);
    if (found == NULL)
        return NULL;
    _cleanup_free_ char *text = xstrndup(found, strcspn(found, "\""));
    return text_escape_fit(text, WHY_MAX);
}

static void on_end(void *arg, int status)
{
    struct run *run = arg;
    run->child = NULL;
    run->tools->gone[run->tools->n_gone++ % GONE_MAX] = run->pid;
    _cleanup_free_ char *output = read_output(run);
    _cleanup_free_ char *error = find_error(output);
    bool is_good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    _cleanup_free_ char *why = is_good          ? NULL
                               : run->is_killed ? xstrdup("it was interrupted")
                               : error != NULL  ? xstrdup(error)
                               : WIFEXITED(status)
                                   ? xasprintf("mgpu-gpu-test ended with status %d", WEXITSTATUS(status))
                                   : xasprintf("mgpu-gpu-test was ended by signal %d", WTERMSIG(status));
    report_end(run, output, why);
    run_free(run);
}

static void on_late(evutil_socket_t fd, short what, void *arg)
{
    struct run *run = arg;
    _cleanup_free_ char *why =
        run->child == NULL ? xstrdup("mgpu-gpu-test could not be started, or still hangs in the driver")
                           : xasprintf("it did not finish within %lld s", (long long)run->timeout_ms / 1000);
    if (run->child != NULL)
        (void)process_signal(child_pidfd(run->child), SIGKILL);
    report_end(run, NULL, why);
    if (run->child == NULL)
        run_free(run);
}

/* In the child. */
static _Noreturn void execute(const struct gpu_tools *tools, const char *verb, const char *uuid)
{
    char *visible = xasprintf("CUDA_VISIBLE_DEVICES=%s", uuid), *name = xasprintf("mgpu-gpu-test");
    char *library = tools->library != NULL ? xasprintf("--cuda-library=%s", tools->library) : NULL;
    char *word = xstrdup(verb), path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
         order[] = "CUDA_DEVICE_ORDER=PCI_BUS_ID";
    char *argv[] = { name, word, library, NULL }, *environment[] = { visible, path, order, NULL };
    helper_enter(HELPER_GPU_TEST);
    (void)setsid();
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)dup2(CHILD_FD, STDOUT_FILENO);
    (void)execve(tools->program, argv, environment);
    _exit(127);
}

static int start(struct run *run, const char *verb)
{
    int ends[2], pidfd = -1;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    pid_t pid = child_fork(ends[1], &pidfd);
    if (pid == 0)
        execute(run->tools, verb, run->uuid);
    (void)close(ends[1]);
    run->output = ends[0];
    if (pid < 0)
        return (int)pid;
    run->pid = pid;
    run->child = child_watch(run->tools->base, pidfd, on_end, run);
    return 0;
}

/* True while a program is running on that GPU, even if its callback has been called. */
static bool is_in_use(const struct gpu_tools *tools, const char *uuid)
{
    for (const struct run *run = tools->first; run != NULL; run = run->next)
        if (run->child != NULL && strcmp(run->uuid, uuid) == 0)
            return true;
    return false;
}

void gpu_tools_run(struct gpu_tools *tools, const char *verb, const char *uuid, int64_t timeout_ms,
    gpu_tool_fn *on_tool_end, void *arg)
{
    struct run *run = xcalloc(1, sizeof(*run));
    bool is_busy = is_in_use(tools, uuid);
    *run = (struct run){ .tools = tools,
        .uuid = xstrdup(uuid),
        .output = -1,
        .timeout_ms = timeout_ms,
        .on_end = on_tool_end,
        .arg = arg,
        .next = tools->first };
    tools->first = run;
    run->timer = evtimer_new(tools->base, on_late, run);
    bool is_started = !is_busy && start(run, verb) == 0;
    int64_t after_ms = is_started ? timeout_ms : 0;
    struct timeval time = { after_ms / 1000, after_ms % 1000 * 1000 };
    (void)evtimer_add(run->timer, &time);
}

void gpu_tools_kill(struct gpu_tools *tools, const char *uuid)
{
    for (struct run *run = tools->first; run != NULL; run = run->next)
        if (run->child != NULL && strcmp(run->uuid, uuid) == 0) {
            run->is_killed = true;
            (void)process_signal(child_pidfd(run->child), SIGKILL);
        }
}

static bool is_ours(const struct gpu_tools *tools, pid_t pid)
{
    for (const struct run *run = tools->first; run != NULL; run = run->next)
        if (run->pid == pid)
            return true;
    for (size_t i = 0; i < GONE_MAX && i < tools->n_gone; i++)
        if (tools->gone[i] == pid && kill(pid, 0) < 0)
            return true;
    return false;
}

void gpu_tools_hide(struct gpu_tools *tools, struct record_list *gpus)
{
    struct gpu_state *states = gpus->items;
    for (size_t i = 0; i < gpus->count; i++) {
        struct gpu_process *processes = states[i].processes.items;
        size_t kept = 0;
        for (size_t k = 0; k < states[i].processes.count; k++) {
            if (is_ours(tools, (pid_t)processes[k].pid))
                record_clear(&gpu_process_record, &processes[k]);
            else
                processes[kept++] = processes[k];
        }
        states[i].processes.count = kept;
        if (kept == 0)
            free(take_ptr(states[i].processes.items));
    }
}
