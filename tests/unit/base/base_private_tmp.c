/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <unistd.h>

#include "base/node/private_tmp.h"
#include "base/private_places.h"
#include "unit_test.h"

TEST(what_is_below_a_private_directory_is_told_from_its_neighbours)
{
    static const struct {
        const char *path, *place;
    } rows[] = {
        { "/tmp/x", "/tmp" },
        { "//tmp///x", "/tmp" },
        { "/./tmp/./x/y", "/tmp" },
        { "/var/tmp/x", "/var/tmp" },
        { "/var//tmp/x", "/var/tmp" },
        { "/dev/shm/x", "/dev/shm" },
        { "/tmp/..", "/tmp" },
        { "/tmp", NULL },
        { "/tmp/", NULL },
        { "/tmp/.", NULL },
        { "/tmpx", NULL },
        { "/tmpx/y", NULL },
        { "/home/tmp/x", NULL },
        { "/var/tm", NULL },
        { "/var", NULL },
        { "/dev/shmx", NULL },
        { "/", NULL },
        { "", NULL },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *place = private_place_of(rows[i].path);
        if (rows[i].place == NULL ? place != NULL : place == NULL || strcmp(place, rows[i].place) != 0)
            fail_msg("%s: %s", rows[i].path, place != NULL ? place : "none");
    }
}

TEST(a_node_that_cannot_says_why)
{
    struct error err = { 0 };
    int r = private_tmp_probe(&err);
    assert_true(r == 0 || err.message[0] != '\0');
    if (geteuid() != 0)
        assert_true(r < 0);
    assert_false(private_tmp_has(-1));
}
