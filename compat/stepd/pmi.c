/* SPDX-License-Identifier: MIT */
/*
 * PMI-1 and PMI-2 over a socket that each task inherits (PMI_FD). A task begins with a line of PMI-1, which
 * names the version of the rest. Data put by tasks is sent to the other nodes at the next barrier (PMI-1) or
 * fence (PMI-2), which all tasks of the step enter.
 *
 *   NEW ──init──> MEMBER ──finalize──> LEFT
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"
#include "compat/stepd/mpi.h"
#include "compat/stepd/pmi_store.h"
#include "compat/stepd/pmi_words.h"

#define READ_SIZE   16384
#define FENCE_KEY   "fence"
#define MAPPING_KEY "PMI_process_mapping"

enum phase { TASK_NEW, TASK_MEMBER, TASK_LEFT };

struct member {
    int fd;
    enum phase phase;
    enum pmi_version version;
    struct buffer in;
    bool is_waiting;  // in the barrier
    char *wanted;     // attribute of the node that it waits for, or NULL
    char *waiting_id; // "thrid" of the request that waits, or NULL
};

struct pmi {
    const struct mpi_setup *setup;
    struct mpi_acts acts;
    struct member *members;
    uint32_t first, count;  // tasks of this node
    struct pmi_store all;   // visible to the tasks
    struct pmi_store fresh; // since the last barrier
    struct pmi_store node;  // attributes of the node
    char *mapping;
};

static int check(struct error *err)
{
    return 0;
}

static struct member *member_of(const struct pmi *pmi, uint32_t task)
{
    return &pmi->members[task - pmi->first];
}

/* --- answers --- */

static void leave(struct member *member)
{
    closep(&member->fd);
    member->fd = -1;
    member->phase = TASK_LEFT;
    member->is_waiting = false;
}

static void send_message(struct member *member, const struct buffer *message)
{
    if (member->fd >= 0 && write_all(member->fd, message->bytes, message->length) < 0)
        leave(member);
}

/* The answers of the two versions differ only in names and words. */
#define REPLY(member, cmd, ...)                                                                              \
    do {                                                                                                     \
        _cleanup_buffer_ struct buffer message = { 0 };                                                      \
        pmi_words_put(&message, (member)->version, cmd, __VA_ARGS__, NULL);                                  \
        send_message(member, &message);                                                                      \
    } while (0)

static const char *word(const struct strings *words, const char *name)
{
    const char *value = strings_get_env(words, name);
    return value != NULL ? value : "";
}

/* Clients with threads use this word to find the request of an answer. */
static void reply_two(struct member *member, const char *cmd, const char *thread, const char *name,
    const char *value, bool is_found)
{
    _cleanup_free_ char *response = xasprintf("%s-response", cmd);
    if (thread != NULL && name != NULL)
        REPLY(
            member, response, "thrid", thread, "rc", "0", "found", is_found ? "TRUE" : "FALSE", name, value);
    else if (thread != NULL)
        REPLY(member, response, "thrid", thread, "rc", "0");
    else if (name != NULL)
        REPLY(member, response, "rc", "0", "found", is_found ? "TRUE" : "FALSE", name, value);
    else
        REPLY(member, response, "rc", "0");
}

static bool fits(const char *key, const char *value)
{
    return key[0] != '\0' && strlen(key) <= PMI_KEY_MAX && strlen(value) <= PMI_VALUE_MAX;
}

/* Refuses a key and value that cannot be stored. */
static void refuse_two(struct member *member, const struct strings *request)
{
    static const char text[] = "the key or value is too long, or there are too many";
    _cleanup_free_ char *response = xasprintf("%s-response", word(request, "cmd"));
    const char *thread = strings_get_env(request, "thrid");
    if (thread != NULL)
        REPLY(member, response, "thrid", thread, "rc", "1", "errmsg", text);
    else
        REPLY(member, response, "rc", "1", "errmsg", text);
}

static void reply_value(struct member *member, const struct strings *request, const char *value)
{
    reply_two(member, word(request, "cmd"), strings_get_env(request, "thrid"), "value",
        value != NULL ? value : "", value != NULL);
}

/* --- the barrier --- */

static void enter_barrier(struct pmi *pmi, struct member *member, const struct strings *request)
{
    const char *thread = strings_get_env(request, "thrid");
    _cleanup_buffer_ struct buffer data = { 0 };
    member->is_waiting = true;
    free(member->waiting_id);
    member->waiting_id = xstrdup(thread);
    for (uint32_t i = 0; i < pmi->count; i++)
        if (!pmi->members[i].is_waiting)
            return;
    size_t n_nodes = pmi->setup->nodes.count;
    _cleanup_free_ uint32_t *nodes = xcalloc(n_nodes, sizeof(*nodes));
    for (uint32_t i = 0; i < n_nodes; i++)
        nodes[i] = i;
    pmi_store_write(&pmi->fresh, &data);
    pmi_store_clear(&pmi->fresh);
    pmi->acts.gather(pmi->acts.arg, FENCE_KEY, strlen(FENCE_KEY), nodes, n_nodes, data.bytes, data.length);
}

static void gathered(void *state, const void *key, size_t key_length, const void *data, size_t length)
{
    struct pmi *pmi = state;
    if (!pmi_store_read(&pmi->all, data, length)) {
        pmi->acts.abort(pmi->acts.arg, 1, "PMI: the keys of other nodes are malformed or too many");
        return;
    }
    for (uint32_t i = 0; i < pmi->count; i++) {
        struct member *member = &pmi->members[i];
        if (!member->is_waiting)
            continue;
        member->is_waiting = false;
        if (member->version == PMI_ONE)
            REPLY(member, "barrier_out", "rc", "0");
        else
            reply_two(member, "kvs-fence", member->waiting_id, NULL, NULL, true);
    }
}

/* --- attributes of the node (PMI-2) --- */

static void put_attribute(struct pmi *pmi, struct member *member, const struct strings *request)
{
    const char *key = word(request, "key"), *value = word(request, "value");
    if (!fits(key, value) || !pmi_store_put(&pmi->node, key, value)) {
        refuse_two(member, request);
        return;
    }
    reply_two(member, word(request, "cmd"), strings_get_env(request, "thrid"), NULL, NULL, true);
    for (uint32_t i = 0; i < pmi->count; i++) {
        struct member *other = &pmi->members[i];
        if (other->wanted == NULL || strcmp(other->wanted, key) != 0)
            continue;
        free(take_ptr(other->wanted));
        reply_two(other, "info-getnodeattr", other->waiting_id, "value", value, true);
    }
}

static void get_attribute(struct pmi *pmi, struct member *member, const struct strings *request)
{
    const char *key = word(request, "key"), *value = pmi_store_get(&pmi->node, key);
    if (value != NULL || strcmp(word(request, "wait"), "TRUE") != 0) {
        reply_value(member, request, value);
        return;
    }
    free(member->wanted);
    member->wanted = xstrdup(key);
    free(member->waiting_id);
    member->waiting_id = xstrdup(strings_get_env(request, "thrid"));
}

static const char *job_attribute(const struct pmi *pmi, const char *key, char number[16])
{
    if (strcmp(key, MAPPING_KEY) == 0)
        return pmi->mapping;
    if (strcmp(key, "hasNameServ") == 0)
        return "FALSE";
    if (strcmp(key, "universeSize") != 0)
        return NULL;
    (void)snprintf(number, 16, "%u", pmi->setup->first[pmi->setup->nodes.count]);
    return number;
}

/* --- keys and values --- */

static bool put(struct pmi *pmi, const struct strings *request)
{
    const char *key = word(request, "key"), *value = word(request, "value");
    return fits(key, value) && pmi_store_put(&pmi->fresh, key, value);
}

/* A task sees the keys of its own node at once. */
static const char *get(const struct pmi *pmi, const char *key)
{
    const char *value = pmi_store_get(&pmi->fresh, key);
    if (value == NULL)
        value = pmi_store_get(&pmi->all, key);
    return value == NULL && strcmp(key, MAPPING_KEY) == 0 ? pmi->mapping : value;
}

/* --- PMI-1 --- */

struct request {
    struct pmi *pmi;
    struct member *member;
    uint32_t task;
    const struct strings *words;
};

static void one_init(const struct request *request)
{
    struct member *member = request->member;
    const char *version = word(request->words, "pmi_version");
    bool is_two = strcmp(version, "2") == 0;
    member->phase = TASK_MEMBER;
    if (strcmp(version, "1") != 0 && !is_two) {
        REPLY(member, "response_to_init", "pmi_version", "2", "pmi_subversion", "0", "rc", "-1");
        return;
    }
    REPLY(member, "response_to_init", "pmi_version", version, "pmi_subversion",
        is_two ? "0" : word(request->words, "pmi_subversion"), "rc", "0");
    member->version = is_two ? PMI_TWO : PMI_ONE;
}

static void one_maxes(const struct request *request)
{
    REPLY(request->member, "maxes", "kvsname_max", "256", "keylen_max", "64", "vallen_max", "1024");
}

static void one_appnum(const struct request *request)
{
    REPLY(request->member, "appnum", "appnum", "0");
}

static void one_kvsname(const struct request *request)
{
    REPLY(request->member, "my_kvsname", "kvsname", request->pmi->setup->name);
}

static void one_size(const struct request *request)
{
    char number[16];
    REPLY(request->member, "universe_size", "size", job_attribute(request->pmi, "universeSize", number));
}

static void one_put(const struct request *request)
{
    if (put(request->pmi, request->words))
        REPLY(request->member, "put_result", "rc", "0", "msg", "success");
    else
        REPLY(request->member, "put_result", "rc", "-1", "msg", "key_or_value_too_long");
}

static void one_get(const struct request *request)
{
    const char *value = get(request->pmi, word(request->words, "key"));
    if (value != NULL)
        REPLY(request->member, "get_result", "rc", "0", "msg", "success", "value", value);
    else
        REPLY(request->member, "get_result", "rc", "-1", "msg", "key_not_found", "value", "unknown");
}

static void one_barrier(const struct request *request)
{
    enter_barrier(request->pmi, request->member, request->words);
}

static void one_finalize(const struct request *request)
{
    REPLY(request->member, "finalize_ack", "rc", "0");
    leave(request->member);
}

static void any_abort(const struct request *request)
{
    int code = (int)strtol(word(request->words, "exitcode"), NULL, 10);
    const char *text = word(request->words, "msg");
    request->pmi->acts.abort(
        request->pmi->acts.arg, code != 0 ? code : 1, text[0] != '\0' ? text : "MPI_Abort");
}

static void one_publish(const struct request *request)
{
    REPLY(request->member, "publish_result", "rc", "-1", "msg", "no_name_service");
}

static void one_unpublish(const struct request *request)
{
    REPLY(request->member, "unpublish_result", "rc", "-1", "msg", "no_name_service");
}

static void one_lookup(const struct request *request)
{
    REPLY(request->member, "lookup_result", "rc", "-1", "msg", "no_name_service");
}

/* --- PMI-2 --- */

static void two_fullinit(const struct request *request)
{
    char rank[16], size[16];
    (void)snprintf(rank, sizeof(rank), "%u", request->task);
    (void)job_attribute(request->pmi, "universeSize", size);
    REPLY(request->member, "fullinit-response", "rc", "0", "pmi-version", "2", "pmi-subversion", "0", "rank",
        rank, "size", size, "appnum", "0", "debugged", "FALSE", "pmiverbose", "FALSE");
}

static void two_jobid(const struct request *request)
{
    reply_two(request->member, "job-getid", strings_get_env(request->words, "thrid"), "jobid",
        request->pmi->setup->name, true);
}

static void two_put(const struct request *request)
{
    if (!put(request->pmi, request->words)) {
        refuse_two(request->member, request->words);
        return;
    }
    reply_two(request->member, "kvs-put", strings_get_env(request->words, "thrid"), NULL, NULL, true);
}

static void two_get(const struct request *request)
{
    reply_value(request->member, request->words, get(request->pmi, word(request->words, "key")));
}

static void two_job_attribute(const struct request *request)
{
    char number[16];
    reply_value(
        request->member, request->words, job_attribute(request->pmi, word(request->words, "key"), number));
}

static void two_put_attribute(const struct request *request)
{
    put_attribute(request->pmi, request->member, request->words);
}

static void two_get_attribute(const struct request *request)
{
    get_attribute(request->pmi, request->member, request->words);
}

static void two_finalize(const struct request *request)
{
    reply_two(request->member, "finalize", strings_get_env(request->words, "thrid"), NULL, NULL, true);
    leave(request->member);
}

static const struct {
    enum pmi_version version;
    const char *cmd;
    void (*run)(const struct request *request);
} commands[] = {
    { PMI_ONE, "init", one_init },
    { PMI_ONE, "get_maxes", one_maxes },
    { PMI_ONE, "get_appnum", one_appnum },
    { PMI_ONE, "get_my_kvsname", one_kvsname },
    { PMI_ONE, "get_universe_size", one_size },
    { PMI_ONE, "put", one_put },
    { PMI_ONE, "get", one_get },
    { PMI_ONE, "barrier_in", one_barrier },
    { PMI_ONE, "finalize", one_finalize },
    { PMI_ONE, "abort", any_abort },
    { PMI_ONE, "publish_name", one_publish },
    { PMI_ONE, "unpublish_name", one_unpublish },
    { PMI_ONE, "lookup_name", one_lookup },
    { PMI_TWO, "fullinit", two_fullinit },
    { PMI_TWO, "job-getid", two_jobid },
    { PMI_TWO, "kvs-put", two_put },
    { PMI_TWO, "kvs-get", two_get },
    { PMI_TWO, "kvs-fence", one_barrier },
    { PMI_TWO, "info-getjobattr", two_job_attribute },
    { PMI_TWO, "info-putnodeattr", two_put_attribute },
    { PMI_TWO, "info-getnodeattr", two_get_attribute },
    { PMI_TWO, "finalize", two_finalize },
    { PMI_TWO, "abort", any_abort },
};

static void execute(const struct request *request)
{
    const char *cmd = strings_get_env(request->words, "cmd");
    if (cmd == NULL)
        cmd = strings_get_env(request->words, "mcmd"); // PMI-1: the first line of spawn
    if (cmd == NULL)
        return; // one of its other lines
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (commands[i].version == request->member->version && strcmp(commands[i].cmd, cmd) == 0) {
            commands[i].run(request);
            return;
        }
    _cleanup_free_ char *response =
        xasprintf(request->member->version == PMI_ONE ? "%s_result" : "%s-response", cmd);
    REPLY(request->member, response, "rc", "-1", request->member->version == PMI_ONE ? "msg" : "errmsg",
        "not_supported");
}

static void readable(void *state, uint32_t task)
{
    struct pmi *pmi = state;
    struct member *member = member_of(pmi, task);
    char piece[READ_SIZE];
    ssize_t n = read(member->fd, piece, sizeof(piece));
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n > 0)
        buffer_append(&member->in, piece, (size_t)n);
    while (member->fd >= 0) {
        _cleanup_strings_ struct strings words = { 0 };
        const struct request request = { pmi, member, task, &words };
        int r = pmi_words_take(&member->in, member->version, &words);
        if (r == 0)
            break;
        if (r > 0) {
            execute(&request);
            continue;
        }
        pmi->acts.abort(pmi->acts.arg, 1, "PMI: a task has sent an invalid message");
        leave(member);
    }
    if (n <= 0 && member->fd >= 0) {
        closep(&member->fd); // it is still a member: its end will be noticed
        member->fd = -1;
    }
}

/* --- life --- */

static int open_pmi(const struct mpi_setup *setup, const struct mpi_acts *acts, void **ret, struct error *err)
{
    struct pmi *pmi = xcalloc(1, sizeof(*pmi));
    *pmi = (struct pmi){ .setup = setup,
        .acts = *acts,
        .first = setup->first[setup->here],
        .count = setup->first[setup->here + 1] - setup->first[setup->here],
        .mapping = mpi_process_mapping(setup) };
    pmi->members = xcalloc(pmi->count, sizeof(*pmi->members));
    for (uint32_t i = 0; i < pmi->count; i++)
        pmi->members[i] = (struct member){ .fd = -1, .version = PMI_ONE };
    *ret = pmi;
    return 0;
}

static int prepare(void *state, uint32_t task, struct strings *env, int *ret_fd, struct error *err)
{
    struct pmi *pmi = state;
    int fds[2];
    char rank[16], size[16], fd[16];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
        return error_set_errno(err, -errno, "cannot create a socket for PMI");
    member_of(pmi, task)->fd = fds[0];
    (void)snprintf(rank, sizeof(rank), "%u", task);
    (void)snprintf(fd, sizeof(fd), "%d", fds[1]);
    strings_set_env(env, "PMI_FD", fd);
    strings_set_env(env, "PMI_RANK", rank);
    strings_set_env(env, "PMI_SIZE", job_attribute(pmi, "universeSize", size));
    strings_set_env(env, "PMI_JOBID", pmi->setup->name);
    *ret_fd = fds[1];
    return 0;
}

static int fd_of(const void *state, uint32_t task)
{
    return member_of(state, task)->fd;
}

static bool is_member(const void *state, uint32_t task)
{
    return member_of(state, task)->phase == TASK_MEMBER;
}

static void asked(void *state, uint32_t task, uint64_t request)
{
    struct pmi *pmi = state;
    pmi->acts.answer(pmi->acts.arg, request, -EOPNOTSUPP, NULL, 0);
}

static void fetched(void *state, uint64_t request, int status, const void *data, size_t length)
{
    (void)state, (void)request, (void)status, (void)data, (void)length; // PMI fetches nothing
}

static void close_pmi(void *state)
{
    struct pmi *pmi = state;
    for (uint32_t i = 0; i < pmi->count; i++) {
        closep(&pmi->members[i].fd);
        buffer_clear(&pmi->members[i].in);
        free(pmi->members[i].wanted);
        free(pmi->members[i].waiting_id);
    }
    pmi_store_clear(&pmi->all);
    pmi_store_clear(&pmi->fresh);
    pmi_store_clear(&pmi->node);
    free(pmi->members);
    free(pmi->mapping);
    free(pmi);
}

const struct mpi_kind mpi_pmi2 = {
    .name = "pmi2",
    .check = check,
    .open = open_pmi,
    .prepare = prepare,
    .fd = fd_of,
    .readable = readable,
    .gathered = gathered,
    .asked = asked,
    .fetched = fetched,
    .is_member = is_member,
    .close = close_pmi,
};
