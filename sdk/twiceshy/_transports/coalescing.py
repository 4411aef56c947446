"""Coalescing: calls that wait while a request is in flight go together as the next one. There is no timer.

A lone call goes at once. What arrives meanwhile waits in order of arrival and shares one batch; whoever's turn it
is sends it, so that no caller serves the others for long. A request that hangs holds nobody up: who has waited
`_STALLED_SECONDS` for it goes without it.
"""

import asyncio
import os
import threading
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

from twiceshy._transports.base import NoReply, Reply, Request, Transport
from twiceshy._transports.batch import LARGEST, MOST, batched, is_for_alone, replies_of, size_of
from twiceshy_contract.wire import PROBLEM_JSON

_STALLED_SECONDS: Final = 0.25
_TOO_LARGE: Final = Reply(status=413, content_type=PROBLEM_JSON, body=b"{}")
_LOST: Final = NoReply(reason="the call that was to send it was interrupted")


class CoalescingTransport:
    """Send through another transport, what may join in batches."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self._own()

    def send(self, request: Request) -> Reply | NoReply:
        """Send a request, alone or with others, and wait for its reply."""
        if not request.joins or request.token is not None:
            return self._inner.send(request)
        if self._process != os.getpid():
            self._own()
        return self._threads.send(request)

    async def send_async(self, request: Request) -> Reply | NoReply:
        """Send a request, alone or with others, and await its reply."""
        if not request.joins or request.token is not None:
            return await self._inner.send_async(request)
        if self._process != os.getpid():
            self._own()
        loop = asyncio.get_running_loop()
        queue = self._loops.get(loop)
        if queue is None:
            queue = self._loops[loop] = _LoopQueue(self._inner)
        return await queue.send(request)

    def close(self) -> None:
        """Let go of all connections."""
        self._inner.close()

    async def close_async(self) -> None:
        """Let go of all connections, those of event loops too."""
        await self._inner.close_async()

    def _own(self) -> None:
        """Begin empty: in a forked child nothing that the parent had in flight is ours."""
        self._process = os.getpid()
        self._threads = _ThreadQueue(self._inner)
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopQueue] = WeakKeyDictionary()


class _Waiting:
    """A request of a thread that waits: for its reply, or for its turn to send."""

    __slots__ = ("is_taken", "reply", "request", "turn")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.reply: Reply | NoReply | None = None
        self.is_taken = False
        self.turn = threading.Event()


class _ThreadQueue:
    """The queue of blocking callers. The first in the queue is woken to send for all."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self._lock = threading.Lock()
        self._queue: deque[_Waiting] = deque()
        self._in_flight = 0

    def send(self, request: Request) -> Reply | NoReply:
        with self._lock:
            waiting = _Waiting(request) if self._in_flight else None
            if waiting is None:
                self._in_flight += 1
            else:
                self._queue.append(waiting)
        if waiting is not None:
            return self._wait(waiting)
        try:
            return self._inner.send(request)
        finally:
            self._pass_on()

    def _wait(self, waiting: _Waiting) -> Reply | NoReply:
        """Wait for the reply, or for the turn to send; who waits too long for a request that hangs takes its turn."""
        try:
            waiting.turn.wait(min(_STALLED_SECONDS, waiting.request.timeout_seconds))
        except BaseException:
            self._give_up(waiting)
            raise
        if waiting.reply is not None:
            return waiting.reply
        with self._lock:
            is_ours = not waiting.is_taken
            batch = self._take(waiting) if is_ours else []
        if not is_ours:
            return self._await_reply(waiting)
        return self._send_all(batch, waiting)

    def _await_reply(self, waiting: _Waiting) -> Reply | NoReply:
        """Wait for a batch that another thread has sent."""
        waiting.turn.wait(waiting.request.timeout_seconds)
        return waiting.reply or NoReply(reason="the batch that it went with was not answered in time")

    def _send_all(self, batch: Sequence[_Waiting], own: _Waiting) -> Reply | NoReply:
        try:
            for one, reply in zip(batch, self._replies([one.request for one in batch]), strict=True):
                one.reply = reply
        finally:
            self._pass_on()
            for one in batch:
                one.reply = one.reply or _LOST
                one.turn.set()
        return own.reply or _LOST

    def _replies(self, requests: Sequence[Request]) -> Sequence[Reply | NoReply]:
        if len(requests) == 1:
            return [self._inner.send(requests[0])]
        replies = replies_of(self._inner.send(batched(requests)), len(requests)) or [_TOO_LARGE] * len(requests)
        return [
            self._inner.send(request) if is_for_alone(reply) else reply
            for request, reply in zip(requests, replies, strict=True)
        ]

    def _pass_on(self) -> None:
        """Wake the next in the queue, who sends for all that wait; where nobody waits, nothing is in flight."""
        with self._lock:
            if self._queue:
                self._queue[0].turn.set()
            else:
                self._in_flight -= 1

    def _take(self, own: _Waiting) -> list[_Waiting]:
        """Take this one and what waits with it, in order of arrival, as much as a batch holds.

        It is one more in flight, but for every turn that was passed to one of these and is now used.
        """
        self._queue.remove(own)
        batch = [own, *_filled(self._queue, size_of(own.request))]
        self._in_flight += 1
        for one in batch:
            one.is_taken = True
            if one.turn.is_set():
                one.turn.clear()
                self._in_flight -= 1
        return batch

    def _give_up(self, waiting: _Waiting) -> None:
        """Leave the queue; who was to send passes the turn on."""
        with self._lock:
            is_queued = not waiting.is_taken
            if is_queued:
                self._queue.remove(waiting)
        if is_queued and waiting.turn.is_set():
            self._pass_on()


def _filled(queue: deque[_Waiting], size: int) -> list[_Waiting]:
    taken: list[_Waiting] = []
    while queue and len(taken) < MOST - 1 and size + size_of(queue[0].request) <= LARGEST:
        size += size_of(queue[0].request)
        taken.append(queue.popleft())
    return taken


class _Queued(NamedTuple):
    """A request of a coroutine that waits, and since when by the loop's clock."""

    request: Request
    reply: "asyncio.Future[Reply | NoReply]"
    since: float


class _LoopQueue:
    """The queue of one event loop's callers. A task sends batches for as long as somebody waits."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self._queue: deque[_Queued] = deque()
        self._in_flight = 0
        self._is_watched = False
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(self, request: Request) -> Reply | NoReply:
        if self._in_flight:
            loop = asyncio.get_running_loop()
            queued = _Queued(request, loop.create_future(), loop.time())
            self._queue.append(queued)
            self._watch(loop, _STALLED_SECONDS)
            return await queued.reply
        self._in_flight += 1
        try:
            return await self._inner.send_async(request)
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        if self._queue:
            task = asyncio.get_running_loop().create_task(self._drain())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._in_flight -= 1

    def _watch(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        """Look after the queue in a while, for as long as somebody waits in it."""
        if not self._is_watched:
            self._is_watched = True
            loop.call_later(seconds, self._look_after, loop)

    def _look_after(self, loop: asyncio.AbstractEventLoop) -> None:
        """Send what waits although something is in flight, where that hangs: the first has waited long enough."""
        self._is_watched = False
        while self._queue and self._queue[0].reply.done():
            self._queue.popleft()
        if not self._queue:
            return
        left = self._queue[0].since + _STALLED_SECONDS - loop.time()
        if left <= 0:
            self._in_flight += 1
            self._pass_on()
        self._watch(loop, left if left > 0 else _STALLED_SECONDS)

    async def _drain(self) -> None:
        """Send batches until nobody waits."""
        while batch := self._take():
            replies: Sequence[Reply | NoReply] = [_LOST] * len(batch)
            try:
                replies = await self._replies([one.request for one in batch])
            finally:
                for one, reply in zip(batch, replies, strict=True):
                    if not one.reply.done():
                        one.reply.set_result(reply)
            await asyncio.sleep(0)  # who was just answered may ask the next, and goes with the others
        self._in_flight -= 1

    def _take(self) -> "list[_Queued]":
        """Take who still waits, in order of arrival, as much as a batch holds."""
        batch: list[_Queued] = []
        size = 0
        while self._queue and len(batch) < MOST:
            first = self._queue[0]
            if batch and size + size_of(first.request) > LARGEST:
                break
            self._queue.popleft()
            if not first.reply.done():
                size += size_of(first.request)
                batch.append(first)
        return batch

    async def _replies(self, requests: Sequence[Request]) -> Sequence[Reply | NoReply]:
        if len(requests) == 1:
            return [await self._inner.send_async(requests[0])]
        reply = await self._inner.send_async(batched(requests))
        replies = replies_of(reply, len(requests)) or [_TOO_LARGE] * len(requests)
        return [
            await self._inner.send_async(request) if is_for_alone(reply) else reply
            for request, reply in zip(requests, replies, strict=True)
        ]
