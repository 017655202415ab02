"""Layouts of records and structs, and the symbols and versions of the libraries."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from mrc_testbed.hosts.verbs import messages
from mrc_testbed.hosts.verbs.messages import FIELDS, HELLO_FIELDS, Given, PostFlag, RecordKind
from mrc_testbed.testbed.errors import MissingCapability
from mrc_testbed.testbed.fabric import verbs_library as library

from .programs import FLAGS

# Of 64-bit programs: name, size, and offsets of fields.
STRUCTS = {
    "ibv_device": (664, dict(node_type=16, transport_type=20, name=24, dev_name=88, dev_path=152, ibdev_path=408)),
    "ibv_context": (328, dict(device=0, ops=8, cmd_fd=264, async_fd=268, num_comp_vectors=272, mutex=280)),
    "ibv_context_ops": (256, dict(poll_cq=88, req_notify_cq=96, post_send=200, post_recv=208, post_srq_recv=160)),
    "ibv_pd": (16, dict(context=0, handle=8)),
    "ibv_mr": (48, dict(context=0, pd=8, addr=16, length=24, handle=32, lkey=36, rkey=40)),
    "ibv_cq": (128, dict(channel=8, cq_context=16, cqe=28, mutex=32, cond=72, comp_events_completed=120)),
    "ibv_qp": (160, dict(qp_context=8, pd=16, send_cq=24, qp_num=52, state=56, qp_type=60, events_completed=152)),
    "ibv_qp_attr": (144, dict(path_mtu=8, rq_psn=20, dest_qp_num=28, cap=36, ah_attr=56, pkey_index=120, port_num=129)),
    "ibv_qp_init_attr": (64, dict(srq=24, cap=32, qp_type=52, sq_sig_all=56)),
    "ibv_ah_attr": (32, dict(grh=0, dlid=24, sl=26, is_global=29, port_num=30)),
    "ibv_global_route": (24, dict(dgid=0, flow_label=16, sgid_index=20, hop_limit=21, traffic_class=22)),
    "ibv_send_wr": (128, dict(next=8, sg_list=16, num_sge=24, opcode=28, send_flags=32, imm_data=36, wr=40)),
    "ibv_recv_wr": (32, dict(wr_id=0, next=8, sg_list=16, num_sge=24)),
    "ibv_sge": (16, dict(addr=0, length=8, lkey=12)),
    "ibv_wc": (48, dict(status=8, opcode=12, vendor_err=16, byte_len=20, imm_data=24, qp_num=28, wc_flags=36, slid=42)),
    "ibv_port_attr": (52, dict(active_mtu=8, gid_tbl_len=12, max_msg_sz=20, active_width=43, link_layer=46, flags=47)),
    "ibv_async_event": (16, dict(element=0, event_type=8)),
    "ibv_device_attr": (232, dict(sys_image_guid=72, max_qp=108, max_cqe=132, phys_port_cnt=227)),
    "ibv_comp_channel": (16, dict(context=0, fd=8, refcnt=12)),
    "ibv_gid_entry": (32, dict(gid_index=16, port_num=20, gid_type=24, ndev_ifindex=28)),
    "mrc_device_attr": (20, dict(wimm_attr=4, mpr_attr=8, qp_attr=12, cap=16)),
    "mrc_context_attr": (8, dict(mrc_vendor_api_version_used=4)),
    "mrc_qp_hint_init_attr": (140, dict(attr=0)),
    "mrc_qp_hint_attr": (140, dict(num_send_peers=4, num_remote_recv_peers=8, vendor_cfg=12)),
    "mrc_qp_init_attr": (72, dict(send_cq=8, recv_cq=16, cap=24, sq_sig_all=44, pd=48, protocol_version=64)),
    "mrc_qp_attr": (176, dict(wimm=2, timeout=6, profile=8, retry=24, qp_hint=32, cap=40, vendor_cfg=44)),
    "mrc_async_event": (16, dict(element=0, event_type=8)),
    "mt_verbs_context": (648, dict(query_port=0, create_cq_ex=200, create_qp_ex=264, sz=312, context=320)),
}
VERSIONS = {
    "IBVERBS_1.0": "create_comp_channel destroy_comp_channel",
    "IBVERBS_1.1": "get_device_list free_device_list get_device_name open_device close_device alloc_pd dealloc_pd "
    "dereg_mr query_gid reg_mr wc_status_str fork_init query_device get_async_event ack_async_event event_type_str "
    "query_port create_cq destroy_cq create_qp modify_qp query_qp destroy_qp get_cq_event ack_cq_events create_ah "
    "create_srq get_device_guid query_pkey node_type_str port_state_str",
    "IBVERBS_1.6": "qp_to_qp_ex",
    "IBVERBS_1.8": "reg_mr_iova2",
    "IBVERBS_1.10": "query_ece set_ece",
    "IBVERBS_1.12": "reg_dmabuf_mr",
}
MRC = (
    "query_version query_device query_device_ex create_context destroy_context create_comp_channel "
    "get_comp_channel_fd destroy_comp_channel create_cq poll_cq destroy_cq create_qp_hint destroy_qp_hint "
    "query_qp_hint modify_qp_hint create_qp destroy_qp query_qp modify_qp get_qpn post_recv post_send get_async_event "
    "ack_async_event req_notify_cq get_cq_event ack_cq_events"
)
LIBMLX5 = {"mlx5dv_is_supported", "mlx5dv_get_data_direct_sysfs_path", "mlx5dv_reg_dmabuf_mr"}


@pytest.fixture(scope="module")
def folder() -> Path:
    try:
        return library.libraries()
    except MissingCapability as missing:
        pytest.skip(str(missing))


def printed(tmp_path: Path, expressions: list[str]) -> list[int]:
    """The values of C expressions over the library's headers."""
    source = tmp_path / "values.c"
    lines = "".join(f'printf("%lu\\n", (unsigned long)({each}));\n' for each in expressions)
    source.write_text(f'#include <stdio.h>\n#include "internal.h"\nint main(void) {{\n{lines}return 0;\n}}\n')
    try:
        command = [library.compiler(), *FLAGS, str(source), "-o", str(tmp_path / "values")]
    except MissingCapability as missing:
        pytest.skip(str(missing))
    subprocess.run(command, check=True)
    return [int(line) for line in subprocess.check_output([tmp_path / "values"], text=True).split()]


def offsets(fields: str) -> dict[str, tuple[int, int]]:
    at, found = 4, {"kind": (0, 4)}
    for field in fields.split():
        name, code = field.split(":")
        size = struct.calcsize("<" + code)
        found[name] = (at, size)
        at += size
    return found


@pytest.mark.parametrize("name", [*(kind.name for kind in FIELDS), "HELLO_REPLY"])
def test_records_are_the_same_in_c_and_python(name: str, tmp_path: Path) -> None:
    wanted = offsets(HELLO_FIELDS if name == "HELLO_REPLY" else FIELDS[RecordKind[name]])
    record = f"struct mt_{name.lower()}"
    expressions = [f"sizeof({record})"]
    for field in wanted:
        expressions += [f"offsetof({record}, {field})", f"sizeof((({record} *)0)->{field})"]
    size, *values = printed(tmp_path, expressions)
    assert dict(zip(wanted, zip(values[::2], values[1::2], strict=True), strict=True)) == wanted
    assert size == max(at + length for at, length in wanted.values())


def test_constants_are_the_same_in_c_and_python(tmp_path: Path) -> None:
    wanted = {f"MT_{kind.name}": int(kind) for kind in RecordKind}
    wanted |= {f"MT_GIVEN_{each.name}": int(each) for each in Given}
    wanted |= {f"MT_POST_{each.name}": int(each) for each in PostFlag}
    for name in ("VERSION", "RECORD_BYTES", "MOST_POSTS", "MOST_NEWS", "INLINE_BYTES", "GID_INDEX"):
        wanted[f"MT_{name}"] = getattr(messages, name)
    assert dict(zip(wanted, printed(tmp_path, list(wanted)), strict=True)) == wanted


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="sizes of locks differ")
def test_structs_have_the_layout_that_programs_know(tmp_path: Path) -> None:
    wanted = {}
    for name, (size, fields) in STRUCTS.items():
        wanted[f"sizeof(struct {name})"] = size
        wanted |= {f"offsetof(struct {name}, {field})": at for field, at in fields.items()}
    assert dict(zip(wanted, printed(tmp_path, list(wanted)), strict=True)) == wanted


def symbols(file: Path) -> dict[str, str]:
    """Each exported function, and its version."""
    if shutil.which("nm") is None:
        pytest.skip("nm is missing")
    text = subprocess.check_output(["nm", "-D", "--defined-only", str(file)], text=True)
    found = re.findall(r"^\w+ [TW] (\w+)(?:@@(\S+))?$", text, re.MULTILINE)
    return dict(found)


@pytest.mark.parametrize("name", [library.VERBS, library.PRELOAD])
def test_functions_of_libibverbs_have_their_versions(name: str, folder: Path) -> None:
    found = symbols(folder / name)
    for version, functions in VERSIONS.items():
        for function in functions.split():
            assert found.get(f"ibv_{function}") == version, function
    assert found["_ibv_query_gid_ex"] == found["_ibv_query_gid_table"] == "IBVERBS_1.11"
    assert {function: found.get(function) for function in LIBMLX5} == dict.fromkeys(LIBMLX5, "")


@pytest.mark.parametrize("name", [library.MRC, library.PRELOAD, *library.LINKS])
def test_functions_of_the_mrc_api_are_there_without_versions(name: str, folder: Path) -> None:
    found = symbols(folder / name)
    assert {f"mrc_{function}" for function in MRC.split()} <= {each for each, version in found.items() if not version}


def test_nothing_of_ours_is_exported_but_between_the_two_libraries(folder: Path) -> None:
    others = re.compile(r"_?ibv_|mrc_|mlx5dv_")
    assert [each for each in symbols(folder / library.PRELOAD) if not others.match(each)] == []
    assert [each for each in symbols(folder / library.MRC) if not each.startswith("mrc_")] == []
    ours = {version for each, version in symbols(folder / library.VERBS).items() if not others.match(each)}
    assert ours == {"MRC_TESTBED_PRIVATE"}


def test_programs_of_distributions_find_the_private_version(folder: Path) -> None:
    assert symbols(folder / library.VERBS)["ibv_query_gid_type"] == "IBVERBS_PRIVATE_34"
    assert symbols(folder / library.PRELOAD)["ibv_query_gid_type"] == ""


def test_names_that_programs_ask_the_loader_for(folder: Path) -> None:
    if shutil.which("readelf") is None:
        pytest.skip("readelf is missing")
    for name in (library.VERBS, library.MRC, library.PRELOAD):
        dynamic = subprocess.check_output(["readelf", "-d", str(folder / name)], text=True)
        assert f"soname: [{name}]" in dynamic
        assert ("[libibverbs.so.1]" in dynamic.split("SONAME")[0]) == (name == library.MRC)
        assert ("[$ORIGIN]" in dynamic) == (name == library.MRC)
        assert "NODELETE" in dynamic


def test_the_headers_serve_a_program_in_c_plus_plus(tmp_path: Path) -> None:
    compiler = shutil.which("c++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    source = tmp_path / "program.cpp"
    source.write_text('#include "mrc_testbed.h"\nint main() { return sizeof(mrc_qp_attr) != 176; }\n')
    command = [compiler, "-Wall", "-Wextra", "-Werror", f"-I{library.SOURCES}", str(source), "-o", str(tmp_path / "p")]
    subprocess.run(command, check=True)
    subprocess.run([tmp_path / "p"], check=True)
