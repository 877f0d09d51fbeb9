/* SPDX-License-Identifier: MIT */
#include "compat/personalities/compat_common.h"
#include "cli/api/programs.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "base/system_mgpud.h"
#include "base/wording.h"
#include "cli/options/talk.h"
#include "cli/submit/submit.h"

/* The sentence begins with the option's own name, "-m: " or "--gpu-mem: ". */
static int rename_option(const char *shown, struct error *err)
{
    char *colon = err->message[0] == '-' ? strstr(err->message, ": ") : NULL;
    if (colon == NULL || memchr(err->message, ' ', (size_t)(colon - err->message)) != NULL)
        return err->code;
    memmove(err->message, colon + 2, strlen(colon + 2) + 1);
    return error_wrap(err, "%s", shown);
}

int compat_set(void *call, const char *option, const char *shown, const char *value, struct error *err)
{
    static const struct option_row *const tables[] = { submit_rows, NULL };
    const struct option_row *row = options_find(tables, option, strlen(option));
    int r = options_set(call, row, value, err);
    return r < 0 ? rename_option(shown, err) : r;
}

int compat_set_row(void *call, const struct option_row *row, const char *value, struct error *err)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "--%s", row->name);
    return compat_set(call, row->key, name, value, err);
}

int compat_go_home(struct call *call, struct error *err)
{
    struct submit_options *options = call->options;
    const char *home = getenv("HOME");
    const struct passwd *user = home == NULL || home[0] != '/' ? getpwuid(geteuid()) : NULL;
    if (options->directory != NULL)
        return 0;
    if (user != NULL)
        home = user->pw_dir;
    if (home == NULL || home[0] != '/')
        return error_set(err, -ENOENT, "no home directory to run in: HOME is not set");
    options->directory = call_keep(call, home);
    return 0;
}

int compat_find_setting(struct call *call, const char *key, char **ret, struct error *err)
{
    _cleanup_json_ json_t *config = NULL;
    size_t index = 0;
    json_t *row = NULL;
    *ret = NULL;
    int r = client_get(&call->client, API_PATH "/config", &config, err);
    if (r < 0)
        return r;
    json_array_foreach(json_object_get(config, "settings"), index, row)
    {
        if (field_is(row, "key", key) && field_text(row, "value") != NULL)
            *ret = xstrdup(field_text(row, "value"));
    }
    return 0;
}

void compat_print_log(struct call *call, long long job, const char *where, const char *command)
{
    _cleanup_free_ char *folder = NULL;
    const struct passwd *user = getpwuid(geteuid());
    if (call->is_quiet || compat_find_setting(call, "log-dir", &folder, NULL) < 0)
        return;
    bool is_home = folder == NULL || strcmp(folder, "home") == 0;
    _cleanup_free_ char *home = xasprintf("%s/" COMPAT_LOG_DIR, user != NULL ? user->pw_dir : "~");
    talk_line("log: %s/%lld.log%s; %s %lld", is_home ? home : folder, job, where, command, job);
}

int compat_run(const struct call *call, const struct command *command, int argc, char **argv)
{
    struct call other = { .socket = call->socket,
        .host = call->host,
        .color = call->color,
        .times = call->times,
        .is_json = call->is_json,
        .is_quiet = call->is_quiet };
    _cleanup_free_ char **words = xcalloc((size_t)argc + 3, sizeof(*words));
    static char separator[] = "--", first[] = "";
    words[0] = first;
    words[1] = separator;
    memcpy(words + 2, argv, (size_t)argc * sizeof(*words));
    return call_run(&other, command, argc + 2, words);
}

int compat_execute(const struct strings *words, struct error *err)
{
    _cleanup_free_ char **argv = xcalloc(words->count + 1, sizeof(*argv));
    memcpy(argv, words->items, words->count * sizeof(*argv));
    _cleanup_free_ char *path = program_find(argv[0]);
    (void)execvp(path, argv);
    (void)error_set_errno(err, -errno, "cannot start %s", argv[0]);
    return error_hint(err, "it belongs to the package mgpu-server");
}

const char *compat_find_value(int argc, char *const *argv, const char *option)
{
    size_t length = strlen(option);
    const char *value = NULL;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], option) == 0 && i + 1 < argc)
            value = argv[++i];
        else if (strncmp(argv[i], option, length) == 0 && argv[i][length] == '=')
            value = argv[i] + length + 1;
    }
    return value;
}

const char *compat_find_socket(struct call *call, int argc, char *const *argv)
{
    const char *directory = compat_find_value(argc, argv, "--run-dir");
    _cleanup_free_ char *path = directory != NULL ? xasprintf("%s/mgpud.sock", directory) : NULL;
    return path != NULL ? call_keep(call, path) : NULL;
}

char *compat_own_socket(int argc, char *const *argv)
{
    const char *directory = compat_find_value(argc, argv, "--run-dir");
    const char *runtime = getenv("XDG_RUNTIME_DIR"), *home = getenv("HOME");
    if (directory != NULL)
        return xasprintf("%s/mgpud.sock", directory);
    if (geteuid() == 0)
        return xstrdup(SYSTEM_SOCKET);
    if (runtime != NULL && runtime[0] == '/')
        return xasprintf("%s/mgpu/mgpud.sock", runtime);
    return xasprintf("%s/.local/state/mgpu/run/mgpud.sock", home != NULL ? home : "");
}

void compat_allow_root(struct strings *words)
{
    if (geteuid() == 0)
        strings_add(words, "--allow-root-jobs");
}

void compat_print_root_note(void)
{
    if (geteuid() == 0)
        talk_line("started by root: jobs submitted by root run as root (mgpud itself refuses them)");
}

/* Options of mgpud that personalities pass on, as its hints name them. */
static const struct wording passed_on[] = {
    { "--state-dir and --run-dir", "--state-dir and --run-dir after --" },
    { "--user NAME", "-- --user NAME" },
    { "--gpus sim:8x24G", "-- --gpus sim:8x24G" },
    { 0 },
};

static void print_served_users(const char *door, enum compat_serves serves)
{
    const struct passwd *user = getpwuid(geteuid());
    const char *name = user != NULL ? user->pw_name : "you";
    if (serves == COMPAT_SERVES_GUESTS)
        talk_line(
            "without root it runs jobs of %s only, and gives GPUs to srun of all users, whose commands it "
            "can neither end nor confine to their GPUs (--private: of %s only; sudo %s: all users' jobs)",
            name, name, door);
    else
        talk_line("without root it serves %s only; for all users of this machine: sudo %s", name, door);
}

void compat_complete_server(const struct call *call, const char *door, enum compat_serves serves,
    const struct wording *wording, struct strings *words, int argc, char *const *argv)
{
    _cleanup_free_ char *help = xasprintf("%s --help lists its options, mgpud --help those after --", door);
    compat_allow_root(words);
    if (geteuid() == 0)
        strings_add(words, "--create-user");
    for (int i = 0; i < argc; i++)
        strings_add(words, argv[i]);
    wording_hand_over(wording);
    wording_hand_over(passed_on);
    wording_hand_over((const struct wording[]){ { "mgpud --help lists the options", help }, { 0 } });
    compat_print_root_note();
    if (geteuid() != 0 && !call->is_quiet)
        print_served_users(door, serves);
}
