/* SPDX-License-Identifier: MIT */
/* One function for each key of a partition, in the table `keys`. */
#include "controller/config/partitions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/memory.h"
#include "base/parse.h"
#include "controller/config/groups.h"
#include "job/slurm.h"
#include "wire/usernames.h"

#define GROUP           "group:"
#define NAME_MAX_LENGTH 64U
#define GPUS_MAX        1000000

static int set_nodes(struct core_partition *partition, const char *value, struct error *err)
{
    _cleanup_strings_ struct strings nodes = { 0 };
    bool is_all = strcmp(value, "all") == 0;
    int r = is_all ? 0 : hostlist_expand(value, &nodes, err);
    if (r == 0 && !is_all && nodes.count == 0)
        r = error_set(err, -EINVAL, "nodes: the list is empty");
    if (r < 0)
        return r;
    strings_clear(&partition->set.nodes);
    strings_copy(&partition->set.nodes, &nodes);
    free(partition->nodes);
    partition->nodes = is_all ? NULL : xstrdup(value);
    return 0;
}

static int find_member(const char *word, struct core_member *ret, struct error *err)
{
    ret->is_group = strncmp(word, GROUP, strlen(GROUP)) == 0;
    if (ret->is_group)
        return group_find(word + strlen(GROUP), &ret->id, err);
    struct usernames *names = usernames_new();
    int r = usernames_uid(names, word, &ret->id, err);
    usernames_free(names);
    return r;
}

/* A user whose account was removed is not a member, but that does not open the partition to everyone. */
static int set_users(struct core_partition *partition, const char *value, struct error *err)
{
    _cleanup_free_ char *copy = xstrdup(value);
    char *rest = copy;
    int missing = 0;
    free(partition->users);
    free(partition->members);
    partition->members = NULL;
    partition->n_members = 0;
    partition->users = strcmp(value, "all") == 0 ? NULL : xstrdup(value);
    for (char *word = NULL; partition->users != NULL && (word = strsep(&rest, ", ")) != NULL;) {
        struct core_member member = { 0 };
        if (word[0] == '\0')
            continue;
        if (find_member(word, &member, err) < 0) {
            missing = -ENOENT;
            continue;
        }
        partition->members =
            xreallocarray(partition->members, partition->n_members + 1, sizeof(*partition->members));
        partition->members[partition->n_members++] = member;
    }
    return missing;
}

static int set_duration(int64_t *field, const char *what, const char *value, struct error *err)
{
    int64_t ms = 0;
    bool is_none = strcmp(value, "none") == 0;
    int r = is_none ? 0 : parse_duration(value, what, &ms, err);
    if (r == 0 && ms == 0 && !is_none)
        return error_set(err, -ERANGE, "%s: '%.40s' leaves no time to run", what, value);
    if (r == 0)
        *field = ms;
    return r;
}

static int set_max_time(struct core_partition *partition, const char *value, struct error *err)
{
    return set_duration(&partition->max_time_ms, "max-time", value, err);
}

static int set_default_time(struct core_partition *partition, const char *value, struct error *err)
{
    return set_duration(&partition->default_time_ms, "default-time", value, err);
}

static int set_priority(struct core_partition *partition, const char *value, struct error *err)
{
    int64_t number;
    int r = parse_integer(value, "priority", -ASK_PRIORITY_MAX, ASK_PRIORITY_MAX, &number, err);
    if (r == 0)
        partition->set.priority = (int32_t)number;
    return r;
}

static int set_max_gpus(struct core_partition *partition, const char *value, struct error *err)
{
    int64_t number;
    int r = parse_integer(value, "max-gpus", 0, GPUS_MAX, &number, err);
    if (r == 0)
        partition->max_gpus = (uint32_t)number;
    return r;
}

static int set_default(struct core_partition *partition, const char *value, struct error *err)
{
    partition->is_default = strcmp(value, "true") == 0;
    return partition->is_default || strcmp(value, "false") == 0
               ? 0
               : error_set(err, -EINVAL, "default: '%.40s' is neither true nor false", value);
}

static const struct {
    const char *name;
    int (*set)(struct core_partition *partition, const char *value, struct error *err);
} keys[] = {
    { "nodes", set_nodes },
    { "users", set_users },
    { "max-time", set_max_time },
    { "default-time", set_default_time },
    { "priority", set_priority },
    { "max-gpus", set_max_gpus },
    { "default", set_default },
};

static struct core_partition *find(struct controller_options *options, const char *name)
{
    for (size_t i = 0; i < options->n_partitions; i++)
        if (strcmp(options->partitions[i].set.name, name) == 0)
            return &options->partitions[i];
    return NULL;
}

static struct core_partition *add(struct controller_options *options, const char *name)
{
    options->partitions =
        xreallocarray(options->partitions, options->n_partitions + 1, sizeof(*options->partitions));
    struct core_partition *partition = &options->partitions[options->n_partitions++];
    *partition = (struct core_partition){ .set.name = xstrdup(name) };
    return partition;
}

static int check_name(const struct controller_options *options, const char *name, struct error *err)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    if (name[0] == '\0' || strlen(name) > NAME_MAX_LENGTH || strspn(name, allowed) != strlen(name))
        return error_set(err, -EINVAL,
            "'%.60s' is not a valid name of a partition: letters, digits, '-', '_' and '.', at most %u", name,
            NAME_MAX_LENGTH);
    if (options->n_partitions >= PARTITIONS_MAX - 1) // minus the built-in one
        return error_set(err, -E2BIG, "there are more than %u partitions", PARTITIONS_MAX - 1);
    return 0;
}

int partitions_set(struct controller_options *options, const char *name, const char *key, const char *value,
    struct error *err)
{
    struct core_partition *partition = find(options, name);
    int r = partition == NULL ? check_name(options, name, err) : 0;
    if (r < 0)
        return r;
    if (partition == NULL)
        partition = add(options, name);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcmp(keys[i].name, key) == 0)
            return keys[i].set(partition, value, err);
    (void)error_set(err, -EINVAL, "unknown key '%.60s' of a partition", key);
    return error_hint(err, "nodes, users, max-time, default-time, priority, max-gpus or default");
}

int partitions_complete(struct controller_options *options, struct error *err)
{
    const struct core_partition *usual = NULL;
    for (size_t i = 0; i < options->n_partitions; i++) {
        const struct core_partition *partition = &options->partitions[i];
        if (partition->is_default && usual != NULL)
            return error_set(err, -EINVAL, "partitions %.60s and %.60s are both the default", usual->set.name,
                partition->set.name);
        usual = partition->is_default ? partition : usual;
    }
    if (usual != NULL)
        return 0;
    struct core_partition *builtin = find(options, SLURM_PARTITION);
    if (builtin == NULL) {
        builtin = add(options, SLURM_PARTITION);
        builtin->is_builtin = true;
    }
    builtin->is_default = true;
    return 0;
}

bool partition_admits(const struct core_partition *partition, uint32_t uid)
{
    bool is_open = partition->users == NULL;
    for (size_t i = 0; i < partition->n_members && !is_open; i++) {
        const struct core_member *member = &partition->members[i];
        is_open = member->is_group ? group_has(member->id, uid) > 0 : member->id == uid;
    }
    return is_open;
}

void partitions_clear(struct controller_options *options)
{
    for (size_t i = 0; i < options->n_partitions; i++) {
        struct core_partition *partition = &options->partitions[i];
        free(partition->set.name);
        strings_clear(&partition->set.nodes);
        free(partition->nodes);
        free(partition->users);
        free(partition->members);
    }
    free(options->partitions);
    options->partitions = NULL;
    options->n_partitions = 0;
}
