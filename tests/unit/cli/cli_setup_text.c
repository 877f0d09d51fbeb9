/* SPDX-License-Identifier: MIT */
/* The text is given to a real shell, with a conda, a venv and modules made for the test. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "cli/submit/setup_text.h"
#include "unit_test.h"

static char place[] = "/tmp/mgpu-setup-XXXXXX";

static void write_file(const char *name, const char *text, mode_t mode)
{
    FILE *out = fopen(name, "we");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(chmod(name, mode), 0);
}

static int make_place(void **state)
{
    if (mkdtemp(place) == NULL || chdir(place) < 0 || mkdir("my venv", 0755) < 0 ||
        mkdir("my venv/bin", 0755) < 0 || mkdir("modules", 0755) < 0 || mkdir("modules/init", 0755) < 0)
        return -1;
    write_file("conda",
        "#!/bin/sh\n"
        "[ \"$1 $2\" = 'shell.posix activate' ] || exit 2\n"
        "[ \"$3\" = 'my env' ] || { echo \"EnvironmentNameNotFound: $3\" >&2; exit 1; }\n"
        "echo \"export CONDA_DEFAULT_ENV='$3'; order=\\\"\\${order}conda \\\"\"\n",
        0755);
    write_file("my venv/bin/activate", "order=\"${order}venv \"; VIRTUAL_ENV=here\n", 0644);
    write_file("modules/init/sh", "module() { order=\"${order}$1:$2 \"; [ \"$2\" != missing ]; }\n", 0644);
    (void)setenv("HOME", place, 1);
    (void)setenv("MODULESHOME", "modules", 1);
    return 0;
}

static int remove_place(void **state)
{
    _cleanup_free_ char *command = xasprintf("rm -r %s", place);
    return system(command) == 0 ? 0 : -1;
}

/* Runs the text as the shepherd does, then says `order`; the exit status, and all output in `ret`. */
static int run(const char *shell, const struct setup_options *options, char **ret)
{
    _cleanup_buffer_ struct buffer said = { 0 };
    _cleanup_free_ char *text = setup_text_make(options);
    char chunk[512];
    (void)setenv("MGPU_TEST_TEXT", text, 1);
    _cleanup_free_ char *line = xasprintf(
        "exec 2>&1; exec %s -c 'eval \"$MGPU_TEST_TEXT\" || exit\necho \"$order${mgpu_name-}\"'", shell);
    FILE *pipe = popen(line, "re");
    assert_non_null(pipe);
    for (size_t n = 0; (n = fread(chunk, 1, sizeof(chunk), pipe)) > 0;)
        buffer_append(&said, chunk, n);
    int status = pclose(pipe);
    *ret = said.length > 0 ? buffer_take(&said) : xstrdup("");
    return WEXITSTATUS(status);
}

TEST(nothing_wished_is_no_text)
{
    const struct setup_options options = { 0 };
    assert_null(setup_text_make(&options));
}

TEST(the_parts_run_in_their_order)
{
    static const char *const shells[] = { "/bin/sh", "/bin/bash" };
    struct setup_options options = {
        .conda = "my env", .venv = "my venv", .command = "order=\"${order}own\""
    };
    (void)setenv("CONDA_EXE", "", 1);
    _cleanup_free_ char *path = xasprintf("%s:/usr/bin:/bin", place);
    (void)setenv("PATH", path, 1);
    strings_add(&options.modules, "cuda/12");
    strings_add(&options.modules, "gcc");
    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
        _cleanup_free_ char *said = NULL;
        assert_int_equal(run(shells[i], &options, &said), 0);
        assert_string_equal(said, "load:cuda/12 load:gcc conda venv own\n");
    }
    strings_clear(&options.modules);
}

TEST(each_part_that_is_missing_says_so_and_ends_the_shell)
{
    static const struct {
        const char *what;
        struct setup_options options;
    } rows[] = {
        { "--conda: there is no conda on this node", { .conda = "my env", .command = "echo on" } },
        { "--venv: ./none is not a virtual environment", { .venv = "none", .command = "echo on" } },
        { "--venv: ./$(echo on >&2)'; echo on is not a virtual", { .venv = "$(echo on >&2)'; echo on" } },
    };
    (void)setenv("PATH", "/usr/bin:/bin", 1);
    (void)setenv("CONDA_EXE", "/nowhere/conda", 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        _cleanup_free_ char *said = NULL;
        assert_int_equal(run("/bin/sh", &rows[i].options, &said), 1);
        assert_non_null(strstr(said, rows[i].what));
        assert_null(strstr(said, "\non"));
    }
}

TEST(the_first_line_says_what_was_wished_and_nothing_gets_out_of_it)
{
    struct setup_options options = { .venv = "a\necho out" };
    _cleanup_free_ char *said = NULL, *text = setup_text_make(&options);
    assert_ptr_equal(strstr(text, "# mgpu: --venv 'a\\x0aecho out'\n"), text);
    assert_int_equal(run("/bin/sh", &options, &said), 1);
    assert_ptr_equal(strstr(said, "mgpu: --venv: ./a\necho out is no"), said);
    options = (struct setup_options){ .command = "true" };
    _cleanup_free_ char *plain = setup_text_make(&options);
    assert_string_equal(plain, "true");
}

TEST(an_environment_that_conda_does_not_know)
{
    const struct setup_options options = { .conda = "other", .command = "echo on" };
    _cleanup_free_ char *said = NULL, *conda = xasprintf("%s/conda", place);
    (void)setenv("CONDA_EXE", conda, 1);
    assert_int_equal(run("/bin/sh", &options, &said), 1);
    assert_non_null(strstr(said, "EnvironmentNameNotFound: other\n"));
    assert_non_null(strstr(said, "/conda cannot activate the environment other\n"));
}

TEST(a_module_that_cannot_be_loaded)
{
    struct setup_options options = { .command = "echo on" };
    _cleanup_free_ char *said = NULL;
    strings_add(&options.modules, "missing");
    assert_int_equal(run("/bin/sh", &options, &said), 1);
    assert_string_equal(said, "mgpu: --module: missing cannot be loaded\n");
    strings_clear(&options.modules);
}

/* The message of the check before the job is submitted. */
static char *check(const struct setup_options *options)
{
    _cleanup_free_ char *text = setup_text_check(options);
    _cleanup_buffer_ struct buffer said = { 0 };
    char chunk[512];
    if (text == NULL)
        return NULL;
    FILE *pipe = popen(text, "re");
    assert_non_null(pipe);
    for (size_t n = 0; (n = fread(chunk, 1, sizeof(chunk), pipe)) > 0;)
        buffer_append(&said, chunk, n);
    assert_true(WIFEXITED(pclose(pipe)));
    return said.length > 0 ? buffer_take(&said) : xstrdup("");
}

static void assert_checked(const char *conda, const char *expected)
{
    const struct setup_options options = { .conda = conda };
    _cleanup_free_ char *said = check(&options);
    assert_string_equal(said, expected);
}

TEST(what_is_not_here_is_told_before_the_job_is_submitted)
{
    struct setup_options options = { .venv = "none", .command = "echo on" };
    assert_null(check(&options));
    assert_int_equal(mkdir("root", 0755) | mkdir("root/bin", 0755) | mkdir("root/envs", 0755) |
                         mkdir("root/envs/my env", 0755) | mkdir("more", 0755) | mkdir("more/other", 0755) |
                         mkdir(".conda", 0755) | mkdir("there", 0755) | mkdir("there/conda-meta", 0755),
        0);
    write_file("root/bin/conda", "#!/bin/sh\necho executed\n", 0755);
    write_file(".conda/environments.txt", "/far/away/known\n", 0644);
    _cleanup_free_ char *conda = xasprintf("%s/root/bin/conda", place),
                        *more = xasprintf("/x:%s/more", place);
    (void)setenv("CONDA_EXE", conda, 1);
    static const char *const good[] = { "my env", "base", "known", "./there" };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_checked(good[i], "");
    assert_checked("./root", "--conda ./root: the folder is not a conda environment\n");
    assert_checked(
        "other", "--conda other: there is no such environment here; conda create -n other creates one\n");
    assert_checked("$(echo on)",
        "--conda $(echo on): there is no such environment here; conda create -n $(echo on) creates one\n");
    (void)setenv("CONDA_ENVS_PATH", more, 1);
    assert_checked("other", "");
    (void)unsetenv("CONDA_ENVS_PATH");
    write_file(".condarc", "envs_dirs:\n  - /elsewhere\n", 0644);
    assert_checked("other", "");
    (void)setenv("MODULESHOME", "/nowhere", 1);
    strings_add(&options.modules, "cuda/12");
    _cleanup_free_ char *module = check(&options);
    if (access("/etc/profile.d/modules.sh", R_OK) < 0 && access("/etc/profile.d/lmod.sh", R_OK) < 0)
        assert_string_equal(module, "--module cuda/12: there are no environment modules here\n");
    (void)setenv("MODULESHOME", "modules", 1);
    _cleanup_free_ char *found = check(&options);
    assert_string_equal(found, "");
    strings_clear(&options.modules);
}

int main(void)
{
    return unit_tests_run(make_place, remove_place);
}
