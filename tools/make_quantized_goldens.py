#!/usr/bin/env python3
"""Makes small linear layers in the quantised formats that checkpoints come in, and what they must decode to.

  python3 tools/make_quantized_goldens.py [--out tests/data/quantized]        # needs numpy alone

One folder a dialect: config.json with its quantization_config, model.safetensors with one or more layers, and
expected.safetensors with LAYER.weight [out, in] in fp32. Codes, scales and zero points are drawn, then packed as the
format's own library packs them; the expected weight is computed from what was drawn and never unpacked.
"""
import argparse
import json
import pathlib
import struct

import numpy as np

TYPES = {"float32": "F32", "float16": "F16", "int32": "I32", "int8": "I8", "uint8": "U8", "int64": "I64"}


class Raw:
    """Bits that numpy has no type for: BF16, F8_E4M3."""

    def __init__(self, type_name, bits):
        self.type_name, self.bits = type_name, bits


def save(path, tensors):
    header, blobs, at = {}, [], 0
    for name, tensor in sorted(tensors.items()):
        array = np.ascontiguousarray(tensor.bits if isinstance(tensor, Raw) else tensor)
        type_name = tensor.type_name if isinstance(tensor, Raw) else TYPES[array.dtype.name]
        shape = tensor.bits.shape if isinstance(tensor, Raw) else tensor.shape
        header[name] = dict(dtype=type_name, shape=list(shape), data_offsets=[at, at + array.nbytes])
        blobs.append(array.tobytes())
        at += array.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def to_bf16(values):
    """Bits, to nearest even."""
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def pack(codes, bits, axis):
    """Codes along an axis as one little-endian bit stream in 32-bit words."""
    codes = np.moveaxis(np.asarray(codes, np.uint64), axis, -1)
    stream = (codes[..., None] >> np.arange(bits, dtype=np.uint64)) & np.uint64(1)
    stream = stream.reshape(*codes.shape[:-1], -1)
    stream = np.pad(stream, [(0, 0)] * (stream.ndim - 1) + [(0, -stream.shape[-1] % 32)])
    words = stream.reshape(*stream.shape[:-1], -1, 32) << np.arange(32, dtype=np.uint64)
    return np.moveaxis(words.sum(-1).astype(np.uint32), -1, axis).view(np.int32)


def scales_of(rng, *shape):
    return (rng.uniform(0.2, 1.0, shape) / 64).astype(np.float16)


def gptq(rng, bits, out, inputs, group, act_order=False, symmetric=False, version=1, g_idx=True):
    groups = -(-inputs // group)
    order = np.arange(inputs) // group
    if act_order:
        order = rng.permutation(order)
    codes = rng.integers(0, 1 << bits, (inputs, out))
    # Version 1 stores one less, modulo the range: every nibble comes up, 0xF (a zero point of 0) too.
    zeros = np.full((groups, out), 1 << (bits - 1)) if symmetric else rng.integers(0, 1 << bits, (groups, out))
    scales = scales_of(rng, groups, out)
    stored = (zeros - (1 if version == 1 else 0)) % (1 << bits)
    tensors = {"qweight": pack(codes, bits, 0), "qzeros": pack(stored, bits, 1), "scales": scales}
    if g_idx:
        tensors["g_idx"] = order.astype(np.int32)
    weight = scales.astype(np.float32)[order] * (codes - zeros[order]).astype(np.float32)
    return tensors, weight.T


def awq(rng, out, inputs, group):
    groups = -(-inputs // group)
    codes, zeros = rng.integers(0, 16, (inputs, out)), rng.integers(0, 16, (groups, out))
    scales = scales_of(rng, groups, out)
    order = np.array([0, 2, 4, 6, 1, 3, 5, 7])  # the output that the i-th four bits of a word hold

    def words(values):
        return pack(values.reshape(len(values), -1, 8)[:, :, order].reshape(len(values), -1), 4, 1)

    at = np.arange(inputs) // group
    weight = scales.astype(np.float32)[at] * (codes - zeros[at]).astype(np.float32)
    return {"qweight": words(codes), "qzeros": words(zeros), "scales": scales}, weight.T


def bitsandbytes_int8(rng, out, inputs):
    codes = rng.integers(-127, 128, (out, inputs)).astype(np.int8)
    largest = rng.uniform(0.1, 2, out).astype(np.float32)
    tensors = {"weight": codes, "SCB": largest, "weight_format": np.array(0, np.uint8)}
    return tensors, codes.astype(np.float32) * (largest / np.float32(127))[:, None]


def bitsandbytes_4bit(rng, out, inputs, nested, kind="nf4"):
    table = np.sort(rng.uniform(-1, 1, 16)).astype(np.float32)
    codes = rng.integers(0, 16, out * inputs)
    blocks = -(-out * inputs // 64)
    state = dict(quant_type=kind, blocksize=64, dtype="bfloat16", shape=[out, inputs])
    tensors = {"weight": ((codes[0::2] << 4) | codes[1::2]).astype(np.uint8)[:, None], "weight.quant_map": table}
    if nested:
        inner = rng.integers(0, 256, blocks).astype(np.uint8)
        inner_table = np.sort(rng.uniform(-1, 1, 256)).astype(np.float32)
        inner_largest = rng.uniform(0.1, 1, -(-blocks // 256)).astype(np.float32)
        state.update(nested_blocksize=256, nested_dtype="float32", nested_offset=0.5)
        tensors.update({"weight.absmax": inner, "weight.nested_quant_map": inner_table,
                        "weight.nested_absmax": inner_largest})
        absmax = inner_table[inner] * inner_largest[np.arange(blocks) // 256] + np.float32(0.5)
    else:
        absmax = rng.uniform(0.1, 2, blocks).astype(np.float32)
        tensors["weight.absmax"] = absmax
    tensors[f"weight.quant_state.bitsandbytes__{kind}"] = np.frombuffer(json.dumps(state).encode(), np.uint8)
    weight = table[codes] * absmax[np.arange(out * inputs) // 64]
    return tensors, from_bf16(to_bf16(weight)).reshape(out, inputs)


def compressed_int8(rng, out, inputs, groups=1, one=False, symmetric=True):
    codes = rng.integers(-128, 128, (out, inputs)).astype(np.int8)
    shape = (1,) if one else (out, groups)
    scale = to_bf16(rng.uniform(0.2, 1, shape) / 64)
    zero = np.zeros(shape, np.int8) if symmetric else rng.integers(-100, 100, shape).astype(np.int8)
    tensors = {"weight": codes, "weight_scale": Raw("BF16", scale)}
    if not symmetric:
        tensors["weight_zero_point"] = zero
    at = np.arange(inputs) // (inputs // groups)
    factor = np.broadcast_to(from_bf16(scale), (out, groups))[:, at]
    offset = np.broadcast_to(zero, (out, groups))[:, at]
    return tensors, factor * (codes.astype(np.float32) - offset.astype(np.float32))


def compressed_packed(rng, bits, out, inputs, group, symmetric=True, act_order=False):
    groups = -(-inputs // group)
    order = np.arange(inputs) // group
    if act_order:
        order = rng.permutation(order)
    half = 1 << (bits - 1)
    codes = rng.integers(-half, half, (out, inputs))
    zeros = np.zeros((out, groups), int) if symmetric else rng.integers(-half, half, (out, groups))
    scale = scales_of(rng, out, groups)
    tensors = {"weight_packed": pack(codes + half, bits, 1), "weight_scale": scale,
               "weight_shape": np.array([out, inputs], np.int64)}
    if not symmetric:
        tensors["weight_zero_point"] = pack(zeros + half, bits, 0)
    if act_order:
        tensors["weight_g_idx"] = order.astype(np.int32)
    return tensors, scale.astype(np.float32)[:, order] * (codes - zeros[:, order]).astype(np.float32)


def e4m3_values():
    """By the OFP8 specification: 1.4.3, bias 7, all ones NaN."""
    values = []
    for bits in range(256):
        sign, exponent, mantissa = -1.0 if bits & 128 else 1.0, bits >> 3 & 15, bits & 7
        values.append(sign * (mantissa * 2.0**-9 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7)))
    return np.array(values, np.float32)


def fp8(rng, out, inputs, scale_name, shape, block=None):
    codes = rng.integers(0, 256, (out, inputs)).astype(np.uint8)
    codes[(codes & 127) == 127] = 0
    scale = rng.uniform(0.2, 1, shape).astype(np.float32) / 64
    if block is None:
        factor = np.broadcast_to(scale.reshape(-1, 1), (out, inputs))
    else:
        factor = scale[np.arange(out)[:, None] // block, np.arange(inputs) // block]
    weight = from_bf16(to_bf16(e4m3_values()[codes] * factor))
    return {"weight": Raw("F8_E4M3", codes), scale_name: scale}, weight


def dialects():
    """name -> (quantization_config, {layer: (tensors, weight)})"""
    def rng(seed):
        return np.random.default_rng(seed)

    method = dict(quant_method="gptq", bits=4, group_size=32)
    yield "gptq", dict(method, desc_act=True), {
        "sym": gptq(rng(1), 4, 64, 224, 32, symmetric=True), "asym": gptq(rng(2), 4, 32, 96, 32),
        "act_order": gptq(rng(3), 4, 32, 96, 32, act_order=True),
        "act_order_cut": gptq(rng(4), 4, 32, 80, 32, act_order=True), "cut": gptq(rng(5), 4, 32, 80, 32),
        "no_g_idx": gptq(rng(6), 4, 32, 80, 32, g_idx=False), "one_group": gptq(rng(7), 4, 32, 80, 80),
        "bits2": gptq(rng(8), 2, 32, 96, 32), "bits3": gptq(rng(9), 3, 32, 96, 32),
        "bits8": gptq(rng(10), 8, 32, 96, 32), "bits8_sym": gptq(rng(11), 8, 32, 96, 32, symmetric=True)}
    yield "gptq_v2", dict(method, checkpoint_format="gptq_v2", sym=False), {
        "asym": gptq(rng(12), 4, 32, 96, 32, version=2), "bits8": gptq(rng(13), 8, 32, 64, 64, version=2)}
    yield "awq", dict(quant_method="awq", bits=4, group_size=64, version="gemm", zero_point=True), {
        "whole": awq(rng(14), 32, 128, 64), "cut": awq(rng(15), 16, 96, 64)}
    yield "bitsandbytes", dict(quant_method="bitsandbytes", load_in_8bit=True), {
        "int8": bitsandbytes_int8(rng(16), 24, 40), "nf4": bitsandbytes_4bit(rng(17), 24, 40, False),
        "nf4_nested": bitsandbytes_4bit(rng(18), 160, 128, True), "fp4": bitsandbytes_4bit(rng(19), 8, 24, False, "fp4")}
    yield "compressed_tensors", dict(quant_method="compressed-tensors", format="mixed-precision", config_groups={
        "group_0": dict(weights=dict(group_size=32))}), {
        "w8_row": compressed_int8(rng(20), 24, 40), "w8_one": compressed_int8(rng(21), 24, 40, one=True),
        "w8_groups": compressed_int8(rng(22), 24, 64, groups=2),
        "w8_asym": compressed_int8(rng(23), 24, 40, symmetric=False),
        "w4": compressed_packed(rng(24), 4, 24, 96, 32), "w4_row": compressed_packed(rng(25), 4, 24, 40, 40),
        "w4_cut": compressed_packed(rng(26), 4, 24, 80, 32),
        "w4_asym": compressed_packed(rng(27), 4, 32, 96, 32, symmetric=False),
        "w4_act_order": compressed_packed(rng(28), 4, 24, 96, 32, act_order=True),
        "w3": compressed_packed(rng(29), 3, 24, 96, 32), "w8_packed": compressed_packed(rng(30), 8, 24, 96, 32),
        "w6_asym": compressed_packed(rng(31), 6, 32, 96, 32, symmetric=False)}
    yield "fp8", dict(quant_method="fp8", activation_scheme="dynamic", weight_block_size=[16, 16]), {
        "tensor": fp8(rng(32), 24, 40, "weight_scale", ()), "one": fp8(rng(33), 24, 40, "weight_scale", (1,)),
        "row": fp8(rng(34), 24, 40, "weight_scale", (24, 1)),
        "block": fp8(rng(35), 40, 56, "weight_scale_inv", (3, 4), block=16)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("tests/data/quantized"))
    out = parser.parse_args().out
    for name, config, layers in dialects():
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(dict(quantization_config=config), indent=1) + "\n")
        save(folder / "model.safetensors",
             {f"{layer}.{part}": tensor for layer, (tensors, _) in layers.items() for part, tensor in tensors.items()})
        save(folder / "expected.safetensors",
             {f"{layer}.weight": np.asarray(weight, np.float32) for layer, (_, weight) in layers.items()})


if __name__ == "__main__":
    main()
