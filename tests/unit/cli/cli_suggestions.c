/* SPDX-License-Identifier: MIT */
/* A misspelt word of any kind is answered with the intended one. */

#include <stdlib.h>
#include <string.h>

#include "base/strings.h"
#include "cli/options/commands.h"
#include "run_verb.h"
#include "unit_test.h"

#define WORDS_MAX 8U

static const struct {
    const char *words[WORDS_MAX];
    const char *meant;
} slips[] = {
    /* options */
    { { "submit", "--prioritty", "5", "--", "true" }, "'--priority'" },
    { { "ps", "--usr", "ada" }, "'--user'" },
    { { "logs", "--folow", "1" }, "'--follow'" },
    { { "adopt", "--gpu-id", "0", "1" }, "cannot reach" }, // an unambiguous beginning is no slip
    { { "reserve", "add", "--form", "now" }, "'--from'" },
    { { "gpu", "pause", "--untill", "now", "0" }, "'--until'" },
    { { "cancel", "--al" }, "use -y" },
    /* columns */
    { { "ps", "-o", "id,gpu" }, "'gpus'" },
    { { "ps", "--sort", "-nmae" }, "'name'" },
    { { "gpus", "-o", "modle" }, "'model'" },
    { { "gpus", "--history", "1h", "-o", "utl" }, "'util'" },
    { { "nodes", "-o", "sate" }, "'state'" },
    { { "users", "--sort", "hour" }, "'hours'" },
    { { "reserve", "list", "-o", "form" }, "'from'" },
    { { "config", "list", "-o", "orgin" }, "'origin'" },
    /* states */
    { { "ps", "-s", "runing" }, "'running'" },
    { { "ps", "-s", "queued,hled" }, "'held'" },
    { { "ps", "-s", "canceled" }, "'cancelled'" },
    /* policies, actions, keys, shells, topics */
    { { "gpu", "policy", "0", "avoyd" }, "'avoid'" },
    { { "gpu", "policy", "0", "fit-arround" }, "'fit-around'" },
    { { "gpu", "pasue", "0" }, "'pause'" },
    { { "node", "drian", "n" }, "'drain'" },
    { { "reserve", "lst" }, "'list'" },
    { { "config", "gte", "x" }, "'get'" },
    { { "journal", "exprt" }, "'export'" },
    { { "edit", "42", "prority=1" }, "'priority'" },
    { { "edit", "42", "gpu=1" }, "'gpus'" },
    { { "edit", "42", "time_limt=1h" }, "'time_limit'" },
    { { "edit", "42", "foo=1" }, "mgpu help edit" },
    { { "edit", "42", "--priority", "5" }, "priority=5" },
    { { "edit", "42", "--tme=4h" }, "priority=5" },
    { { "completion", "tcsh" }, "use bash, zsh or fish" },
    { { "help", "reason" }, "'reasons'" },
    { { "help", "sbmit" }, "'submit'" },
    { { "help", "exit" }, "'exit-codes'" },
    { { "help", "xyzzyplugh" }, "mgpu help" },
};

TEST(each_slip_is_answered_with_what_was_meant)
{
    unsigned failures = 0;
    for (size_t i = 0; i < sizeof(slips) / sizeof(slips[0]); i++) {
        _cleanup_strings_ struct strings argv = { 0 };
        int status = 0;
        for (size_t k = 0; k < WORDS_MAX && slips[i].words[k] != NULL; k++)
            strings_add(&argv, slips[i].words[k]);
        _cleanup_free_ char *said =
            run_verb(commands_find(argv.items[0]), (int)argv.count, argv.items, &status);
        if (status != 0 && strstr(said, slips[i].meant) != NULL)
            continue;
        failures++;
        print_error("mgpu %s %s ...: status %d, %s", argv.items[0], argv.items[1], status, said);
    }
    assert_int_equal(failures, 0);
}

TEST(a_mistyped_verb_is_answered_with_the_nearest)
{
    static const char *const verbs[][2] = { { "sbmit", "submit" }, { "cancle", "cancel" }, { "log", "logs" },
        { "que", "queue" }, { "postmortm", "postmortem" }, { "resrve", "reserve" },
        { "complet", "completion" } };
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        struct error err = { 0 };
        (void)commands_refuse(verbs[i][0], &err);
        assert_non_null(strstr(err.message, verbs[i][1]));
    }
}

int main(void)
{
    (void)setenv("HOME", "/nonexistent", 1);
    return unit_tests_run(NULL, NULL);
}
