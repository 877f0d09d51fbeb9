/* SPDX-License-Identifier: MIT */
#include "cli/api/leaving.h"

#include <signal.h>
#include <string.h>

/* Beginnings of rows; the columns: Ctrl-C, again, SIGTERM, SIGHUP, no reader, SIGKILL, connection cut. */
#define BY_CTRL_C    LEAVE_ENDS, LEAVE_ENDS
#define BY_REQUEST   BY_CTRL_C, LEAVE_ENDS
#define BY_SIGNALS   BY_REQUEST, LEAVE_ENDS
#define BY_ALL       BY_SIGNALS, LEAVE_ENDS
#define BY_ITS_END   BY_SIGNALS, LEAVE_NOTHING, LEAVE_ENDS, LEAVE_ENDS
#define AS_A_COMMAND LEAVE_INTERRUPTS, LEAVE_ENDS, LEAVE_ENDS, LEAVE_ENDS, LEAVE_ENDS
#define AS_SLURM     LEAVE_SHOWS, LEAVE_ENDS, LEAVE_ENDS, LEAVE_ENDS, LEAVE_ENDS
#define BY_KEYS      LEAVE_KEY, LEAVE_KEY

#define PROCESS_ENDS  LEAVE_ENDS_PROCESS, LEAVE_ENDS_PROCESS, LEAVE_ENDS_PROCESS
#define TO_PROCESS    LEAVE_SIGNALS_PROCESS, LEAVE_SIGNALS_PROCESS, LEAVE_SIGNALS_PROCESS, PROCESS_ENDS
#define TO_A_TERMINAL BY_KEYS, LEAVE_ENDS_PROCESS, PROCESS_ENDS
#define TO_TASKS                                                                                             \
    LEAVE_SHOWS, LEAVE_ENDS_PROCESS, LEAVE_SIGNALS_PROCESS, LEAVE_SIGNALS_PROCESS, LEAVE_NOTHING,            \
        LEAVE_ENDS_PROCESS
#define TO_COMMAND LEAVE_SIGNALS_COMMAND, LEAVE_SIGNALS_COMMAND, LEAVE_SIGNALS_COMMAND

static const struct leaving leavings[LEAVERS] = {
    [LEAVER_RUN] = { "mgpu run", "without a terminal", { BY_SIGNALS }, { AS_A_COMMAND } },
    [LEAVER_RUN_DETACH] = { "mgpu run", "--ctrl-c detach, without a terminal", { 0 }, { 0 } },
    [LEAVER_RUN_CANCEL] = { "mgpu run", "--ctrl-c cancel, without a terminal", { BY_SIGNALS }, { BY_ALL } },
    [LEAVER_RUN_TERMINAL] = { "mgpu run", "on a terminal, or -i", { BY_CTRL_C }, { BY_KEYS } },
    [LEAVER_RUN_TERMINAL_DETACH] = { "mgpu run", "--ctrl-c detach, on a terminal", { 0 }, { BY_KEYS } },
    [LEAVER_SHELL] = { "mgpu shell", NULL, { BY_CTRL_C }, { BY_KEYS } },
    [LEAVER_SUBMIT] = { "mgpu submit", NULL, { 0 }, { 0 } },
    [LEAVER_ATTACH] = { "mgpu attach", "to a job without a terminal", { 0 }, { 0 } },
    [LEAVER_ATTACH_TERMINAL] = { "mgpu attach", "to a terminal", { 0 }, { BY_KEYS } },
    [LEAVER_ATTACH_READ_ONLY] = { "mgpu attach", "-r", { 0 }, { 0 } },
    [LEAVER_LOGS] = { "mgpu logs", "-f", { 0 }, { 0 } },
    [LEAVER_FOLLOW] = { "mgpu follow", NULL, { 0 }, { 0 } },
    [LEAVER_WAIT] = { "mgpu wait", NULL, { 0 }, { 0 } },
    [LEAVER_EXEC] = { "mgpu exec", "without a terminal", { 0 }, { TO_PROCESS } },
    [LEAVER_EXEC_TERMINAL] = { "mgpu exec", "on a terminal", { 0 }, { TO_A_TERMINAL } },
    [LEAVER_SSH_PROXY] = { "mgpu ssh-proxy", NULL, { 0 }, { TO_PROCESS } },
    [LEAVER_FORWARD] = { "mgpu forward", NULL, { 0 }, { 0 } },
    [LEAVER_NOTEBOOK] = { "mgpu notebook", NULL, { BY_REQUEST }, { BY_REQUEST } },
    [LEAVER_NOTEBOOK_KEPT] = { "mgpu notebook", "--keep or --connect", { 0 }, { 0 } },
    [LEAVER_PS] = { "mgpu ps", "-w", { 0 }, { 0 } },
    [LEAVER_GPUS] = { "mgpu gpus", "-w", { 0 }, { 0 } },
    [LEAVER_NODES] = { "mgpu nodes", "-w", { 0 }, { 0 } },
    [LEAVER_TOP] = { "mgpu top", NULL, { 0 }, { 0 } },
    [LEAVER_WEB] = { "mgpu web", NULL, { 0 }, { 0 } },
    [LEAVER_MCP] = { "mgpu mcp", NULL, { 0 }, { 0 } },
    [LEAVER_SRUN] = { "srun", "as a job", { BY_SIGNALS }, { AS_SLURM } },
    [LEAVER_SRUN_QUICK] = { "srun", "as a job, -X", { BY_SIGNALS }, { BY_ALL } },
    [LEAVER_SRUN_TERMINAL] = { "srun", "as a job, --pty", { BY_SIGNALS }, { BY_KEYS } },
    [LEAVER_STEP] = { "srun", "as a step", { 0 }, { TO_TASKS } },
    [LEAVER_SALLOC] = { "salloc", NULL, { BY_SIGNALS }, { TO_COMMAND, LEAVE_ENDS, LEAVE_SIGNALS_COMMAND } },
    [LEAVER_SBATCH] = { "sbatch", "--wait", { 0 }, { 0 } },
    [LEAVER_SATTACH] = { "sattach", NULL, { 0 }, { 0 } },
    [LEAVER_MGPU_SRUN] = { "mgpu_srun", NULL, { 0 }, { 0 } },
    [LEAVER_MGPU_SRUN_INTERACTIVE] = { "mgpu_srun", "--interactive", { 0 }, { 0 } },
    [LEAVER_MGPU_QUEUE] = { "mgpu_queue", NULL, { 0 }, { 0 } },
    [LEAVER_SIMPLE_SUBMIT] = { "mgpu_simple_client submit", NULL, { 0 }, { 0 } },
    [LEAVER_SIMPLE_INTERACTIVE] = { "mgpu_simple_client submit", "--interactive", { BY_CTRL_C },
        { LEAVE_INTERRUPTS, LEAVE_ENDS } },
    [LEAVER_SIMPLE_MONITOR] = { "mgpu_simple_client monitor", NULL, { 0 }, { 0 } },
    [LEAVER_TGPU] = { "tgpu", "submit", { 0 }, { 0 } },
    [LEAVER_ACQUIRER] = { "srun", "of mgpu-compat", { BY_ITS_END },
        { TO_COMMAND, LEAVE_SIGNALS_COMMAND, LEAVE_SIGNALS_COMMAND, LEAVE_ENDS } },
    [LEAVER_SCHEDULER] = { "scheduler start", NULL, { 0 }, { 0 } },
    [LEAVER_TUI] = { "tui", NULL, { 0 }, { 0 } },
};

const struct leaving *leaving_of(enum leaver leaver)
{
    return &leavings[leaver];
}

enum leave_way leaving_way(int signal)
{
    static const struct {
        int signal;
        enum leave_way way;
    } ways[] = {
        { SIGINT, LEAVE_INTERRUPT },
        { SIGQUIT, LEAVE_INTERRUPT },
        { SIGTERM, LEAVE_TERMINATE },
        { SIGHUP, LEAVE_HANG_UP },
        { SIGPIPE, LEAVE_UNREAD },
        { SIGKILL, LEAVE_KILL },
    };
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        if (ways[i].signal == signal)
            return ways[i].way;
    return LEAVE_WAYS;
}

enum leave_effect leaving_effect(enum leaver leaver, bool is_waiting, int signal)
{
    const struct leaving *leaving = &leavings[leaver];
    enum leave_way way = leaving_way(signal);
    if (way == LEAVE_WAYS)
        return LEAVE_NOTHING;
    return is_waiting ? leaving->waiting[way] : leaving->running[way];
}

const char *leaving_way_word(enum leave_way way)
{
    static const char *const words[LEAVE_WAYS] = {
        [LEAVE_INTERRUPT] = "Ctrl-C",
        [LEAVE_INTERRUPT_AGAIN] = "again",
        [LEAVE_TERMINATE] = "SIGTERM",
        [LEAVE_HANG_UP] = "SIGHUP",
        [LEAVE_UNREAD] = "no reader",
        [LEAVE_KILL] = "SIGKILL",
        [LEAVE_CUT] = "cut",
    };
    return words[way];
}

const char *leaving_word(enum leave_effect effect)
{
    static const char *const words[LEAVE_EFFECTS] = {
        [LEAVE_NOTHING] = "nothing",
        [LEAVE_ENDS] = "ends",
        [LEAVE_INTERRUPTS] = "SIGINT",
        [LEAVE_SHOWS] = "is shown",
        [LEAVE_KEY] = "a key",
        [LEAVE_SIGNALS_PROCESS] = "to its process",
        [LEAVE_ENDS_PROCESS] = "its process ends",
        [LEAVE_SIGNALS_COMMAND] = "to the command",
    };
    return words[effect];
}

static void print_line(
    const struct leaving *leaving, const char *state, const enum leave_effect *effects, struct buffer *out)
{
    buffer_printf(
        out, "| `%s` | %s | %s |", leaving->program, leaving->when != NULL ? leaving->when : "", state);
    for (size_t way = 0; way < LEAVE_WAYS; way++)
        buffer_printf(out, " %s |", leaving_word(effects[way]));
    buffer_append_text(out, "\n");
}

void leaving_print_row(const struct leaving *leaving, struct buffer *out)
{
    if (memcmp(leaving->waiting, leaving->running, sizeof(leaving->waiting)) == 0) {
        print_line(leaving, "waits or runs", leaving->waiting, out);
        return;
    }
    print_line(leaving, "waits", leaving->waiting, out);
    print_line(leaving, "runs", leaving->running, out);
}
