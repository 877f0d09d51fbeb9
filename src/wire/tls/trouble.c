/* SPDX-License-Identifier: MIT */
/*
 * One table. A row is found by the kind of failure and its number: an errno, a reason of OpenSSL,
 * or a result of checking a certificate.
 */
#include "wire/tls/trouble.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum kind { CONNECT, REASON, CERTIFICATE };

struct row {
    enum kind kind;
    int number;
    int code; // of the resulting error
    const char *text;
    const char *hint;
};

static const char no_reply_hint[] =
    "a firewall may drop the packets (mgpud needs TCP 9124 for nodes), or the machine is off";
static const char other_cluster_hint[] = "the address may belong to another machine now, or mgpud was "
                                         "reinstalled: join again with a new `mgpu node token`";
static const char other_port_hint[] =
    "9124 is the port for nodes, 9123 that of the API, which has TLS only when --listen is not loopback";

static const struct row rows[] = {
    { CONNECT, ECONNREFUSED, -ECONNREFUSED, "connection refused",
        "the machine is up, but nothing listens on this port: is mgpud running? It listens for nodes once a "
        "node or a valid `mgpu node token` exists" },
    { CONNECT, EHOSTUNREACH, -EHOSTUNREACH, "no route to this machine",
        "check the network and the address: ip route get ADDRESS" },
    { CONNECT, ENETUNREACH, -ENETUNREACH, "no route to this network",
        "check the network: ip route; for an IPv6 address, check that this machine has IPv6" },
    { CONNECT, ETIMEDOUT, -ETIMEDOUT, "the connection timed out", no_reply_hint },
    { CONNECT, EACCES, -EACCES, "a local firewall rule forbids the connection",
        "check nftables or iptables on this machine" },
    { CONNECT, EPERM, -EPERM, "a local firewall rule forbids the connection",
        "check nftables or iptables on this machine" },
    { CONNECT, ECONNRESET, -ECONNRESET, "the peer closed the connection",
        "it may be restarting, or a device in between closes connections; see its log" },
    { CONNECT, EPIPE, -ECONNRESET, "the peer closed the connection",
        "it may be restarting, or a device in between closes connections; see its log" },
    { CONNECT, EADDRNOTAVAIL, -EADDRNOTAVAIL, "no local address is available",
        "too many connections, or no network: ip address" },
    { REASON, SSL_R_WRONG_VERSION_NUMBER, -EPROTO, "the peer does not use TLS", other_port_hint },
    { REASON, SSL_R_HTTP_REQUEST, -EPROTO, "received plain HTTP on a TLS port",
        "use https:// and the pin: mgpu token create prints both" },
    { REASON, SSL_R_HTTPS_PROXY_REQUEST, -EPROTO, "received a proxy request on a TLS port",
        "mgpu does not support HTTP proxies" },
    { REASON, SSL_R_UNSUPPORTED_PROTOCOL, -EPROTONOSUPPORT, "the peer does not support TLS 1.3",
        "a device in between may terminate TLS; mgpu requires a direct connection" },
    { REASON, SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, -EPROTONOSUPPORT, "the peer does not support TLS 1.3",
        "a device in between may terminate TLS; mgpu requires a direct connection" },
    { REASON, SSL_AD_REASON_OFFSET + SSL_AD_NO_APPLICATION_PROTOCOL,
        -EPROTONOSUPPORT, // no name before OpenSSL 3.0.14
        "the peer uses TLS, but is not that port of mgpud", other_port_hint },
    { REASON, SSL_R_NO_APPLICATION_PROTOCOL, -EPROTONOSUPPORT, "the client requested another protocol",
        other_port_hint },
    { REASON, SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, -EKEYREJECTED, "the peer rejected our certificate",
        other_cluster_hint },
    { REASON, SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, -EKEYREJECTED, "the peer rejected our certificate",
        other_cluster_hint },
    { REASON, SSL_R_TLSV1_ALERT_UNKNOWN_CA, -EKEYREJECTED, "the peer rejected our certificate",
        other_cluster_hint },
    { REASON, SSL_R_UNEXPECTED_EOF_WHILE_READING, -ECONNRESET, "the peer closed the connection",
        "it may be restarting, or a device in between closes connections; see its log" },
    { CERTIFICATE, X509_V_ERR_CERT_REJECTED, -EKEYREJECTED, "the peer is not the cluster of the token or pin",
        other_cluster_hint },
    { CERTIFICATE, X509_V_ERR_CERT_SIGNATURE_FAILURE, -EKEYREJECTED, "the peer's certificate is forged",
        "a machine in between impersonates mgpud" },
};

static const struct row *find(enum kind kind, int number)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (rows[i].kind == kind && rows[i].number == number)
            return &rows[i];
    return NULL;
}

static int explain(const struct row *row, int code, const char *text, const char *where, struct error *err)
{
    if (row == NULL)
        return error_set(err, code, "cannot reach %s: %s", where, text);
    (void)error_set(err, row->code, "cannot reach %s: %s", where, row->text);
    (void)error_hint(err, "%s", row->hint);
    return row->code;
}

int trouble_of_connect(int code, const char *where, struct error *err)
{
    return explain(find(CONNECT, -code), code, strerror(-code), where, err);
}

/* The result of a call of OpenSSL: its row if there is one, else its text. */
static const struct row *judge(const SSL *ssl, int result, int saved, int *ret_code, const char **ret_text)
{
    int kind = SSL_get_error(ssl, result);
    long verified = SSL_get_verify_result(ssl);
    unsigned long queued = ERR_peek_last_error();
    const char *reason = ERR_reason_error_string(queued);
    bool is_rejected = ERR_GET_REASON(queued) == SSL_R_CERTIFICATE_VERIFY_FAILED && verified != X509_V_OK;
    ERR_clear_error();
    *ret_code = is_rejected ? -EKEYREJECTED : -EPROTO;
    *ret_text = is_rejected      ? X509_verify_cert_error_string(verified)
                : reason != NULL ? reason
                                 : "TLS failed";
    if (is_rejected)
        return find(CERTIFICATE, (int)verified);
    if (kind != SSL_ERROR_ZERO_RETURN && kind != SSL_ERROR_SYSCALL) // other libraries have their own reasons
        return ERR_GET_LIB(queued) == ERR_LIB_SSL ? find(REASON, ERR_GET_REASON(queued)) : NULL;
    *ret_code = kind == SSL_ERROR_SYSCALL && saved != 0 ? -saved : -ECONNRESET;
    *ret_text = strerror(-*ret_code);
    return find(CONNECT, -*ret_code);
}

int trouble_of_tls(const SSL *ssl, int result, const char *where, struct error *err)
{
    const char *text = NULL;
    int code = 0, saved = errno;
    const struct row *row = judge(ssl, result, saved, &code, &text);
    return explain(row, code, text, where, err);
}

int trouble_of_accept(const SSL *ssl, int result, struct error *err)
{
    const char *text = NULL;
    int code = 0, saved = errno;
    const struct row *row = judge(ssl, result, saved, &code, &text);
    if (row == NULL)
        return error_set(err, code, "%s", text);
    (void)error_set(err, row->code, "%s", row->text);
    return error_hint(err, "%s", row->hint);
}

int trouble_of_session(const SSL *ssl, int result, const char *where, struct error *err)
{
    const char *text = NULL;
    int code = 0, saved = errno;
    const struct row *row = judge(ssl, result, saved, &code, &text);
    (void)error_set(err, row != NULL ? row->code : code, "the connection with %s broke: %s", where,
        row != NULL ? row->text : text);
    return row != NULL ? error_hint(err, "%s", row->hint) : code;
}
