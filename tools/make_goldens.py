#!/usr/bin/env python3
"""Makes the small random checkpoints of tests/data and what a model of them must compute.

  python3 -m venv VENV
  VENV/bin/pip install torch 'transformers==4.57.6' safetensors gguf numpy    # the CPU is enough
  VENV/bin/python tools/make_goldens.py [--out tests/data] [--only NAME]

tiny/NAME is a checkpoint in Hugging Face's layout (config.json, model.safetensors) with golden_logits.safetensors
(logits_0, ... [tokens, vocab] fp32) and golden.jsonl (input_ids, the greedy ids that follow, and at each step the
margin between the best two logits). gguf/ is described in golden_gguf.py. Weights come from numpy's generator
with a fixed seed, rounded to the type that they are stored in; transformers computes the rest from them in fp32
with eager attention and without a cache. A seed is chosen so that no greedy step is close.
"""
import argparse
import json
import pathlib
from dataclasses import dataclass, field

import torch
from safetensors.torch import save_file

import golden_gguf
from golden_model import CLASSES, SIZES, make_model, random_weights, write_goldens

@dataclass
class Case:
    name: str
    family: str
    dtype: torch.dtype = torch.float16
    config: dict = field(default_factory=dict)
    spelling: str = "transformers 4"  # or "old" (before layer_types and dtype), "transformers 5", "internlm2"


CASES = [
    Case("llama-untied", "llama"),
    Case("llama-tied-9heads", "llama", config=dict(hidden_size=36, num_attention_heads=9, num_key_value_heads=3,
                                                   tie_word_embeddings=True, rope_theta=100000.0)),
    Case("llama-bias", "llama", torch.float32, dict(attention_bias=True, mlp_bias=True, tie_word_embeddings=True),
         "old"),
    Case("llama3-rope", "llama", torch.bfloat16, dict(
        tie_word_embeddings=True, rope_theta=500000.0,
        rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                          original_max_position_embeddings=16)), "transformers 5"),
    Case("llama-linear-rope", "llama", config=dict(
        tie_word_embeddings=True, rope_scaling=dict(rope_type="linear", factor=4.0)), spelling="old"),
    # Prompts and greedy paths go beyond the trained length.
    Case("llama-dynamic-ntk", "llama", config=dict(
        tie_word_embeddings=True, max_position_embeddings=12, rope_scaling=dict(rope_type="dynamic", factor=2.0))),
    Case("qwen2-14heads", "qwen2", config=dict(hidden_size=56, num_attention_heads=14, tie_word_embeddings=True,
                                               rope_theta=1000000.0), spelling="transformers 5"),
    Case("qwen2-bf16", "qwen2", torch.bfloat16, dict(tie_word_embeddings=True, rope_theta=1000000.0), "old"),
    Case("qwen2-window", "qwen2", config=dict(num_hidden_layers=3, tie_word_embeddings=True, use_sliding_window=True,
                                              sliding_window=5, max_window_layers=1)),
    Case("qwen3", "qwen3", torch.bfloat16, dict(head_dim=16, tie_word_embeddings=True, rope_theta=1000000.0)),
    # llama-untied's weights under other names, q, k and v packed by KV group.
    Case("internlm2", "llama", spelling="internlm2"),
]
def internlm2_weights(state, config):
    """Llama's weights in InternLM2's spelling: per KV group its query heads, then K, then V."""
    groups, dim = config.num_key_value_heads, config.hidden_size // config.num_attention_heads
    names = {"self_attn.o_proj": "attention.wo", "mlp.gate_proj": "feed_forward.w1", "mlp.up_proj": "feed_forward.w3",
             "mlp.down_proj": "feed_forward.w2", "input_layernorm": "attention_norm",
             "post_attention_layernorm": "ffn_norm", "model.embed_tokens": "model.tok_embeddings",
             "lm_head": "output"}
    out = {}
    for name, tensor in state.items():
        if ".self_attn.q_proj." in name:
            q = tensor.view(groups, -1, dim, config.hidden_size)
            k, v = (state[name.replace("q_proj", part)].view(groups, 1, dim, config.hidden_size)
                    for part in ("k_proj", "v_proj"))
            out[name.replace("self_attn.q_proj", "attention.wqkv")] = torch.cat((q, k, v), 1).reshape(
                -1, config.hidden_size).contiguous()
        elif ".self_attn.k_proj." not in name and ".self_attn.v_proj." not in name:
            for ours, theirs in names.items():
                name = name.replace(ours, theirs)
            out[name] = tensor
    return out


def spell_config(config, case):
    """The config as different versions of transformers have written it."""
    json_config = json.loads(config.to_json_string(use_diff=False))
    keep = ["architectures", "model_type", "dtype", "layer_types", "sliding_window", "use_sliding_window",
            "max_window_layers", "attention_bias", "mlp_bias", "head_dim", "hidden_act", "rope_scaling", *SIZES]
    out = {key: json_config[key] for key in keep if key in json_config}
    out["architectures"] = [CLASSES[case.family][1].__name__]
    out["dtype"] = str(case.dtype).removeprefix("torch.")
    if case.spelling in ("old", "internlm2"):
        out["torch_dtype"] = out.pop("dtype")
        for key in ("layer_types", "head_dim"):
            out.pop(key, None)
        if out["rope_scaling"]:
            out["rope_scaling"]["type"] = out["rope_scaling"].pop("rope_type")
    if case.spelling == "transformers 5":
        out["rope_parameters"] = {"rope_theta": out.pop("rope_theta"), "rope_type": "default",
                                  **(out.pop("rope_scaling") or {})}
    if case.spelling == "internlm2":
        for key in ("attention_bias", "mlp_bias"):
            del out[key]
        out.update(architectures=["InternLM2ForCausalLM"], model_type="internlm2", bias=False,
                   rope_scaling={"type": "dynamic", "factor": 2.0})  # no change below max_position_embeddings
    return out


def make_tiny(case, out):
    folder = out / "tiny" / case.name
    folder.mkdir(parents=True, exist_ok=True)
    model, state, golden = make_model(case.family, case.config,
                                      lambda model, rng: random_weights(model, rng, case.dtype))
    if case.spelling == "internlm2":
        state = internlm2_weights(state, model.config)
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(spell_config(model.config, case), indent=1) + "\n")
    write_goldens(folder, *golden)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent / "tests" / "data")
    parser.add_argument("--only", help="the name of one case")
    args = parser.parse_args()
    torch.set_num_threads(1)
    made = [(case.name, lambda case=case: make_tiny(case, args.out)) for case in CASES]
    made += [(name, lambda make=make: make(args.out)) for name, make in golden_gguf.CASES]
    for name, make in made:
        if args.only in (None, name):
            make()
            print(f"made {name}")


if __name__ == "__main__":
    main()
