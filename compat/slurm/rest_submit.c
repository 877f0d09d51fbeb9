/* SPDX-License-Identifier: MIT */
/*
 * Each property is an option of sbatch under another name, so that a request means the same here and on the
 * command line. sbatch runs in a separate process, with the environment and directory of the request.
 */
#include "compat/slurm/rest_submit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/files.h"
#include "base/memory.h"
#include "cli/submit/slurm_moment.h"
#include "compat/slurm/slurm.h"

#define EXIT_NO_EXEC 126
#define OUTPUT_MAX   65536U

/* Properties whose option is not the name with '-' for '_'. NULL: the property has no effect here. */
static const struct {
    const char *property, *option;
} names[] = {
    { "account_gather_frequency", "acctg-freq" },
    { "batch_features", "batch" },
    { "begin_time", "begin" },
    { "burst_buffer", "bb" },
    { "constraints", "constraint" },
    { "core_specification", "core-spec" },
    { "cpu_binding_hint", "hint" },
    { "cpu_frequency", "cpu-freq" },
    { "current_working_directory", "chdir" },
    { "cwd", "chdir" },
    { "exclude_nodes", "exclude" },
    { "excluded_nodes", "exclude" },
    { "get_user_environment", "get-user-env" },
    { "gpu_binding", "gpu-bind" },
    { "gpu_frequency", "gpu-freq" },
    { "kill_on_invalid_dependency", NULL },
    { "license", "licenses" },
    { "mcs_label", NULL },
    { "memory_binding", "mem-bind" },
    { "memory_per_cpu", "mem-per-cpu" },
    { "memory_per_gpu", "mem-per-gpu" },
    { "memory_per_node", "mem" },
    { "minimum_cpus_per_node", "mincpus" },
    { "minimum_nodes", "use-min-nodes" },
    { "name", "job-name" },
    { "node_list", "nodelist" },
    { "required_nodes", "nodelist" },
    { "standard_error", "error" },
    { "standard_input", "input" },
    { "standard_output", "output" },
    { "tasks", "ntasks" },
    { "tasks_per_core", "ntasks-per-core" },
    { "tasks_per_node", "ntasks-per-node" },
    { "tasks_per_socket", "ntasks-per-socket" },
    { "temporary_disk_per_node", "tmp" },
    { "thread_specification", "thread-spec" },
    { "time_limit", "time" },
    { "time_minimum", "time-min" },
    { "umask", NULL },
};

/* Options that are not allowed in requests. */
static const char *const disabled[] = { "wrap", "wait", "parsable", "quiet", "test-only", "verbose", "export",
    "export-file", "get-user-env", "uid", "gid" };

/* "" if the property has no effect here, NULL if it does not exist. The caller frees it. */
static char *option_of(const char *property)
{
    const struct slurm_program *sbatch = slurm_program_find("sbatch");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i].property, property) == 0)
            return xstrdup(names[i].option != NULL ? names[i].option : "");
    _cleanup_free_ char *name = xstrdup(property);
    for (char *p = name; *p != '\0'; p++)
        *p = *p == '_' ? '-' : *p;
    for (size_t i = 0; i < sizeof(disabled) / sizeof(disabled[0]); i++)
        if (strcmp(name, disabled[i]) == 0)
            return NULL;
    return slurm_option_find(sbatch, name) != NULL ? take_ptr(name) : NULL;
}

/* The value as typed on a command line; NULL: it has no such form. The caller frees it. */
static char *text_of(const char *option, const json_t *value)
{
    bool is_time = strcmp(option, "begin") == 0 || strcmp(option, "deadline") == 0;
    struct buffer out = { 0 };
    size_t index = 0;
    json_t *item = NULL;
    if (json_is_string(value))
        return xstrdup(json_string_value(value));
    if (json_is_integer(value))
        return is_time ? slurm_time_text(json_integer_value(value) * 1000, "now")
                       : xasprintf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
    if (!json_is_array(value))
        return NULL;
    json_array_foreach(value, index, item)
    {
        _cleanup_free_ char *one = json_is_array(item) ? NULL : text_of(option, item);
        buffer_printf(&out, "%s%s",
            index == 0                     ? ""
            : strcmp(option, "nodes") == 0 ? "-"
                                           : ",",
            one != NULL ? one : "");
    }
    return out.length > 0 ? buffer_take(&out) : xstrdup("");
}

static int add_option(const char *property, const json_t *value, struct strings *words, struct error *err)
{
    _cleanup_free_ char *option = option_of(property);
    if (option == NULL)
        return error_set(err, -EINVAL, "Unknown key \"%.60s\"", property);
    if (option[0] == '\0' || json_is_null(value) || json_is_false(value)) {
        if (strcmp(option, "requeue") == 0 && json_is_false(value))
            strings_add(words, "--no-requeue");
        return 0;
    }
    _cleanup_free_ char *text = text_of(option, value);
    if (json_is_true(value))
        strings_take(words, xasprintf("--%s", option));
    else if (text == NULL)
        return error_set(err, -EINVAL, "\"%.60s\" has no such value", property);
    else
        strings_take(words, xasprintf("--%s=%s", option, text));
    return 0;
}

int rest_options(const json_t *properties, struct strings *words, struct error *err)
{
    const char *key = NULL;
    json_t *value = NULL;
    size_t index = 0;
    int r = 0;
    json_object_foreach((json_t *)(uintptr_t)properties, key, value)
    {
        if (r == 0 && strcmp(key, "argv") != 0 && strcmp(key, "environment") != 0)
            r = add_option(key, value, words, err);
    }
    strings_add(words, "-");
    json_array_foreach(json_object_get(properties, "argv"), index, value)
    {
        if (json_is_string(value))
            strings_add(words, json_string_value(value));
    }
    return r;
}

/* --- changes --- */

/* Options of sbatch that scontrol can change, and scontrol's names for them. */
static const struct {
    const char *option, *key;
} changes[] = {
    { "account", "Account" },
    { "begin", "StartTime" },
    { "comment", "Comment" },
    { "deadline", "Deadline" },
    { "dependency", "Dependency" },
    { "exclude", "ExcNodeList" },
    { "job-name", "JobName" },
    { "licenses", "Licenses" },
    { "nice", "Nice" },
    { "nodelist", "ReqNodeList" },
    { "nodes", "NumNodes" },
    { "partition", "Partition" },
    { "priority", "Priority" },
    { "qos", "QOS" },
    { "requeue", "Requeue" },
    { "time", "TimeLimit" },
    { "wckey", "WCKey" },
};

static int add_change(const char *property, const json_t *value, struct strings *words, struct error *err)
{
    _cleanup_free_ char *option = option_of(property);
    const char *key = NULL;
    if (option == NULL)
        return error_set(err, -EINVAL, "Unknown key \"%.60s\"", property);
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
        if (strcmp(changes[i].option, option) == 0)
            key = changes[i].key;
    if (key == NULL)
        return error_set(err, -EINVAL, "\"%.60s\" cannot be changed", property);
    if (json_is_boolean(value)) {
        strings_take(words, xasprintf("%s=%d", key, json_is_true(value)));
        return 0;
    }
    _cleanup_free_ char *text = text_of(option, value);
    if (text == NULL)
        return error_set(err, -EINVAL, "\"%.60s\" has no such value", property);
    strings_take(words, xasprintf("%s=%s", key, text));
    return 0;
}

int rest_changes(const json_t *properties, struct strings *words, struct error *err)
{
    const char *key = NULL;
    json_t *value = NULL;
    int r = 0;
    json_object_foreach((json_t *)(uintptr_t)properties, key, value)
    {
        if (r == 0 && !json_is_null(value))
            r = add_change(key, value, words, err);
    }
    return r;
}

/* --- running it --- */

/* {"PATH": "/bin"} or ["PATH=/bin"]. MGPU_ variables of this process are kept, because they identify the
 * server. */
static void set_environment(const json_t *environment)
{
    _cleanup_strings_ struct strings gone = { 0 };
    const char *key = NULL;
    json_t *value = NULL;
    size_t index = 0;
    for (char **entry = environ; *entry != NULL; entry++)
        if (strncmp(*entry, "MGPU_", 5) != 0)
            strings_take(&gone, xstrndup(*entry, strcspn(*entry, "=")));
    for (size_t i = 0; i < gone.count; i++)
        (void)unsetenv(gone.items[i]);
    json_object_foreach((json_t *)(uintptr_t)environment, key, value)
    {
        _cleanup_free_ char *text = text_of("", value);
        if (text != NULL && strncmp(key, "MGPU_", 5) != 0)
            (void)setenv(key, text, 1);
    }
    json_array_foreach(environment, index, value)
    {
        const char *text = json_string_value(value), *equals = text != NULL ? strchr(text, '=') : NULL;
        _cleanup_free_ char *name = equals != NULL ? xstrndup(text, (size_t)(equals - text)) : NULL;
        if (name != NULL && name[0] != '\0' && strncmp(name, "MGPU_", 5) != 0)
            (void)setenv(name, equals + 1, 1);
    }
}

static char *read_text(int fd)
{
    char *text = xcalloc(OUTPUT_MAX + 1, 1);
    ssize_t n = pread(fd, text, OUTPUT_MAX, 0);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

int rest_run(
    const struct strings *words, const char *input, const json_t *job, char **ret_out, char **ret_err)
{
    _cleanup_close_ int in = memfd_create("script", MFD_CLOEXEC), out = memfd_create("out", MFD_CLOEXEC),
                        errors = memfd_create("err", MFD_CLOEXEC);
    int status = 0;
    *ret_out = *ret_err = NULL;
    if (in < 0 || out < 0 || errors < 0 || write_all(in, input, strlen(input)) < 0 ||
        lseek(in, 0, SEEK_SET) < 0)
        return EXIT_NO_EXEC;
    pid_t pid = fork();
    if (pid == 0) {
        const char *directory = json_string_value(json_object_get(job, "current_working_directory"));
        _cleanup_free_ char **argv = xcalloc(words->count + 1, sizeof(char *));
        for (size_t i = 0; i < words->count; i++)
            argv[i] = words->items[i];
        if (job != NULL)
            set_environment(json_object_get(job, "environment"));
        if (directory != NULL)
            (void)!chdir(directory); // sbatch also gets it as --chdir
        (void)dup2(in, STDIN_FILENO);
        (void)dup2(out, STDOUT_FILENO);
        (void)dup2(errors, STDERR_FILENO);
        (void)execv("/proc/self/exe", argv);
        _exit(EXIT_NO_EXEC);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    *ret_out = read_text(out);
    *ret_err = read_text(errors);
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_NO_EXEC;
}
