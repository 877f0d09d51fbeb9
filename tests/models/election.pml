/* SPDX-License-Identifier: MIT */
/*
 * Two controllers, one log in etcd, one node (docs/high-availability.md). A controller may be stopped between any
 * two of its steps, for any time, and die; requests to etcd and their answers take any time, and answers get lost.
 * What must hold: entries of a former leader never follow those of a later one; no request of a client is in the log
 * twice; who leads has every entry that was acknowledged, and its store none that is not in the log; a read
 * that is answered shows everything acknowledged before; and a node obeys no leader after a later one.
 *
 * Time is a count of ticks, one for all: what clocks differ by is a part of the lease that the leader leaves unused.
 * Each rule can be taken away (-DRULE=0); tools/check-models does, and expects that something breaks.
 */
#ifndef GUARD /* a write to the log compares the leader's key */
#define GUARD 1
#endif
#ifndef CATCHUP /* the log is applied to its end after the key was won, not only before */
#define CATCHUP 1
#endif
#ifndef CERTAIN /* a leader answers only while its lease cannot have ended */
#define CERTAIN 1
#endif
#ifndef SENT /* it counts the lease from when it sent the renewal, not from the answer */
#define SENT 1
#endif
#ifndef ID /* an entry that is there already is recognised by its id */
#define ID 1
#endif
#ifndef ORDER /* the log comes before the leader's own store */
#define ORDER 1
#endif
#ifndef FENCE /* a node stores whom it has obeyed, and refuses earlier ones */
#define FENCE 1
#endif

#ifndef HORIZON
#define HORIZON 4 /* ticks */
#endif
#define LEASE    2
#define ENTRIES  3
#define REQUESTS 2
#define NOBODY   2

mtype = { STANDBY, WON, LEADING };
mtype = { IDLE, ASKED, WRITTEN, REFUSED, LOST };

byte now;

/* etcd: the leader's key and its lease, the log. */
byte holder = NOBODY, revision, key_revision, lease_end;
byte length;
byte by[ENTRIES + 1], request_of[ENTRIES + 1];

/* What clients know. */
byte requests, acknowledged;

/* The controllers. */
mtype role[2] = STANDBY;
byte mine[2];     // revision of the key when it won
byte until[2];    // it leads for certain before this
byte applied[2];  // entries in its store
byte asked_at[2]; // when the renewal under way was sent; 0: none
bool renewed[2];  // and etcd has it
mtype append[2] = IDLE;
byte client[2];   // whose request it is

/* Commands on their way to the node, each on its controller's link, and the node. */
byte command[2], fence;

inline become_standby(c)
{
    role[c] = STANDBY;
    append[c] = IDLE;
    asked_at[c] = 0;
    renewed[c] = false;
    mine[c] = 0;
    until[c] = 0;
}

proctype controller(byte c)
{
end:
    do
    :: atomic { role[c] == STANDBY && applied[c] < length -> applied[c]++ }
    /* The lease is granted and the key is claimed in one step; the time until the answer is the renewal's. */
    :: atomic {
           role[c] == STANDBY && holder == NOBODY && revision < 3 ->
           assert(applied[c] <= length);
           revision++;
           holder = c;
           key_revision = revision;
           lease_end = now + LEASE;
           mine[c] = revision;
           until[c] = now + LEASE;
           role[c] = (CATCHUP -> WON : LEADING)
       }
    :: atomic { role[c] == WON && applied[c] < length -> applied[c]++ }
    :: atomic {
           role[c] == WON && applied[c] == length ->
           if
           :: holder == c && key_revision == mine[c] -> role[c] = LEADING
           :: else -> become_standby(c)
           fi
       }
    /* A request of a client: to etcd, and to the own store. */
    :: atomic {
           role[c] == LEADING && append[c] == IDLE && requests < REQUESTS && length < ENTRIES ->
           requests++;
           client[c] = requests;
           if
           :: !ORDER -> applied[c]++
           :: else
           fi;
           append[c] = ASKED
       }
    :: atomic {
           role[c] == LEADING && append[c] == WRITTEN ->
           if
           :: ORDER -> applied[c]++
           :: else
           fi;
           if
           :: applied[c] > acknowledged -> acknowledged = applied[c]
           :: else
           fi;
           append[c] = IDLE
       }
    /* The answer was lost: the same again. */
    :: atomic { role[c] == LEADING && append[c] == LOST -> append[c] = ASKED }
    :: atomic { append[c] == REFUSED -> become_standby(c) }
    :: atomic {
           role[c] == LEADING && (!CERTAIN || now < until[c]) ->
           assert(applied[c] >= acknowledged)
       }
    :: atomic { role[c] == LEADING && (!CERTAIN || now < until[c]) && command[c] == 0 -> command[c] = mine[c] }
    :: atomic { role[c] == LEADING && asked_at[c] == 0 && now > 0 -> asked_at[c] = now }
    :: atomic {
           renewed[c] && (!CERTAIN || now < until[c]) ->
           until[c] = (SENT -> asked_at[c] : now) + LEASE;
           renewed[c] = false;
           asked_at[c] = 0
       }
    /* It notices that the lease is over, or dies. */
    :: atomic { role[c] != STANDBY && append[c] != ASKED -> become_standby(c) }
    od
}

/* What etcd does with the requests of a controller, whether it waits for the answer or not. */
proctype etcd(byte c)
{
    byte place;
end:
    do
    :: atomic { holder != NOBODY && now >= lease_end -> holder = NOBODY }
    :: atomic {
           asked_at[c] != 0 && !renewed[c] && holder == c && key_revision == mine[c] ->
           lease_end = now + LEASE;
           renewed[c] = true
       }
    :: atomic {
           append[c] == ASKED ->
           place = applied[c] + ORDER;
           if
           :: ID && place <= length && request_of[place] == client[c] && by[place] == mine[c] ->
               append[c] = WRITTEN
           :: else ->
               if
               :: GUARD && !(holder == c && key_revision == mine[c]) -> append[c] = REFUSED
               :: length == ENTRIES -> append[c] = REFUSED
               /* Without the comparison of ids what is there cannot be told from a stranger's: it goes behind it. */
               :: else ->
                   length++;
                   by[length] = mine[c];
                   request_of[length] = client[c];
                   assert(length == 1 || by[length - 1] <= mine[c]);
                   assert(length < 2 || request_of[length - 1] != client[c]);
                   if
                   :: append[c] = WRITTEN
                   :: append[c] = LOST
                   fi
               fi
           fi
       }
    od
}

inline deliver(c)
{
    if
    :: FENCE && command[c] < fence -> skip
    :: else ->
        assert(command[c] >= obeyed);
        obeyed = command[c];
        fence = command[c]
    fi;
    command[c] = 0
}

proctype node()
{
    byte obeyed;
end:
    do
    :: atomic { command[0] != 0 -> deliver(0) }
    :: atomic { command[1] != 0 -> deliver(1) }
    od
}

active proctype clock()
{
    atomic {
        run controller(0);
        run controller(1);
        run etcd(0);
        run etcd(1);
        run node()
    };
end:
    do
    :: atomic { now < HORIZON -> now++ }
    od
}
