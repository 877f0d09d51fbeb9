/* SPDX-License-Identifier: MIT */
/* One row per member. Measured values are shown only if their bit says they are valid and the node is
 * connected. */
#include "wire/json_gpu.h"

#include "job/gpu_health.h"
#include "job/gpu_instance.h"
#include "wire/json_text.h"

/* True when a job on this GPU holds only a part of it. */
static bool is_shared(const struct json_gpu_view *view)
{
    for (size_t i = 0; i < view->n_jobs; i++) {
        const struct gpu_grant *grants = view->jobs[i]->grants.items;
        for (size_t k = 0; k < view->jobs[i]->grants.count; k++)
            if (grants[k].index == view->gpu->index && grants[k].slot != 0)
                return true;
    }
    return false;
}

const char *json_gpu_state(const struct json_gpu_view *view)
{
    if (!view->is_node_up)
        return "node_down";
    if (view->gpu->is_released != 0)
        return "released";
    if (view->pause != NULL && view->pause->is_released)
        return "paused"; // its node still has it open
    if (view->gpu->is_lost != 0)
        return "lost";
    if (view->pause != NULL)
        return "paused";
    if (view->fault != NULL)
        return "drained";
    if (view->drain != NULL)
        return "node_drained";
    if (view->gpu->refusal != NULL)
        return "refused";
    if (view->gpu->is_unclean != 0)
        return "unclean";
    if (view->n_jobs == 0)
        return "free";
    return is_shared(view) ? "shared" : "used";
}

static json_t *write_state(const void *view)
{
    return json_string(json_gpu_state(view));
}

/* All processes on it, of jobs and external. */
static json_t *write_processes(const void *at)
{
    const struct json_gpu_view *view = at;
    const struct gpu_process *items = view->gpu->processes.items;
    json_t *array = json_array();
    for (size_t i = 0; i < view->gpu->processes.count; i++) {
        const struct gpu_process *process = &items[i];
        json_t *object = json_object();
        (void)json_object_set_new(object, "pid", json_integer(process->pid));
        (void)json_object_set_new(object, "user",
            json_text_string(process->start != 0 ? usernames_name(view->names, process->uid) : NULL));
        (void)json_object_set_new(object, "command", json_text_string(process->command));
        (void)json_object_set_new(object, "container", json_text_string(process->container));
        (void)json_object_set_new(object, "memory_bytes",
            process->is_memory_known ? json_integer((json_int_t)process->memory_bytes) : json_null());
        (void)json_object_set_new(
            object, "job", process->job != 0 ? json_integer((json_int_t)process->job) : json_null());
        (void)json_array_append_new(array, object);
    }
    return array;
}

/* If several jobs are on it, the one that used it last counts. */
static json_t *write_idle_seconds(const void *at)
{
    const struct json_gpu_view *view = at;
    int64_t idle_ms = view->n_jobs > 0 ? view->idle_ms[0] : 0;
    for (size_t i = 1; i < view->n_jobs; i++)
        idle_ms = view->idle_ms[i] < idle_ms ? view->idle_ms[i] : idle_ms;
    return view->is_node_up && idle_ms > 0 ? json_text_seconds(idle_ms) : json_null();
}

/* The positions in the node's list of its NVLink peers. */
static json_t *write_links(const void *at)
{
    const struct json_gpu_view *view = at;
    uint64_t bits = view->gpu->links;
    if (view->is_sparse && bits == 0)
        return json_null();
    json_t *array = json_array();
    for (unsigned k = 0; k < 64; k++)
        if ((bits >> k & 1) != 0)
            (void)json_array_append_new(array, json_integer(k));
    return array;
}

/* Why it is not in use: an administrator's reason takes precedence over mgpu's. */
static json_t *write_reason(const void *at)
{
    const struct json_gpu_view *view = at;
    const struct cluster_change *marks[] = { view->pause, view->fault, view->drain };
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
        if (marks[i] != NULL)
            return json_text_string(marks[i]->text);
    if (view->gpu->refusal != NULL)
        return json_text_string(view->gpu->refusal);
    return json_text_string(view->gpu->is_unclean != 0 ? view->gpu->trouble : NULL);
}

static json_t *write_fault(const void *at)
{
    const struct cluster_change *change = at;
    json_t *object = json_object();
    (void)json_object_set_new(object, "kind", json_string(gpu_fault_name((enum gpu_fault)change->fault)));
    (void)json_object_set_new(object, "xid", change->xid != 0 ? json_integer(change->xid) : json_null());
    (void)json_object_set_new(object, "text", json_text_string(change->text));
    (void)json_object_set_new(object, "since", json_text_time(change->from_ms));
    return object;
}

/* Of a MIG instance. */
static json_t *write_instance(const void *at)
{
    const struct gpu_state *gpu = at;
    if (gpu->parent == NULL)
        return json_null();
    json_t *object = json_object();
    (void)json_object_set_new(object, "profile", json_text_string(gpu_instance_profile(gpu->model)));
    (void)json_object_set_new(object, "parent", json_text_string(gpu->parent));
    (void)json_object_set_new(object, "gpu_instance", json_integer(gpu->gpu_instance));
    (void)json_object_set_new(object, "compute_instance", json_integer(gpu->compute_instance));
    return object;
}

static json_t *form_hundredths(const void *number)
{
    return json_real(*(const uint32_t *)number / 100.0);
}

static json_t *form_thousandths(const void *number)
{
    return json_real(*(const uint32_t *)number / 1000.0);
}

static json_t *form_long_thousandths(const void *number)
{
    return json_real((double)*(const uint64_t *)number / 1000);
}

/* --- a test --- */

static bool has_figures(const void *test, uint32_t needs)
{
    return ((const struct gpu_test *)test)->error == NULL;
}

#define TEST(...)            JSON_FIELD(gpu_test, __VA_ARGS__)
#define FIGURE(...)          __VA_ARGS__, .needs = 1, .is_optional = true
#define THOUSANDTHS(member_) FIGURE(JSON_FORM(gpu_test, member_, form_long_thousandths))

/* Names of figures as in `mgpu gpu test --json`. */
static const struct json_member test_members[] = {
    { "at", "string", "when", TEST(wall_ms, TIME) },
    { "error", "string|null", "why there are no figures", TEST(error, STRING) },
    { "to_gpu_gb_per_s", "number", "copies to the GPU", THOUSANDTHS(to_mb_s) },
    { "from_gpu_gb_per_s", "number", "copies from the GPU", THOUSANDTHS(from_mb_s) },
    { "on_gpu_gb_per_s", "number", "copies on the GPU", THOUSANDTHS(on_mb_s) },
    { "multiply_gflop_per_s", "number", "products of matrices", THOUSANDTHS(product_mflops) },
    { "wrong", "integer", "wrong words and products", FIGURE(TEST(wrong, U64, .has_zero = true)) },
};

const struct json_table json_gpu_test_table = JSON_TABLE(gpu_test, test_members, .has = has_figures);

static json_t *write_tests(const void *at)
{
    const struct json_gpu_view *view = at;
    bool is_omitted = view->is_sparse && view->gpu->tests.count == 0;
    return is_omitted ? json_null() : json_table_write_list(&json_gpu_test_table, &view->gpu->tests);
}

/* --- a job on it --- */

struct gpu_job {
    const struct job *job;
    const struct job_ask *ask;
    struct usernames *names;
};

static json_t *write_owner(const void *at)
{
    const struct gpu_job *of = at;
    return json_text_string(usernames_name(of->names, of->job->uid));
}

static bool is_element(const void *at, uint32_t needs)
{
    return ((const struct gpu_job *)at)->job->array_job != 0;
}

#define JOB(...) JSON_THROUGH(gpu_job, job), JSON_FIELD(job, __VA_ARGS__)

static const struct json_member job_members[] = {
    { "id", "integer", "the job", JOB(id, U64, .has_zero = true) },
    { "array_job", "integer|null", "array it is an element of", JOB(array_job, U64) },
    { "array_index", "integer|null", "its index there", JOB(array_index, U32, .has_zero = true), .needs = 1 },
    { "user", "string", "its owner", .make = write_owner },
    { "name", "string", "its name", JOB(name, STRING) },
    { "adopted_pid", "integer|null", "process it reserves the GPU for", JSON_THROUGH(gpu_job, ask),
        JSON_FIELD(job_ask, adopted_pid, U32) },
};

const struct json_table json_gpu_job_table = JSON_TABLE(gpu_job, job_members, .has = is_element);

static json_t *write_jobs(const void *at)
{
    const struct json_gpu_view *view = at;
    if (view->is_sparse && view->n_jobs == 0)
        return json_null();
    json_t *jobs = json_array();
    for (size_t i = 0; i < view->n_jobs; i++) {
        const struct gpu_job of = { view->jobs[i], view->jobs[i]->ask, view->names };
        struct json_members members = { .tree = json_object(), .is_sparse = view->is_sparse };
        json_table_add(&json_gpu_job_table, &of, &members);
        (void)json_array_append_new(jobs, members.tree);
    }
    return jobs;
}

/* --- the GPU --- */

static bool is_measured(const void *at, uint32_t needs)
{
    const struct json_gpu_view *view = at;
    return view->is_node_up && (view->gpu->valid & needs) != 0;
}

#define VIEW(...)             JSON_FIELD(json_gpu_view, __VA_ARGS__)
#define STATE(...)            JSON_THROUGH(json_gpu_view, gpu), JSON_FIELD(gpu_state, __VA_ARGS__)
#define FORM(...)             JSON_THROUGH(json_gpu_view, gpu), JSON_FORM(gpu_state, __VA_ARGS__)
#define COUNT(member_, kind_) STATE(member_, kind_, .has_zero = true)

static const struct json_member gpu_members[] = {
    { "node", "string", "its node", VIEW(node, STRING) },
    { "index", "integer", "its number there", COUNT(index, U32) },
    { "uuid", "string", "its identity", STATE(uuid, STRING) },
    { "model", "string", "its model", STATE(model, STRING) },
    { "pci", "string|null", "its PCI address", STATE(pci, STRING) },
    { "mig", "object|null", "of a MIG instance: profile, parent, gpu_instance, compute_instance",
        JSON_THROUGH(json_gpu_view, gpu), .make = write_instance },
    { "memory_bytes", "integer", "its memory", COUNT(memory_bytes, U64) },
    { "memory_used_bytes", "integer|null", "memory in use", COUNT(memory_used_bytes, U64),
        .needs = GPU_MEMORY_USED },
    { "utilization", "number|null", "from 0 to 1", FORM(utilization_percent, form_hundredths),
        .needs = GPU_UTILIZATION },
    { "temperature_c", "integer|null", "degrees Celsius", COUNT(temperature_c, U32),
        .needs = GPU_TEMPERATURE },
    { "power_w", "number|null", "watts", FORM(power_mw, form_thousandths), .needs = GPU_POWER },
    { "power_limit_w", "number|null", "watts", FORM(power_limit_mw, form_thousandths),
        .needs = GPU_POWER_LIMIT },
    { "energy_joules", "number|null", "since the driver was loaded", COUNT(energy_mj, DURATION),
        .needs = GPU_ENERGY },
    { "sm_clock_mhz", "integer|null", "clock of its processors", COUNT(sm_clock_mhz, U32),
        .needs = GPU_SM_CLOCK },
    { "memory_clock_mhz", "integer|null", "clock of its memory", COUNT(memory_clock_mhz, U32),
        .needs = GPU_MEMORY_CLOCK },
    { "ecc_corrected", "integer|null", "corrected memory errors", COUNT(ecc_corrected, U64),
        .needs = GPU_ECC },
    { "ecc_uncorrected", "integer|null", "uncorrected memory errors", COUNT(ecc_uncorrected, U64),
        .needs = GPU_ECC },
    { "xid", "integer|null", "last error reported by the driver", STATE(xid, U32) },
    { "xid_at", "string|null", "when", STATE(xid_wall_ms, TIME) },
    { "trouble", "string|null", "its problem in words", STATE(trouble, STRING) },
    { "processes", "object[]", "processes on it", .make = write_processes, .needs = GPU_PROCESSES },
    { "policy", "string", "how external processes are treated", VIEW(external_policy, STRING) },
    { "avoided", "boolean", "external processes keep new jobs away from it", VIEW(is_avoided, BOOL) },
    { "state", "string", "free, used, shared, external, paused, failed and others", .make = write_state },
    { "reason", "string|null", "why it takes no job", .make = write_reason },
    { "unreachable_since", "string|null", "time since which its node has been unreachable",
        VIEW(unreachable_ms, TIME) },
    { "fault", "string|null", "the fault that took it out of service", JSON_THROUGH(json_gpu_view, fault),
        .make = write_fault },
    { "until", "string|null", "end of a pause", JSON_THROUGH(json_gpu_view, mark),
        JSON_FIELD(cluster_change, until_ms, TIME) },
    { "numa", "integer|null", "its NUMA node", FORM(numa, json_form_place) },
    { "pcie_switch", "integer|null", "its PCIe switch", FORM(pcie_switch, json_form_place) },
    { "links", "integer[]", "GPUs with a direct link to it", .make = write_links },
    { "tests", "GpuTest[]", "the last automatic tests of its node, newest first", .make = write_tests },
    { "test_result", "string|null", "passed, slow or failed", VIEW(test_result, STRING) },
    { "test_text", "string|null", "result of the last test in words", VIEW(test_text, STRING) },
    { "idle_s", "number|null", "seconds for which it has been allocated and unused",
        .make = write_idle_seconds },
    { "wasted", "boolean", "idle for longer than the warning time", VIEW(is_wasted, BOOL) },
    { "jobs", "GpuJob[]", "jobs on it", .make = write_jobs },
};

const struct json_table json_gpu_table = JSON_TABLE(json_gpu_view, gpu_members, .has = is_measured);

static void add_members(const struct json_gpu_view *view, struct json_members *members)
{
    struct json_gpu_view shown = *view;
    char text[GPU_COMPARISON_TEXT_SIZE] = "";
    double part;
    enum gpu_test_verdict verdict = view->comparison != NULL
                                        ? gpu_comparison_judge(view->comparison, view->gpu, text, &part)
                                        : GPU_UNTESTED;
    shown.mark = view->pause != NULL ? view->pause : view->drain;
    shown.test_result = gpu_test_verdict_name(verdict);
    shown.test_text = text[0] != '\0' ? text : NULL;
    json_table_add(&json_gpu_table, &shown, members);
}

void json_gpu_append(const struct json_gpu_view *view, struct buffer *out)
{
    struct json_members members;
    json_members_begin(&members, out, view->is_sparse);
    add_members(view, &members);
    json_members_end(&members);
}

json_t *json_gpu_write(const struct json_gpu_view *view)
{
    struct json_members members = { .tree = json_object(), .is_sparse = view->is_sparse };
    add_members(view, &members);
    return members.tree;
}
