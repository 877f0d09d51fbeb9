/* SPDX-License-Identifier: MIT */
/*
 * A signal that ends or warns a job is meant for the programs that react to it. A program that does not
 * handle it would only die, and its death may take away something a handler still needs: the pipe that it
 * reads, the terminal whose session it leads, or an exit status that a process waits for. Everything is read
 * from /proc/PID/stat, which shows the signals up to 31, and from the links in /proc/PID/fd, which access no
 * file system.
 */
#include "shepherd/processes/roles.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

#define MEMBERS_MAX 16384U
#define WRITERS_MAX 64U // pipes into which handlers write
#define PIPE_TEXT   32  // "pipe:[12345678]"
#define DEPTH_MAX   MEMBERS_MAX

#define SIGNAL_BIT(signal) (1U << ((signal)-1))

/*
 * Programs that start others and handle the signal in a way that harms them: they kill their children before
 * the grace period ends, close their terminals, or pass on a signal that the children have already received
 * while these handle it. They count as not handling the signal. Processes that the children communicate with
 * until they end, or that end with them, are left alone instead of stopped.
 */
static const struct {
    const char *name;
    enum role role; // above a handler
} runners[] = {
    { "make", ROLE_HOLDER },
    { "parallel", ROLE_HOLDER },
    { "screen", ROLE_HOLDER },
    { "tmux: server", ROLE_HOLDER },
    { "timeout", ROLE_READER },
    { "torchrun", ROLE_READER },
    { "mpirun", ROLE_READER },
    { "mpiexec", ROLE_READER },
    { "orterun", ROLE_READER },
    { "prterun", ROLE_READER },
    { "prte", ROLE_READER },
    { "orted", ROLE_READER },
    { "prted", ROLE_READER },
    { "mpiexec.hydra", ROLE_READER },
    { "hydra_pmi_proxy", ROLE_READER },
};

struct member {
    pid_t pid, parent;
    uint8_t role;  // enum role
    uint8_t above; // its role if it is above a handler
    bool is_stopped, is_parent;
    bool is_catching_all; // and may nevertheless die of it
};

/* A shell with a trap on EXIT and the Go runtime catch all signals that would end them, clean up, and then
 * die of the signal. Few programs handle all of these. */
#define CATCH_ALL (SIGNAL_BIT(SIGXCPU) | SIGNAL_BIT(SIGXFSZ) | SIGNAL_BIT(SIGVTALRM))

static struct member members[MEMBERS_MAX];
static uint16_t slots[MEMBERS_MAX * 2]; // hash table: index + 1 into members
static char writers[WRITERS_MAX][PIPE_TEXT];
static size_t n_members, n_slots, n_writers;
static int surveyed_signal;
static bool has_blocked;

bool roles_matter(int signal)
{
    static const int everybodys[] = { SIGKILL, SIGSTOP, SIGCONT, SIGCHLD, SIGURG, SIGWINCH };
    for (size_t i = 0; i < sizeof(everybodys) / sizeof(everybodys[0]); i++)
        if (signal == everybodys[i])
            return false;
    return signal > 0 && signal < 32;
}

void roles_begin(int signal)
{
    surveyed_signal = signal;
    n_members = n_slots = n_writers = 0;
    has_blocked = false;
}

/* Some fields of stat(5). */
struct facts {
    char name[16];
    char state;
    pid_t parent;
    uint32_t blocked, caught, ignored; // masks of signals
};

static bool read_stat(pid_t pid, struct facts *ret)
{
    enum { FIELD_BLOCKED = 32, FIELD_IGNORED = 33, FIELD_CAUGHT = 34 };
    char path[64], text[1024];
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    char *p = strrchr(text, ')');
    if (p == NULL || strlen(p) < 4)
        return false;
    const char *name = strchr(text, '(');
    *ret = (struct facts){ .state = p[2] };
    if (name != NULL && name < p)
        (void)snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(p - name - 1), name + 1);
    ret->parent = (pid_t)strtol(p + 4, &p, 10);
    for (int field = 5; field <= FIELD_CAUGHT && *p != '\0'; field++) {
        uint32_t value = (uint32_t)strtoull(p, &p, 10);
        if (field == FIELD_BLOCKED)
            ret->blocked = value;
        else if (field == FIELD_IGNORED)
            ret->ignored = value;
        else if (field == FIELD_CAUGHT)
            ret->caught = value;
    }
    return true;
}

/* ROLE_OTHER: it is not such a program. */
static enum role runner_role(const char *name)
{
    for (size_t i = 0; i < sizeof(runners) / sizeof(runners[0]); i++)
        if (strcmp(runners[i].name, name) == 0)
            return runners[i].role;
    return ROLE_OTHER;
}

void roles_add(pid_t pid)
{
    struct facts facts;
    if (n_members == MEMBERS_MAX || !read_stat(pid, &facts) || facts.state == 'Z' || facts.state == 'X')
        return;
    uint32_t bit = SIGNAL_BIT(surveyed_signal);
    uint32_t handled = facts.blocked | facts.caught;
    enum role runner = runner_role(facts.name);
    has_blocked = has_blocked || (facts.blocked & ~facts.caught & bit) != 0;
    members[n_members++] = (struct member){ .pid = pid,
        .parent = facts.parent,
        .role = runner != ROLE_OTHER         ? ROLE_OTHER
                : (handled & bit) != 0       ? ROLE_HANDLER
                : (facts.ignored & bit) != 0 ? ROLE_DEAF
                                             : ROLE_OTHER,
        .above = runner != ROLE_OTHER ? runner : ROLE_HOLDER,
        .is_stopped = facts.state == 'T',
        .is_catching_all = (facts.caught & CATCH_ALL) == CATCH_ALL };
}

/* --- by pid --- */

static size_t slot_of(pid_t pid)
{
    size_t slot = ((uint32_t)pid * 2654435761U) & (n_slots - 1);
    while (slots[slot] != 0 && members[slots[slot] - 1].pid != pid)
        slot = (slot + 1) & (n_slots - 1);
    return slot;
}

static struct member *find(pid_t pid)
{
    uint16_t index = n_slots > 0 ? slots[slot_of(pid)] : 0;
    return index > 0 ? &members[index - 1] : NULL;
}

static void index_members(void)
{
    for (n_slots = 16; n_slots < n_members * 2; n_slots *= 2)
        ;
    memset(slots, 0, n_slots * sizeof(slots[0]));
    for (size_t i = 0; i < n_members; i++)
        slots[slot_of(members[i].pid)] = (uint16_t)(i + 1);
}

/* --- who needs whom --- */

static void mark_ancestors(const struct member *member)
{
    struct member *parent = find(member->parent);
    for (size_t depth = 0; parent != NULL && depth < DEPTH_MAX; depth++) {
        if (parent->role == ROLE_OTHER || (parent->role == ROLE_HANDLER && parent->is_catching_all))
            parent->role = parent->above;
        else if (parent->role == parent->above)
            return; // and so are its ancestors
        parent = find(parent->parent);
    }
}

static bool read_pipe(pid_t pid, int fd, char text[PIPE_TEXT])
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
    ssize_t n = readlink(path, text, PIPE_TEXT - 1);
    text[n > 0 ? n : 0] = '\0';
    return strncmp(text, "pipe:[", 6) == 0;
}

static bool is_written(const char *text)
{
    for (size_t i = 0; i < n_writers; i++)
        if (strcmp(writers[i], text) == 0)
            return true;
    return false;
}

static void add_writer(pid_t pid)
{
    char text[PIPE_TEXT];
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++)
        if (n_writers < WRITERS_MAX && read_pipe(pid, fd, text) && !is_written(text))
            memcpy(writers[n_writers++], text, sizeof(text));
}

/* Marks processes that read from a handler, then those that read from them, and so on. A process with
 * children may start more of them from its input (xargs), so it does not count as a mere reader. */
static void mark_readers(void)
{
    char text[PIPE_TEXT];
    for (size_t i = 0; i < n_members; i++)
        if (members[i].role == ROLE_HANDLER)
            add_writer(members[i].pid);
    for (size_t before = 0; n_writers > before;) {
        before = n_writers;
        for (size_t i = 0; i < n_members; i++) {
            struct member *member = &members[i];
            if (member->role != ROLE_OTHER || member->is_parent ||
                !read_pipe(member->pid, STDIN_FILENO, text) || !is_written(text))
                continue;
            member->role = ROLE_READER;
            add_writer(member->pid);
        }
    }
}

void roles_decide(void)
{
    index_members();
    for (size_t i = 0; i < n_members; i++) {
        struct member *parent = find(members[i].parent);
        if (parent != NULL)
            parent->is_parent = true;
    }
    if (roles_count(ROLE_HANDLER) > 0)
        mark_readers();
    for (size_t i = 0; i < n_members; i++)
        if (members[i].role == ROLE_HANDLER)
            mark_ancestors(&members[i]);
    for (size_t i = 0; i < n_members; i++) {
        struct member *member = &members[i];
        bool may_die =
            member->role == ROLE_OTHER || (member->role == ROLE_HANDLER && member->is_catching_all);
        if (may_die && member->is_stopped)
            member->role = ROLE_DONE;
    }
}

bool roles_are_unsettled(void)
{
    return has_blocked;
}

enum role roles_of(pid_t pid)
{
    const struct member *member = find(pid);
    return member != NULL ? (enum role)member->role : ROLE_OTHER;
}

uint32_t roles_count(enum role role)
{
    uint32_t count = 0;
    for (size_t i = 0; i < n_members; i++)
        count += members[i].role == role;
    return count;
}
