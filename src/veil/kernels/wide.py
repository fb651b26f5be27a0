"""Sums of products in integers of 128 and 256 bits, which numba itself does not have.

A sum stands in an array as two or four words of 64 bits, the lowest first, in two's complement: adding is exact, and no
order shows.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

__all__ = [
    "LARGE_WORDS",
    "SMALL_WORDS",
    "add_large",
    "add_large_32",
    "add_large_64",
    "add_shifted",
    "add_small",
    "high_product",
]

SMALL_WORDS, LARGE_WORDS = 2, 4


def _adder(words: int, shift: int) -> Any:
    """A function (sums, i, x, y) for compiled loops: adds x * y * 2^shift to the i-th sum of a flat array of words."""

    @intrinsic
    def add(typing: Any, sums: Any, i: Any, x: Any, y: Any) -> Any:
        def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            from llvmlite import ir

            array, place, one, other = given
            wide, twice = ir.IntType(64 * words), ir.IntType(128)
            data = context.make_array(signature.args[0])(context, builder, array).data
            at = builder.gep(data, [builder.mul(place, ir.Constant(place.type, words))])
            held = builder.bitcast(at, wide.as_pointer())
            product = builder.mul(builder.sext(one, twice), builder.sext(other, twice))
            if words > SMALL_WORDS:
                product = builder.shl(builder.sext(product, wide), ir.Constant(wide, shift))
            builder.store(builder.add(builder.load(held, align=8), product), held, align=8)
            return cgutils.get_null_value(context.get_value_type(types.none))

        return types.none(sums, types.int64, types.int64, types.int64), made

    return add


@intrinsic
def _add_large(typing: Any, sums: Any, i: Any, x: Any, y: Any) -> Any:
    """For compiled loops: adds x * y to the i-th sum of a flat array, and looks at its upper half only where it must.

    That is where the carry is not the one that the product's sign undoes.
    """

    def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        from llvmlite import ir

        array, place, one, other = given
        twice = ir.IntType(128)
        data = context.make_array(signature.args[0])(context, builder, array).data
        at = builder.gep(data, [builder.mul(place, ir.Constant(place.type, LARGE_WORDS))])
        low = builder.bitcast(at, twice.as_pointer())
        product = builder.mul(builder.sext(one, twice), builder.sext(other, twice))
        added = builder.add(builder.load(low, align=8), product)
        builder.store(added, low, align=8)
        carried = builder.icmp_unsigned("<", added, product)
        negative = builder.icmp_signed("<", product, ir.Constant(twice, 0))
        with builder.if_then(builder.xor(carried, negative), likely=False):
            high = builder.gep(low, [ir.Constant(ir.IntType(64), 1)])
            change = builder.sub(builder.zext(carried, twice), builder.zext(negative, twice))
            builder.store(builder.add(builder.load(high, align=8), change), high, align=8)
        return cgutils.get_null_value(context.get_value_type(types.none))

    return types.none(sums, types.int64, types.int64, types.int64), made


@intrinsic
def _add_shifted(typing: Any, sums: Any, i: Any, x: Any, shift: Any) -> Any:
    """For compiled loops: adds x * 2^shift to the i-th large sum of a flat array; the shift is below 256."""

    def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        from llvmlite import ir

        array, place, number, bits = given
        wide = ir.IntType(64 * LARGE_WORDS)
        data = context.make_array(signature.args[0])(context, builder, array).data
        at = builder.gep(data, [builder.mul(place, ir.Constant(place.type, LARGE_WORDS))])
        held = builder.bitcast(at, wide.as_pointer())
        shifted = builder.shl(builder.sext(number, wide), builder.zext(bits, wide))
        builder.store(builder.add(builder.load(held, align=8), shifted), held, align=8)
        return cgutils.get_null_value(context.get_value_type(types.none))

    return types.none(sums, types.int64, types.int64, types.int64), made


@intrinsic
def _high_product(typing: Any, x: Any, y: Any) -> Any:
    """The upper 64 of the 128 bits of a product of two signed integers, for compiled loops."""

    def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        from llvmlite import ir

        twice = ir.IntType(128)
        product = builder.mul(*(builder.sext(factor, twice) for factor in given))
        return builder.trunc(builder.ashr(product, ir.Constant(twice, 64)), ir.IntType(64))

    return types.int64(types.int64, types.int64), made


add_small: Any = _adder(SMALL_WORDS, 0)
add_large: Any = _add_large
add_large_32: Any = _adder(LARGE_WORDS, 32)
add_large_64: Any = _adder(LARGE_WORDS, 64)
add_shifted: Any = _add_shifted
high_product: Any = _high_product
