/* SPDX-License-Identifier: MIT */
/* Measured values are shown only if their bit says they are valid and the node is connected. */
#include "wire/json_gpu.h"

#include "job/gpu_health.h"
#include "job/gpu_instance.h"
#include "wire/json_append.h"
#include "wire/json_job.h"
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

static json_t *measured(const struct json_gpu_view *view, enum gpu_value value, json_t *number)
{
    if (view->is_node_up && (view->gpu->valid & (uint32_t)value) != 0)
        return number;
    json_decref(number);
    return json_null();
}

/* All processes on it, of jobs and external. */
static json_t *processes(const struct json_gpu_view *view)
{
    const struct gpu_process *items = view->gpu->processes.items;
    if (!view->is_node_up || (view->gpu->valid & GPU_PROCESSES) == 0)
        return json_null();
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
static json_t *idle_seconds(const struct json_gpu_view *view)
{
    int64_t idle_ms = view->n_jobs > 0 ? view->idle_ms[0] : 0;
    for (size_t i = 1; i < view->n_jobs; i++)
        idle_ms = view->idle_ms[i] < idle_ms ? view->idle_ms[i] : idle_ms;
    return view->is_node_up && idle_ms > 0 ? json_text_seconds(idle_ms) : json_null();
}

static json_t *place(int32_t number)
{
    return number >= 0 ? json_integer(number) : json_null();
}

/* The positions in the node's list of its NVLink peers. */
static json_t *links(uint64_t bits)
{
    json_t *array = json_array();
    for (unsigned k = 0; k < 64; k++)
        if ((bits >> k & 1) != 0)
            (void)json_array_append_new(array, json_integer(k));
    return array;
}

/* Why it is not in use: an administrator's reason takes precedence over mgpu's. */
static const char *reason(const struct json_gpu_view *view)
{
    const struct cluster_change *marks[] = { view->pause, view->fault, view->drain };
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
        if (marks[i] != NULL)
            return marks[i]->text;
    if (view->gpu->refusal != NULL)
        return view->gpu->refusal;
    return view->gpu->is_unclean != 0 ? view->gpu->trouble : NULL;
}

static json_t *fault(const struct cluster_change *change)
{
    if (change == NULL)
        return json_null();
    json_t *object = json_object();
    (void)json_object_set_new(object, "kind", json_string(gpu_fault_name((enum gpu_fault)change->fault)));
    (void)json_object_set_new(object, "xid", change->xid != 0 ? json_integer(change->xid) : json_null());
    (void)json_object_set_new(object, "text", json_text_string(change->text));
    (void)json_object_set_new(object, "since", json_text_time(change->from_ms));
    return object;
}

static json_t *thousandth(uint64_t value)
{
    return json_real((double)value / 1000);
}

/* Names of figures as in `mgpu gpu test --json`. */
static json_t *tests(const struct gpu_state *gpu)
{
    const struct gpu_test *items = gpu->tests.items;
    json_t *array = json_array();
    for (size_t i = 0; i < gpu->tests.count; i++) {
        json_t *test = json_object();
        bool has_figures = items[i].error == NULL;
        (void)json_object_set_new(test, "at", json_text_time(items[i].wall_ms));
        (void)json_object_set_new(test, "error", json_text_string(items[i].error));
        if (has_figures) {
            (void)json_object_set_new(test, "to_gpu_gb_per_s", thousandth(items[i].to_mb_s));
            (void)json_object_set_new(test, "from_gpu_gb_per_s", thousandth(items[i].from_mb_s));
            (void)json_object_set_new(test, "on_gpu_gb_per_s", thousandth(items[i].on_mb_s));
            (void)json_object_set_new(test, "multiply_gflop_per_s", thousandth(items[i].product_mflops));
            (void)json_object_set_new(test, "wrong", json_integer((json_int_t)items[i].wrong));
        }
        (void)json_array_append_new(array, test);
    }
    return array;
}

static void add_verdict(struct json_members *members, const struct json_gpu_view *view)
{
    char text[GPU_COMPARISON_TEXT_SIZE] = "";
    double part;
    enum gpu_test_verdict verdict = view->comparison != NULL
                                        ? gpu_comparison_judge(view->comparison, view->gpu, text, &part)
                                        : GPU_UNTESTED;
    json_members_add(members, "test_result", json_text_string(gpu_test_verdict_name(verdict)));
    json_members_add(members, "test_text", json_text_string(text[0] != '\0' ? text : NULL));
}

/* Of a MIG instance. */
static json_t *instance(const struct gpu_state *gpu)
{
    if (gpu->parent == NULL)
        return json_null();
    json_t *object = json_object();
    (void)json_object_set_new(object, "profile", json_text_string(gpu_instance_profile(gpu->model)));
    (void)json_object_set_new(object, "parent", json_text_string(gpu->parent));
    (void)json_object_set_new(object, "gpu_instance", json_integer(gpu->gpu_instance));
    (void)json_object_set_new(object, "compute_instance", json_integer(gpu->compute_instance));
    return object;
}

static json_t *describe_job(const struct json_gpu_view *view, const struct job *job)
{
    json_t *object = json_object();
    uint32_t pid = job->ask->adopted_pid;
    (void)json_object_set_new(object, "id", json_integer((json_int_t)job->id));
    if (!view->is_sparse || job->array_job != 0)
        json_job_add_element(object, job);
    (void)json_object_set_new(object, "user", json_text_string(usernames_name(view->names, job->uid)));
    (void)json_object_set_new(object, "name", json_text_string(job->name));
    if (!view->is_sparse || pid != 0)
        (void)json_object_set_new(object, "adopted_pid", pid != 0 ? json_integer(pid) : json_null());
    return object;
}

static void add_members(const struct json_gpu_view *view, struct json_members *members)
{
    const struct gpu_state *gpu = view->gpu;
    json_members_add(members, "node", json_text_string(view->node));
    json_members_add(members, "index", json_integer(gpu->index));
    json_members_add(members, "uuid", json_text_string(gpu->uuid));
    json_members_add(members, "model", json_text_string(gpu->model));
    json_members_add(members, "pci", json_text_string(gpu->pci));
    json_members_add(members, "mig", instance(gpu));
    json_members_add(members, "memory_bytes", json_integer((json_int_t)gpu->memory_bytes));
    json_members_add(members, "memory_used_bytes",
        measured(view, GPU_MEMORY_USED, json_integer((json_int_t)gpu->memory_used_bytes)));
    json_members_add(members, "utilization",
        measured(view, GPU_UTILIZATION, json_real((double)gpu->utilization_percent / 100.0)));
    json_members_add(
        members, "temperature_c", measured(view, GPU_TEMPERATURE, json_integer(gpu->temperature_c)));
    json_members_add(
        members, "power_w", measured(view, GPU_POWER, json_real((double)gpu->power_mw / 1000.0)));
    json_members_add(members, "power_limit_w",
        measured(view, GPU_POWER_LIMIT, json_real((double)gpu->power_limit_mw / 1000.0)));
    json_members_add(
        members, "energy_joules", measured(view, GPU_ENERGY, json_text_seconds((int64_t)gpu->energy_mj)));
    json_members_add(members, "sm_clock_mhz", measured(view, GPU_SM_CLOCK, json_integer(gpu->sm_clock_mhz)));
    json_members_add(
        members, "memory_clock_mhz", measured(view, GPU_MEMORY_CLOCK, json_integer(gpu->memory_clock_mhz)));
    json_members_add(
        members, "ecc_corrected", measured(view, GPU_ECC, json_integer((json_int_t)gpu->ecc_corrected)));
    json_members_add(
        members, "ecc_uncorrected", measured(view, GPU_ECC, json_integer((json_int_t)gpu->ecc_uncorrected)));
    json_members_add(members, "xid", gpu->xid != 0 ? json_integer(gpu->xid) : json_null());
    json_members_add(members, "xid_at", json_text_time(gpu->xid_wall_ms));
    json_members_add(members, "trouble", json_text_string(gpu->trouble));
    json_members_add(members, "processes", processes(view));
    json_members_add(members, "policy", json_text_string(view->external_policy));
    json_members_add(members, "avoided",
        view->is_sparse && !view->is_avoided ? json_null() : json_boolean(view->is_avoided));
    json_members_add(members, "state", json_string(json_gpu_state(view)));
    const struct cluster_change *mark = view->pause != NULL ? view->pause : view->drain;
    json_members_add(members, "reason", json_text_string(reason(view)));
    json_members_add(members, "unreachable_since", json_text_time(view->unreachable_ms));
    json_members_add(members, "fault", fault(view->fault));
    json_members_add(members, "until", json_text_time(mark != NULL ? mark->until_ms : 0));
    json_members_add(members, "numa", place(gpu->numa));
    json_members_add(members, "pcie_switch", place(gpu->pcie_switch));
    json_members_add(members, "links", view->is_sparse && gpu->links == 0 ? json_null() : links(gpu->links));
    json_members_add(members, "tests", view->is_sparse && gpu->tests.count == 0 ? json_null() : tests(gpu));
    add_verdict(members, view);
    json_members_add(members, "idle_s", idle_seconds(view));
    json_members_add(
        members, "wasted", view->is_sparse && !view->is_wasted ? json_null() : json_boolean(view->is_wasted));
    if (view->is_sparse && view->n_jobs == 0)
        return;
    json_t *jobs = json_array();
    for (size_t i = 0; i < view->n_jobs; i++)
        (void)json_array_append_new(jobs, describe_job(view, view->jobs[i]));
    json_members_add(members, "jobs", jobs);
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
