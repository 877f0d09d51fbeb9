/* SPDX-License-Identifier: MIT */
/*
 * PMIx by libpmix: its server library communicates with the tasks in its own thread, and calls the
 * functions of `module` there. They only record the request and send it to srun; the loop of slurmstepd
 * answers. The lock guards the lists of requests.
 */
#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "compat/stepd/frames.h"
#include "compat/stepd/mpi.h"
#include "compat/stepd/pmix_api.h"

#define JOB_FIELDS_MAX  24U
#define PROC_FIELDS_MAX 12U
#define REMOVE_DEPTH    8

/* A fence or a fetch whose answer libpmix waits for. */
struct pending {
    struct buffer key; // of a fence
    uint64_t request;  // of a fetch
    pmix_modex_fn *done;
    void *arg;
    struct pending *next;
};

struct pmix {
    const struct pmix_api *api;
    const struct mpi_setup *setup;
    struct mpi_acts acts;
    char nspace[PMIX_NSPACE_SIZE];
    char directory[64];
    bool *members; // by task of this node: connected, and not finalized
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool is_done;
    int status;
    struct pending *fences, *fetches; // the oldest first
    uint64_t requests;
};

/* libpmix passes no argument to its functions. */
static struct pmix *self;

static int check(struct error *err)
{
    const struct pmix_api *api = NULL;
    return pmix_api_load(&api, err);
}

/* --- requests that wait --- */

static void append(struct pending **list, struct pending *pending)
{
    while (*list != NULL)
        list = &(*list)->next;
    *list = pending;
}

static struct pending *take_fence(const void *key, size_t length)
{
    (void)pthread_mutex_lock(&self->lock);
    struct pending **link = &self->fences;
    while (*link != NULL && ((*link)->key.length != length || memcmp((*link)->key.bytes, key, length) != 0))
        link = &(*link)->next;
    struct pending *found = *link;
    if (found != NULL)
        *link = found->next;
    (void)pthread_mutex_unlock(&self->lock);
    return found;
}

static struct pending *take_fetch(uint64_t request)
{
    (void)pthread_mutex_lock(&self->lock);
    struct pending **link = &self->fetches;
    while (*link != NULL && (*link)->request != request)
        link = &(*link)->next;
    struct pending *found = *link;
    if (found != NULL)
        *link = found->next;
    (void)pthread_mutex_unlock(&self->lock);
    return found;
}

/* libpmix releases the data when it has read it. */
static void answer(struct pending *pending, int status, const void *data, size_t length)
{
    char *copy = NULL;
    if (pending == NULL)
        return;
    if (length > 0) {
        copy = xcalloc(1, length);
        memcpy(copy, data, length);
    }
    pending->done(status, copy, length, pending->arg, free, copy);
    buffer_clear(&pending->key);
    free(pending);
}

/* --- called by libpmix --- */

static int on_connected(const struct pmix_proc *proc, void *object, pmix_op_fn *done, void *arg)
{
    if (object != NULL)
        *(bool *)object = true;
    return PMIX_DONE_AT_ONCE;
}

static int on_finalized(const struct pmix_proc *proc, void *object, pmix_op_fn *done, void *arg)
{
    if (object != NULL)
        *(bool *)object = false;
    return PMIX_DONE_AT_ONCE;
}

static int on_abort(const struct pmix_proc *proc, void *object, int status, const char *message,
    struct pmix_proc *procs, size_t n_procs, pmix_op_fn *done, void *arg)
{
    self->acts.abort(self->acts.arg, status != 0 ? status : 1, message != NULL ? message : "MPI_Abort");
    return PMIX_DONE_AT_ONCE;
}

/* The places of the nodes that have these processes, sorted and unique. */
static size_t nodes_of(const struct pmix_proc *procs, size_t n_procs, uint32_t *nodes)
{
    const struct mpi_setup *setup = self->setup;
    size_t count = 0;
    for (uint32_t node = 0; node < setup->nodes.count; node++)
        for (size_t i = 0; i < n_procs; i++) {
            uint32_t rank = procs[i].rank;
            if (rank < PMIX_ALL_RANKS && (rank < setup->first[node] || rank >= setup->first[node + 1]))
                continue;
            nodes[count++] = node;
            break;
        }
    return count;
}

static int on_fence(const struct pmix_proc *procs, size_t n_procs, const struct pmix_info *info,
    size_t n_info, char *data, size_t length, pmix_modex_fn *done, void *arg)
{
    struct pending *pending = xcalloc(1, sizeof(*pending));
    _cleanup_free_ uint32_t *nodes = xcalloc(self->setup->nodes.count, sizeof(*nodes));
    _cleanup_buffer_ struct buffer key = { 0 };
    size_t n_nodes = nodes_of(procs, n_procs, nodes);
    for (size_t i = 0; i < n_procs; i++)
        frame_add_number(&key, 4, procs[i].rank);
    *pending = (struct pending){ .done = done, .arg = arg };
    buffer_append(&pending->key, key.bytes, key.length);
    (void)pthread_mutex_lock(&self->lock);
    append(&self->fences, pending);
    (void)pthread_mutex_unlock(&self->lock);
    self->acts.gather(self->acts.arg, key.bytes, key.length, nodes, n_nodes, data, length);
    free(data);
    return PMIX_OK;
}

static int on_modex(
    const struct pmix_proc *proc, const struct pmix_info *info, size_t n_info, pmix_modex_fn *done, void *arg)
{
    if (strcmp(proc->nspace, self->nspace) != 0 || proc->rank >= self->setup->first[self->setup->nodes.count])
        return PMIX_NOT_FOUND;
    struct pending *pending = xcalloc(1, sizeof(*pending));
    (void)pthread_mutex_lock(&self->lock);
    uint64_t request = ++self->requests;
    *pending = (struct pending){ .request = request, .done = done, .arg = arg };
    append(&self->fetches, pending);
    (void)pthread_mutex_unlock(&self->lock);
    self->acts.fetch(self->acts.arg, proc->rank, request);
    return PMIX_OK;
}

static struct pmix_module module = {
    .client_connected = on_connected,
    .client_finalized = on_finalized,
    .abort = on_abort,
    .fence = on_fence,
    .direct_modex = on_modex,
};

/* --- what the job is --- */

struct fields {
    struct pmix_info *items;
    size_t count, most;
};

static struct pmix_info *add(struct fields *fields, const char *key, uint16_t type)
{
    struct pmix_info *info = &fields->items[fields->count++];
    (void)snprintf(info->key, sizeof(info->key), "%s", key);
    info->value.type = type;
    return info;
}

static void add_text(struct fields *fields, const char *key, const char *text)
{
    add(fields, key, PMIX_TYPE_STRING)->value.as.string = xstrdup(text);
}

static void add_number(struct fields *fields, const char *key, uint16_t type, uint32_t number)
{
    struct pmix_info *info = add(fields, key, type);
    if (type == PMIX_TYPE_UINT16)
        info->value.as.uint16 = (uint16_t)number;
    else
        info->value.as.uint32 = number;
}

static void clear_fields(struct fields *fields)
{
    for (size_t i = 0; i < fields->count; i++) {
        struct pmix_value *value = &fields->items[i].value;
        if (value->type == PMIX_TYPE_STRING)
            free(value->as.string);
        if (value->type != PMIX_TYPE_ARRAY)
            continue;
        struct fields inner = { value->as.array->items, value->as.array->count, 0 };
        clear_fields(&inner);
        free(value->as.array);
    }
    free(fields->items);
}

static void add_task(struct fields *fields, const struct mpi_setup *setup, uint32_t task)
{
    uint32_t node = mpi_node_of(setup, task), local = task - setup->first[node];
    struct fields own = { xcalloc(PROC_FIELDS_MAX, sizeof(*own.items)), 0, PROC_FIELDS_MAX };
    add_number(&own, "pmix.rank", PMIX_TYPE_RANK, task);
    add_number(&own, "pmix.appnum", PMIX_TYPE_UINT32, 0);
    add_number(&own, "pmix.grank", PMIX_TYPE_RANK, task);
    add_number(&own, "pmix.apprank", PMIX_TYPE_RANK, task);
    add_number(&own, "pmix.lrank", PMIX_TYPE_UINT16, local);
    add_number(&own, "pmix.nrank", PMIX_TYPE_UINT16, local);
    add_number(&own, "pmix.nodeid", PMIX_TYPE_UINT32, node);
    add_text(&own, "pmix.hname", setup->nodes.items[node]);
    struct pmix_array *array = xcalloc(1, sizeof(*array));
    *array = (struct pmix_array){ PMIX_TYPE_INFO, own.count, own.items };
    add(fields, "pmix.pdata", PMIX_TYPE_ARRAY)->value.as.array = array;
}

/* "raw:n1,n2" and "raw:0,1;2,3". */
static void add_maps(struct fields *fields, const struct mpi_setup *setup)
{
    _cleanup_buffer_ struct buffer nodes = { 0 }, tasks = { 0 }, peers = { 0 };
    for (uint32_t i = 0; i < setup->nodes.count; i++) {
        buffer_printf(&nodes, "%s%s", i > 0 ? "," : "raw:", setup->nodes.items[i]);
        buffer_append_text(&tasks, i > 0 ? ";" : "raw:");
        for (uint32_t task = setup->first[i]; task < setup->first[i + 1]; task++) {
            buffer_printf(&tasks, "%s%u", task > setup->first[i] ? "," : "", task);
            if (i == setup->here)
                buffer_printf(&peers, "%s%u", task > setup->first[i] ? "," : "", task);
        }
    }
    _cleanup_free_ char *mapping = mpi_process_mapping(setup);
    add_text(fields, "pmix.nmap", buffer_text(&nodes));
    add_text(fields, "pmix.pmap", buffer_text(&tasks));
    add_text(fields, "pmix.lpeers", buffer_text(&peers));
    add_text(fields, "pmix.anlmap", mapping);
}

static void describe_job(const struct mpi_setup *setup, struct fields *ret)
{
    uint32_t size = setup->first[setup->nodes.count], first = setup->first[setup->here];
    uint32_t here = setup->first[setup->here + 1] - first;
    ret->most = JOB_FIELDS_MAX + size;
    ret->items = xcalloc(ret->most, sizeof(*ret->items));
    add_text(ret, "pmix.jobid", setup->name);
    add_number(ret, "pmix.univ.size", PMIX_TYPE_UINT32, size);
    add_number(ret, "pmix.job.size", PMIX_TYPE_UINT32, size);
    add_number(ret, "pmix.max.size", PMIX_TYPE_UINT32, size);
    add_number(ret, "pmix.app.size", PMIX_TYPE_UINT32, size);
    add_number(ret, "pmix.job.napps", PMIX_TYPE_UINT32, 1);
    add_number(ret, "pmix.num.nodes", PMIX_TYPE_UINT32, (uint32_t)setup->nodes.count);
    add_number(ret, "pmix.local.size", PMIX_TYPE_UINT32, here);
    add_number(ret, "pmix.node.size", PMIX_TYPE_UINT32, here);
    add_number(ret, "pmix.lldr", PMIX_TYPE_RANK, first);
    add_number(ret, "pmix.aldr", PMIX_TYPE_RANK, 0);
    add_number(ret, "pmix.offset", PMIX_TYPE_RANK, 0);
    add_maps(ret, setup);
    for (uint32_t task = 0; task < size; task++)
        add_task(ret, setup, task);
}

/* --- life --- */

static int fail(const struct pmix *pmix, const char *what, int status, struct error *err)
{
    return error_set(err, -EIO, "pmix: %s failed: %.100s", what, pmix->api->error_string(status));
}

static void on_done(int status, void *arg)
{
    struct pmix *pmix = arg;
    (void)pthread_mutex_lock(&pmix->lock);
    pmix->is_done = true;
    pmix->status = status;
    (void)pthread_cond_signal(&pmix->done);
    (void)pthread_mutex_unlock(&pmix->lock);
}

/* For calls that answer in the other thread; `status` is the result of the call. */
static int await(struct pmix *pmix, int status)
{
    if (status == PMIX_DONE_AT_ONCE)
        return PMIX_OK;
    if (status != PMIX_OK)
        return status;
    (void)pthread_mutex_lock(&pmix->lock);
    while (!pmix->is_done)
        (void)pthread_cond_wait(&pmix->done, &pmix->lock);
    status = pmix->status;
    pmix->is_done = false;
    (void)pthread_mutex_unlock(&pmix->lock);
    return status == PMIX_DONE_AT_ONCE ? PMIX_OK : status;
}

static int start_server(struct pmix *pmix, struct error *err)
{
    struct fields own = { xcalloc(8, sizeof(*own.items)), 0, 8 };
    struct fields job = { 0 };
    const struct mpi_setup *setup = pmix->setup;
    int n_local = (int)(setup->first[setup->here + 1] - setup->first[setup->here]);
    add_text(&own, "pmix.srvr.tmpdir", pmix->directory);
    add_text(&own, "pmix.hname", setup->nodes.items[setup->here]);
    int status = pmix->api->server_init(&module, own.items, own.count);
    clear_fields(&own);
    if (status != PMIX_OK)
        return fail(pmix, "the start of its server", status, err);
    describe_job(setup, &job);
    status =
        await(pmix, pmix->api->register_nspace(pmix->nspace, n_local, job.items, job.count, on_done, pmix));
    clear_fields(&job);
    return status == PMIX_OK ? 0 : fail(pmix, "the description of the job", status, err);
}

static int make_directory(struct pmix *pmix, struct error *err)
{
    (void)snprintf(pmix->directory, sizeof(pmix->directory), "/tmp/mgpu-pmix.XXXXXX");
    if (mkdtemp(pmix->directory) == NULL)
        return error_set_errno(err, -errno, "cannot create %s", pmix->directory);
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)remove(path);
    return 0;
}

static void remove_directory(const struct pmix *pmix)
{
    (void)nftw(pmix->directory, remove_one, REMOVE_DEPTH, FTW_DEPTH | FTW_PHYS);
}

static int open_pmix(
    const struct mpi_setup *setup, const struct mpi_acts *acts, void **ret, struct error *err)
{
    struct pmix *pmix = xcalloc(1, sizeof(*pmix));
    *pmix = (struct pmix){
        .setup = setup, .acts = *acts, .lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER
    };
    pmix->members = xcalloc(setup->first[setup->here + 1] - setup->first[setup->here] + 1, sizeof(bool));
    (void)snprintf(pmix->nspace, sizeof(pmix->nspace), "mgpu.%s", setup->name);
    self = pmix; // for the life of the process
    *ret = pmix;
    int r = pmix_api_load(&pmix->api, err);
    if (r == 0)
        r = make_directory(pmix, err);
    if (r == 0)
        r = start_server(pmix, err);
    if (r < 0 && pmix->directory[0] != '\0')
        remove_directory(pmix);
    return r;
}

static int prepare(void *state, uint32_t task, struct strings *env, int *ret_fd, struct error *err)
{
    struct pmix *pmix = state;
    struct pmix_proc proc = { .rank = task };
    char **variables = NULL;
    bool *member = &pmix->members[task - pmix->setup->first[pmix->setup->here]];
    memcpy(proc.nspace, pmix->nspace, sizeof(proc.nspace));
    *ret_fd = -1;
    int status = await(pmix, pmix->api->register_client(&proc, getuid(), getgid(), member, on_done, pmix));
    if (status != PMIX_OK)
        return fail(pmix, "the registration of a task", status, err);
    status = pmix->api->setup_fork(&proc, &variables);
    if (status != PMIX_OK)
        return fail(pmix, "the environment of a task", status, err);
    for (char **one = variables; one != NULL && *one != NULL; one++)
        strings_take(env, *one);
    free(variables);
    return 0;
}

static int fd_of(const void *state, uint32_t task)
{
    return -1; // libpmix reads the messages of tasks
}

static void readable(void *state, uint32_t task)
{
}

static void gathered(void *state, const void *key, size_t key_length, const void *data, size_t length)
{
    answer(take_fence(key, key_length), PMIX_OK, data, length);
}

static void on_response(int status, char *data, size_t length, void *arg)
{
    uint64_t *request = arg;
    self->acts.answer(self->acts.arg, *request, status, data, length);
    free(request);
}

static void asked(void *state, uint32_t task, uint64_t request)
{
    struct pmix *pmix = state;
    struct pmix_proc proc = { .rank = task };
    uint64_t *kept = xcalloc(1, sizeof(*kept));
    *kept = request;
    memcpy(proc.nspace, pmix->nspace, sizeof(proc.nspace));
    int status = pmix->api->dmodex_request(&proc, on_response, kept);
    if (status != PMIX_OK)
        on_response(status, NULL, 0, kept);
}

static void fetched(void *state, uint64_t request, int status, const void *data, size_t length)
{
    answer(take_fetch(request), status, data, length);
}

static bool is_member(const void *state, uint32_t task)
{
    const struct pmix *pmix = state;
    return pmix->members[task - pmix->setup->first[pmix->setup->here]];
}

/* Its thread may still be in a call, so the server's memory is kept until the process ends. */
static void close_pmix(void *state)
{
    struct pmix *pmix = state;
    (void)pmix->api->server_finalize();
    remove_directory(pmix);
}

const struct mpi_kind mpi_pmix = {
    .name = "pmix",
    .check = check,
    .open = open_pmix,
    .prepare = prepare,
    .fd = fd_of,
    .readable = readable,
    .gathered = gathered,
    .asked = asked,
    .fetched = fetched,
    .is_member = is_member,
    .close = close_pmix,
};
