/* SPDX-License-Identifier: MIT */
/*
 * sacctmgr: mgpu's equivalent of Slurm's accounting, in its columns: one cluster, one account with all users,
 * one QOS, and the resources that are counted. Limits are set in mgpud, so nothing can be changed here.
 */
#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/submit/slurm_moment.h"
#include "compat/slurm/jobs.h"
#include "compat/slurm/programs.h"
#include "compat/slurm/report.h"
#include "compat/slurm/slurm.h"
#include "job/slurm.h"

#define ACCOUNT    "default"
#define QOS        "normal"
#define FIELDS_MAX 32U

struct sacctmgr {
    bool is_headless, is_parsable, has_last_delimiter, has_associations;
};

static int set_flag(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    struct sacctmgr *sacctmgr = target;
    sacctmgr->is_headless |= option->letter == 'n';
    sacctmgr->is_parsable |= option->letter == 'p' || option->letter == 'P';
    sacctmgr->has_last_delimiter |= option->letter == 'p';
    sacctmgr->has_associations |= option->letter == 's';
    return 0;
}

const struct slurm_option slurm_sacctmgr_options[] = {
    SLURM_ROW(SLURM_SACCTMGR, "associations", 's', NULL, set_flag, NULL, "with associations"),
    SLURM_NO_EFFECT(SLURM_SACCTMGR, "immediate", 'i', NULL, NULL, "do not ask"),
    SLURM_ROW(SLURM_SACCTMGR, "noheader", 'n', NULL, set_flag, NULL, "no header"),
    SLURM_ROW(SLURM_SACCTMGR, "parsable", 'p', NULL, set_flag, NULL, "fields, each followed by a |"),
    SLURM_ROW(SLURM_SACCTMGR, "parsable2", 'P', NULL, set_flag, NULL, "fields separated by a |"),
    SLURM_NO_EFFECT(SLURM_SACCTMGR, "quiet", 'Q', NULL, NULL, "print errors only"),
    SLURM_NO_EFFECT(SLURM_SACCTMGR, "readonly", 'r', NULL, NULL, "change nothing, as always here"),
    SLURM_NO_EFFECT(SLURM_SACCTMGR, "verbose", 'v', NULL, NULL, "increase verbosity"),
    { 0 },
};

/* --- fields --- */

static const struct report_field account_fields[] = { { "Account", NULL, 10 }, { "Description", "Descr", 20 },
    { "Descr", NULL, 20 }, { "Organization", "Org", 20 }, { "Org", NULL, 20 }, { "Name", "Account", 10 },
    { 0 } };

static const struct report_field cluster_fields[] = { { "Cluster", NULL, 10 }, { "ControlHost", NULL, 15 },
    { "ControlPort", NULL, 12 }, { "RPC", NULL, 5 }, { "Share", NULL, 9 }, { "GrpJobs", NULL, 7 },
    { "GrpTRES", NULL, 13 }, { "GrpSubmit", NULL, 9 }, { "MaxJobs", NULL, 7 }, { "MaxTRES", NULL, 13 },
    { "MaxSubmit", NULL, 9 }, { "MaxWall", NULL, 11 }, { "QOS", NULL, 20 }, { "DefaultQOS", "Def QOS", 9 },
    { "Name", "Cluster", 10 }, { 0 } };

static const struct report_field qos_fields[] = { { "Name", NULL, 10 }, { "Priority", NULL, 10 },
    { "GraceTime", NULL, 10 }, { "Preempt", NULL, 10 }, { "PreemptExemptTime", NULL, 19 },
    { "PreemptMode", NULL, 11 }, { "Flags", NULL, 20 }, { "UsageThres", NULL, 10 },
    { "UsageFactor", NULL, 11 }, { "GrpTRES", NULL, 13 }, { "GrpTRESMins", NULL, 13 },
    { "GrpTRESRunMin", NULL, 13 }, { "GrpJobs", NULL, 7 }, { "GrpSubmit", NULL, 9 }, { "GrpWall", NULL, 11 },
    { "MaxTRES", NULL, 13 }, { "MaxTRESPerNode", NULL, 14 }, { "MaxTRESMins", NULL, 13 },
    { "MaxWall", NULL, 11 }, { "MaxTRESPU", NULL, 13 }, { "MaxJobsPU", NULL, 9 }, { "MaxSubmitPU", NULL, 11 },
    { "MaxTRESPA", NULL, 13 }, { "MaxJobsPA", NULL, 9 }, { "MaxSubmitPA", NULL, 11 }, { "MinTRES", NULL, 13 },
    { 0 } };

static const struct report_field tres_fields[] = { { "Type", NULL, 8 }, { "Name", NULL, 15 },
    { "ID", NULL, 6 }, { 0 } };

static const struct report_field user_fields[] = { { "User", NULL, 10 }, { "DefaultAccount", "Def Acct", 10 },
    { "AdminLevel", "Admin", 9 }, { "Cluster", NULL, 10 }, { "Account", NULL, 10 }, { "Partition", NULL, 10 },
    { "Share", NULL, 9 }, { "Fairshare", "Share", 9 }, { "Priority", NULL, 10 }, { "MaxJobs", NULL, 7 },
    { "MaxNodes", NULL, 8 }, { "MaxCPUs", NULL, 8 }, { "MaxSubmit", NULL, 9 }, { "MaxWall", NULL, 11 },
    { "MaxCPUMins", NULL, 11 }, { "QOS", NULL, 20 }, { "DefaultQOS", "Def QOS", 9 }, { "Name", "User", 10 },
    { "GrpJobs", NULL, 7 }, { "GrpTRES", NULL, 13 }, { "GrpSubmit", NULL, 9 }, { "GrpWall", NULL, 11 },
    { "GrpTRESMins", NULL, 13 }, { "MaxTRES", NULL, 13 }, { "MaxTRESPerNode", NULL, 14 },
    { "MaxTRESMins", NULL, 13 }, { "GrpTRESRunMin", NULL, 13 }, { 0 } };

#define USER_USUAL "User,DefaultAccount,AdminLevel"
#define USER_WHOLE                                                                                           \
    USER_USUAL ",Cluster,Account,Partition,Share,Priority,MaxJobs,MaxNodes,MaxCPUs,MaxSubmit,MaxWall,"       \
               "MaxCPUMins,QOS,DefaultQOS"
#define ASSOCIATION                                                                                          \
    "Cluster,Account,User,Partition,Share,Priority,GrpJobs,GrpTRES,GrpSubmit,GrpWall,GrpTRESMins,MaxJobs,"   \
    "MaxTRES,MaxTRESPerNode,MaxSubmit,MaxWall,MaxTRESMins,QOS,DefaultQOS,GrpTRESRunMin"

/* --- what there is --- */

struct value {
    const char *field, *text; // text NULL: the user's name
};

/* Rows of the counted resources, in Slurm's numbering. */
static const struct value resources[][4] = { { { "Type", "cpu" }, { "ID", "1" } },
    { { "Type", "mem" }, { "ID", "2" } }, { { "Type", "node" }, { "ID", "4" } },
    { { "Type", "billing" }, { "ID", "5" } }, { { "Type", "gres" }, { "Name", "gpu" }, { "ID", "1001" } } };

static const struct value account[] = { { "Account", ACCOUNT }, { "Name", ACCOUNT },
    { "Description", ACCOUNT }, { "Descr", ACCOUNT }, { "Organization", ACCOUNT }, { "Org", ACCOUNT },
    { 0 } };
static const struct value cluster[] = { { "Cluster", SLURM_CLUSTER }, { "Name", SLURM_CLUSTER },
    { "ControlHost", "127.0.0.1" }, { "ControlPort", "0" }, { "RPC", "9728" }, { "Share", "1" },
    { "QOS", QOS }, { 0 } };
static const struct value qos[] = { { "Name", QOS }, { "Priority", "0" }, { "GraceTime", "00:00:00" },
    { "PreemptMode", "cluster" }, { "UsageFactor", "1.000000" }, { 0 } };
static const struct value member[] = { { "User", NULL }, { "Name", NULL }, { "DefaultAccount", ACCOUNT },
    { "AdminLevel", "None" }, { "Cluster", SLURM_CLUSTER }, { "Account", ACCOUNT }, { "Share", "1" },
    { "Fairshare", "1" }, { "QOS", QOS }, { 0 } };

/* Entities that can be listed: some have no members, others one, which may be requested by name. */
static const struct entity {
    const char *word;
    size_t least; // letters
    const char *only;
    const struct report_field *fields; // NULL: it has no members
    const char *usual;                 // the default fields
    const struct value *values;        // NULL: the resources
    bool is_of_user;
} entities[] = {
    { "accounts", 2, ACCOUNT, account_fields, "Account,Descr,Org", account, false },
    { "associations", 2, NULL, user_fields, ASSOCIATION, member, true },
    { "clusters", 2, SLURM_CLUSTER, cluster_fields,
        "Cluster,ControlHost,ControlPort,RPC,Share,GrpJobs,GrpTRES,GrpSubmit,MaxJobs,MaxTRES,MaxSubmit,"
        "MaxWall,"
        "QOS,DefaultQOS",
        cluster, false },
    { "configuration", 2, NULL, NULL, NULL, NULL, false },
    { "coordinators", 3, NULL, NULL, NULL, NULL, false },
    { "events", 1, NULL, NULL, NULL, NULL, false },
    { "federations", 1, NULL, NULL, NULL, NULL, false },
    { "problems", 1, NULL, NULL, NULL, NULL, false },
    { "qos", 1, QOS, qos_fields,
        "Name,Priority,GraceTime,Preempt,PreemptExemptTime,PreemptMode,Flags%40,UsageThres,UsageFactor,"
        "GrpTRES,"
        "GrpTRESMins,GrpTRESRunMin,GrpJobs,GrpSubmit,GrpWall,MaxTRES,MaxTRESPerNode,MaxTRESMins,MaxWall,"
        "MaxTRESPU,MaxJobsPU,MaxSubmitPU,MaxTRESPA,MaxJobsPA,MaxSubmitPA,MinTRES",
        qos, false },
    { "reservations", 4, NULL, NULL, NULL, NULL, false },
    { "resources", 4, NULL, NULL, NULL, NULL, false },
    { "runawayjobs", 2, NULL, NULL, NULL, NULL, false },
    { "stats", 1, NULL, NULL, NULL, NULL, false },
    { "transactions", 2, NULL, NULL, NULL, NULL, false },
    { "tres", 2, NULL, tres_fields, "Type,Name,ID", NULL, false },
    { "users", 1, NULL, user_fields, USER_USUAL, member, true },
    { "wckeys", 1, NULL, NULL, NULL, NULL, false },
};

static const struct entity *find_entity(const char *word)
{
    for (size_t i = 0; word != NULL && i < sizeof(entities) / sizeof(entities[0]); i++)
        if (strlen(word) >= entities[i].least && strncasecmp(word, entities[i].word, strlen(word)) == 0)
            return &entities[i];
    return NULL;
}

/* --- list --- */

static int refuse_entity(struct error *err)
{
    (void)fputs("No valid entity in list command\n"
                "Input line must include \"Account\", \"Association\", \"Cluster\", \"Configuration\",\n"
                "\"Event\", \"Federation\", \"Problem\", \"QOS\", \"Resource\", \"Reservation\",\n"
                "\"RunAwayJobs\", \"Stats\", \"Transaction\", \"TRES\", \"User\", or \"WCKey\"\n",
        stderr);
    return error_mark(err, SLURM_SAID, error_set(err, -EINVAL, "no such entity"));
}

/* Slurm's keys with the values that are true here. */
static int list_configuration(void)
{
    _cleanup_free_ char *now = slurm_time_text(clock_wall_ms(), "");
    (void)printf("Configuration data as of %s\n", now);
    (void)puts("AccountingStorageHost  = 127.0.0.1\nAccountingStorageType  = accounting_storage/slurmdbd\n"
               "SlurmUserId            = mgpu");
    return 0;
}

/* What follows the entity of `list`. */
struct choice {
    const char *user, *format;
    bool is_listed, has_associations;
};

static void read_choice(const struct entity *entity, int argc, char **argv, struct choice *choice)
{
    for (int i = 0; i < argc; i++) {
        const char *equals = strchr(argv[i], '=');
        bool is_name =
            equals == NULL || strncasecmp(argv[i], "user", 4) == 0 || strncasecmp(argv[i], "name", 4) == 0;
        if (strncasecmp(argv[i], "format=", 7) == 0)
            choice->format = equals + 1;
        else if (strncasecmp(argv[i], "withassoc", 5) == 0)
            choice->has_associations = true;
        else if (strcasecmp(argv[i], "where") == 0 || strcasecmp(argv[i], "set") == 0)
            continue;
        else if (entity->is_of_user && is_name)
            choice->user = equals != NULL ? equals + 1 : argv[i];
        else if (entity->only != NULL && is_name)
            choice->is_listed = slurm_list_has(equals != NULL ? equals + 1 : argv[i], entity->only);
    }
}

static void print_row(const struct report *report, const struct value *values, const char *user)
{
    const char *texts[FIELDS_MAX] = { 0 };
    for (size_t i = 0; report->fields[i].name != NULL; i++)
        for (const struct value *value = values; value->field != NULL; value++)
            if (strcmp(value->field, report->fields[i].name) == 0)
                texts[i] = value->text != NULL ? value->text : user;
    report_print_row(report, texts);
}

static int refuse_field(struct error *err)
{
    const char *name = strchr(err->message, '"');
    _cleanup_free_ char *field = name != NULL ? xstrndup(name + 1, strcspn(name + 1, "\"")) : xstrdup("");
    return error_mark(err, SLURM_BARE, error_set(err, -EINVAL, "Unknown field '%.60s'", field));
}

static int list(const struct sacctmgr *sacctmgr, int argc, char **argv, struct error *err)
{
    const struct passwd *self = getpwuid(geteuid());
    const struct entity *entity = find_entity(argc > 0 ? argv[0] : NULL);
    struct choice choice = { .user = self != NULL ? self->pw_name : "",
        .is_listed = true,
        .has_associations = sacctmgr->has_associations };
    if (entity == NULL || strcmp(entity->word, "coordinators") == 0)
        return refuse_entity(err);
    if (strcmp(entity->word, "configuration") == 0)
        return list_configuration();
    if (entity->fields == NULL)
        return 0;
    read_choice(entity, argc - 1, argv + 1, &choice);
    struct report report = { .fields = entity->fields,
        .is_headless = sacctmgr->is_headless,
        .is_parsable = sacctmgr->is_parsable,
        .has_last_delimiter = sacctmgr->has_last_delimiter };
    bool is_whole = entity->is_of_user && choice.has_associations && strcmp(entity->word, "users") == 0;
    const char *usual = is_whole ? USER_WHOLE : entity->usual;
    if (report_read(&report, choice.format != NULL ? choice.format : usual, err) < 0)
        return refuse_field(err);
    report_print_head(&report);
    for (size_t i = 0; entity->values == NULL && i < sizeof(resources) / sizeof(resources[0]); i++)
        print_row(&report, resources[i], choice.user);
    if (entity->values != NULL && choice.is_listed)
        print_row(&report, entity->values, choice.user);
    return 0;
}

/* --- changes, which there are none of --- */

static const struct change {
    const char *word, *also;
    const char *kinds; // as Slurm lists them
} changes[] = {
    { "add", "create",
        "\"Account\", \"Cluster\", \"Coordinator\", \"Federation\", \"QOS\", \"Resource\", or \"User\"" },
    { "delete", "remove",
        "\"Account\", \"Cluster\", \"Coordinator\", \"Federation\", \"QOS\", \"Resource\", or \"User\"" },
    { "modify", "update",
        "\"Account\", \"Cluster\", \"Federation\", \"Job\", \"QOS\", \"Resource\" or \"User\"" },
};

static int refuse_change(const struct change *change, const char *entity, struct error *err)
{
    if (find_entity(entity) == NULL && (entity == NULL || strcasecmp(entity, "job") != 0)) {
        (void)fprintf(stderr, "No valid entity in %s command\nInput line must include %s\n", change->word,
            change->kinds);
        return error_mark(err, SLURM_SAID, error_set(err, -EINVAL, "no such entity"));
    }
    (void)fputs("sacctmgr: error: Your user doesn't have privilege to perform this action\n"
                " Error with request: Access/permission denied\n"
                "sacctmgr: note: mgpu has one account, " ACCOUNT
                ", and limits in mgpud's configuration (mgpu.yaml(5))\n",
        stderr);
    return error_mark(err, SLURM_SAID, error_set(err, -EPERM, "nothing is changed from here"));
}

static int run(const struct sacctmgr *sacctmgr, int argc, char **argv, struct error *err)
{
    if (argc == 1 && strcasecmp(argv[0], "version") == 0)
        return puts("slurm " SLURM_VERSION) < 0;
    if (argc > 0 && (strcasecmp(argv[0], "show") == 0 || strcasecmp(argv[0], "list") == 0))
        return list(sacctmgr, argc - 1, argv + 1, err);
    for (size_t i = 0; argc > 0 && i < sizeof(changes) / sizeof(changes[0]); i++)
        if (strcasecmp(argv[0], changes[i].word) == 0 || strcasecmp(argv[0], changes[i].also) == 0)
            return refuse_change(&changes[i], argc > 1 ? argv[1] : NULL, err);
    return error_set(err, -ENOTSUP, "mgpu has one account, " ACCOUNT "; it can be listed but not changed");
}

int slurm_run_sacctmgr(const struct slurm_program *program, int argc, char **argv)
{
    struct sacctmgr sacctmgr = { 0 };
    const struct slurm_reading reading = { .program = program, .target = &sacctmgr };
    struct error err = { 0 };
    int first = 0;
    int r = slurm_options_read(&reading, argc, argv, false, &first, &err);
    if (r == 0)
        r = run(&sacctmgr, argc - first, argv + first, &err);
    return r < 0 ? slurm_fail(program, &err) : r;
}
