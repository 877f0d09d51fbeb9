# SPDX-License-Identifier: MIT
"""Small programs that must do as a job what they do under a bare shell: the rows of test_oracle.py.

A row is a line of one of the blocks below, and nothing else is needed for a new one. Each line is a whole program of the
interpreter of its block, executed in its own empty directory. What it prints on both streams, the files it leaves, and how
it ends are compared; it must therefore print nothing that two runs under one shell would print differently (pids, times, the
name of its directory).
"""

# sh -c LINE
SH = r'''
true
false
exit 0
exit 1
exit 2
exit 77
exit 125
exit 126
exit 127
exit 128
exit 129
exit 137
exit 143
exit 200
exit 255
:
echo hello
echo hello >&2
echo out; echo err >&2; echo out again
printf 'no newline'
printf 'a\nb'
printf '\0\1\2\377'
printf 'tab\there\r\nand a return'
printf '\033[1;31mred\033[0m\n'
printf 'grün ä ö ü ß €\n'
printf '\377\376 no text\n'
echo "a  b   c"
echo 'single $HOME quoted'
echo "*"
echo *
echo a b >f; cat f
mkdir -p a/b/c; touch a/b/c/d; ls -R
umask
umask 077; touch private; umask
touch f; chmod 640 f; stat -c %a f
mkdir d; stat -c %a d
ln -s nowhere dangling; readlink dangling
ln -s /etc/passwd link; wc -l <link >lines; test -s lines
mkfifo pipe; echo through >pipe & cat pipe; wait
cat
read line; echo "status $? line '$line'"
wc -c
head -1
sort
cat /dev/stdin
cat - - -
test -t 0; echo $?
test -t 1; echo $?
test -t 2; echo $?
kill -INT $$; echo survived
kill -TERM $$; echo survived
kill -KILL $$
kill -QUIT $$
kill -USR1 $$
kill -USR2 $$
kill -ALRM $$
kill -PIPE $$
kill -ABRT $$
kill -SEGV $$
kill -BUS $$
kill -FPE $$
kill -ILL $$
kill -SYS $$
kill -TRAP $$
kill -XCPU $$
kill -XFSZ $$
kill -VTALRM $$
kill -PROF $$
kill -IO $$
kill -PWR $$
kill -STKFLT $$
kill -CHLD $$; echo survived
kill -CONT $$; echo survived
kill -WINCH $$; echo survived
kill -URG $$; echo survived
trap 'echo caught INT; exit 3' INT; kill -INT $$; sleep 5
trap 'echo caught TERM; exit 4' TERM; kill -TERM $$; sleep 5
trap 'echo caught USR1' USR1; kill -USR1 $$; echo after
trap '' TERM; kill -TERM $$; echo ignored
trap 'echo at the end' EXIT; echo body
trap 'echo at the end' EXIT; exit 9
trap 'echo at the end' EXIT; kill -TERM $$
(exit 3); echo $?
(kill -9 $(exec sh -c 'echo $PPID')); echo $?
sh -c 'kill -TERM $$'; echo $?
sh -c 'kill -SEGV $$'; echo $?
false || echo or
true && echo and
set -e; false; echo not reached
set -u; echo "$NOT_SET_AT_ALL"; echo not reached
set -o pipefail; false | true
false | true
true | false
yes | head -3
yes | head -c 100000 | wc -c
seq 1 20000
seq 1 20000 | tail -1
seq 1 100000 >big; cksum big
dd if=/dev/zero bs=1024 count=300 2>/dev/null | tr '\0' x
dd if=/dev/zero bs=1048576 count=3 2>/dev/null | cksum
i=0; while [ $i -lt 500 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done
echo a; exec 1>&2; echo b
echo a; exec 2>&1; echo b >&2
echo a; exec >&-; echo b; exit 6
exec 2>&-; echo quiet >&2; echo $?
exec 0<&-; cat; echo $?
exec >redirected; echo into the file
echo a >/dev/stdout; echo b >/dev/stderr
echo a >>/dev/stdout; echo b
echo a | tee /dev/stderr
echo to the terminal >/dev/tty
nosuchcommand
nosuchcommand; echo $?
./nosuchfile
./nosuchfile; echo $?
echo text >f; ./f; echo $?
echo 'echo from a file' >f; chmod +x f; ./f
printf '#!/bin/sh\necho with a line $1\n' >f; chmod +x f; ./f word
printf '#!/nosuch/interpreter\n' >f; chmod +x f; ./f; echo $?
mkdir d; ./d; echo $?
. ./nosuchfile; echo not reached
cd /nosuch; echo $?
cd /; pwd
cd /tmp && pwd -P
syntax error (
if true; then echo open
"unterminated
echo $((1/0))
echo $#: "$@"
echo ${NOT_SET:-default}
echo ${NOT_SET:?is not set}
A=1; export A; sh -c 'echo $A'
env -i sh -c 'echo $PATH | wc -c' >/dev/null; echo $?
env -i /usr/bin/env
env A=1 B='two words' sh -c 'echo $A "$B"'
echo "$HOME"
echo "$USER $LOGNAME"
echo "$PATH"
echo "$LANG"
echo "$MY_OWN_VARIABLE"
echo "$MY_EMPTY_VARIABLE." ${MY_EMPTY_VARIABLE+set}
printf '%s' "$MY_LINES"
id -u; id -g; id -G
id -un
whoami
test "$(pwd)" = "$(pwd -P)"; echo $?
test "$PWD" = "$(pwd -P)"; echo $?
ls -A | wc -l
ls -l /proc/self/fd | wc -l
ls /proc/self/fd
readlink /proc/self/fd/0
grep -E '^(SigBlk|SigIgn|SigCgt)' /proc/self/status
grep -E '^(SigPnd|ShdPnd)' /proc/self/status
grep -E '^(Cap(Inh|Prm|Eff|Amb))' /proc/self/status
grep NoNewPrivs /proc/self/status
grep -E '^(Uid|Gid|Groups)' /proc/self/status
cat /proc/self/coredump_filter
cat /proc/self/timerslack_ns
cat /proc/self/personality
nice
ionice
taskset -p 0 | sed 's/.*mask/mask/'
ulimit -t
ulimit -f
ulimit -d
ulimit -v
ulimit -c
ulimit -Hc
ulimit -s
ulimit -Hs
ulimit -n
ulimit -Hn
ulimit -l
ulimit -p
ulimit -n 64; ulimit -n
ulimit -f 8; dd if=/dev/zero of=f bs=4096 count=100 2>/dev/null; echo $?; stat -c %s f
ulimit -v 50000; python3 -c 'x = bytearray(200 << 20)' 2>/dev/null; echo $?
ulimit -t 1; while :; do :; done
ulimit -c 0; kill -ABRT $$
sleep 0.1; echo slept
sleep 0.1 & wait; echo waited
sleep 0.1 & wait $!; echo $?
(sleep 0.05; echo from the background) & wait
(echo one; echo two) | { read a; read b; echo $b $a; }
{ echo a; echo b >&2; } 2>&1 | sort
echo a | cat | cat | cat | cat | cat
cat <<END
cat <<-END; printf x
command -v sh
type cd
hash -r; echo $?
eval 'echo evaluated'
exec echo replaced
exec sh -c 'exit 11'
exec nosuchcommand
exec /nosuch/file
exec env A=1 sh -c 'echo $A'
exec <&-; exec cat; echo never
exec sleep 0.05
timeout 0.1 sleep 10; echo $?
timeout -s KILL 0.1 sleep 10; echo $?
timeout 0.1 sleep 10
timeout 5 echo in time
nohup echo kept 2>/dev/null
nohup sh -c 'echo kept; exit 7' 2>/dev/null
setsid -w echo in a session of its own
setsid -w sh -c 'exit 8'
nice -n 5 nice
nice -n 5 echo nice
stdbuf -oL echo buffered by lines
env -u HOME sh -c 'echo ${HOME-unset}'
xargs echo </dev/null
printf 'a b\nc\n' | xargs -n1 echo
printf 'a b\nc\n' | xargs -n1 sh -c 'exit 3'
seq 1 20 | xargs -P4 -n1 true
find . | sort
tar cf t.tar --mtime=@0 --sort=name -T /dev/null; tar tf t.tar
gzip -nc </dev/null | cksum
awk 'BEGIN { print 1/3; exit 5 }'
awk 'BEGIN { while (i++ < 1000) print i > "/dev/stderr" }'
sed -n 1p /etc/passwd | cut -d: -f1
echo abc | sed s/b/x/
echo abc | tr a-z A-Z
expr 1 + 2
test 1 -eq 2
printf '%d\n' nonumber
date -u -d @0 +%F
date -d @0 +%Z
locale charmap
tty
stty -a
logname >/dev/null 2>&1; echo $?
mktemp -u XXXXXX | wc -c
flock f echo locked
flock -n f sh -c 'flock -n f echo never; echo $?'
mkdir d; chmod 0 d; cd d 2>/dev/null; echo $?; chmod 700 d
touch f; rm f; ls
echo data >f; exec 3<f; rm f; cat <&3
exec 3>f; echo three >&3; exec 3>&-; cat f
exec 9>f; echo nine >&9; cat f
cat f 2>&1; echo $?
cp /bin/true ./mytrue; ./mytrue; echo $?
cp /bin/sleep ./mysleep; ./mysleep 0.05 & wait; echo $?
make -s -f /dev/null nothing 2>/dev/null; echo $?
printf 'all:\n\t@echo made\n' >Makefile; make -s
printf 'all:\n\t@exit 3\n' >Makefile; make -s 2>/dev/null; echo $?
(sleep 0.1; kill -CONT $$) & kill -STOP $$; wait; echo went on
kill 0; echo not reached
trap '' TERM; kill 0; echo reached
kill -9 0
kill -HUP $$; echo survived
echo unfinished; kill -9 $$
printf 'unfinished line'; kill -9 $$
echo a >out; echo b >err; ls
echo $- | grep -c i
echo $0
cat /proc/$$/comm
tr '\0' '\n' </proc/$$/cmdline | head -2
cat /proc/self/oom_score_adj
ls -ld . | cut -c1-10
cat /proc/sys/kernel/ostype
getconf PAGESIZE
nproc
hostname >/dev/null; echo $?
'''

# bash -c LINE
BASH = r'''
echo ${BASH_VERSINFO[0]}
[[ a == a ]] && echo equal
a=(1 2 3); echo ${a[1]} ${#a[@]}
echo {1..5}
set -o pipefail; false | true
set -o pipefail; false | true; echo ${PIPESTATUS[@]}
set -euo pipefail; cat nosuchfile | wc -l
diff <(echo a) <(echo b)
cat < <(echo from a substitution)
exec > >(cat); echo through; exec >&-; wait
coproc cat; echo x >&${COPROC[1]}; read line <&${COPROC[0]}; echo $line
trap 'echo "line: $?"' ERR; false; echo after
trap 'echo end' EXIT; false
kill -TERM $BASHPID; echo survived
kill -INT $BASHPID; echo survived
trap 'exit 42' INT; kill -INT $BASHPID; sleep 5
(exit 7) & wait $!; echo $?
sleep 10 & kill $!; wait $!; echo $?
sleep 10 & disown; kill $!; echo disowned
set -m; sleep 0.05 & wait; echo $?
jobs; echo none
read -t 1 x; echo $? "[$x]"
read -r -n1 x; echo $? "[$x]"
mapfile -t lines; echo ${#lines[@]}
printf '%q\n' "two words"
printf -v x %03d 7; echo $x
shopt -q login_shell; echo $?
echo $SHLVL >/dev/null; echo ${#BASH_SOURCE[@]}
ulimit -a | grep -v -e 'max user processes' -e 'pending signals'
declare -p MY_OWN_VARIABLE
declare -p | grep -c MY_LINES
exec {fd}>f; echo $((fd >= 10)); echo x >&$fd; cat f
{ time -p true; } 2>&1 | tr -d 0-9.; echo $?
for i in 1 2 3; do echo $i & done | sort; wait
f() { return 3; }; f; echo $?
local x
return 3
exit 256
exit -1
exit words
hash nosuch
type -t cd
enable -n echo; echo outside
source /dev/null; echo $?
select x in a b; do echo $x; done
'''

# /usr/bin/python3 -c LINE
PYTHON = r'''
print("hello")
print("no newline", end="")
import sys; print("err", file=sys.stderr); print("out")
import sys; sys.exit(3)
import sys; sys.exit("a sentence")
import sys; sys.exit(256 + 5)
import os; os._exit(7)
import os; print("lost in a buffer", end=""); os._exit(0)
import os; os.write(1, b"\x00\xff\xfe")
import os; os.abort()
import os, signal; os.kill(os.getpid(), signal.SIGKILL)
import os, signal; os.kill(os.getpid(), signal.SIGTERM)
import os, signal; os.kill(os.getpid(), signal.SIGINT)
import os, signal; os.kill(os.getpid(), 34)
import os, signal; os.kill(os.getpid(), 64)
raise KeyboardInterrupt
raise ValueError("a value")
1/0
import nosuchmodule
print("grün €")
import sys; print(sys.stdin.read())
import sys; print(len(sys.stdin.buffer.read()))
input()
import sys; print(sys.stdin.isatty(), sys.stdout.isatty(), sys.stderr.isatty())
import sys; print(sys.stdout.encoding, sys.getfilesystemencoding())
import os; print(sorted(os.listdir("/proc/self/fd")))
import os; print(os.getcwd() == os.path.realpath("."))
import os; print(os.path.samestat(os.stat("."), os.stat(os.getcwd())))
import os; print(os.getuid() == os.geteuid(), os.getgid() == os.getegid())
import os; print(os.getsid(0) != 0)
import os; print(os.umask(0))
import os; print(os.nice(0), os.getpriority(os.PRIO_PGRP, 0))
import os; print(os.sched_getscheduler(0), sorted(os.sched_getaffinity(0)))
import signal; print([int(s) for s in signal.valid_signals() if signal.getsignal(s) == signal.SIG_IGN])
import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, []))
import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
import signal; print(signal.getsignal(signal.SIGPIPE))
import signal, time; signal.setitimer(signal.ITIMER_REAL, 0.05); time.sleep(5)
import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE))
import resource; print(resource.getrlimit(resource.RLIMIT_STACK))
import resource; print(resource.getrlimit(resource.RLIMIT_CORE))
import resource; print(resource.getrlimit(resource.RLIMIT_MEMLOCK))
import resource; print(resource.getrlimit(resource.RLIMIT_NICE), resource.getrlimit(resource.RLIMIT_RTPRIO))
import resource; print(resource.getrlimit(resource.RLIMIT_AS), resource.getrlimit(resource.RLIMIT_FSIZE))
import subprocess; print(subprocess.run(["sh", "-c", "echo child; exit 5"]).returncode)
import subprocess; print(subprocess.run(["sh", "-c", "kill -9 $$"]).returncode)
import subprocess; print(subprocess.check_output(["cat"]).decode())
import subprocess; subprocess.check_call(["false"])
import subprocess; p = subprocess.Popen(["sleep", "10"]); p.terminate(); print(p.wait())
import multiprocessing as m; p = m.Pool(2); print(p.map(abs, [-1, -2])); p.close(); p.join()
import multiprocessing as m; c = m.get_context("spawn"); p = c.Process(target=print, args=("spawned",)); p.start(); p.join(); print(p.exitcode)
import threading; t = threading.Thread(target=print, args=("thread",)); t.start(); t.join()
import concurrent.futures as f; print(list(f.ThreadPoolExecutor(4).map(str, range(5))))
import asyncio; asyncio.run(asyncio.sleep(0.01)); print("slept")
import os; pid = os.fork(); print("child" if pid == 0 else "parent %d" % os.waitpid(pid, 0)[1], flush=True)
import os; os.fork() or os._exit(9); print(os.wait()[1])
import os; print(os.getpgrp() == os.getpid())
import os; print(os.getsid(0) == os.getpid())
import os; r, w = os.pipe(); os.close(r); os.write(w, b"x")
import tempfile; print(tempfile.gettempdir())
import tempfile, os; f = tempfile.NamedTemporaryFile(); print(os.stat(f.name).st_mode & 0o777)
import mmap; m = mmap.mmap(-1, 4096); m[:2] = b"ok"; print(m[:2])
import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[0])
import socket; a, b = socket.socketpair(); a.send(b"x"); print(b.recv(1))
import ctypes; ctypes.string_at(0)
import ctypes; print(ctypes.CDLL(None).prctl(1, ctypes.byref(ctypes.c_int()), 0, 0, 0))
import faulthandler; faulthandler._sigsegv()
import time; print(time.tzname)
import locale; print(locale.setlocale(locale.LC_ALL, ""))
import getpass; print(getpass.getuser())
import pwd, os; print(pwd.getpwuid(os.getuid()).pw_dir == os.environ["HOME"])
import os; print({k: v for k, v in os.environ.items() if k.startswith("MY_")})
import sys; [print(i) for i in range(30000)]
import sys; sys.stdout.write("x" * 1000000)
import sys; sys.stdout.close(); sys.exit(4)
import os; os.close(1); os.close(2); os._exit(5)
import os; os.ftruncate(1, 0); print("after")
import os; os.lseek(1, 0, 0); print("at the start")
import os; print(os.isatty(0), os.ttyname(0))
import os; print(os.get_terminal_size())
import sys; print(sys.flags.unbuffered)
import sys, time; print("at once"); time.sleep(0.05); print("later")
import gc, weakref; print(gc.isenabled())
import atexit; atexit.register(print, "at exit"); print("body")
import atexit, os, signal; atexit.register(print, "never"); os.kill(os.getpid(), signal.SIGTERM)
'''

# perl -e LINE
PERL = r'''
print "hello\n"
$| = 1; print "out\n"; print STDERR "err\n"
exit 3
die "a reason\n"
kill TERM => $$; sleep 5
kill KILL => $$
print -t STDIN ? "terminal" : "none", "\n"
print scalar(<STDIN>) // "end of file", "\n"
open(my $f, ">", "f") or die; print $f "x" x 10000; close $f; print -s "f", "\n"
my $pid = fork; if (!$pid) { exit 4 } waitpid $pid, 0; print $? >> 8, "\n"
system "exit 5"; print $? >> 8, "\n"
exec "sh", "-c", "exit 6"
$SIG{ALRM} = sub { print "alarm\n"; exit 7 }; alarm 1; sleep 10
print "$0\n"
syntax error here (
'''

# Words, without a shell: one program a line, words separated by blanks; {} stands for the directory.
WORDS = r'''
/bin/true
/bin/false
true
echo one two
echo -- -n
printf %s\n a
cat /nosuch
cat -
sleep 0
env -i A=1 env
sh -c exit
bash -c exit
python3 -V
python3 /nosuch.py
perl -v
sh nosuchscript
sh -ec false
sh -xc true
test
[ a = a ]
[ a = b ]
timeout 0.1 cat
seq 3
expr 0
'''

# What must differ, and why. A row that no longer differs is a failure as well.
IGNORED = 'nohup ignores SIGHUP; a job has it as after a login'
DIFFERENT = {
    'sh: kill -HUP $$; echo survived': IGNORED,
    "sh: grep -E '^(SigBlk|SigIgn|SigCgt)' /proc/self/status": IGNORED,
    'python3: import signal; print([int(s) for s in signal.valid_signals() if signal.getsignal(s) == signal.SIG_IGN])': IGNORED,
}
