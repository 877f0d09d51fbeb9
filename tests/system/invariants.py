# SPDX-License-Identifier: MIT
"""What must hold after any schedule of crashes, checked from what clients were told, what jobs wrote themselves,
the event log, /proc, the cgroups, and the store's own check.

I1  every acknowledged submit is known and has reached an end
I2  a command is executed at most once in an attempt, and at most once in all
I3  no GPU is given out beyond what it has, at any moment of the event log
I4  the exit code shown is the real one; what is not known is said to be unknown
I5  the output is complete, byte for byte
I6  after the end nothing is left: no process, no spool directory, no cgroup
I7  ids are never given out twice and only grow
I8  the events fold to the tables (mgpud --fsck)
I9  files belong to who submitted the job
I10 the daemon answers at once, and its descriptors are bounded
I11 an end that a client was told is never taken back
"""

import collections
import glob
import os
import subprocess
import time

import harness

GPU_MEMORY = 24 << 30
DESCRIPTORS_MAX = 200


class Evidence:
    """What was seen from outside."""

    def __init__(self):
        self.acks = {}                                # id: what the client knows of it
        self.arrays = {}                              # id: what the client knows of each element
        self.owners = {}                              # id: uid
        self.ack_order = collections.defaultdict(list)  # client: ids in the order of their acknowledgement
        self.cancels = {}                             # id: status of the answer
        self.told = {}                                # id: the end as a wait answered it
        self.refused = []
        self.starts = collections.Counter()           # (job, attempt)
        self.ends = collections.Counter()
        self.duplicates = []

    def add_client(self, name, uid, rows):
        for row in rows:
            if 'refused' in row:
                self.refused.append(row)
            elif 'cancel' in row:
                self.cancels[row['cancel']] = row['status']
            elif 'told' in row:
                self.told[row['told']] = {key: row[key] for key in ('state', 'ended_by', 'exit_code')}
            else:
                if row['id'] in self.acks or row['id'] in self.arrays:
                    self.duplicates.append(row['id'])
                if 'elements' in row:
                    self.arrays[row['id']] = row['elements']
                else:
                    self.acks[row['id']] = row
                self.owners[row['id']] = uid
                self.ack_order[name].append(row['id'])

    def add_elements(self, jobs):
        """From now on each element of an array is an acknowledged job of its own. Yields what is missing."""
        ids = {(job['array_job'], job['array_index']): number for number, job in jobs.items() if job.get('array_index') is not None}
        for array, promises in self.arrays.items():
            if jobs.get(array, {}).get('ended_by') is None:
                yield f'I1: array {array} was acknowledged and has not ended, or is not known'
            for index, promise in enumerate(promises):
                number = ids.get((array, index))
                if number is not None:
                    self.acks[number] = promise
                    self.owners[number] = self.owners[array]
                    self.cancels.update({number: self.cancels[array]} if array in self.cancels else {})
                elif array not in self.cancels:
                    yield f'I1: element {index} of array {array} has not become a job, and nobody has cancelled the array'

    def add_file(self, path):
        """Lines that jobs wrote: start|end JOB ATTEMPT PID."""
        if not os.path.exists(path):
            return
        with open(path, encoding='ascii') as lines:
            for line in lines:
                word, job, attempt, _ = line.split()
                (self.starts if word == 'start' else self.ends)[int(job), attempt] += 1


def check_ends(evidence, jobs):
    """I1, I2, I4, I5, I9, I11 for every acknowledged job."""
    starts_of = collections.Counter()
    for (job, attempt), count in evidence.starts.items():
        starts_of[job] += count
        if count > 1:
            yield f'I2: job {job} was executed {count} times in attempt {attempt}'
    for number, promise in evidence.acks.items():
        job = jobs.get(number)
        if job is None:
            yield f'I1: job {number} was acknowledged and is not known'
            continue
        if job['ended_by'] is None:
            yield f'I1: job {number} has not ended: {job["state"]}'
        if starts_of[number] > 1:
            yield f'I2: job {number} was executed {starts_of[number]} times'
        if job['ended_by'] in ('exit', 'signal'):
            if job['exit_code'] != promise['exit_code']:
                yield f'I4: job {number} is shown with {job["exit_code"]}, it left with {promise["exit_code"]}'
            if starts_of[number] != 1:
                yield (f'I4: job {number} is shown as {job["ended_by"]} ({job["exit_code"]}, attempt {job["attempt"]}), '
                       f'but was executed {starts_of[number]} times')
            yield from check_output(number, job, promise, evidence.owners[number])
        elif job['ended_by'] == 'cancelled':
            if number not in evidence.cancels:
                yield f'I4: job {number} is shown as cancelled, and nobody did'
        else:
            yield f'I4: job {number} ended by {job["ended_by"]}: {job["message"]}'
    for number, end in evidence.told.items():
        shown = {key: jobs.get(number, {}).get(key) for key in end}
        if shown != end:
            yield f'I11: a wait for job {number} was answered with {end}; it is shown with {shown}'
    for number, status in evidence.cancels.items():
        job = jobs.get(number)
        if status == 202 and job and job['ended_by'] not in ('cancelled', 'exit', 'signal'):
            yield f'I1: the cancel of job {number} was acknowledged; it ended by {job["ended_by"]}'


def check_output(number, job, promise, uid):
    expected = ''.join(f'{promise["key"]} line {i}\n' for i in range(promise['lines'])).encode()
    try:
        with open(job['log'], 'rb') as source:
            output = source.read()
            owner = os.fstat(source.fileno()).st_uid
    except (OSError, TypeError) as error:
        yield f'I5: the output of job {number} cannot be read: {error}'
        return
    # A shell that kills itself may print a message about it.
    if not output.startswith(expected) or (promise['exit_code'] < 128 and output != expected):
        yield f'I5: the output of job {number} has {len(output)} bytes, {len(expected)} were written'
    if job['log_bytes'] != len(output):
        yield f'I5: job {number} is shown with {job["log_bytes"]} bytes of output; the file has {len(output)}'
    if owner != uid:
        yield f'I9: the output of job {number} belongs to uid {owner}, not {uid}'


def check_bookings(events):
    """I3: walks the event log and keeps account of every GPU."""
    held = {}                                  # job: [(index, memory)]
    booked = collections.defaultdict(dict)     # index: {job: memory}, memory 0 is the whole GPU
    for event in events:
        job = event['job']
        if event['type'] == 'inherits' or (event['type'] == 'allocated' and 'behind' not in event):
            for grant in event.get('granted') or event.get('gpus') or []:
                others = booked[grant['index']]
                if others and (grant['memory'] == 0 or 0 in others.values()):
                    yield f'I3: GPU {grant["index"]} given to job {job} (seq {event["seq"]}) while {list(others)} had it'
                others[job] = grant['memory']
                if sum(others.values()) > GPU_MEMORY:
                    yield f'I3: GPU {grant["index"]} is booked beyond its memory at seq {event["seq"]}'
                held.setdefault(job, []).append(grant['index'])
        elif event['type'] in ('returned', 'ended'):
            for index in held.pop(job, ()):
                booked[index].pop(job, None)
    for job, indexes in held.items():
        yield f'I3: job {job} still holds GPUs {indexes} when all is over'


def check_ids(evidence, events):
    """I7."""
    for number in evidence.duplicates:
        yield f'I7: job id {number} was acknowledged for two submits'
    for name, ids in evidence.ack_order.items():
        if ids != sorted(set(ids)):
            yield f'I7: the ids of client {name} do not grow'
    submitted = [event['job'] for event in events if event['type'] == 'submitted']
    if submitted != sorted(set(submitted)):
        yield 'I7: the ids in the event log do not grow'
    for number in {*evidence.acks, *evidence.arrays} - set(submitted):
        yield f'I1: job {number} was acknowledged and has no event'


def check_left_over(instance):
    """I6, while the daemon runs and no job does."""
    for pid in instance.shepherds():
        yield f'I6: shepherd {pid} is left'
    for name in os.listdir(f'{instance.run_dir}/spool'):
        if name[0].isdigit():
            yield f'I6: spool directory {name} is left'
    for folder in cgroups_of(instance):
        yield f'I6: cgroup {folder} is left'


def cgroups_of(instance):
    """The cells of this instance's attempts, in all hierarchies."""
    try:
        with open(f'{instance.run_dir}/cgroup-name', encoding='ascii') as file:
            name = file.read().strip()
    except FileNotFoundError:  # nothing is confined here
        return []
    return sorted(found for end in ('/', '.')
                  for found in glob.glob(f'/sys/fs/cgroup/**/{name}{end}j[0-9]*', recursive=True))


def check_daemon(instance):
    """I10."""
    started = time.monotonic()
    answer = instance.api('GET', '/healthz')
    took = time.monotonic() - started
    if answer.status != 200 or took > 1:
        yield f'I10: /healthz answered {answer.status} after {took:.3f} s'
    if harness.IS_ROOT:
        count = len(os.listdir(f'/proc/{instance.process.pid}/fd'))
        if count > DESCRIPTORS_MAX:
            yield f'I10: mgpud has {count} open descriptors'


def fsck(instance):
    """I8; the daemon is stopped."""
    done = subprocess.run([f'{harness.programs()}/mgpud', '--state-dir', instance.state_dir, '--fsck'], text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=120,
                          env=instance.environment(), **instance.user.popen_arguments())
    if done.returncode != 0:
        yield f'I8: fsck: {done.stdout}{done.stderr}'


def read_events(instance):
    """The whole event log, oldest first, up to its present end."""
    marker = instance.post_job(['true'], gpus=0)
    instance.wait(marker)
    events = []
    for event in instance.events(after=0, user=instance.user, timeout_s=120):
        events.append(event['data'])
        if event['data']['job'] == marker and event['event'] == 'ended':
            return events
    raise AssertionError('the event stream stopped before its end')
