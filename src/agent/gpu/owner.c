/* SPDX-License-Identifier: MIT */
/*
 * A driver identifies processes only by pid, and a pid may be reused: the start time of a process is checked
 * before facts about it are used, and again after they were read.
 *
 * The processes of an attempt are identified by its cgroup "…/mgpu.HASH/jJOB.ATTEMPT/…", in any hierarchy;
 * without cgroups, by their ancestors up to the attempt's init, which adopts orphans.
 */
#include "agent/gpu/owner.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/strings.h"
#include "wire/message.h"

#define COMMAND_MAX   120U // bytes of a command line before they are escaped
#define ESCAPED_MAX   256U // and after that
#define CONTAINER_ID  12U  // characters of a short id
#define ANCESTORS_MAX 128U
#define CGROUP_SIZE   8192U

struct known {
    pid_t pid;
    uint64_t start;
    uint32_t uid;
    uint64_t job; // 0: of no attempt that existed when the process was looked up
    uint32_t attempt;
    char *command, *container;
    bool is_adopted; // the claim that identifies it is on a process not started by mgpu
    bool is_seen;    // in the present report
};

struct gpu_owners {
    int proc_fd;
    struct known *known;
    size_t count, capacity;
    uint64_t claims_hash; // of the claims that existed at the last report
};

/* --- /proc --- */

/* Reads a file of the process, cut at the size; "" if it cannot be read. */
static size_t read_of(const struct gpu_owners *owners, pid_t pid, const char *file, char *text, size_t size)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "%d/%s", (int)pid, file);
    _cleanup_close_ int fd = openat(owners->proc_fd, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    text[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

struct identity {
    uint64_t start;
    pid_t parent;
    char name[32];
};

static bool identify(const struct gpu_owners *owners, pid_t pid, struct identity *ret)
{
    char text[1024];
    *ret = (struct identity){ 0 };
    (void)read_of(owners, pid, "stat", text, sizeof(text));
    /* The name may contain anything, including blanks and parentheses; fields are counted from the last
     * ")". */
    const char *name = strchr(text, '('), *p = strrchr(text, ')');
    if (name == NULL || p == NULL || p < name)
        return false;
    (void)snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(p - name - 1), name + 1);
    for (int field = 2; p != NULL && field < 22; field++) {
        p = strchr(p + 1, ' ');
        if (p != NULL && field == 3)
            ret->parent = (pid_t)strtol(p + 1, NULL, 10);
    }
    ret->start = p == NULL ? 0 : strtoull(p + 1, NULL, 10);
    return ret->start != 0;
}

static uint32_t read_uid(const struct gpu_owners *owners, pid_t pid)
{
    char text[2048];
    (void)read_of(owners, pid, "status", text, sizeof(text));
    const char *line = strstr(text, "\nUid:");
    return line == NULL ? 0 : (uint32_t)strtoul(line + 5, NULL, 10);
}

/* Escaping makes text longer, up to four times. */
static char *escape(const char *text)
{
    char *escaped = text_escape(text, COMMAND_MAX);
    for (size_t limit = COMMAND_MAX / 2; strlen(escaped) > ESCAPED_MAX && limit > 0; limit /= 2) {
        free(escaped);
        escaped = text_escape(text, limit);
    }
    return escaped;
}

static char *read_command(const struct gpu_owners *owners, pid_t pid, const char *name)
{
    char text[COMMAND_MAX + 8];
    size_t length = read_of(owners, pid, "cmdline", text, sizeof(text));
    while (length > 0 && text[length - 1] == '\0')
        length--;
    for (size_t i = 0; i < length; i++)
        if (text[i] == '\0')
            text[i] = ' ';
    return escape(length > 0 ? text : name);
}

/* --- containers --- */

/* Prefixes by which runtimes name the cgroups of their containers; the id follows. */
static const char *const runtimes[] = { "docker-", "/docker/", "libpod-", "crio-", "cri-containerd-",
    "/kubepods/", "/lxc.payload.", "/lxc/" };

static bool is_id(const char *text)
{
    for (size_t i = 0; i < CONTAINER_ID; i++)
        if (isxdigit((unsigned char)text[i]) == 0)
            return false;
    return true;
}

/* The id of a Kubernetes container without a prefix: the last component of the path, 64 digits. */
static const char *last_id(const char *line)
{
    const char *slash = strrchr(line, '/');
    return slash != NULL && is_id(slash + 1) ? slash + 1 : NULL;
}

static char *parse_container(const char *line)
{
    for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++) {
        const char *at = strstr(line, runtimes[i]);
        if (at == NULL)
            continue;
        const char *id = at + strlen(runtimes[i]);
        if (strncmp(runtimes[i], "/lxc", 4) == 0) {
            _cleanup_free_ char *name = xstrndup(id, strcspn(id, "/"));
            return text_escape(name, CONTAINER_ID);
        }
        if (!is_id(id))
            id = last_id(line);
        if (id != NULL)
            return xstrndup(id, CONTAINER_ID);
    }
    return strstr(line, "kubepods") != NULL && last_id(line) != NULL ? xstrndup(last_id(line), CONTAINER_ID)
                                                                     : NULL;
}

/* --- attempts --- */

/* The part of a step's cgroup that is the same in every hierarchy: "/mgpu.HASH/jJOB.ATTEMPT/". */
static char *claim_mark(const struct gpu_claim *claim)
{
    const char *end = strrchr(claim->cgroup, '/'), *start = end;
    for (int parts = 0; start != NULL && parts < 2; parts++) {
        while (start > claim->cgroup && start[-1] != '/')
            start--;
        start = start > claim->cgroup ? start - 1 : NULL;
    }
    return start == NULL ? NULL : xstrndup(start, (size_t)(end - start) + 1);
}

static bool is_below(const struct gpu_owners *owners, pid_t pid, const struct gpu_claim *claim)
{
    for (unsigned i = 0; pid > 1 && i < ANCESTORS_MAX; i++) {
        struct identity identity;
        if (!identify(owners, pid, &identity))
            return false;
        if (pid == claim->init_pid)
            return identity.start == claim->init_start;
        pid = identity.parent;
    }
    return false;
}

/* The path may be shorter than the claim's, and begins where the hierarchy is mounted. A container may have
 * an instance with the same name, but its path has components that ours lacks. */
static bool is_in_cgroup(const char *cgroups, const char *mark, const struct gpu_claim *claim)
{
    const char *mine = strstr(claim->cgroup, mark) + strlen(mark);
    for (const char *at = strstr(cgroups, mark); at != NULL; at = strstr(at + 1, mark)) {
        const char *path = at, *end = at + strlen(mark);
        while (path > cgroups && path[-1] != ':' && path[-1] != '\n')
            path--;
        size_t length = (size_t)(end - path);
        if (length <= (size_t)(mine - claim->cgroup) && strncmp(mine - length, path, length) == 0)
            return true;
    }
    return false;
}

static bool is_claimed(
    const struct gpu_owners *owners, pid_t pid, const char *cgroups, const struct gpu_claim *claim)
{
    if (claim->cgroup == NULL)
        return claim->init_pid > 0 && is_below(owners, pid, claim);
    _cleanup_free_ char *mark = claim_mark(claim);
    return mark != NULL && is_in_cgroup(cgroups, mark, claim);
}

static const struct gpu_claim *match(const struct gpu_owners *owners, pid_t pid, const char *cgroups,
    const struct gpu_claim *claims, size_t n_claims)
{
    for (size_t i = 0; i < n_claims; i++)
        if (is_claimed(owners, pid, cgroups, &claims[i]))
            return &claims[i];
    return NULL;
}

static void find_claim(const struct gpu_owners *owners, struct known *known, const char *cgroups,
    const struct gpu_claim *claims, size_t n_claims)
{
    const struct gpu_claim *claim = match(owners, known->pid, cgroups, claims, n_claims);
    known->job = claim != NULL ? claim->job : 0;
    known->attempt = claim != NULL ? claim->attempt : 0;
    known->is_adopted = claim != NULL && claim->is_adopted;
}

/* --- what is known --- */

static void known_clear(struct known *known)
{
    free(known->command);
    free(known->container);
}

static struct known *find(const struct gpu_owners *owners, pid_t pid)
{
    for (size_t i = 0; i < owners->count; i++)
        if (owners->known[i].pid == pid)
            return &owners->known[i];
    return NULL;
}

static struct known *add(struct gpu_owners *owners)
{
    if (owners->count == owners->capacity) {
        owners->capacity = owners->capacity == 0 ? 16 : owners->capacity * 2;
        owners->known = xreallocarray(owners->known, owners->capacity, sizeof(*owners->known));
    }
    return &owners->known[owners->count++];
}

static void learn(struct gpu_owners *owners, struct known *ret, pid_t pid, const struct identity *identity,
    const struct gpu_claim *claims, size_t n_claims)
{
    char cgroups[CGROUP_SIZE];
    (void)read_of(owners, pid, "cgroup", cgroups, sizeof(cgroups));
    *ret = (struct known){
        .pid = pid,
        .start = identity->start,
        .uid = read_uid(owners, pid),
        .command = read_command(owners, pid, identity->name),
    };
    find_claim(owners, ret, cgroups, claims, n_claims);
    char *rest = cgroups;
    for (char *line; ret->container == NULL && (line = strsep(&rest, "\n")) != NULL;)
        ret->container = parse_container(line);
}

/* The process as it is now; NULL if it has ended. */
static struct known *inspect(
    struct gpu_owners *owners, pid_t pid, bool is_claim_new, const struct gpu_claim *claims, size_t n_claims)
{
    struct identity identity, after;
    if (!identify(owners, pid, &identity))
        return NULL;
    struct known *known = find(owners, pid);
    if (known != NULL && known->start == identity.start) {
        if ((known->job == 0 || known->is_adopted) && is_claim_new && !known->is_seen) {
            char cgroups[CGROUP_SIZE];
            (void)read_of(owners, pid, "cgroup", cgroups, sizeof(cgroups));
            find_claim(owners, known, cgroups, claims, n_claims);
        }
        known->is_seen = true;
        return known;
    }
    if (known == NULL)
        known = add(owners);
    else
        known_clear(known);
    learn(owners, known, pid, &identity, claims, n_claims);
    known->is_seen = true;
    /* The pid was reused while it was read: the next report shows the new process. */
    if (identify(owners, pid, &after) && after.start == identity.start)
        return known;
    known_clear(known);
    *known = owners->known[--owners->count];
    return NULL;
}

static void drop_unseen(struct gpu_owners *owners)
{
    size_t kept = 0;
    for (size_t i = 0; i < owners->count; i++) {
        if (owners->known[i].is_seen) {
            owners->known[kept] = owners->known[i];
            owners->known[kept++].is_seen = false;
        } else {
            known_clear(&owners->known[i]);
        }
    }
    owners->count = kept;
}

static void fill(struct gpu_process *process, const struct known *known)
{
    process->start = known->start;
    process->uid = known->uid;
    process->job = known->job;
    process->attempt = known->attempt;
    free(process->command);
    process->command = xstrdup(known->command);
    free(process->container);
    process->container = xstrdup(known->container);
}

/* FNV-1a, by words. */
static uint64_t hash_claims(const struct gpu_claim *claims, size_t n_claims)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n_claims; i++) {
        const uint64_t words[] = { claims[i].job, claims[i].attempt, (uint64_t)claims[i].init_pid };
        for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++)
            hash = (hash ^ words[k]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

void gpu_owners_fill(
    struct gpu_owners *owners, struct record_list *gpus, const struct gpu_claim *claims, size_t n_claims)
{
    uint64_t hash = hash_claims(claims, n_claims);
    bool is_claim_new = hash != owners->claims_hash;
    owners->claims_hash = hash;
    struct gpu_state *states = gpus->items;
    for (size_t i = 0; i < gpus->count; i++) {
        struct gpu_process *processes = states[i].processes.items;
        for (size_t k = 0; k < states[i].processes.count; k++) {
            const struct known *known =
                inspect(owners, (pid_t)processes[k].pid, is_claim_new, claims, n_claims);
            processes[k].start = 0;
            if (known != NULL)
                fill(&processes[k], known);
        }
    }
    drop_unseen(owners);
}

const struct gpu_claim *gpu_owners_claim_of(
    const struct gpu_owners *owners, pid_t pid, const struct gpu_claim *claims, size_t n_claims)
{
    char cgroups[CGROUP_SIZE];
    (void)read_of(owners, pid, "cgroup", cgroups, sizeof(cgroups));
    return match(owners, pid, cgroups, claims, n_claims);
}

uint64_t gpu_owners_job_of(
    const struct gpu_owners *owners, pid_t pid, const struct gpu_claim *claims, size_t n_claims)
{
    const struct gpu_claim *claim = gpu_owners_claim_of(owners, pid, claims, n_claims);
    return claim != NULL ? claim->job : 0;
}

struct gpu_owners *gpu_owners_new(const char *proc)
{
    struct gpu_owners *owners = xcalloc(1, sizeof(*owners));
    owners->proc_fd = open(proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return owners;
}

void gpu_owners_free(struct gpu_owners *owners)
{
    if (owners == NULL)
        return;
    for (size_t i = 0; i < owners->count; i++)
        known_clear(&owners->known[i]);
    free(owners->known);
    closep(&owners->proc_fd);
    free(owners);
}
