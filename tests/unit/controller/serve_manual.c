/* SPDX-License-Identifier: MIT */
/* docs/api.md tells of everything that the tables have. */

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "base/files.h"
#include "controller/api/route.h"
#include "unit_test.h"
#include "wire/json_job.h"
#include "wire/limits.h"
#include "wire/problem.h"

static int read_manual(void **state)
{
    static struct buffer manual;
    assert_int_equal(file_read(AT_FDCWD, MANUAL "/api.md", 1U << 20, &manual), 0);
    *state = &manual;
    return 0;
}

static int drop_manual(void **state)
{
    buffer_clear(*state);
    return 0;
}

static void assert_told(void *manual, char *part)
{
    if (strstr(buffer_text(manual), part) == NULL)
        print_message("docs/api.md does not have: %s\n", part);
    assert_non_null(strstr(buffer_text(manual), part));
    free(part);
}

TEST(the_manual_has_every_route_and_its_parameters)
{
    size_t count;
    const struct route *routes = route_all(&count);
    for (size_t i = 0; i < count; i++) {
        assert_told(*state, xasprintf("`%s`", routes[i].path));
        for (size_t k = 0; k < ROUTE_PARAMETERS_MAX && routes[i].parameters[k].name != NULL; k++)
            assert_told(*state, xasprintf("`%s", routes[i].parameters[k].name));
        for (size_t k = 0; routes[i].body != NULL && k < routes[i].body->n_fields; k++)
            assert_told(*state, xasprintf("%s", routes[i].body->fields[k].name));
    }
}

TEST(the_manual_has_every_limit)
{
    size_t count;
    const struct limit *limits = limits_all(&count);
    for (size_t i = 0; i < count; i++)
        assert_told(*state, xasprintf("| `%s` | %" PRIu64 " | %s | %s |\n", limits[i].name, limits[i].value,
                                limits[i].unit, limits[i].meaning));
}

TEST(the_manual_has_every_problem)
{
    size_t count;
    const struct problem *problems = problem_all(&count);
    for (size_t i = 0; i < count; i++)
        assert_told(*state, xasprintf("| %u | `%s` |", problems[i].status, problems[i].code));
}

TEST(the_manual_has_every_key_of_a_job)
{
    struct json_job_key key;
    for (size_t i = 0; json_job_key(i, &key); i++) {
        const char *end = strchr(key.type, '|');
        assert_told(*state, xasprintf("| `%s` | %.*s%s |", key.name,
                                (int)(end != NULL ? end - key.type : (ptrdiff_t)strlen(key.type)), key.type,
                                end != NULL ? " or null" : ""));
    }
}

int main(void)
{
    return unit_tests_run(read_manual, drop_manual);
}
