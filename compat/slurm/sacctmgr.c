/* SPDX-License-Identifier: MIT */
/* sacctmgr: there is one account, with all users, and nothing to be changed. */
#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "compat/slurm/jobs.h"
#include "compat/slurm/programs.h"
#include "compat/slurm/report.h"
#include "compat/slurm/slurm.h"
#include "job/slurm.h"

#define ACCOUNT "default"

struct sacctmgr {
    bool is_headless, is_parsable, has_last_delimiter;
};

static int set_flag(void *target, const struct slurm_option *option, const char *value, struct error *err)
{
    struct sacctmgr *sacctmgr = target;
    (void)value, (void)err;
    sacctmgr->is_headless |= option->letter == 'n';
    sacctmgr->is_parsable |= option->letter == 'p' || option->letter == 'P';
    sacctmgr->has_last_delimiter |= option->letter == 'p';
    return 0;
}

const struct slurm_option slurm_sacctmgr_options[] = {
    SLURM_NO_EFFECT(SLURM_SACCTMGR, "associations", 's', NULL, NULL, "with associations"),
    SLURM_NO_EFFECT(SLURM_SACCTMGR, "immediate", 'i', NULL, NULL, "do not ask"),
    SLURM_ROW(SLURM_SACCTMGR, "noheader", 'n', NULL, set_flag, NULL, "no header"),
    SLURM_ROW(SLURM_SACCTMGR, "parsable", 'p', NULL, set_flag, NULL, "fields with a | behind each"),
    SLURM_ROW(SLURM_SACCTMGR, "parsable2", 'P', NULL, set_flag, NULL, "fields with a | between them"),
    SLURM_NO_EFFECT(SLURM_SACCTMGR, "quiet", 'Q', NULL, NULL, "print errors only"),
    SLURM_NO_EFFECT(SLURM_SACCTMGR, "readonly", 'r', NULL, NULL, "change nothing, as always here"),
    SLURM_NO_EFFECT(SLURM_SACCTMGR, "verbose", 'v', NULL, NULL, "increase verbosity"),
    { 0 },
};

/* --- what there is --- */

/* What can be listed: of some there is nothing, of others one, whose name may be asked for. */
static const struct entity {
    const char *word;
    size_t least; // letters
    const char *only;
    bool is_empty, is_of_user;
} entities[] = { { "accounts", 2, ACCOUNT, false, false }, { "associations", 2, NULL, false, true },
    { "clusters", 2, SLURM_CLUSTER, false, false }, { "configuration", 2, NULL, false, false },
    { "events", 1, NULL, true, false }, { "federations", 1, NULL, true, false },
    { "problems", 1, NULL, true, false }, { "qos", 1, "normal", false, false },
    { "reservations", 4, NULL, true, false }, { "resources", 4, NULL, true, false },
    { "runawayjobs", 2, NULL, true, false }, { "stats", 1, NULL, true, false },
    { "transactions", 2, NULL, true, false }, { "tres", 2, NULL, false, false },
    { "users", 1, NULL, false, true }, { "wckeys", 1, NULL, true, false } };

static const struct entity *find_entity(const char *word)
{
    for (size_t i = 0; word != NULL && i < sizeof(entities) / sizeof(entities[0]); i++)
        if (strlen(word) >= entities[i].least && strncasecmp(word, entities[i].word, strlen(word)) == 0)
            return &entities[i];
    return NULL;
}

static int refuse_entity(struct error *err)
{
    (void)fputs("No valid entity in list command\n"
                "Input line must include \"Account\", \"Association\", \"Cluster\", \"Configuration\",\n"
                "\"Event\", \"Federation\", \"Problem\", \"QOS\", \"Resource\", \"Reservation\",\n"
                "\"RunAwayJobs\", \"Stats\", \"Transaction\", \"TRES\", \"User\", or \"WCKey\"\n",
        stderr);
    return error_mark(err, SLURM_SAID, error_set(err, -EINVAL, "no such entity"));
}

static int run(const struct sacctmgr *sacctmgr, int argc, char **argv, struct error *err)
{
    const struct passwd *self = getpwuid(geteuid());
    const char *user = self != NULL ? self->pw_name : "", *format = NULL;
    const struct entity *entity = argc > 1 ? find_entity(argv[1]) : NULL;
    if (argc == 1 && strcasecmp(argv[0], "version") == 0)
        return puts("slurm " SLURM_VERSION) < 0;
    if (argc < 1 || (strcasecmp(argv[0], "show") != 0 && strcasecmp(argv[0], "list") != 0))
        return error_set(
            err, -ENOTSUP, "mgpu has one account, " ACCOUNT "; it can be listed and not changed");
    if (entity == NULL)
        return refuse_entity(err);
    bool is_of_user = entity->is_of_user, is_listed = !entity->is_empty;
    for (int i = 2; i < argc; i++) {
        const char *equals = strchr(argv[i], '=');
        if (strncasecmp(argv[i], "format=", 7) == 0)
            format = equals + 1;
        else if (is_of_user && (equals == NULL || strncasecmp(argv[i], "user", 4) == 0 ||
                                   strncasecmp(argv[i], "name", 4) == 0))
            user = equals != NULL ? equals + 1 : argv[i];
        else if (entity->only != NULL && equals == NULL)
            is_listed = slurm_list_has(argv[i], entity->only);
    }
    if (format == NULL)
        format = is_of_user ? "User,Account,Cluster,QOS" : "Account,Descr,Org";
    const struct report_value values[] = { { "user", user }, { "account", ACCOUNT },
        { "defaultaccount", ACCOUNT }, { "cluster", SLURM_CLUSTER }, { "qos", "normal" },
        { "name", is_of_user ? user : "normal" }, { "descr", ACCOUNT }, { "org", ACCOUNT },
        { "adminlevel", "None" }, { "share", "1" }, { 0 } };
    if (!sacctmgr->is_headless)
        report_print_values(format, NULL, sacctmgr->is_parsable, sacctmgr->has_last_delimiter);
    if (is_listed)
        report_print_values(format, values, sacctmgr->is_parsable, sacctmgr->has_last_delimiter);
    return 0;
}

int slurm_run_sacctmgr(const struct slurm_program *program, int argc, char **argv)
{
    struct sacctmgr sacctmgr = { 0 };
    const struct slurm_reading reading = { .program = program, .target = &sacctmgr };
    struct error err = { 0 };
    int first = 0;
    if (slurm_options_answer(program, argc, argv))
        return 0;
    int r = slurm_options_read(&reading, argc, argv, false, &first, &err);
    if (r == 0)
        r = run(&sacctmgr, argc - first, argv + first, &err);
    return r < 0 ? slurm_fail(program, &err) : r;
}
