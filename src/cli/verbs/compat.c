/* SPDX-License-Identifier: MIT */
/* mgpu compat: lists the commands of mgpu-compat, creates links to it, or runs one without a link. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/option_values.h"
#include "cli/api/exit_code.h"
#include "cli/api/programs.h"
#include "cli/options/talk.h"
#include "cli/verbs/compat_names.h"
#include "cli/verbs/compat_python.h"
#include "cli/verbs/verbs.h"

#define FOLDER_MODE 0755

struct compat_options {
    bool is_forced;
    bool is_slurm;  // the commands of Slurm, which are a separate program
    bool is_python; // a directory of Python files instead of links
};

static const struct option_row install_rows[] = {
    { 0, "force", NULL, "include names that hide another program",
        OPTION_INNER(flag, struct compat_options, is_forced) },
    { 0, "slurm", NULL, "the commands of Slurm: sbatch, squeue, srun and others",
        OPTION_INNER(flag, struct compat_options, is_slurm) },
    { 0, "python", NULL, "a folder of Python files, as in: python src/mgpu_srun.py",
        OPTION_INNER(flag, struct compat_options, is_python) },
    { 0 },
};

static const struct compat_name *find_or_refuse(
    const struct compat_name *names, const char *name, struct error *err)
{
    const struct compat_name *found = compat_name_find(names, name);
    if (found != NULL && strchr(name, '/') == NULL)
        return found;
    (void)error_set(err, -EINVAL, "'%.60s' is not a name that mgpu provides", name);
    (void)error_hint(err, "all of them: mgpu compat list");
    return NULL;
}

static int run_list(struct call *call, int argc, char **argv, struct error *err)
{
    for (const struct compat_name *row = compat_names; row->name != NULL; row++)
        (void)printf("%-22s %s\n", row->name, row->help);
    for (const struct compat_name *row = slurm_names; row->name != NULL; row++)
        (void)printf("%-22s %s\n", row->name, row->help);
    return EXIT_OK;
}

/* True if PATH has a program of that name other than `self`; *ret_path is its path. */
static bool find_rival(const char *name, const char *self, char **ret_path)
{
    _cleanup_free_ char *path = xstrdup(getenv("PATH") != NULL ? getenv("PATH") : "/usr/bin:/bin");
    char *rest = path;
    for (char *folder = NULL; (folder = strsep(&rest, ":")) != NULL;) {
        _cleanup_free_ char *file = xasprintf("%s/%s", folder[0] == '\0' ? "." : folder, name);
        char real[PATH_MAX];
        if (access(file, X_OK) < 0 || realpath(file, real) == NULL || strcmp(real, self) == 0)
            continue;
        *ret_path = take_ptr(file);
        return true;
    }
    return false;
}

/* Returns 0 also if the link exists already. A link to mgpu itself, which used to include these programs, is
 * replaced. */
static int make_link(int folder, const char *name, const char *self, struct error *err)
{
    char target[PATH_MAX] = { 0 };
    if (symlinkat(self, folder, name) == 0)
        return 0;
    if (errno != EEXIST)
        return error_set_errno(err, -errno, "cannot create the link %s", name);
    _cleanup_free_ char *before = program_find("mgpu");
    bool is_link = readlinkat(folder, name, target, sizeof(target) - 1) > 0;
    if (is_link && strcmp(target, self) == 0)
        return 0;
    if (is_link && strcmp(target, before) == 0 && unlinkat(folder, name, 0) == 0 &&
        symlinkat(self, folder, name) == 0)
        return 0;
    return error_set(err, -EEXIST, "%s already exists and is not a link to %s", name, self);
}

static int install_one(
    int folder, const struct compat_name *row, const char *self, bool is_forced, struct error *err)
{
    _cleanup_free_ char *rival = NULL;
    if (!is_forced && row->rival != NULL && find_rival(row->name, self, &rival)) {
        (void)error_set(
            err, -EEXIST, "%s exists and belongs to %s; the link would hide it", rival, row->rival);
        return error_hint(err, "omit it, or use --force");
    }
    return make_link(folder, row->name, self, err);
}

/* The path of mgpu-compat or mgpu-slurm, with links resolved. */
static int find_program(const char *name, char path[PATH_MAX], struct error *err)
{
    _cleanup_free_ char *found = program_find(name);
    if (realpath(found, path) == NULL)
        return error_set_errno(err, -errno, "cannot find %s, which is installed beside mgpu", name);
    return 0;
}

static int install_python(struct call *call, int argc, char **argv, const char *self, struct error *err)
{
    const struct compat_options *options = call->options;
    if (argc != 1 || options->is_slurm)
        return error_set(err, -EINVAL, "--python takes one folder, and no names");
    int made = compat_python_install(argv[0], self, options->is_forced, err);
    if (made >= 0 && !call->is_quiet)
        talk_line("%d files in %s", made, argv[0]);
    return made < 0 ? made : EXIT_OK;
}

/* Opens the directory, and creates it if it is missing. Returns a descriptor, which the caller closes. */
static int open_folder(const char *path, struct error *err)
{
    if (mkdir(path, FOLDER_MODE) < 0 && errno != EEXIST)
        return error_set_errno(err, -errno, "cannot make the folder %.200s", path);
    int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return folder < 0 ? error_set_errno(err, -errno, "cannot open the folder %.200s", path) : folder;
}

static bool is_in_path(int folder)
{
    const char *path = getenv("PATH");
    struct stat own, other;
    _cleanup_free_ char *copy = xstrdup(path != NULL ? path : "");
    char *rest = copy;
    if (fstat(folder, &own) < 0)
        return true;
    for (char *entry = NULL; (entry = strsep(&rest, ":")) != NULL;)
        if (stat(entry, &other) == 0 && other.st_dev == own.st_dev && other.st_ino == own.st_ino)
            return true;
    return false;
}

/* Shells would not find the names. */
static void note_path(int folder, const char *name)
{
    _cleanup_free_ char *absolute = is_in_path(folder) ? NULL : realpath(name, NULL);
    if (absolute != NULL)
        talk_line("this folder is not in PATH: export PATH=%s:$PATH", absolute);
}

static int run_install(struct call *call, int argc, char **argv, struct error *err)
{
    const struct compat_options *options = call->options;
    const struct compat_name *names = options->is_slurm ? slurm_names : compat_names;
    char self[PATH_MAX];
    int failed = 0, made = 0;
    if (argc == 0)
        return error_set(err, -EINVAL, "no folder given; use one in PATH, such as /usr/local/bin");
    if (find_program(options->is_slurm ? SLURM_COMPAT_PROGRAM : COMPAT_PROGRAM, self, err) < 0)
        return err->code;
    if (options->is_python)
        return install_python(call, argc, argv, self, err);
    for (int i = 1; i < argc; i++)
        if (find_or_refuse(names, argv[i], err) == NULL)
            return -EINVAL;
    _cleanup_close_ int folder = open_folder(argv[0], err);
    if (folder < 0)
        return folder;
    for (const struct compat_name *row = names; row->name != NULL; row++) {
        struct error problem = { 0 };
        bool is_wanted = argc == 1;
        for (int k = 1; k < argc; k++)
            is_wanted = is_wanted || strcmp(argv[k], row->name) == 0;
        if (is_wanted && install_one(folder, row, self, options->is_forced, &problem) < 0) {
            talk_error("compat install", &problem);
            failed++;
        } else {
            made += is_wanted;
        }
    }
    if (!call->is_quiet)
        talk_line("%d name%s in %s", made, made == 1 ? "" : "s", argv[0]);
    if (!call->is_quiet && made > 0)
        note_path(folder, argv[0]);
    return failed > 0 ? EXIT_PARTLY : EXIT_OK;
}

static int run_as(struct call *call, int argc, char **argv, struct error *err)
{
    char program[PATH_MAX];
    if (argc == 0)
        return error_set(err, -EINVAL, "no name given; all of them: mgpu compat list");
    if (find_or_refuse(compat_names, argv[0], err) == NULL || find_program(COMPAT_PROGRAM, program, err) < 0)
        return err->code;
    (void)execv(program, argv);
    return error_set_errno(err, -errno, "cannot execute %s", program);
}

static int run_check(struct call *call, int argc, char **argv, struct error *err)
{
    char program[PATH_MAX], verb[] = "check";
    if (argc == 0)
        return error_set(err, -EINVAL, "no script given");
    if (find_program(SLURM_COMPAT_PROGRAM, program, err) < 0)
        return err->code;
    _cleanup_free_ char **words = xcalloc((size_t)argc + 3, sizeof(*words));
    words[0] = program;
    words[1] = verb;
    for (int i = 0; i < argc; i++)
        words[i + 2] = argv[i];
    (void)execv(program, words);
    return error_set_errno(err, -errno, "cannot execute %s", program);
}

static const struct command list_command = {
    .name = "compat list",
    .usage = "",
    .help = "List the names that mgpu provides",
    .takes_nothing = true,
    .run = run_list,
};

static const struct command install_command = {
    .name = "compat install",
    .usage = "[--force] [--slurm|--python] FOLDER [NAME...]",
    .help = "Create links with these names, or all names, in a folder",
    .detail = "A name used by another program in PATH is omitted, unless --force is given.",
    .tables = { install_rows },
    .options_size = sizeof(struct compat_options),
    .run = run_install,
};

static const struct command run_command = {
    .name = "compat run",
    .usage = "NAME [ARGUMENT...]",
    .help = "Run the program of that name without a link",
    .stops_at_operand = true,
    .run = run_as,
};

static const struct command check_command = {
    .name = "compat check",
    .usage = "SCRIPT...",
    .help = "Report which options of scripts for Slurm differ here",
    .detail = "The exit status is 1 if sbatch would refuse one of the scripts.",
    .stops_at_operand = true,
    .run = run_check,
};

static const struct command *const actions[] = { &list_command, &install_command, &run_command,
    &check_command, NULL };

const struct command command_compat = {
    .name = "compat",
    .usage = "list|install|run|check ...",
    .help = "The commands of other small schedulers: list them, install them, run one",
    .actions = actions,
};
