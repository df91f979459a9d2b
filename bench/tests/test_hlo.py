"""What hlo.py reads of a program, on one small enough to count by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpu_compile import BATCHES, GPUS, PAGE, PRECISIONS, PROGRAMS, TABLE, Row, grown, problems, put, read, table, write
from hlo import GPU, Module, Product, Shape

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """HloModule main, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias), {1}: (2, {}, may-alias) }, entry

%halves (p.0: f32[16], p.1: f32[4]) -> f32[4] {
  %p.0 = f32[16]{0} parameter(0)
  %p.1 = f32[4]{0} parameter(1)
  %b = f32[4,4]{1,0} bitcast(%p.0)
  %s = f32[1,4]{1,0} slice(%b), slice={[2:3], [0:4]}
  %r = f32[4]{0} bitcast(%s)
  ROOT %sum = f32[4]{0} add(%r, %p.1)
}

%gemm (p.2: bf16[60,80], p.3: bf16[80,10]) -> bf16[60,10] {
  %p.2 = bf16[60,80]{1,0} parameter(0)
  %p.3 = bf16[80,10]{1,0} parameter(1)
  ROOT %dot.1 = bf16[60,10]{1,0} dot(%p.2, %p.3), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

ENTRY %main (a: f32[16], x: bf16[2,5,5,3], k: bf16[7,3,3,3]) -> (f32[4], bf16[60,10], f32[2,4]) {
  %a = f32[16]{0} parameter(0)
  %x = bf16[2,5,5,3]{3,2,1,0} parameter(1)
  %k = bf16[7,3,3,3]{3,2,1,0} parameter(2)
  %f = f32[4]{0} fusion(%a, %c), kind=kLoop, calls=%halves
  %c = f32[4]{0} constant({1, 2, 3, 4})
  %cudnn-conv.1 = (bf16[2,5,5,7]{3,2,1,0}, u8[0]{0}) custom-call(%x, %k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_o01i->b01f, custom_call_target="__cudnn$convForward"
  %m = bf16[60,80]{1,0} constant({...})
  %n = bf16[80,10]{1,0} constant({...})
  %d = bf16[60,10]{1,0} fusion(%m, %n), kind=kCustom, calls=%gemm
  %u = f32[2,3]{1,0} constant({...})
  %v = f32[4,3]{1,0} constant({...})
  %e = (f32[2,4]{1,0}, s8[32]{0}) custom-call(%u, %v), custom_call_target="__cublas$lt$matmul", backend_config={"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["1"]},"precision_config":{"operand_precision":["HIGHEST","HIGHEST"]}}}
  ROOT %t = (f32[4]{0}, bf16[60,10]{1,0}, f32[2,4]{1,0}) tuple(%f, %d, %e)
}
"""  # noqa: E501
"""A fusion that reads a quarter of its first operand, a convolution, a product in a fusion and one by cuBLAS."""

CONVOLUTION = Product(2 * (2 * 5 * 5 * 7) * (3 * 3 * 3), "bf16", False, "b01f_o01i->b01f")


def test_kernels_traffic_and_products() -> None:
    module = Module(TEXT)
    assert module.aliased == 4 * 16 + 2 * (7 * 3 * 3 * 3)  # a and k
    assert [(k.name, k.kind) for k in module.kernels] == [
        ("f", "kLoop"), ("cudnn-conv.1", "__cudnn$convForward"), ("d", "kCustom"), ("e", "__cublas$lt$matmul")
    ]  # fmt: skip
    assert [k.bytes for k in module.kernels] == [
        4 * (4 + 4 + 4),  # the slice of a, the constant and the sum
        2 * (2 * 5 * 5 * 3 + 7 * 3 * 3 * 3 + 2 * 5 * 5 * 7),
        2 * (60 * 80 + 80 * 10 + 60 * 10),
        4 * (2 * 3 + 4 * 3 + 2 * 4) + 32,  # cuBLAS takes 32 bytes to work in
    ]
    assert [k.products for k in module.kernels] == [
        [], [CONVOLUTION], [Product(2 * 60 * 10 * 80, "bf16", False)], [Product(2 * 2 * 4 * 3, "f32", True)]
    ]  # fmt: skip
    assert Shape("bf16", (2, 3)).bytes == 12


@pytest.mark.parametrize(
    ("target", "operands", "result"),
    [
        ("Forward", ("bf16[2,5,5,3]", "bf16[7,3,3,3]"), "bf16[2,5,5,7]"),
        ("BackwardInput", ("bf16[2,5,5,7]", "bf16[7,3,3,3]"), "bf16[2,5,5,3]"),
        ("BackwardFilter", ("bf16[2,5,5,3]", "bf16[2,5,5,7]"), "bf16[7,3,3,3]"),
    ],
)
def test_a_convolutions_derivatives_are_as_much_work(target: str, operands: tuple[str, str], result: str) -> None:
    x, y = operands
    text = f"""HloModule main
ENTRY %main (x: {x}, y: {y}) -> {result} {{
  %x = {x} parameter(0)
  %y = {y} parameter(1)
  ROOT %c = ({result}, u8[0]) custom-call(%x, %y), dim_labels=b01f_o01i->b01f, \
operand_precision={{highest,highest,default}}, custom_call_target="__cudnn$conv{target}"
}}
"""
    (found,) = Module(text).kernels[0].products
    assert (found.flops, found.exact) == (CONVOLUTION.flops, True)


def test_a_kernel_takes_as_long_as_its_products_or_its_traffic() -> None:
    kernels = Module(TEXT).kernels
    fast = GPU("", 0, 1e3, 0, {"bf16": 1e30, "tf32": 1e30, "f32": 1e30})
    assert fast.seconds(kernels) == pytest.approx(sum(k.bytes for k in kernels) / 1e3)
    slow = GPU("", 0, 1e30, 0, {"bf16": 10, "tf32": 1e30, "f32": 2})
    assert slow.seconds(kernels) == pytest.approx((CONVOLUTION.flops + 96000) / 10 + 48 / 2)


def test_what_is_wrong_with_a_program() -> None:
    module = Module(TEXT)
    assert problems(module, "bfloat16", 442) == []  # the product of float32 is a fraction
    assert problems(module, "float32", 442) == []
    assert problems(module, "tf32", 442) == ["products that may not be rounded"]
    assert problems(Module(TEXT.replace("HIGHEST", "DEFAULT")), "float32", 0) == ["products that may be rounded"]
    assert problems(Module(TEXT.replace("b01f_o01i->b01f", "bf01_oi01->bf01")), "bfloat16", 0) == [
        "convolutions with bf01_oi01->bf01"
    ]
    single = TEXT.replace("bf16[60,80]", "f32[60,80]").replace("bf16[80,10]", "f32[80,10]")
    assert problems(Module(single), "bfloat16", 0) == ["products of float32"]
    assert problems(module, "bfloat16", 482) == ["40 donated bytes are not taken over, copies []"]
    own = TEXT.replace("custom-call(%x, %k), window={size=3x3 pad=1_1x1_1}", "convolution(%x, %k)")
    assert problems(Module(own.replace(', custom_call_target="__cudnn$convForward"', "")), "bfloat16", 0) == [
        "convolutions with no library"
    ]


def test_the_table(tmp_path: Path) -> None:
    rows = read()
    write(rows[::-1], tmp_path / "gpu.csv")
    assert (tmp_path / "gpu.csv").read_text() == TABLE.read_text()
    assert PAGE.read_text() == put(table(rows), PAGE.read_text())
    assert {row.key for row in rows} >= {
        (gpu, "cifar10", str(BATCHES["cifar10"]), precision, program)
        for gpu in GPUS for precision in PRECISIONS for program in PROGRAMS.values()
    }  # fmt: skip
    assert all(0 < row.share <= 1 for row in rows)


def test_growth_is_an_error() -> None:
    row = Row("h100", "ffhq", 32, "tf32", "evaluate", 105, 1, 10.5, 1, 0.5, 1, 105, 1)
    before = Row("h100", "ffhq", 32, "tf32", "evaluate", 100, 1, 10.0, 1, 0.5, 1, 100, 1)
    assert grown(row, {before.key: before}) == []
    assert grown(row, {}) == []
    more = Row("h100", "ffhq", 32, "tf32", "evaluate", 106, 1, 10.0, 1, 0.5, 1, 100, 1)
    assert grown(more, {before.key: before}) == ["kernels: 106, the table says 100"]
