"""Makes tests/data/gguf. Used by make_goldens.py.

types/types.gguf holds one tensor [2, 512] of each type, of random blocks; types/expected.safetensors what the gguf
package dequantises them to. gguf/NAME is a small model of mixed types (model.gguf) with goldens as in tiny/NAME,
computed by transformers from the dequantised weights.
"""
import numpy as np
import torch
from gguf import GGMLQuantizationType as Type
from gguf import GGUFWriter, quants
from gguf.constants import GGML_QUANT_SIZES
from safetensors.numpy import save_file

from golden_model import SIZES, make_model, random_weights, write_goldens

TYPES = [Type.F32, Type.F16, Type.BF16, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0, Type.Q4_K, Type.Q5_K,
         Type.Q6_K]
# Where the fp16 scales (and minima) of a block lie, in bytes.
HALVES = {Type.Q4_0: (0,), Type.Q4_1: (0, 2), Type.Q5_0: (0,), Type.Q5_1: (0, 2), Type.Q8_0: (0,), Type.Q4_K: (0, 2),
          Type.Q5_K: (0, 2), Type.Q6_K: (208,)}


def random_blocks(rng, type, rows, columns, spread):
    """Any bits for the codes; scales of both signs, subnormal halves among them, about `spread` in size."""
    if type not in HALVES:
        values = (rng.standard_normal((rows, columns)) * spread).astype(np.float32)
        return quants.quantize(values, type)
    elements, size = GGML_QUANT_SIZES[type]
    blocks = rng.integers(0, 256, (rows, columns // elements, size), dtype=np.uint8)
    for at in HALVES[type]:
        half = (rng.standard_normal(blocks.shape[:2]) * spread).astype(np.float16)
        half[rng.random(half.shape) < 0.05] *= np.float16(1e-6)
        blocks[..., at:at + 2] = half[..., None].view(np.uint8)
    return blocks.reshape(rows, -1)


def make_types(out):
    folder = out / "gguf" / "types"
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    writer = GGUFWriter(folder / "types.gguf", "llama")
    expected = {}
    for type in TYPES:
        data = random_blocks(rng, type, 2, 512, 0.1)
        writer.add_tensor(f"{type.name}.weight", data, raw_dtype=type)
        expected[f"{type.name}.weight"] = quants.dequantize(data, type).reshape(2, 512)
    write(writer)
    save_file(expected, folder / "expected.safetensors")


def make_fuzz_seeds(out):
    """The smallest files that have a bit of everything, beside tests/data in tests/fuzz_seeds."""
    rng = np.random.default_rng(2)
    folder = out.parent / "fuzz_seeds" / "gguf"
    folder.mkdir(parents=True, exist_ok=True)
    for type in TYPES:
        columns = GGML_QUANT_SIZES[type][0] if type in HALVES else 2
        writer = GGUFWriter(folder / f"{type.name}.gguf", "llama")
        for add in (writer.add_context_length, writer.add_embedding_length, writer.add_feed_forward_length):
            add(4)
        writer.add_block_count(1)
        writer.add_head_count(2)
        writer.add_layer_norm_rms_eps(1e-5)
        writer.add_token_list(["a", "b"])
        writer.add_token_scores([0.0, -1.0])
        writer.add_add_bos_token(True)
        writer.add_tensor("token_embd.weight", random_blocks(rng, type, 1, columns, 0.1), raw_dtype=type)
        write(writer)
    folder = out.parent / "fuzz_seeds" / "safetensors"
    folder.mkdir(parents=True, exist_ok=True)
    save_file({"a": np.ones((2, 2), np.float16), "b": np.ones((), np.int64), "c": np.ones((0, 3), np.float32)},
              folder / "small.safetensors", metadata={"format": "pt"})


def write(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def permute(weight, heads):
    """Rows from halves to interleaved pairs, as converters of llama and internlm2 store q and k."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(weight.shape)


NAMES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
         "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
         "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
         "self_attn.k_norm": "attn_k_norm", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate",
         "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "model.layers.": "blk."}


def gguf_name(name):
    for ours, theirs in NAMES.items():
        name = name.replace(ours, theirs)
    return name


class Case:
    """types: what each kind of matrix is stored in; a list gives one entry a layer."""

    def __init__(self, name, family, permuted, types, config):
        self.name, self.family, self.permuted, self.types, self.config = name, family, permuted, types, config

    def type_of(self, name):
        parts = gguf_name(name).split(".")
        chosen = self.types.get(parts[-2], Type.Q8_0)
        return chosen[int(parts[1])] if isinstance(chosen, list) else chosen

    def fill(self, model, rng):
        """Quantises random weights, gives the model their dequantised values, and returns the stored tensors."""
        state = random_weights(model, rng, torch.float32)
        stored, dequantised = {}, {}
        for name, tensor in state.items():
            values = tensor.numpy()
            if values.ndim == 1:
                if ".bias" in name and self.permuted and ("q_proj" in name or "k_proj" in name):
                    raise NotImplementedError
                stored[gguf_name(name)] = (values, Type.F32)
                dequantised[name] = tensor
                continue
            type = self.type_of(name)
            heads = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}.get(name.split(".")[-2])
            data = self.quantise(rng, values, type)
            dequantised[name] = torch.from_numpy(quants.dequantize(data, type).reshape(values.shape).copy())
            if heads and self.permuted:  # whole rows move: blocks lie along them
                data = permute(data.reshape(values.shape[0], -1), getattr(model.config, heads))
            stored[gguf_name(name)] = (np.ascontiguousarray(data), type)
        if model.config.tie_word_embeddings:
            dequantised["lm_head.weight"] = dequantised["model.embed_tokens.weight"]
        model.load_state_dict(dequantised)
        return stored

    def quantise(self, rng, values, type):
        if type in (Type.Q4_K, Type.Q5_K, Type.Q6_K):  # the gguf package only reads these
            spread = {Type.Q4_K: 2e-4, Type.Q5_K: 1e-4, Type.Q6_K: 3e-5}[type]
            return random_blocks(rng, type, *values.shape, spread)
        return quants.quantize(values, type)

    def make(self, out):
        folder = out / "gguf" / self.name
        folder.mkdir(parents=True, exist_ok=True)
        model, stored, golden = make_model(self.family, self.config, self.fill)
        config = model.config
        writer = GGUFWriter(folder / "model.gguf", self.name)
        writer.add_context_length(config.max_position_embeddings)
        writer.add_embedding_length(config.hidden_size)
        writer.add_block_count(config.num_hidden_layers)
        writer.add_feed_forward_length(config.intermediate_size)
        writer.add_head_count(config.num_attention_heads)
        writer.add_head_count_kv(config.num_key_value_heads)
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
        writer.add_rope_freq_base(config.rope_theta)
        if self.name == "qwen3":
            writer.add_key_length(config.head_dim)
            writer.add_value_length(config.head_dim)
        writer.add_tokenizer_model("gpt2")
        writer.add_token_list([f"token{i}" for i in range(config.vocab_size)])
        writer.add_token_types([1] * config.vocab_size)
        writer.add_token_scores([-float(i) for i in range(config.vocab_size)])
        writer.add_eos_token_id(config.eos_token_id)
        writer.add_bos_token_id(config.bos_token_id)
        if config.rope_scaling:
            writer.add_tensor("rope_freqs.weight", self.rope_factors(model))
        for name, (data, type) in stored.items():
            writer.add_tensor(name, data, raw_dtype=type)
        write(writer)
        write_goldens(folder, *golden)

    @staticmethod
    def rope_factors(model):
        """What llama3 scaling divides each frequency by, as converters store it."""
        dim = model.config.head_dim
        plain = model.config.rope_theta ** (-np.arange(0, dim, 2) / dim)
        return (plain / model.model.rotary_emb.inv_freq.numpy()).astype(np.float32)


LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=16)
MODELS = [
    Case("llama", "llama", True, {"attn_q": Type.Q4_0, "attn_k": Type.Q4_0, "attn_v": Type.Q8_0,
                                  "attn_output": Type.Q5_0, "ffn_gate": Type.Q4_1, "ffn_up": Type.Q4_1,
                                  "ffn_down": Type.Q5_1, "output": Type.F16},
         dict(intermediate_size=64, rope_scaling=LLAMA3)),
    Case("qwen2", "qwen2", False, {"attn_q": Type.BF16, "attn_k": Type.BF16, "attn_v": Type.F16,
                                   "ffn_down": [Type.Q4_K, Type.Q5_K, Type.Q6_K]},
         dict(num_hidden_layers=3, intermediate_size=256, tie_word_embeddings=True, rope_theta=1000000.0)),
    Case("qwen3", "qwen3", False, {"attn_q": Type.Q5_0, "attn_k": Type.Q5_0, "attn_v": Type.Q5_0},
         dict(intermediate_size=64, head_dim=16, tie_word_embeddings=True)),
    Case("internlm2", "llama", True, {"attn_q": Type.Q4_1, "attn_k": Type.Q4_1, "attn_v": Type.Q4_1},
         dict(intermediate_size=64)),
]
CASES = [("fuzz-seeds", make_fuzz_seeds), ("gguf-types", make_types)] + [(f"gguf-{case.name}", case.make) for case in MODELS]
assert SIZES["hidden_size"] % 32 == 0
