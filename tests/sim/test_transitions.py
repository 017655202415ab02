"""The three state machines: every pair of state and input, and the diagrams drawn from the tables."""

from enum import Enum
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrc_testbed.hosts.common import qpstate
from mrc_testbed.hosts.common.errors import QpStateError
from mrc_testbed.hosts.common.transitions import diagram, step
from mrc_testbed.hosts.mrc import evstate, portstate
from mrc_testbed.hosts.mrc.config import EndpointConfig, QpAttributes
from mrc_testbed.hosts.mrc.context import Context
from mrc_testbed.hosts.mrc.peer import Peer
from mrc_testbed.hosts.mrc.qp import Qp
from tests.sim.diagrams import DOCUMENT, MACHINES, drawn

EV, PORT, QP = evstate.TRANSITIONS, portstate.TRANSITIONS, qpstate.TRANSITIONS


def pairs(states, inputs):
    return given(st.sampled_from(states), st.sampled_from(inputs))


@given(st.data(), st.sampled_from([EV, PORT, QP]))
def test_a_pair_leads_where_the_table_says_or_nowhere(data, table):
    states, inputs = (list(cast(type[Enum], type(one))) for one in next(iter(table)))
    state, event = data.draw(st.sampled_from(states)), data.draw(st.sampled_from(inputs))
    new = step(table, state, event)
    assert new in (*states, None)
    assert (new is None) == ((state, event) not in table)
    assert new is not state, "a table has no row that changes nothing"


@pairs(evstate.EvState, evstate.EvInput)
def test_an_ev_ignores_what_its_table_lacks(state, event):
    assert evstate.next_state(state, event) is EV.get((state, event), state)


@pairs(portstate.PortState, portstate.PortInput)
def test_a_port_ignores_what_its_table_lacks(state, event):
    ports = portstate.PortTable(2)
    ports._states[1] = state
    changed = ports.step(1, event, 7)
    assert changed is ((state, event) in PORT)
    assert ports.state(1) is PORT.get((state, event), state)
    assert ports.state(0) is portstate.PortState.UP


@pairs(qpstate.QpState, qpstate.QpInput)
def test_a_qp_calls_misuse_what_its_table_lacks(state, event):
    config = EndpointConfig(host=0, planes=1, udp_port=1, rtt_ns=1000, port_rate_bps=1000)
    context = Context(config)
    qp = Qp(context, Peer(1, [(0, 0, "token")], context), QpAttributes(16, 0, 4096, 8, 32, 0, 0, 0))
    qp.state = state
    new = QP.get((state, event))
    if new is None:
        with pytest.raises(QpStateError) as refused:
            qp._step(event)
        assert (refused.value.qpn, refused.value.state, refused.value.step) == (16, state.value, event.value)
        assert qp.state is state
    else:
        qp._step(event)
        assert qp.state is new
        assert qp.live is (new is qpstate.QpState.RTS)


def test_inputs_with_the_same_effect_share_an_arrow():
    assert "    GOOD --> ASSUMED_BAD: loss, always skip\n" in diagram(EV, evstate.EvState.GOOD)


def test_the_diagrams_of_the_document_are_up_to_date():
    text = DOCUMENT.read_text()
    assert drawn(text) == text, "a table changed: python -m tests.sim.diagrams"


@pytest.mark.parametrize("name", MACHINES)
def test_a_document_without_a_place_for_a_diagram_is_refused(name):
    with pytest.raises(ValueError, match="0 places"):
        drawn(DOCUMENT.read_text().replace(f"<!-- diagram: {name} -->", ""))
