/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/cluster/findings.h"
#include "unit_test.h"

#define NODES 1000U

static char *print(struct findings *findings, size_t n_nodes, size_t lines_max)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    struct screen screen = { 0 };
    findings_print(findings, &screen, n_nodes, lines_max, out);
    (void)fclose(out);
    return text;
}

TEST(sentences_break_between_words_on_a_narrow_screen)
{
    char *text = NULL;
    size_t size = 0;
    struct screen screen = { .width = 60 };
    FILE *out = open_memstream(&text, &size);
    finding_print(&screen, out, VERDICT_OFF, "cpu",
        "the cpu controller of cgroup version 2 is not delegated to mgpud",
        "systemctl edit mgpud, and set Delegate=yes in [Service]");
    (void)fclose(out);
    assert_string_equal(text, "off  cpu            the cpu controller of cgroup version 2\n"
                              "                    is not delegated to mgpud\n"
                              "                    fix: systemctl edit mgpud, and set\n"
                              "                         Delegate=yes in [Service]\n");
    free(text);
}

TEST(programs_get_all_findings_with_their_nodes)
{
    _cleanup_(findings_freep) struct findings *findings = findings_new();
    findings_add(findings, VERDICT_ON, "socket", NULL, "/run/mgpu/mgpud.sock", NULL);
    findings_add(findings, VERDICT_BAD, "agent", "n1", "not connected", "journalctl -u mgpud");
    findings_add(findings, VERDICT_BAD, "agent", "n2", "not connected", "journalctl -u mgpud");
    json_t *all = findings_json(findings);
    _cleanup_free_ char *text = json_dumps(all, JSON_COMPACT);
    json_decref(all);
    assert_string_equal(text, "[{\"verdict\":\"bad\",\"name\":\"agent\",\"text\":\"not connected\","
                              "\"fix\":\"journalctl -u mgpud\",\"nodes\":[\"n1\",\"n2\"]},"
                              "{\"verdict\":\"on\",\"name\":\"socket\",\"text\":\"/run/mgpu/mgpud.sock\","
                              "\"fix\":\"\",\"nodes\":[]}]");
}

static size_t count_lines(const char *text)
{
    size_t lines = 0;
    while ((text = strchr(text, '\n')) != NULL) {
        text++;
        lines++;
    }
    return lines;
}

TEST(the_worst_comes_first)
{
    _cleanup_(findings_freep) struct findings *findings = findings_new();
    findings_add(findings, VERDICT_ON, "socket", NULL, "/run/mgpu/mgpud.sock", "never shown");
    findings_add(findings, VERDICT_OFF, "cpu", "n1", "no controller", "enable it");
    findings_add(findings, VERDICT_BAD, "agent", "n1", "not connected", NULL);
    findings_add(findings, VERDICT_OFF, "memory", "n1", NULL, "");
    _cleanup_free_ char *text = print(findings, 1, 5);
    assert_string_equal(text, "BAD  agent          not connected\n"
                              "off  cpu            no controller\n"
                              "                    fix: enable it\n"
                              "off  memory         \n"
                              "on   socket         /run/mgpu/mgpud.sock\n");
    _cleanup_free_ char *again = print(findings, 1, 5);
    assert_string_equal(again, "");
}

TEST(nodes_with_the_same_finding_share_a_line)
{
    _cleanup_(findings_freep) struct findings *findings = findings_new();
    for (unsigned i = 0; i < NODES; i++) {
        _cleanup_free_ char *node = xasprintf("n%u", i);
        findings_add(findings, i == 7 ? VERDICT_BAD : VERDICT_ON, "agent", node,
            i == 7 ? "not connected" : "connected", "journalctl -u mgpud");
        findings_add(findings, VERDICT_ON, "cgroup", node, "version 2", NULL);
        if (i < 2)
            findings_add(findings, VERDICT_OFF, "swap", node, "not limited", NULL);
    }
    _cleanup_free_ char *text = print(findings, NODES, 5);
    assert_string_equal(text, "BAD  agent          n7: not connected\n"
                              "                    fix: journalctl -u mgpud\n"
                              "off  swap           n0, n1: not limited\n"
                              "on   agent          n0, n1, n2 and 996 more: connected\n"
                              "on   cgroup         all 1000 nodes: version 2\n");
}

TEST(findings_that_all_differ_are_cut_and_counted)
{
    _cleanup_(findings_freep) struct findings *findings = findings_new();
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < NODES; i++) {
            _cleanup_free_ char *node = xasprintf("n%u", i);
            _cleanup_free_ char *text = xasprintf("%u GiB free", i);
            findings_add(findings, VERDICT_OFF, "disk", node, text, "free space");
        }
        _cleanup_free_ char *text = print(findings, NODES, round == 0 ? 5 : 0);
        assert_int_equal(count_lines(text), round == 0 ? 11 : 2 * NODES);
        assert_true(
            (strstr(text, "off  disk           995 more: mgpu doctor --all\n") != NULL) == (round == 0));
        assert_non_null(strstr(text, "off  disk           n4: 4 GiB free\n"));
    }
}

TEST(text_of_nodes_cannot_move_the_cursor)
{
    _cleanup_(findings_freep) struct findings *findings = findings_new();
    findings_add(findings, VERDICT_OFF, "a\033[2J", "n\n1", "b\rc", "d\033e");
    findings_add(findings, VERDICT_OFF, "other", "n2", "", NULL);
    _cleanup_free_ char *text = print(findings, 2, 5);
    assert_null(strchr(text, '\033'));
    assert_null(strchr(text, '\r'));
    assert_int_equal(count_lines(text), 3);
}
