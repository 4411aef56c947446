"""Programs with an embedded guard, each run as a process of its own by a test: `python -m … VERB DATABASE SINK`."""

import asyncio
import atexit
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from twiceshy import Guard, GuardUnavailable, RunSuspended

guard = Guard(sys.argv[2], spool=None)
sink = Path(sys.argv[3])


def apply(number: int) -> None:
    """Change the world."""
    with sink.open("ab", buffering=0) as world:
        world.write(f"{number}\n".encode())


@guard.tool
def note(number: int) -> int:
    """Have an effect, blocking."""
    apply(number)
    return number * 10


@guard.tool
async def note_async(number: int) -> int:
    """Have an effect, awaiting."""
    apply(number)
    return number * 10


@guard.tool(effect="idempotent", lease_seconds=1)
def held(number: int) -> int:
    """Have an effect, then go on when told: another may take over when this one dies."""
    apply(number)
    print("inside", flush=True)
    sys.stdin.readline()
    return number


def leave() -> None:
    """Call in both ways, then end with the guard still open."""
    with guard.run("leave"):
        print(note(1))

    async def call() -> None:
        async with guard.run("leave"):
            print(await note_async(2))

    asyncio.run(call())


def outlive() -> None:
    """Let the main thread end while another goes on calling."""

    def work() -> None:
        threading.main_thread().join()
        with guard.run("outlive"):
            print(note(1))

    threading.Thread(target=work).start()


def outlive_used() -> None:
    """The same with a guard that was used before."""
    with guard.run("outlive"):
        note(2)
    outlive()


def at_exit() -> None:
    """Call while the interpreter is on its way out."""

    def last_words() -> None:
        with guard.run("at-exit"):
            print(note(1))

    atexit.register(last_words)


def interrupted() -> None:
    """Be interrupted inside a tool, and go on."""

    @guard.tool
    def forever() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)

    with guard.run("interrupted"):
        try:
            forever()
        except (KeyboardInterrupt, RunSuspended) as error:
            print(type(error).__name__)
        print(note(1))


def held_at_exit() -> None:
    """End while a daemon thread waits for a lease that another holds."""
    began = threading.Event()
    with guard.run("held"):

        @guard.tool(lease_seconds=600)
        def lasting() -> None:
            began.set()
            time.sleep(600)

    def work() -> None:
        with guard.run("held"):
            lasting()

    for _ in range(2):
        threading.Thread(target=work, daemon=True).start()
    began.wait()
    with guard.run("held"):
        print(note(1))


def fork() -> None:
    """Fork children while threads are calling; each child calls in both ways and ends as any program does."""
    _fork_while_busy(_fork_by_hand)


def fork_by_library() -> None:
    """The same by `multiprocessing`, whose children end without clearing up."""
    _fork_while_busy(_fork_by_multiprocessing)


def fork_while_opening() -> None:
    """Fork several children while another thread's first call opens the database; all make the same calls at once."""
    is_starting = threading.Event()

    def first() -> None:
        is_starting.set()
        with guard.run("first"):
            for number in range(1000, 1050):
                if note(number) != number * 10:
                    raise AssertionError(number)

    thread = threading.Thread(target=first)
    thread.start()
    is_starting.wait()
    time.sleep(float(os.environ["FORK_AFTER"]))  # somewhere in the opening
    children = [_fork_with(_same_calls) for _ in range(4)]
    is_right = _same_calls()
    thread.join()
    print(is_right, [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])


def _same_calls() -> bool:
    with guard.run("same"):
        return [note(number) for number in range(30)] == [number * 10 for number in range(30)]


def _fork_with(work: Callable[[], bool]) -> int:
    child = os.fork()
    if child == 0:
        sys.exit(0 if work() else 9)
    return child


def _fork_while_busy(fork_once: Callable[[], int | None]) -> None:
    is_over = threading.Event()

    def busy(first: int) -> None:
        number = first
        with guard.run(f"busy-{first}"):
            while not is_over.is_set():
                note(number)
                number += 1

    with guard.run("fork"):
        note(1)
    threads = [threading.Thread(target=busy, args=(first,)) for first in (1_000, 1_000_000)]
    for thread in threads:
        thread.start()
    codes = [fork_once() for _ in range(3)]
    is_over.set()
    for thread in threads:
        thread.join()
    with guard.run("fork"):
        print(codes, note(2), note(4))


def _fork_by_hand() -> int:
    child = os.fork()
    if child == 0:
        _in_child()
        sys.exit(0)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _fork_by_multiprocessing() -> int | None:
    child = multiprocessing.get_context("fork").Process(target=_in_child)
    child.start()
    child.join()
    return child.exitcode


def _in_child() -> None:
    descriptors = Path("/proc/self/fd")
    if descriptors.is_dir() and any(str(held).endswith(".db") for held in map(_target, descriptors.iterdir())):
        sys.exit(6)  # SQLite's locks are not inherited: no file of it may be
    with guard.run("fork"):
        if (note(1), note(2)) != (10, 20):
            sys.exit(7)

    async def call() -> int:
        async with guard.run("fork"):
            return await note_async(3)

    if asyncio.run(call()) != 30:
        sys.exit(8)


def _target(descriptor: Path) -> Path:
    try:
        return descriptor.readlink()
    except FileNotFoundError:  # it was the one that listed the folder
        return descriptor


class Leftover:
    """Calls when the interpreter clears up."""

    def __init__(self) -> None:
        self.guard, self.note, self.clock = guard, note, time.monotonic

    def __del__(self) -> None:
        began = self.clock()
        try:
            with self.guard.run("finaliser"):
                self.note(1)
        except GuardUnavailable as error:
            print(type(error).__name__, "the interpreter ends" in str(error), self.clock() - began < 2, flush=True)


def call_from_finaliser() -> None:
    """Leave something behind that calls when the interpreter clears up, after the guard's service has ended."""
    with guard.run("finaliser"):
        print(note(2))
    globals()["_leftover"] = Leftover()  # names like this are the first to be cleared


def take_over() -> None:
    """Call the idempotent tool that waits inside."""
    with guard.run("taken-over"):
        print(held(1), flush=True)


if __name__ == "__main__":
    verbs = (
        leave,
        outlive,
        outlive_used,
        at_exit,
        interrupted,
        held_at_exit,
        fork,
        fork_by_library,
        fork_while_opening,
        call_from_finaliser,
        take_over,
    )
    {verb.__name__: verb for verb in verbs}[sys.argv[1]]()
