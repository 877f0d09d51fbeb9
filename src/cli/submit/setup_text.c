/* SPDX-License-Identifier: MIT */
/*
 * The text is run by the user's shell or by sh without start-up files. Functions that these define (`conda`
 * and `module`) are searched for in the usual places, on the node, when the job starts. Names are assigned to
 * quoted variables once, which are unset before the command.
 */
#include "cli/submit/setup_text.h"

#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"

#define MARK_MAX 2048

#define MODULE_SEARCH                                                                                        \
    "if ! command -v module >/dev/null 2>&1; then\n"                                                         \
    "  for mgpu_file in \"${MODULESHOME:-}/init/sh\" \"${LMOD_PKG:-}/init/sh\" "                             \
    "/etc/profile.d/modules.sh "                                                                             \
    "/etc/profile.d/lmod.sh /usr/share/modules/init/sh /usr/share/lmod/lmod/init/sh; do\n"                   \
    "    if [ -r \"$mgpu_file\" ]; then . \"$mgpu_file\"; break; fi\n"                                       \
    "  done\n"                                                                                               \
    "fi\n"

static const char module_text[] =
    MODULE_SEARCH "if ! command -v module >/dev/null 2>&1; then\n"
                  "  echo \"mgpu: --module: there are no environment modules on this node\" >&2; exit 1\n"
                  "fi\n"
                  "for mgpu_name in %s; do\n"
                  "  module load \"$mgpu_name\" ||\n"
                  "    { echo \"mgpu: --module: $mgpu_name cannot be loaded\" >&2; exit 1; }\n"
                  "done\n"
                  "unset mgpu_file mgpu_name\n";

#define CONDA_SEARCH                                                                                         \
    "mgpu_conda=\n"                                                                                          \
    "for mgpu_file in \"${CONDA_EXE:-}\" \"$(command -v conda)\" "                                           \
    "\"${HOME:-}/miniforge3/bin/conda\" \"${HOME:-}/miniconda3/bin/conda\" "                                 \
    "\"${HOME:-}/mambaforge/bin/conda\" "                                                                    \
    "\"${HOME:-}/anaconda3/bin/conda\" /opt/conda/bin/conda /opt/miniforge3/bin/conda "                      \
    "/opt/miniconda3/bin/conda /opt/anaconda3/bin/conda; do\n"                                               \
    "  case $mgpu_file in /*)\n"                                                                             \
    "    if [ -f \"$mgpu_file\" ] && [ -x \"$mgpu_file\" ]; then mgpu_conda=$mgpu_file; break; fi ;;\n"      \
    "  esac\n"                                                                                               \
    "done\n"

/* A non-interactive shell does not have the function `conda`, which the command needs. If conda is not
 * installed, the command reports that. */
static const char conda_function_text[] =
    CONDA_SEARCH "if [ -n \"$mgpu_conda\" ]; then eval \"$(\"$mgpu_conda\" shell.posix hook)\"; fi\n"
                 "unset mgpu_conda mgpu_file\n";

/* `conda shell.posix activate` prints what `conda activate` does in a shell with its functions. */
static const char conda_text[] =
    "mgpu_name=%s\n" CONDA_SEARCH "if [ -z \"$mgpu_conda\" ]; then\n"
    "  echo \"mgpu: --conda: there is no conda on this node: CONDA_EXE does not name one, and none is in "
    "PATH "
    "or in the usual places\" >&2; exit 1\n"
    "fi\n"
    "mgpu_text=$(PS1=\"${PS1:-}\" \"$mgpu_conda\" shell.posix activate \"$mgpu_name\") ||\n"
    "  { echo \"mgpu: --conda: $mgpu_conda cannot activate the environment $mgpu_name\" >&2; exit 1; }\n"
    "eval \"$mgpu_text\" ||\n"
    "  { echo \"mgpu: --conda: $mgpu_conda cannot activate $mgpu_name\" >&2; exit 1; }\n"
    "unset mgpu_name mgpu_conda mgpu_file mgpu_text\n";

static const char venv_text[] =
    "mgpu_name=%s\n"
    "case $mgpu_name in /*) ;; *) mgpu_name=./$mgpu_name ;; esac\n"
    "if [ ! -r \"$mgpu_name/bin/activate\" ]; then\n"
    "  echo \"mgpu: --venv: $mgpu_name is not a virtual environment: it has no bin/activate\" >&2; exit 1\n"
    "fi\n"
    ". \"$mgpu_name/bin/activate\" ||\n"
    "  { echo \"mgpu: --venv: $mgpu_name cannot be activated\" >&2; exit 1; }\n"
    "unset mgpu_name\n";

/* --- before the job is submitted: what these texts would fail for here --- */

static const char module_check_text[] =
    "(mgpu_name=%s\n" MODULE_SEARCH "command -v module >/dev/null 2>&1 ||\n"
    "  echo \"--module $mgpu_name: there are no environment modules here\")\n";

/* Searches the directories of `conda activate NAME` without conda, which takes a second to start. conda's
 * settings may name more directories. */
static const char conda_check_text[] =
    "(mgpu_name=%s\n" CONDA_SEARCH "mgpu_root=${mgpu_conda%%/*bin/conda}\n"
    "if [ -z \"$mgpu_conda\" ]; then\n"
    "  echo \"--conda $mgpu_name: there is no conda here: CONDA_EXE does not name one, and none is in PATH "
    "or "
    "in the usual places\"; exit\n"
    "fi\n"
    "case $mgpu_name in\n"
    "  base|root) exit ;;\n"
    "  */*) [ -d \"$mgpu_name/conda-meta\" ] ||\n"
    "    echo \"--conda $mgpu_name: the folder is not a conda environment\"; exit ;;\n"
    "esac\n"
    "for mgpu_file in \"${HOME:-}/.condarc\" \"$mgpu_root/.condarc\" /etc/conda/.condarc; do\n"
    "  if grep -q '^envs_\\(dirs\\|path\\)' \"$mgpu_file\" 2>/dev/null; then exit; fi\n"
    "done\n"
    "while read -r mgpu_file; do\n"
    "  case $mgpu_file in */\"$mgpu_name\") exit ;; esac\n"
    "done 2>/dev/null <\"${HOME:-}/.conda/environments.txt\"\n"
    "mgpu_all=$mgpu_root/envs:${HOME:-}/.conda/envs:${CONDA_ENVS_PATH:-}:${CONDA_ENVS_DIRS:-}\n"
    "IFS=:\n"
    "for mgpu_file in $mgpu_all; do [ ! -d \"$mgpu_file/$mgpu_name\" ] || exit; done\n"
    "echo \"--conda $mgpu_name: there is no such environment here; conda create -n $mgpu_name creates "
    "one\")\n";

static char *quote(const char *word)
{
    _cleanup_strings_ struct strings words = { 0 };
    strings_add(&words, word);
    return text_quote_command(&words);
}

/* No option can end the line, because control characters are escaped. */
static void add_mark(const struct setup_options *options, struct buffer *out)
{
    const struct {
        const char *option, *value;
    } rows[] = { { "--conda", options->conda }, { "--venv", options->venv }, { "-E", options->command } };
    _cleanup_strings_ struct strings words = { 0 };
    for (size_t i = 0; i < options->modules.count; i++) {
        strings_add(&words, "--module");
        strings_add(&words, options->modules.items[i]);
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].value == NULL)
            continue;
        strings_add(&words, rows[i].option);
        strings_add(&words, rows[i].value);
    }
    _cleanup_free_ char *line = text_quote_command(&words);
    _cleanup_free_ char *shown = text_escape(line, MARK_MAX);
    buffer_printf(out, SETUP_TEXT_MARK "%s\n", shown);
}

/* True if the command contains `conda activate`. */
static bool types_conda(const char *command)
{
    const char *found = command == NULL ? NULL : strstr(command, "conda activate");
    return found != NULL && (found == command || strchr(" \t\n;&|({", found[-1]) != NULL);
}

char *setup_text_make(const struct setup_options *options)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    bool has_function = types_conda(options->command);
    if (options->modules.count == 0 && options->conda == NULL && options->venv == NULL && !has_function)
        return xstrdup(options->command);
    add_mark(options, &out);
    if (has_function)
        buffer_append_text(&out, conda_function_text);
    if (options->modules.count > 0) {
        _cleanup_free_ char *names = text_quote_command(&options->modules);
        buffer_printf(&out, module_text, names);
    }
    if (options->conda != NULL) {
        _cleanup_free_ char *name = quote(options->conda);
        buffer_printf(&out, conda_text, name);
    }
    if (options->venv != NULL) {
        _cleanup_free_ char *name = quote(options->venv);
        buffer_printf(&out, venv_text, name);
    }
    if (options->command != NULL)
        buffer_append_text(&out, options->command);
    return buffer_take(&out);
}

char *setup_text_check(const struct setup_options *options)
{
    _cleanup_buffer_ struct buffer out = { 0 };
    if (options->modules.count > 0) {
        _cleanup_free_ char *name = quote(options->modules.items[0]);
        buffer_printf(&out, module_check_text, name);
    }
    if (options->conda != NULL) {
        _cleanup_free_ char *name = quote(options->conda);
        buffer_printf(&out, conda_check_text, name);
    }
    return out.length > 0 ? buffer_take(&out) : NULL;
}
