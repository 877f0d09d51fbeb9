/* SPDX-License-Identifier: MIT */
/*
 * The messages between a controller and its agents. A frame on the link is one record (base/record.h) whose
 * type id is the message. The link is a socketpair on one machine, and TLS to other nodes. The agent sends
 * the first message.
 *
 *   agent                                controller
 *   HELLO (its attempts)       ───────>
 *                              <───────  WELCOME (epoch)      the agent accepts no lower epoch afterwards
 *                              <───────  LAUNCH, STOP         idempotent; resent after every HELLO
 *   STARTED, EXITED, RETURNED  ───────>                       resent after every HELLO until RELEASE_ATTEMPT
 *                              <───────  RELEASE_ATTEMPT      the result is durable: remove the spool entry
 *                              <───────  PREPARE              a LAUNCH that may follow, up to the gate
 *   GPUS (samples)             ───────>
 *   READY (one of many ranks)  ───────>                       resent after every HELLO until GO
 *                              <───────  GO                   all ranks are ready: open the gate
 *                              <───────  UPDATE               of a running attempt; resent after every HELLO
 *                              <───────  SIGNAL               to a running attempt; sent once
 *   HEARTBEAT (time)           ───────>                       without it or its answer the link ends
 *                              <───────  HEARTBEAT_ACK        the same time
 *                              <───────  INSPECT (a process)
 *   PROCESS_INFO               ───────>                       facts about it, or that it has ended
 *                              <───────  PARK                 of a running attempt; resent after every HELLO
 *   PARK_RESULT                ───────>                       the answer to each PARK, once it is known
 *                              <───────  RELEASE_GPUS         the whole list; resent until GPUS shows it
 *                              <───────  NOTIFY               once per try
 *   NOTIFIED (result)          ───────>
 *                              <───────  OPEN_LOG, OPEN_TERMINAL, OPEN_STEP, REJOIN_STEP, OPEN_PORT (stream
 * id) second connection: STREAM (that id, size), then raw bytes. The controller shuts down its sending side
 * to request the end at the end of the file, and closes the connection to end at once. another one, which no
 * message requested: JOB_CLIENT (attempt), then HTTP of a process in that attempt.
 *
 *   a machine that is not a node yet: JOIN (token, certificate request) ──> JOINED, or PROBE ──> PROBED.
 *   Each of them, and HELLO, may be answered by REFUSED (reason and hint), after which the link is closed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/record.h"
#include "base/spool_id.h"
#include "job/event.h"
#include "job/job_nodes.h"
#include "job/launch.h"
#include "job/park.h"
#include "job/spec.h"
#include "job/usage.h"
#include "job/xid.h"

#define LINK_PROTOCOL     1U
#define BOOT_SPOOL_MARK   "+"        // in a boot id: separates the kernel's id from that of the spool
#define LINK_MESSAGE_MAX  (4U << 20) // bytes of one frame: the API's maximum, for the maximum number of nodes
#define NODE_GPUS_MAX     256U
#define NODE_ATTEMPTS_MAX 24576U // that a node accepts: its HELLO, which lists them, must fit into a frame
#define GPU_PROCESSES_MAX 128U   // of one GPU
#define GPU_UUIDS_MAX     32768U // bytes of all UUIDs
#define NOTIFY_TEXT_MAX   (32U << 10) // bytes of each text of a notification
#define NOTIFY_JSON_MAX   (256U << 10)
#define PROCESS_WORDS_MAX 8192U       // bytes of a command line that are read
#define JOIN_MESSAGE_MAX  (64U << 10) // bytes of a frame from a machine that is not a node yet
#define STREAM_FIRST_MAX  8192U       // bytes of the first frame of a second connection
#define JOIN_PEM_MAX      8192U
#define CONTROLLERS_MAX   2048U // bytes of a list of addresses

enum message_id {
    MESSAGE_HELLO = 100,
    MESSAGE_WELCOME,
    MESSAGE_LAUNCH,
    MESSAGE_STOP,
    MESSAGE_RELEASE_ATTEMPT,
    MESSAGE_STARTED,
    MESSAGE_EXITED,
    MESSAGE_RETURNED,
    MESSAGE_GPUS,
    MESSAGE_OPEN_LOG,
    MESSAGE_STREAM,
    MESSAGE_INSPECT,
    MESSAGE_PROCESS_INFO,
    MESSAGE_SIGNAL = 120,
    MESSAGE_UPDATE,
    MESSAGE_OPEN_TERMINAL = 150,
    MESSAGE_OPEN_STEP,
    MESSAGE_NOTIFY = 165,
    MESSAGE_NOTIFIED,
    MESSAGE_JOIN = 170,
    MESSAGE_JOINED,
    MESSAGE_REFUSED,
    MESSAGE_PROBE,
    MESSAGE_PROBED,
    MESSAGE_READY = 180,
    MESSAGE_GO,
    MESSAGE_HEARTBEAT = 185,
    MESSAGE_HEARTBEAT_ACK,
    MESSAGE_RELEASE_GPUS = 190,
    MESSAGE_PARK = 210,
    MESSAGE_PARK_RESULT,
    MESSAGE_OPEN_PORT = 220,
    MESSAGE_PREPARE = 230,
    MESSAGE_JOB_CLIENT = 240,
    MESSAGE_REJOIN_STEP = 250,
};

/* Added to the signal of STOP: the signal is sent to the adopted process. Without this bit, the end of an
 * adoption only releases its process. */
#define STOP_ADOPTED 0x10000U
/* Added to the signal of STOP: the job will be requeued and ends as soon as it has saved its work; the signal
 * is the checkpoint signal of its spec. */
#define STOP_CHECKPOINT 0x20000U
/* The signal of STOP: the attempt is given back if it has no verdict yet; otherwise it continues. Sent only
 * to nodes that take attempts back. */
#define STOP_UNSTARTED 0x40000U
/* Within controller and agent, the scope of a signal that ends nothing is added to it. */
#define SIGNAL_WITH_SCOPE(signal, scope) ((signal) | (scope) << 20)
#define SIGNAL_SCOPE_OF(signal)          ((signal) >> 20)
#define SIGNAL_NUMBER_OF(signal)         ((signal)&0xffffU)

enum gpu_process_kind { GPU_PROCESS_COMPUTE = 1, GPU_PROCESS_GRAPHICS = 2, GPU_PROCESS_MPS = 4 };

/* A process with a context on a GPU. The backend fills in pid, kind and memory, the agent the rest. */
struct gpu_process {
    uint32_t pid;
    uint64_t start;           // clock ticks after the boot; 0: it had already ended
    uint32_t kind;            // bits of enum gpu_process_kind
    uint32_t is_memory_known; // otherwise memory_bytes is meaningless
    uint64_t memory_bytes;
    uint32_t uid;
    uint64_t job; // the job it belongs to; 0: an external process
    uint32_t attempt;
    char *command;   // beginning of its command line
    char *container; // short id of its container, NULL: none
};

/* The current state of a GPU. Values that the backend cannot provide have no bit in `valid`. */
/* The result of a test that the node made while the GPU was idle (mgpu-gpu-test health). */
struct gpu_test {
    int64_t wall_ms;
    uint64_t to_mb_s, from_mb_s, on_mb_s; // copies to, from and on the GPU
    uint64_t product_mflops;
    uint64_t wrong; // words of memory, and elements of products
    char *error;    // why there are no figures; NULL: none is missing
};

#define GPU_TESTS_MAX 4U

struct gpu_state {
    uint32_t index; // PCI order
    char *uuid;
    char *model;
    char *pci; // "0000:3b:00.0"
    uint64_t memory_bytes;
    uint32_t valid; // bits of enum gpu_value
    uint64_t memory_used_bytes;
    uint32_t utilization_percent;
    uint32_t temperature_c;
    uint32_t power_mw;
    uint32_t is_lost; // 1: it was present and does not respond any more
    /* Topology; equal numbers are close. -1: unknown. */
    int32_t numa, pcie_switch;
    uint64_t links;       // bit k: NVLink to the GPU at position k of the node's list
    uint32_t vendor;      // base/gpu_vendor.h
    int32_t minor;        // of its own node, as /dev/nvidiaN; -1: unknown
    int32_t render_minor; // of /dev/dri/renderDN; -1: unknown
    uint32_t power_limit_mw;
    uint64_t energy_mj; // consumed since the driver was loaded
    uint32_t sm_clock_mhz, memory_clock_mhz;
    uint64_t ecc_corrected, ecc_uncorrected; // errors since the driver was loaded
    uint32_t xid;                            // last driver error (Xid), 0: none
    int64_t xid_wall_ms;                     // time of that error
    uint32_t xid_count;                      // errors seen since the agent started
    uint32_t is_unclean;                     // 1: remains of a job are still on it
    char *trouble;                           // why it is lost or unclean; NULL: it is neither
    struct record_list processes;            // struct gpu_process; valid if GPU_PROCESSES is set
    struct record_list xids;                 // struct gpu_xid: the last errors, oldest first
    uint64_t
        answers;   // used by helper and agent: number of the last check requested before its memory was read
    char *refusal; // why no job can use it although it responds; NULL: usable
    uint32_t is_one_process; // 1: its compute mode admits one process, so jobs cannot share it
    uint32_t recovery;       // enum gpu_recovery: action required by the driver
    uint32_t is_host_memory; // 1: the system uses its memory too, so used memory does not indicate a job
    uint32_t is_released; // 1: listed in RELEASE_GPUS, and no mgpu process has it open any more; is_lost is
                          // also set
    struct record_list tests; // struct gpu_test: the last ones, newest first
    /* Of a MIG instance, whose model is "MIG PROFILE" (job/gpu_instance.h). */
    char *parent; // UUID of its GPU; NULL: it is a whole GPU
    uint32_t gpu_instance, compute_instance;
    uint32_t is_gone; // 1: the layout has changed, and it does not exist any more; is_lost is also set
};

/* The numbers are those of the driver. */
enum gpu_recovery {
    GPU_RECOVERY_NONE,
    GPU_RECOVERY_RESET,
    GPU_RECOVERY_REBOOT,
    GPU_RECOVERY_DRAIN_P2P,
    GPU_RECOVERY_DRAIN_AND_RESET,
};

enum gpu_value {
    GPU_MEMORY_USED = 1,
    GPU_UTILIZATION = 2,
    GPU_TEMPERATURE = 4,
    GPU_POWER = 8,
    GPU_POWER_LIMIT = 16,
    GPU_ENERGY = 32,
    GPU_SM_CLOCK = 64,
    GPU_MEMORY_CLOCK = 128,
    GPU_ECC = 256,
    GPU_PROCESSES = 512,
    GPU_RECOVERY = 1024,
    GPU_LAYOUT = 2048, // its MIG instances, if it has any, are all in the list
};

/* Resource usage of a running attempt so far. */
struct attempt_usage {
    struct spool_id id; // of step 0
    uint64_t token;
    struct record_list usage; // exactly one struct job_usage
    uint32_t is_on_terminal;
};

#define NODE_FEATURE_TEXT_MAX 512U
#define NODE_DRIVER_MAX       64U // bytes of the version of the GPUs' driver

/* A feature of the node: active or not, and how to enable it. Shown by `mgpu doctor`. */
struct node_feature {
    char *name; // "cgroup", "users", "gpu"
    uint32_t is_on;
    char *text; // its effect here
    char *fix;  // how to enable it, or NULL
};

enum attempt_phase {
    PHASE_STAGED,  // spool directory exists, no verdict yet
    PHASE_RUNNING, // verdict go
    PHASE_EXITED,  // exit record exists
    PHASE_RETURNED // verdict nogo
};

struct known_attempt {
    struct spool_id id;
    uint64_t token;
    uint32_t phase; // enum attempt_phase
    /* The latest orders that the node has had about it: if the controller has sent fewer, its store is an
     * older copy. */
    uint32_t terms;       // number of the latest UPDATE; 1: the agent has been started again since
    uint32_t park_number; // of the latest PARK; 0: there was none
    uint32_t park_seen;   // enum park_seen
};

/* A network interface of the node that belongs to a PCI device. */
struct node_nic {
    char *name;                // "eth0"
    char *rdma;                // "mlx5_0"; NULL: none
    int32_t numa, pcie_switch; // as in struct gpu_state
    uint32_t speed_mb;         // megabits per second; 0: unknown
    uint32_t is_up;
};

#define NODE_NICS_MAX     64U
#define NODE_SHARES_KNOWN (UINT32_C(1) << 31)

struct message_hello {
    uint32_t protocol;
    char *node;
    char *boot_id; // the kernel's boot id and the spool's id, which changes if the spool is emptied
    char *version;
    uint32_t cpus;
    uint64_t memory_bytes;
    char *gpu_backend;           // "nvml", "sim", "none"
    struct record_list gpus;     // struct gpu_state
    struct record_list features; // struct node_feature
    struct record_list attempts; // struct known_attempt
    int64_t sent_ms;             // boot clock of the node: of two reports of one boot, the later is valid
    /* The latest state of the controller's store reported to this node; 0: unknown. */
    uint64_t epoch;          // highest epoch accepted
    int64_t began_ms;        // start time of the mgpud with this epoch
    uint64_t event;          // last durable event of that mgpud
    struct record_list nics; // struct node_nic
    uint32_t shares;         // bit k: enum share_kind k works here, with NODE_SHARES_KNOWN; 0: an older agent
    uint32_t parks_ranks;    // 1: it can park ranks of jobs on several nodes, and restore on other GPUs
    char *driver;            // version of the GPUs' driver; NULL: not known, or an older agent
    uint32_t takes_back;     // 1: it knows STOP_UNSTARTED
};

#define HEARTBEAT_MIN_MS 100

struct message_welcome {
    uint64_t epoch;       // increases with every start of the controller
    int64_t heartbeat_ms; // interval of HEARTBEAT, at least HEARTBEAT_MIN_MS; 0: none
    int64_t timeout_ms;   // the agent closes the link after this time without HEARTBEAT_ACK; 0: never
    int64_t sent_ms;      // sent_ms of the HELLO this answers; 0: not sent
    uint64_t last_order;  // number of the last LAUNCH sent before, to any node
    int64_t began_ms;     // wall clock: start of this mgpud; distinguishes two with the same epoch
    uint64_t event;       // the last durable event; returned in HELLO
    char *controllers;    // "HOST:PORT,..." of several controllers, for nodes; NULL: there is one
};

/* HEARTBEAT, and HEARTBEAT_ACK with the same time. A HEARTBEAT_ACK proves that the controller was running,
 * and regarded this node as reachable, at some time after `sent_ms`. */
struct message_heartbeat {
    int64_t sent_ms;   // the agent's boot clock
    uint64_t event;    // of HEARTBEAT_ACK: the last durable event
    char *controllers; // of HEARTBEAT_ACK: as in WELCOME
};

/* A node of an attempt on several nodes, as seen by its other ranks. */
struct launch_peer {
    char *name;
    char *address; // address for the other nodes
    uint32_t gpus; // allocated on it
};

struct message_launch {
    struct spool_id id;
    uint64_t token;
    uint32_t uid, gid;
    char *user;               // name of that uid on the controller; NULL: it has none
    struct record_list gpus;  // struct gpu_grant
    struct record_bytes spec; // struct job_spec
    uint64_t array_job;       // the array this is an element of; 0: none
    uint32_t array_index;
    /* Of a rank: it waits for GO at its gate. */
    struct record_list peers; // struct launch_peer in order of rank, including itself; empty: the only node
    uint32_t port;    // rendezvous port on the node of rank 0, which uses the first free port from here on
    int64_t lease_ms; // it ends after the node has had no contact for this time; 0: never
    int64_t lease_until_ms; // not on the wire: the resulting time on the node's boot clock
    const char *defect;     // not on the wire: which part is missing, so that it must not run; NULL: complete
    /* Increases with every LAUNCH: a number not above earlier ones, or WELCOME's, is a late copy and is
     * ignored. 0: not sent. */
    uint64_t order;
    uint64_t event; // the last durable event
    uint32_t
        is_early; // 1: it starts without its GPUs, which it gets by PARK; sent only to nodes that can do that
};

struct message_ready { // all preparations succeeded: GO would open the gate
    struct spool_id id;
    uint64_t token;
    uint32_t port; // of rank 0: rendezvous port; 0: as in LAUNCH
};

struct message_go { // all ranks are ready
    struct spool_id id;
    uint64_t token;
    uint32_t port; // rendezvous port; 0: as in LAUNCH
};

struct message_stop {
    struct spool_id id;
    uint64_t token;
    uint32_t signal;
    int64_t grace_ms;
};

struct message_signal { // sent once: not repeated if lost
    struct spool_id id;
    uint64_t token;
    uint32_t signal;
    uint32_t scope; // enum signal_scope
};

struct message_update { // new settings of a running attempt
    struct spool_id id;
    uint64_t token;
    int64_t time_limit_ms; // from its start; 0: no limit
    uint32_t is_suspended;
    uint32_t number; // increases with every change: a lower one is a late copy. 0: not sent
};

/* Save the GPU memory of a running attempt and stop its processes, or the reverse. Answered by PARK_RESULT; a
 * PARK whose result is known is answered at once. One to return also follows HELLO for a job that runs, with
 * the number of the latest order: it may have been given up by an agent that died. It follows a refusal of
 * another rank as well, and then undoes a save that is under way. */
struct message_park {
    struct spool_id id;
    uint64_t token;
    uint32_t number;         // increases with every order about this job: a lower one is a late copy
    uint32_t action;         // enum park_action
    uint64_t bytes_max;      // to park: refuse if it has more in its GPUs
    int64_t timeout_ms;      // to park: give up after this time
    struct record_list gpus; // to return on other GPUs: struct gpu_grant; empty: on its own
};

struct message_park_result {
    struct spool_id id;
    uint64_t token;
    uint32_t number;   // of the PARK
    uint32_t outcome;  // enum park_outcome
    uint64_t bytes;    // of a parked attempt: contents of GPU memory that are in host memory
    char *text;        // why it was refused or lost
    uint32_t action;   // of the PARK; PARK_RETURN in the answer to PARK_CHECK: it has returned already
    int64_t waited_ms; // of an attempt that started early: for how long a process of it has waited for a GPU
};

struct message_release_attempt { // the end is committed: the spool directory may be removed
    struct spool_id id;
    uint64_t token;
    uint64_t event; // the last durable one: without the directory, nothing else shows that the job has run
};

struct message_returned { // verdict is nogo: this attempt never executed its command
    struct spool_id id;
    uint64_t token;
    char *text;
    uint32_t cause; // enum start_cause
};

struct message_gpus {
    struct record_list gpus;   // struct gpu_state
    struct record_list usages; // struct attempt_usage of the running attempts
    /* Changes since HELLO, for the GPUs as a whole. */
    char *gpu_backend;           // NULL: unchanged
    struct record_list features; // struct node_feature, each replaces the one of the same name
    char *driver;                // looked at with features; NULL: unchanged
};

/* Closes these GPUs, and no others, so that they can be reset. GPUS and HELLO report when this is done;
 * resent until then. */
struct message_release_gpus {
    struct strings uuids;
};

struct message_open_log {
    uint64_t stream;   // random, valid for one connection
    uint32_t uid, gid; // the job's owner: the file is opened as this user
    char *path;
    uint64_t offset;
    uint64_t length; // 0: to the end
    uint32_t follow; // 1: wait for more data at the end, until the controller shuts down its side
};

/* A request for facts about a process, or for a report of its end; an agent that exits discards both. */
struct message_inspect {
    uint64_t question; // random, repeated in the answer; 0: for `job`
    uint64_t job;      // of a waiting adoption: the process is attributed to this job; pid 0: ends this
    uint32_t pid;
    uint64_t start; // 0: any process with this pid
};

struct message_process_info {
    uint64_t question, job; // as in the request; for a job, sent when the process has ended
    int32_t error;          // 0 or a positive errno: it cannot be adopted
    char *text;             // the error as text
    char *hint;
    uint32_t pid;
    uint64_t start;
    uint32_t uid, gid;
    struct strings command;
    char *gpu_ids; // GPUs used by it or its descendants: "0,2"; NULL: none
};

struct message_stream { // first frame of the second connection
    uint64_t stream;
    int32_t error; // 0 or a positive errno: the log could not be opened
    uint64_t size; // current size of the file
    char *text;    // the error as text
};

/* The stream opened for it carries frames of base/terminal.h. */
struct message_open_terminal {
    struct spool_id id;
    uint64_t token;
    uint64_t stream;
    uint32_t is_read_only;
    uint32_t rows, columns; // of the viewer; 0: unknown
    uint64_t position;      // where the output begins, or TERMINAL_LAST_SCREEN
    uint32_t is_input;      // not to a terminal: the caller sends standard input
};

/* An additional process in a running job: the next free step of its attempt. */
struct message_open_step {
    struct spool_id id; // of the attempt's step 0
    uint64_t token;
    uint64_t stream;
    struct strings command;
    struct strings env; // over the job's own
    char *cwd;          // NULL: the job's
    bool is_tty;
    uint32_t rows, columns;
    uint32_t cpus;   // separate limit, below that of the attempt; 0: none
    uint64_t memory; // bytes, the same
    uint64_t key;    // by which its client can return (REJOIN_STEP); 0: it cannot
};

/* The client of an exec step has lost its connection, and has returned or will not return. */
struct message_rejoin_step {
    struct spool_id id; // of the attempt's step 0
    uint64_t token;
    uint64_t stream;
    uint64_t key;
    uint64_t position; // bytes of frames that the client has
    uint32_t rows, columns;
    bool is_farewell; // it will not return: no stream
};

#define SOCKET_PATH_MAX 107U // of a unix socket: sun_path

/* A connection to a port of a running job; the stream opened for it carries frames of base/terminal.h. */
struct message_open_port {
    struct spool_id id; // of the attempt's step 0
    uint64_t token;
    uint64_t stream;
    uint32_t port; // of TCP on the node itself; 0: `path`
    char *path;    // absolute, of a unix socket
};

/* The first frame of a connection on which a process of this attempt uses the API; nodes that have joined
 * send it. */
struct message_job_client {
    struct spool_id id; // of the attempt's step 0
    uint64_t token;
};

#define NOTIFY_TIME_MAX_MS 3600000 // maximum accepted by an agent

/* A notification on behalf of a job's owner, delivered by the agent as that user. */
struct message_notify {
    uint64_t notification; // its id, the same in each try
    uint32_t target;
    uint64_t job;
    uint32_t uid, gid;
    char *user;         // as in LAUNCH
    uint32_t way;       // enum notify_way
    char *to;           // address, command or URL; NULL: the user's own mail
    char *subject;      // of a mail
    char *body;         // of a mail
    char *json;         // for commands and URLs: the job
    struct strings env; // MGPU_* variables
    int64_t time_ms;    // ended after this time: 1 to NOTIFY_TIME_MAX_MS
    const char *defect; // as in LAUNCH
};

struct message_notified {
    uint64_t notification;
    uint32_t target;
    int32_t error; // 0, or a positive errno; EBUSY: not tried, too many are in progress
    char *text;    // the error as text
};

/* A request to become a node, over TLS with a server verified by the token's pin. */
struct message_join {
    uint32_t protocol;
    char *version;
    char *node; // requested name
    uint64_t token;
    char *secret;  // of the token, as hexadecimal digits
    char *request; // certificate request, PEM
};

struct message_joined {
    char *certificate; // PEM; its common name is the node's
    char *controller;  // the name of the controller's own node
};

struct message_refused {
    int32_t error; // a positive errno
    char *text, *hint;
};

/* A check by doctor; changes nothing. */
struct message_probe {
    uint32_t protocol;
    char *version;
    uint64_t token; // would this token be accepted? 0: not asked
    char *secret;
};

struct message_probed {
    uint32_t protocol;
    char *version;
    int64_t wall_ms;
    char *controller;
};

/* STARTED carries struct launch_started and EXITED struct launch_exit under their message ids. */
extern const struct record_type message_hello_record, message_welcome_record, message_launch_record;
extern const struct record_type message_prepare_record; // struct message_launch
extern const struct record_type message_stop_record, message_release_attempt_record, message_signal_record,
    message_update_record, message_started_record, message_exited_record, message_returned_record,
    message_gpus_record, message_park_record, message_park_result_record, message_release_gpus_record,
    message_open_log_record, message_stream_record, message_inspect_record, message_process_info_record,
    message_open_terminal_record, message_open_step_record, message_rejoin_step_record,
    message_open_port_record, message_job_client_record, message_notify_record, message_notified_record,
    message_join_record, message_joined_record, message_refused_record, message_probe_record,
    message_probed_record, message_ready_record, message_go_record, launch_peer_record,
    message_heartbeat_record, message_heartbeat_ack_record, gpu_state_record, gpu_test_record,
    node_nic_record, gpu_process_record, attempt_usage_record;

/* The record type of a message id, NULL if unknown. */
const struct record_type *message_type(uint16_t id);
