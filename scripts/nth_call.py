"""Kills a command at its n-th system call, those of the processes that it starts counted too. For kill-soak.py."""
import ctypes
import os
import signal
import subprocess

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
LIBC.ptrace.restype = ctypes.c_long
TRACEME, CONT, DETACH, SYSCALL, SETOPTIONS, GETEVENTMSG = 0, 7, 17, 24, 0x4200, 0x4201
# PTRACE_O_TRACESYSGOOD, _TRACEFORK, _TRACEVFORK, _TRACECLONE.
OPTIONS = 0x1 | 0x2 | 0x4 | 0x8
ALL_CHILDREN = 0x40000000
SYSCALL_STOP = signal.SIGTRAP | 0x80


def ptrace(request, pid, data=0):
    return LIBC.ptrace(request, pid, None, data)


def process_of(thread):
    """The process of a thread, or None if it is gone."""
    try:
        with open(f"/proc/{thread}/status", encoding="ascii", errors="replace") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("Tgid"))
    except (OSError, StopIteration):
        return None


class Traced:
    """A command and whatever it starts, stopped at each system call until the n-th."""

    def __init__(self, argv, quiet):
        self.main = subprocess.Popen(argv, start_new_session=True, preexec_fn=lambda: ptrace(TRACEME, 0), **quiet)
        self.calls = 0
        # Threads, and whether each is within a call; None for one that is yet to stop for the first time.
        self.threads = {}
        _, status = os.waitpid(self.main.pid, ALL_CHILDREN)
        if not os.WIFSTOPPED(status):
            raise AssertionError(f"{argv} ended before it began")
        ptrace(SETOPTIONS, self.main.pid, OPTIONS)
        self.threads[self.main.pid] = False
        ptrace(SYSCALL, self.main.pid)

    def stops(self):
        """Threads that stop, each with its signal, or 0 for a fork or an exec; "began" for a new one, "ended" for the main process."""
        while self.threads:
            try:
                thread, status = os.waitpid(-1, ALL_CHILDREN)
            except ChildProcessError:
                self.threads.clear()
                return
            if not os.WIFSTOPPED(status):
                self.threads.pop(thread, None)
                if thread == self.main.pid:
                    self.main.returncode = os.waitstatus_to_exitcode(status)
                    yield thread, "ended"
                continue
            number = os.WSTOPSIG(status)
            if status >> 16:
                child = ctypes.c_ulong()
                LIBC.ptrace(GETEVENTMSG, thread, None, ctypes.byref(child))
                self.threads.setdefault(child.value, None)
                number = 0
            elif number == signal.SIGSTOP and self.threads.get(thread) is None:
                self.threads[thread] = False
                yield thread, "began"
                continue
            elif number == signal.SIGTRAP:
                number = 0
            yield thread, number

    def run(self, at, whom):
        """Until the call of this number, at which the caller ("call") or everything ("call-all") is killed, or to the end of the
        main process; the others go on untraced. How many calls there were."""
        for thread, number in self.stops():
            if number == "ended":
                break
            if number == SYSCALL_STOP:
                self.threads[thread] = not self.threads.get(thread)
                self.calls += self.threads[thread]
                if self.threads[thread] and self.calls == at:
                    self.kill(thread, whom)
                    ptrace(CONT, thread)
                    break
            passed = 0 if number in (SYSCALL_STOP, "began") else number
            ptrace(SYSCALL, thread, passed)
        self.release()
        return self.calls

    def kill(self, caller, whom):
        victims = {process_of(thread) for thread in (self.threads if whom == "call-all" else [caller])}
        for process in victims - {None}:
            os.kill(process, signal.SIGKILL)

    def release(self):
        """Lets go of whatever still runs: each is stopped once more, since only what is stopped can be let go."""
        for thread, within in self.threads.items():
            process = process_of(thread)
            if within is not None and process is not None:
                LIBC.tgkill(process, thread, signal.SIGSTOP)
        for thread, number in self.stops():
            if number in ("began", signal.SIGSTOP):
                ptrace(DETACH, thread)
                self.threads.pop(thread, None)
            elif number != "ended":
                ptrace(CONT, thread, 0 if number == SYSCALL_STOP else number)
