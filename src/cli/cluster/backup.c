/* SPDX-License-Identifier: MIT */
/* mgpu backup: queries mgpud for its directories and settings, and runs its program to write them to a file.
 * Only root or mgpud's user can read them, so no part of a backup passes through the API. */
#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json/field.h"
#include "base/memory.h"
#include "base/strings.h"
#include "cli/api/programs.h"
#include "cli/verbs/verbs.h"

#define PROGRAM  "mgpud"
#define DROP_INS ".d/"
#define STORE    "store" // in the state directory

static const char *find_state_dir(const json_t *answer)
{
    size_t index = 0;
    json_t *setting = NULL;
    json_array_foreach(json_object_get(answer, "settings"), index,
        setting) if (text_equal(field_text(setting, "key"), "state-dir")) return field_text(setting, "value");
    return NULL;
}

/* The file that mgpud read first; NULL if it read only drop-ins, which it finds by itself. */
static const char *find_config(const json_t *answer)
{
    const char *first = json_string_value(json_array_get(json_object_get(answer, "files"), 0));
    return first != NULL && strstr(first, DROP_INS) == NULL ? first : NULL;
}

/* Otherwise mgpud's program would fail at the first file, with a message of its log. */
static int check_user(const char *state_dir, struct error *err)
{
    struct stat st;
    _cleanup_free_ char *store = xasprintf("%s/" STORE, state_dir);
    if (geteuid() == 0 || stat(store, &st) < 0 || st.st_uid == geteuid())
        return 0;
    const struct passwd *user = st.st_uid != 0 ? getpwuid(st.st_uid) : NULL;
    return error_set(err, -EPERM, "only root%s%s can make a backup", user != NULL ? " and the user " : "",
        user != NULL ? user->pw_name : "");
}

static int run(struct call *call, int argc, char **argv, struct error *err)
{
    _cleanup_json_ json_t *answer = NULL;
    if (argc != 1) {
        (void)error_set(err, -EINVAL, "one file is expected, not %d", argc);
        return error_hint(err, "mgpu backup /root/mgpu.backup");
    }
    int r = client_get(&call->client, API_PATH "/config", &answer, err);
    if (r < 0)
        return r;
    const char *state_dir = find_state_dir(answer), *config = find_config(answer);
    if (state_dir == NULL)
        return error_set(err, -EPROTO, "mgpud does not report its state directory");
    r = check_user(state_dir, err);
    if (r < 0)
        return r;
    _cleanup_free_ char *program = program_find(PROGRAM), *state = xasprintf("--state-dir=%s", state_dir);
    _cleanup_free_ char *backup = xasprintf("--backup=%s", argv[0]);
    _cleanup_free_ char *file = config != NULL ? xasprintf("--config=%s", config) : NULL;
    char name[] = PROGRAM;
    char *words[] = { name, state, backup, file, NULL };
    if (strchr(program, '/') != NULL)
        (void)execv(program, words);
    else
        (void)execvp(program, words);
    return error_set_errno(err, -errno, "cannot execute %s", program);
}

const struct command command_backup = {
    .name = "backup",
    .usage = "FILE",
    .help = "Write jobs, keys and settings of mgpud to a file, while it runs",
    .run = run,
};
