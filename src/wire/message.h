/* SPDX-License-Identifier: MIT */
/*
 * The messages between a controller and its agents. A frame on the link is one record (base/record.h), whose
 * type id is the message. The link is a socketpair on one machine, and TLS to other nodes. The agent speaks
 * first.
 *
 *   agent                                controller
 *   HELLO (its attempts)       ───────>
 *                              <───────  WELCOME (epoch)          the agent accepts no lower epoch afterwards
 *                              <───────  LAUNCH, STOP             idempotent, resent after every HELLO
 *   STARTED, EXITED, RETURNED  ───────>                           resent after every HELLO until
 * RELEASE_ATTEMPT <───────  RELEASE_ATTEMPT          the result is durable: remove the spool entry GPUS
 * (samples)             ───────> READY (one of many ranks)  ───────>                           resent after
 * every HELLO until GO <───────  GO                       all ranks are ready: open the gate <───────  UPDATE
 * of a running attempt; resent after every HELLO <───────  SIGNAL                   to a running attempt,
 * once HEARTBEAT (time)           ───────> <───────  HEARTBEAT_ACK (the same) without either, the link is
 * closed <───────  INSPECT (a process) PROCESS_INFO               ───────>                           its
 * facts, or that it has ended <───────  RELEASE_GPUS             the whole list, until GPUS shows it <───────
 * NOTIFY (a person)        once per try NOTIFIED (result)          ───────> <───────  OPEN_LOG,
 * OPEN_TERMINAL, OPEN_STEP (stream id) second connection: STREAM (that id, size), then raw bytes. The
 * controller shuts down its sending side to request the end at the end of the file, and closes to end at
 * once.
 *
 *   a machine that is not a node yet: JOIN (token, certificate request) ──> JOINED, or PROBE ──> PROBED.
 *   Each of them, and HELLO, may be answered by REFUSED (reason and hint), after which the link ends.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/record.h"
#include "base/spool_id.h"
#include "job/event.h"
#include "job/job_nodes.h"
#include "job/launch.h"
#include "job/spec.h"
#include "job/usage.h"
#include "job/xid.h"

#define LINK_PROTOCOL   1U
#define BOOT_SPOOL_MARK "+" // in a boot id: behind it stands which spool of that boot it is
#define LINK_MESSAGE_MAX                                                                                     \
    (4U << 20) // bytes of one frame: what the API takes, for as many nodes as there may be
#define NODE_GPUS_MAX     256U
#define NODE_ATTEMPTS_MAX 65536U
#define NODE_HOLDS_MAX    24576U      // attempts that a node takes on: its HELLO must fit into a frame
#define GPU_PROCESSES_MAX 128U        // of one GPU
#define GPU_UUIDS_MAX     32768U      // bytes of the UUIDs of all
#define NOTIFY_TEXT_MAX   (32U << 10) // bytes of each text of a notification
#define NOTIFY_JSON_MAX   (256U << 10)
#define PROCESS_WORDS_MAX 8192U       // bytes of a command line that is looked at
#define JOIN_MESSAGE_MAX  (64U << 10) // bytes of a frame from a machine that is no node yet
#define JOIN_PEM_MAX      8192U

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
};

/* With a signal of STOP: the signal is sent to the adopted process. Without this bit, an adoption releases
 * its process. */
#define STOP_ADOPTED 0x10000U
/* With a signal of STOP: the job goes on later, and ends as soon as it has saved its work; the signal is what
 * its spec has for that. */
#define STOP_CHECKPOINT 0x20000U

enum gpu_vendor { GPU_VENDOR_NONE, GPU_VENDOR_NVIDIA, GPU_VENDOR_AMD };

enum gpu_process_kind { GPU_PROCESS_COMPUTE = 1, GPU_PROCESS_GRAPHICS = 2, GPU_PROCESS_MPS = 4 };

/* A process that has a context on a GPU. The backend fills pid, kind and memory; the agent the rest. */
struct gpu_process {
    uint32_t pid;
    uint64_t start;           // clock ticks after the boot; 0: it had gone when we looked
    uint32_t kind;            // bits of enum gpu_process_kind
    uint32_t is_memory_known; // else memory_bytes says nothing
    uint64_t memory_bytes;
    uint32_t uid;
    uint64_t job; // it belongs to this job; 0: mgpu did not start it
    uint32_t attempt;
    char *command;   // start of its command line
    char *container; // short id of the container it is in, NULL: none
};

/* A GPU as the node sees it now. Values that the backend cannot give have their bit missing in `valid`. */
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
    uint32_t is_lost; // 1: it was there and does not answer any more
    /* Where it sits; equal numbers are close. -1: not known. */
    int32_t numa, pcie_switch;
    uint64_t links;       // bit k: NVLink to the GPU at position k of the node's list
    uint32_t vendor;      // enum gpu_vendor
    int32_t minor;        // NVIDIA: of /dev/nvidiaN; -1: not known
    int32_t render_minor; // AMD: of /dev/dri/renderDN; -1: not known
    uint32_t power_limit_mw;
    uint64_t energy_mj; // drawn since the driver was loaded
    uint32_t sm_clock_mhz, memory_clock_mhz;
    uint64_t ecc_corrected, ecc_uncorrected; // errors since the driver was loaded
    uint32_t xid;                            // number of the driver's last error there, 0: none was seen
    int64_t xid_wall_ms;                     // and when it came
    uint32_t xid_count;                      // errors seen since the agent watches
    uint32_t is_unclean;                     // 1: what a job left there is not gone yet
    char *trouble;                           // why it is lost or unclean, in words; NULL: it is neither
    struct record_list processes;            // struct gpu_process; says something when GPU_PROCESSES is valid
    struct record_list xids;                 // struct gpu_xid: the last errors, in order of time
    uint64_t answers;        // of helper and agent: looks that were asked for before its memory was read
    char *refusal;           // why no job can use it although it answers; NULL: one can
    uint32_t is_one_process; // 1: its compute mode lets one process in, so that jobs cannot share it
    uint32_t recovery;       // enum gpu_recovery: what the driver wants to be done
    uint32_t is_host_memory; // 1: the system uses its memory, too, so that what is used there says nothing
    uint32_t
        is_released; // 1: RELEASE_GPUS named it, and no process of mgpu has it open any more; lost as well
};

/* The numbers are the driver's. */
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
};

/* What a running attempt has used so far. */
struct attempt_usage {
    struct spool_id id; // of step 0
    uint64_t token;
    struct record_list usage; // exactly one struct job_usage
};

#define NODE_FEATURE_TEXT_MAX 512U

/* One promise of the node: kept or not, and how to get it. Shown by `mgpu doctor`. */
struct node_feature {
    char *name; // "cgroup", "users", "gpu"
    uint32_t is_on;
    char *text; // what it means here
    char *fix;  // what to do when it is off, or NULL
};

enum attempt_phase {
    PHASE_STAGED,  // spool directory exists, no verdict yet
    PHASE_RUNNING, // verdict go
    PHASE_EXITED,  // exit record is there
    PHASE_RETURNED // verdict nogo
};

struct known_attempt {
    struct spool_id id;
    uint64_t token;
    uint32_t phase; // enum attempt_phase
};

struct message_hello {
    uint32_t protocol;
    char *node;
    char *boot_id; // the kernel's, and which spool the node has: one that was emptied is another
    char *version;
    uint32_t cpus;
    uint64_t memory_bytes;
    char *gpu_backend;           // "nvml", "sim", "none"
    struct record_list gpus;     // struct gpu_state
    struct record_list features; // struct node_feature
    struct record_list attempts; // struct known_attempt
    int64_t said_ms;             // on the node's boot clock: of two of one boot the later one is true
    /* The latest state of the controller's store that this node was told of; 0: it does not know. */
    uint64_t epoch;   // highest that was obeyed
    int64_t began_ms; // of the run of mgpud that had this epoch
    uint64_t event;   // and the event that was durable in it
};

struct message_welcome {
    uint64_t epoch;       // grows with every start of the controller
    int64_t heartbeat_ms; // how often the agent says HEARTBEAT; 0: never
    int64_t timeout_ms;   // after so long without HEARTBEAT_ACK it gives up the link; 0: never
    int64_t said_ms;      // of the HELLO that this answers; 0: not told
    uint64_t last_order;  // number of the last LAUNCH that was sent before, to any node
    int64_t began_ms;     // wall clock: when this run of the controller began; tells two of one epoch apart
    uint64_t event;       // the latest that is durable; HELLO says it back
};

/* HEARTBEAT, and HEARTBEAT_ACK, which says the same back. A HEARTBEAT_ACK proves that the controller lived,
 * and took this node for reachable, at some time after `sent_ms`. */
struct message_heartbeat {
    int64_t sent_ms; // the agent's boot clock
    uint64_t event;  // of HEARTBEAT_ACK: the latest that is durable
};

/* A node of an attempt that has several, as its other parts see it. */
struct launch_peer {
    char *name;
    char *address; // where the others reach it
    uint32_t gpus; // given to the part there
};

struct message_launch {
    struct spool_id id;
    uint64_t token;
    uint32_t uid, gid;
    char *user;               // the name of that uid where mgpud is; NULL: it has none there
    struct record_list gpus;  // struct gpu_grant
    struct record_bytes spec; // struct job_spec
    uint64_t array_job;       // it is an element of this array; 0: of none
    uint32_t array_index;
    /* Of a part: `rank` is its rank. It waits for GO at its gate. */
    struct record_list peers; // struct launch_peer in order of rank, itself too; empty: it is no part
    uint32_t port;    // where the ranks may meet, on the first of them; there the first free one from here on
    int64_t lease_ms; // it ends when the node has heard nothing for so long; 0: never
    int64_t lease_until_ms; // not on the wire: what follows from it on the node's boot clock
    const char *defect; // not on the wire: why part of it is missing; it is not to be run. NULL: all is there
    /* Grows with every LAUNCH: one that is not above those before it, or WELCOME's, is a late copy and starts
     * nothing. 0: not told. */
    uint64_t order;
    uint64_t event; // the latest that is durable
};

struct message_ready { // everything that can fail has gone well: GO would open the gate
    struct spool_id id;
    uint64_t token;
    uint32_t port; // of rank 0: where the ranks meet; 0: as LAUNCH said
};

struct message_go { // every part is ready
    struct spool_id id;
    uint64_t token;
    uint32_t port; // where the ranks meet; 0: as LAUNCH said
};

struct message_stop {
    struct spool_id id;
    uint64_t token;
    uint32_t signal;
    int64_t grace_ms;
};

struct message_signal { // once: a lost one is not said again
    struct spool_id id;
    uint64_t token;
    uint32_t signal;
};

struct message_update { // how a running attempt is kept from now on
    struct spool_id id;
    uint64_t token;
    int64_t time_limit_ms; // from its start; 0: none
    uint32_t is_suspended;
    uint32_t number; // grows with every change: a lower one is a late copy. 0: not told
};

struct message_release_attempt { // the end is committed: the spool directory may go
    struct spool_id id;
    uint64_t token;
};

struct message_returned { // verdict is nogo: this attempt never executed anything
    struct spool_id id;
    uint64_t token;
    char *text;
};

struct message_gpus {
    struct record_list gpus;   // struct gpu_state
    struct record_list usages; // struct attempt_usage of the running attempts
    /* What became another than HELLO said: of the GPUs as a whole. */
    char *gpu_backend;           // NULL: as before
    struct record_list features; // struct node_feature, each instead of the one of its name
};

/* These GPUs, and no others, are to be let go of, so that they can be reset; GPUS and HELLO tell when that is
 * done. Said again as long as they tell otherwise. */
struct message_release_gpus {
    struct strings uuids;
};

struct message_open_log {
    uint64_t stream;   // random, good for one connection
    uint32_t uid, gid; // the job's owner: the file is opened as this user
    char *path;
    uint64_t offset;
    uint64_t length; // 0: to the end
    uint32_t follow; // 1: wait for more at the end, until the controller shuts its side down
};

/* A question about a process, or the wish to hear of its end; an agent that leaves forgets both. */
struct message_inspect {
    uint64_t question; // random, for the answer; 0: for `job`
    uint64_t job;      // of a waiting adoption: the process counts as this job's; pid 0: no longer
    uint32_t pid;
    uint64_t start; // 0: whoever has the pid now
};

struct message_process_info {
    uint64_t question, job; // as asked; for a job it comes when the process is over
    int32_t error;          // 0 or a positive errno: it cannot be adopted
    char *text;             // the error in words
    char *hint;
    uint32_t pid;
    uint64_t start;
    uint32_t uid, gid;
    struct strings command;
    char *gpu_ids; // those that it or its descendants are on: "0,2"; NULL: none
};

struct message_stream { // first frame of the second connection
    uint64_t stream;
    int32_t error; // 0 or a positive errno: the log could not be opened
    uint64_t size; // of the file at this moment
    char *text;    // the error in words
};

/* The stream that is dialled back for it carries frames of base/terminal.h. */
struct message_open_terminal {
    struct spool_id id;
    uint64_t token;
    uint64_t stream;
    uint32_t is_read_only;
    uint32_t rows, columns; // of the viewer; 0: not known
    uint64_t position;      // where the output begins; TERMINAL_LAST_SCREEN
};

/* A further process in a running job: the next free step of its attempt. */
struct message_open_step {
    struct spool_id id; // of the step it joins
    uint64_t token;
    uint64_t stream;
    struct strings command;
    struct strings env; // over the job's own
    char *cwd;          // NULL: the job's
    bool is_tty;
    uint32_t rows, columns;
};

#define NOTIFY_TIME_MAX_MS 3600000 // what an agent lets a controller ask for

/* Something to tell on behalf of a job's owner; the agent does it as that user. */
struct message_notify {
    uint64_t notification; // names it, the same in each try
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
    int64_t time_ms;    // it is ended after this time: 1 to NOTIFY_TIME_MAX_MS
    const char *defect; // as in LAUNCH
};

struct message_notified {
    uint64_t notification;
    uint32_t target;
    int32_t error; // 0, or a positive errno; EBUSY: not tried, as there is too much to do
    char *text;    // the error in words
};

/* A machine that wants to become a node, over TLS whose other side it believes by the token's pin. */
struct message_join {
    uint32_t protocol;
    char *version;
    char *node; // the name it wants
    uint64_t token;
    char *secret;  // of the token, as hexadecimal digits
    char *request; // for a certificate, PEM
};

struct message_joined {
    char *certificate; // PEM; its common name is the node's
    char *controller;  // the name of the controller's own node
};

struct message_refused {
    int32_t error; // a positive errno
    char *text, *hint;
};

/* What doctor asks; changes nothing. */
struct message_probe {
    uint32_t protocol;
    char *version;
    uint64_t token; // would it be taken? 0: not asked
    char *secret;
};

struct message_probed {
    uint32_t protocol;
    char *version;
    int64_t wall_ms;
    char *controller;
};

/* STARTED carries struct launch_started and EXITED struct launch_exit under their message ids. */
extern const struct record_type message_hello_record;
extern const struct record_type message_welcome_record;
extern const struct record_type message_launch_record;
extern const struct record_type message_stop_record;
extern const struct record_type message_release_attempt_record;
extern const struct record_type message_signal_record;
extern const struct record_type message_update_record;
extern const struct record_type message_started_record;
extern const struct record_type message_exited_record;
extern const struct record_type message_returned_record;
extern const struct record_type message_gpus_record;
extern const struct record_type message_release_gpus_record;
extern const struct record_type message_open_log_record;
extern const struct record_type message_stream_record;
extern const struct record_type message_inspect_record;
extern const struct record_type message_process_info_record;
extern const struct record_type message_open_terminal_record;
extern const struct record_type message_open_step_record;
extern const struct record_type message_notify_record;
extern const struct record_type message_notified_record;
extern const struct record_type message_join_record;
extern const struct record_type message_joined_record;
extern const struct record_type message_refused_record;
extern const struct record_type message_probe_record;
extern const struct record_type message_probed_record;
extern const struct record_type message_ready_record;
extern const struct record_type message_go_record;
extern const struct record_type launch_peer_record;
extern const struct record_type message_heartbeat_record;
extern const struct record_type message_heartbeat_ack_record;
extern const struct record_type gpu_state_record;
extern const struct record_type gpu_process_record;
extern const struct record_type attempt_usage_record;

/* The record type of a message id, NULL for an unknown one. */
const struct record_type *message_type(uint16_t id);
