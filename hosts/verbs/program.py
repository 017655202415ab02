"""One program at its host's daemon: what it has registered and opened, and what its records ask for."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any, Final, Protocol

from mrc_testbed.hosts.common.errors import QpStateError
from mrc_testbed.hosts.common.events import QpFailure
from mrc_testbed.hosts.common.memory import Domain, MemoryWindow, QpTerms
from mrc_testbed.hosts.verbs import facts
from mrc_testbed.hosts.verbs.facts import HostFacts
from mrc_testbed.hosts.verbs.memory import ProgramMemory, Slice
from mrc_testbed.hosts.verbs.messages import FORMS, Given, PostFlag, RecordKind, To
from mrc_testbed.hosts.verbs.qps import NicQps, ProgramEndpoint, ProgramQp
from mrc_testbed.hosts.verbs.refusal import Malformed, RequestRefused

_LOCAL_WRITE, _REMOTE_WRITE = 1, 2
_PSN_MASK = (1 << 24) - 1
_ADDRESSES: Final = 1 << 64
_NO_TRIM_NACK = 1
"""Bit of `cap` in MODIFY_QP."""
_IMMEDIATE: Final = int(PostFlag.IMMEDIATE)
_RTS: Final = To.RTS
_INLINE: Final = int(PostFlag.INLINE)
_MTUS = (256, 512, 1024, 2048, 4096)


class ProgramHost(Protocol):
    """What programs of one host share."""

    facts: HostFacts
    endpoint: ProgramEndpoint
    qps: NicQps
    by_number: dict[int, tuple[NicProgram, ProgramQp]]

    def port_mask(self) -> int:
        """Bit n - 1: port n can be used."""

    def new_key(self, program: NicProgram) -> int:
        """A key that no region of this host has."""

    def free_key(self, key: int) -> None:
        """It may be given again."""


class NicProgram:
    """`owner`: its name and process, for names of QPs. `memory`: its own. Requests raise `RequestRefused`."""

    def __init__(self, host: ProgramHost, owner: str, memory: ProgramMemory) -> None:
        self._host = host
        self._endpoint = host.endpoint
        self.owner = owner
        self.memory = memory
        self._domains: dict[int, Domain] = {}
        self._regions: dict[int, tuple[Domain, MemoryWindow]] = {}
        self.qps: dict[int, ProgramQp] = {}
        self._serve: dict[RecordKind, Callable[[tuple[Any, ...], int], int]] = {
            RecordKind.REG_MR: self._register,
            RecordKind.DEREG_MR: self._deregister,
            RecordKind.CREATE_QP: self._create,
            RecordKind.DESTROY_QP: self._destroy,
            RecordKind.MODIFY_QP: self._modify,
        }

    def serve(self, kind: RecordKind, record: memoryview, now_ns: int) -> int:
        """Carry out a request; returns the `value` of its REPLY."""
        return self._serve[kind](FORMS[kind].read(record), now_ns)

    def end(self, now_ns: int) -> None:
        """The program has gone: nothing more is sent for it in this turn, and nothing is placed."""
        for key, (domain, _) in self._regions.items():
            domain.windows.pop(key, None)
            self._host.free_key(key)
        self._regions.clear()
        for qp in self.qps.values():
            self._close(qp, now_ns)
        self.qps.clear()
        self.memory.close()

    # Regions

    def _register(self, fields: tuple[Any, ...], now_ns: int) -> int:
        pd, _, address, length, access = fields
        if len(self._regions) >= facts.MOST_REGIONS:
            raise RequestRefused(errno.ENOMEM, f"the program has {facts.MOST_REGIONS:,} regions, and may have no more")
        if access & _REMOTE_WRITE and not access & _LOCAL_WRITE:
            raise RequestRefused(errno.EINVAL, "REMOTE_WRITE needs LOCAL_WRITE")
        if not self.memory.holds(address, length):
            raise RequestRefused(errno.EFAULT, f"{length:,} bytes from 0x{address:x} on are not memory of the program")
        key = self._host.new_key(self)
        domain, window = self._domain(pd), MemoryWindow(address, length, self.memory)
        self._regions[key] = domain, window
        if access & _REMOTE_WRITE:
            domain.windows[key] = window
        return key

    def _domain(self, pd: int) -> Domain:
        return self._domains.setdefault(pd, Domain())

    def _deregister(self, fields: tuple[Any, ...], now_ns: int) -> int:
        key, _ = fields
        found = self._regions.pop(key, None)
        if found is None:
            raise RequestRefused(errno.EINVAL, f"no region of the program has the key 0x{key:x}")
        found[0].windows.pop(key, None)
        self._host.free_key(key)
        return 0

    # QPs

    def _create(self, fields: tuple[Any, ...], now_ns: int) -> int:
        pd, _, max_send, max_receive = fields
        if len(self._host.by_number) >= facts.MOST_QPS:
            raise RequestRefused(errno.ENOMEM, f"the host has {facts.MOST_QPS:,} QPs, and may have no more")
        if max(max_send, max_receive) > facts.MOST_WORK:
            raise RequestRefused(errno.EINVAL, f"a QP may have {facts.MOST_WORK:,} writes and receives outstanding")
        qp = self._host.qps.create(self._domain(pd), self.owner)
        self.qps[qp.qpn] = qp
        self._host.by_number[qp.qpn] = self, qp
        return qp.qpn

    def _destroy(self, fields: tuple[Any, ...], now_ns: int) -> int:
        qp = self._qp(fields[0])
        del self.qps[qp.qpn]
        self._close(qp, now_ns)
        return 0

    def _close(self, qp: ProgramQp, now_ns: int) -> None:
        del self._host.by_number[qp.qpn]
        self._host.qps.close(qp, now_ns)

    def _modify(self, fields: tuple[Any, ...], now_ns: int) -> int:
        qpn, _, state, dest_qpn, rq_psn, sq_psn, path_mtu, given, dgid, *attributes = fields
        qp = self._qp(qpn)
        try:
            to = To(state)
        except ValueError:
            raise RequestRefused(errno.EINVAL, f"a QP has no state {state}") from None
        _take_attributes(qp, given, attributes)
        if to is To.RTR:
            self._connect(qp, dest_qpn, rq_psn, path_mtu, dgid)
        elif to is To.RTS:
            self._host.qps.enable(qp, sq_psn & _PSN_MASK, _terms(qp, 0, 0, 0))
        else:
            self._host.qps.move(qp, to, now_ns)
        return 0

    def _connect(self, qp: ProgramQp, dest_qpn: int, rq_psn: int, path_mtu: int, dgid: bytes) -> None:
        told = self._host.facts
        peer = told.gids.get(dgid)
        if peer is None:
            raise RequestRefused(errno.EINVAL, f"no host of this fabric has the GID {dgid.hex(':', 2)}")
        if peer == told.number:
            raise RequestRefused(errno.EINVAL, f"a QP of {told.name} cannot lead to {told.name} itself: no path does")
        if path_mtu not in _MTUS:
            raise RequestRefused(
                errno.EINVAL, f"a path MTU of {path_mtu} bytes is none of {', '.join(map(str, _MTUS))}"
            )
        if dest_qpn > _PSN_MASK:
            raise RequestRefused(errno.EINVAL, f"{dest_qpn} is no QP number: they have 24 bits")
        self._host.qps.connect(qp, peer, _terms(qp, dest_qpn, rq_psn & _PSN_MASK, path_mtu))

    def _qp(self, qpn: int) -> ProgramQp:
        qp = self.qps.get(qpn)
        if qp is None:
            raise RequestRefused(errno.EINVAL, f"the program has no QP {qpn}")
        return qp

    # Posting, which is not answered

    def post_send(self, fields: tuple[Any, ...]) -> None:
        """Queue the write of a POST_SEND, its kind first. One that cannot be puts the QP in ERROR."""
        _, qpn, address, remote_address, length, lkey, rkey, immediate, flags = fields
        qp = self.qps.get(qpn)
        if qp is None:
            return  # destroyed while the record was under way
        if length > facts.LONGEST_WRITE or qp.outstanding >= facts.MOST_WORK:
            raise Malformed(f"a write of {length:,} bytes, {qp.outstanding} outstanding")
        if qp.state is not _RTS:
            return  # failed, or reset by another thread, meanwhile: the library flushes or forgets it
        qp.outstanding += 1
        if remote_address + length > _ADDRESSES:
            self._host.qps.fail(qp, QpFailure.REMOTE_ACCESS)
            return
        if length and not flags & _INLINE and not self._may_read(qp, lkey, address, length):
            self._host.qps.fail(qp, QpFailure.LOCAL_PROTECTION)
            return
        data = Slice(self.memory, address, length)
        told = immediate if flags & _IMMEDIATE else None
        try:
            self._endpoint.post_of_program(qpn, data, remote_address, rkey, 0, told)
        except QpStateError:
            return  # in ERROR: the library flushes it

    def _may_read(self, qp: ProgramQp, lkey: int, address: int, length: int) -> bool:
        found = self._regions.get(lkey)
        if found is None or found[0] is not qp.domain:
            return False
        window = found[1]
        return window.address <= address and address + length <= window.address + window.length

    def post_receive(self, record: memoryview) -> None:
        """Let more writes with immediate in."""
        qpn, count = FORMS[RecordKind.POST_RECV].read(record)
        qp = self.qps.get(qpn)
        if qp is None or qp.state in (To.RESET, To.ERROR):
            return  # as in `post_send`
        if qp.receives + count > facts.MOST_WORK:
            raise Malformed(f"{qp.receives + count:,} receives outstanding on a QP")
        self._host.qps.post_receives(qp, count)


def _take_attributes(qp: ProgramQp, given: int, attributes: list[int]) -> None:
    """Remember what MODIFY_QP says from INIT to RTS: a later one overrules."""
    max_wimm, max_wimm_dest, timeout, linear, exp, mpr, mpr_dest, cap = attributes
    said = {
        Given.TIMEOUT: {"timeout": timeout},
        Given.RETRY: {"linear": linear, "exponential": exp},
        Given.MPR: {"mpr": mpr},
        Given.MPR_DEST: {"mpr_dest": mpr_dest},
        Given.MAX_WIMM: {"max_wimm": max_wimm},
        Given.MAX_WIMM_DEST: {"max_wimm_dest": max_wimm_dest},
        Given.CAP: {"cap": cap},
    }
    for bit, values in said.items():
        if given & bit:
            qp.terms |= values


def _terms(qp: ProgramQp, dest_qpn: int, rq_psn: int, mtu: int) -> QpTerms:
    """What this side may have open at the peer is the least of what either end is said to take."""
    said = qp.terms
    mprs = [said[name] for name in ("mpr", "mpr_dest") if said.get(name)]
    wimms = [said[name] for name in ("max_wimm", "max_wimm_dest") if said.get(name)]
    return QpTerms(
        remote_qpn=dest_qpn,
        remote_psn=rq_psn,
        mtu=mtu,
        timeout=said.get("timeout"),
        linear=said.get("linear"),
        exponential=said.get("exponential"),
        mpr=min(mprs, default=None),
        max_wimm=min(wimms, default=None),
        trim_nack=not said.get("cap", 0) & _NO_TRIM_NACK,
    )
