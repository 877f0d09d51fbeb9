/* SPDX-License-Identifier: MIT */
/* The words for podman and apptainer, on a node whose programs are files in a directory of the test; and what
 * is the first process of a container. */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/memory.h"
#include "fixture.h"
#include "shepherd/container.h"
#include "shepherd/container_gpus.h"
#include "shepherd/first.h"
#include "unit_test.h"

#define CASE(name, f) TEST_ON(name, struct fixture *f, fixture_setup, fixture_teardown)

static char net[] = "lab/net:1";

static void put(const struct fixture *f, const char *name, const char *text)
{
    char path[160];
    (void)snprintf(path, sizeof(path), "%s/%s", f->home, name);
    assert_int_equal(file_write(AT_FDCWD, path, text, strlen(text), false), 0);
    assert_int_equal(chmod(path, 0755), 0);
}

static void make_node(const struct fixture *f, const char *runtime)
{
    if (runtime != NULL)
        put(f, runtime, "#!/bin/sh\n");
    assert_int_equal(setenv("PATH", f->home, 1), 0);
    assert_int_equal(setenv("HOME", f->home, 1), 0);
    assert_int_equal(setenv("PWD", f->home, 1), 0);
    assert_int_equal(chdir(f->home), 0);
}

static bool has(const struct strings *words, const char *word)
{
    for (size_t i = 0; i < words->count; i++)
        if (strcmp(words->items[i], word) == 0)
            return true;
    return false;
}

CASE(no_word_of_the_command_stands_before_the_image, f)
{
    _cleanup_strings_ struct strings command = { 0 }, words = { 0 };
    const struct launch_image image = { .name = net };
    make_node(f, "podman");
    strings_add(&command, "--rm");
    strings_add(&command, "two\nlines");
    assert_int_equal(container_words(&image, &command, &words), STEP_NONE);
    assert_string_equal(words.items[0], "podman");
    size_t last = words.count - 1;
    assert_string_equal(words.items[last], "two\nlines");
    assert_string_equal(words.items[last - 1], "--rm");
    assert_string_equal(words.items[last - 2], net);
    assert_string_equal(words.items[last - 3], "--");
}

CASE(variables_go_by_name_and_those_of_the_node_stay, f)
{
    static const char *const passed[] = { "--env=MGPU_JOB_ID", "--env=MINE" };
    static const char *const kept[] = { "--env=PATH", "--env=LD_PRELOAD", "--env=CONDA_PREFIX", "--env=PWD" };
    _cleanup_strings_ struct strings command = { 0 }, words = { 0 };
    const struct launch_image image = { .name = net };
    make_node(f, "podman");
    (void)setenv("MGPU_JOB_ID", "42", 1);
    (void)setenv("MINE", "a=b\nc", 1);
    (void)setenv("LD_PRELOAD", "", 1);
    (void)setenv("CONDA_PREFIX", "/x", 1);
    assert_int_equal(container_words(&image, &command, &words), STEP_NONE);
    for (size_t i = 0; i < 2; i++)
        assert_true(has(&words, passed[i]));
    for (size_t i = 0; i < 4; i++)
        assert_false(has(&words, kept[i]));
    (void)unsetenv("LD_PRELOAD");
}

CASE(the_image_keeps_its_own_directories, f)
{
    _cleanup_strings_ struct strings command = { 0 }, words = { 0 }, again = { 0 };
    struct launch_image image = { .name = net };
    _cleanup_free_ char *volume = xasprintf("--volume=%s:%s:rslave", f->home, f->home);
    make_node(f, "podman");
    (void)setenv("PWD", "/usr", 1);
    assert_int_equal(chdir("/usr"), 0);
    assert_int_equal(container_words(&image, &command, &words), STEP_NONE);
    assert_true(has(&words, volume));
    assert_true(has(&words, "--workdir=/usr"));
    assert_false(has(&words, "--volume=/usr:/usr:rslave"));
    /* The user's own mounts take precedence. */
    strings_take(&image.mounts, xasprintf("/data:%s:ro", f->home));
    assert_int_equal(container_words(&image, &command, &again), STEP_NONE);
    assert_false(has(&again, volume));
    strings_clear(&image.mounts);
}

CASE(a_directory_that_cannot_be_mounted_is_reported, f)
{
    _cleanup_strings_ struct strings command = { 0 }, words = { 0 };
    const struct launch_image image = { .name = net };
    make_node(f, "podman");
    (void)setenv("HOME", "/nowhere", 1);
    assert_int_equal(mkdir("a:b", 0755), 0);
    assert_int_equal(chdir("a:b"), 0);
    assert_int_equal(container_words(&image, &command, &words), STEP_MOUNT);
}

CASE(gpus_come_by_their_description_where_there_is_one, f)
{
    const char *const directories[] = { "/nowhere", f->home, NULL };
    _cleanup_strings_ struct strings words = { 0 };
    struct launch_image image = { .name = net };
    strings_add(&image.gpus, "3 GPU-a");
    strings_add(&image.gpus, "5 GPU-b");
    put(f, "other.json", "{\"kind\":\"lab.org/fpga\"}");
    put(f, "nvidia.txt", "nvidia.com/gpu");
    assert_false(container_add_described(directories, "nvidia.com/gpu", &image, &words));
    assert_int_equal(words.count, 0);
    put(f, "nvidia.yaml", "kind: nvidia.com/gpu\ndevices:\n- name: GPU-a\n- name: \"5\"\n");
    assert_true(container_add_described(directories, "nvidia.com/gpu", &image, &words));
    assert_int_equal(words.count, 2);
    assert_string_equal(words.items[0], "--device=nvidia.com/gpu=GPU-a");
    assert_string_equal(words.items[1], "--device=nvidia.com/gpu=5");
    strings_clear(&image.gpus);
}

CASE(device_nodes_that_are_there_are_given_else, f)
{
    _cleanup_strings_ struct strings command = { 0 }, words = { 0 };
    struct launch_image image = { .name = net };
    make_node(f, "podman");
    strings_add(&image.devices, "/dev/null");
    strings_add(&image.devices, "/dev/nowhere0");
    assert_int_equal(container_words(&image, &command, &words), STEP_NONE);
    assert_true(has(&words, "--device=/dev/null"));
    assert_false(has(&words, "--device=/dev/nowhere0"));
    strings_clear(&image.devices);
}

CASE(the_runtime_is_what_was_asked_for_or_what_is_there, f)
{
    static char sif[] = "/a/net.sif", podman[] = "podman", apptainer[] = "apptainer";
    static const struct {
        char *name, *runtime;
        const char *first; // NULL: it cannot be started
    } rows[] = {
        { net, NULL, "singularity" },
        { net, apptainer, "singularity" },
        { net, podman, NULL },
        { sif, NULL, "singularity" },
    };
    make_node(f, "singularity");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        _cleanup_strings_ struct strings command = { 0 }, words = { 0 };
        const struct launch_image image = { .name = rows[i].name, .runtime = rows[i].runtime };
        enum launch_step step = container_words(&image, &command, &words);
        assert_int_equal(step, rows[i].first != NULL ? STEP_NONE : STEP_RUNTIME);
        if (rows[i].first != NULL)
            assert_string_equal(words.items[0], rows[i].first);
    }
}

CASE(a_user_without_a_range_of_ids_is_known, f)
{
    char text[64];
    assert_int_equal(chdir(f->home), 0);
    assert_int_equal(setenv("USER", "ada", 1), 0);
    assert_false(container_has_ids("subuid", "nsswitch"));
    put(f, "subuid", "adam:1:2\nbob:3:4\n");
    assert_false(container_has_ids("subuid", "nsswitch"));
    put(f, "subuid", "bob:3:4\nada:100000:65536");
    assert_true(container_has_ids("subuid", "nsswitch"));
    (void)snprintf(text, sizeof(text), "%u:100000:65536\n", geteuid());
    put(f, "subuid", text);
    assert_true(container_has_ids("subuid", "nsswitch"));
    put(f, "subuid", "");
    put(f, "nsswitch", "passwd: files\nsubid: sss\n");
    assert_true(container_has_ids("subuid", "nsswitch"));
}

/* Runs first_main() in a child, sends it the signal when there is one, and returns its exit status. */
static int run_first(char *const words[], int signal_number)
{
    int status = 0, pair[2];
    char byte;
    assert_int_equal(pipe(pair), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(pair[1], STDOUT_FILENO);
        (void)close(pair[0]);
        (void)close(pair[1]);
        _exit(first_main((char **)(uintptr_t)words));
    }
    (void)close(pair[1]);
    if (signal_number != 0) {
        assert_int_equal(read(pair[0], &byte, 1), 1);
        assert_int_equal(kill(pid, signal_number), 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    (void)close(pair[0]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(the_first_process_tells_the_end_of_the_command)
{
    static char sh[] = "/bin/sh", c[] = "-c", seven[] = "(exit 9) & exit 7", killed[] = "kill -9 $$",
                nosuch[] = "/nowhere/cmd", file[] = "/etc/passwd";
    assert_int_equal(run_first((char *[]){ sh, c, seven, NULL }, 0), 7);
    assert_int_equal(run_first((char *[]){ sh, c, killed, NULL }, 0), 128 + SIGKILL);
    assert_int_equal(run_first((char *[]){ nosuch, NULL }, 0), 127);
    assert_int_equal(run_first((char *[]){ file, NULL }, 0), 126);
}

TEST(the_first_process_hands_signals_on)
{
    static char sh[] = "/bin/sh", c[] = "-c", trapping[] = "trap 'exit 3' USR1; echo; while :; do :; done",
                plain[] = "echo; while :; do :; done";
    assert_int_equal(run_first((char *[]){ sh, c, trapping, NULL }, SIGUSR1), 3);
    assert_int_equal(run_first((char *[]){ sh, c, plain, NULL }, SIGTERM), 128 + SIGTERM);
}
