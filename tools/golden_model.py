"""Random models of transformers whose greedy paths are clear, and their golden logits. Used by make_goldens.py."""
import json

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM

GREEDY_STEPS = 24
PROMPT_LENGTHS = (1, 6, 20)
LEAST_MARGIN = 2e-3  # of the largest logit: far above fp32 noise, so that greedy ids are a property of the model
CLASSES = {"llama": (LlamaConfig, LlamaForCausalLM), "qwen2": (Qwen2Config, Qwen2ForCausalLM),
           "qwen3": (Qwen3Config, Qwen3ForCausalLM)}
SIZES = dict(vocab_size=64, hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=256, rms_norm_eps=1e-6, rope_theta=10000.0, bos_token_id=1,
             eos_token_id=2, pad_token_id=0, tie_word_embeddings=False)


def random_weights(model, rng, dtype):
    """Sets every weight, large enough that each part of the model shows in the logits, rounded to dtype."""
    state = {}
    for name, tensor in model.state_dict().items():
        values = rng.standard_normal(tuple(tensor.shape))
        if tensor.ndim == 1:
            values = values * 0.3 if name.endswith("bias") else 1 + 0.2 * values
        elif "embed" not in name:
            values = values * 1.5 / np.sqrt(tensor.shape[1])
        state[name] = torch.from_numpy(values).to(dtype)
    if model.config.tie_word_embeddings:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    model.load_state_dict({name: tensor.float() for name, tensor in state.items()})
    if model.config.tie_word_embeddings:
        del state["lm_head.weight"]
    return {name: tensor.contiguous() for name, tensor in state.items()}


def logits_of(model, ids):
    # Dynamic RoPE remembers the longest sequence it has seen: every forward pass starts anew.
    model.model.rotary_emb = type(model.model.rotary_emb)(config=model.config)
    with torch.no_grad():
        return model(torch.tensor([ids]), use_cache=False).logits[0].float()


def goldens(model, rng):
    """(logits by name, lines of golden.jsonl), or None where a greedy step is too close to call."""
    vocab = model.config.vocab_size
    tensors, lines = {}, []
    for i, length in enumerate(PROMPT_LENGTHS):
        prompt = [int(id) for id in rng.integers(3, vocab, length)]
        tensors[f"logits_{i}"] = logits_of(model, prompt).contiguous()
        ids, margins = list(prompt), []
        for _ in range(GREEDY_STEPS):
            last = logits_of(model, ids)[-1]
            best = torch.topk(last, 2)
            margin = float(best.values[0] - best.values[1])
            if margin < LEAST_MARGIN * float(last.abs().max()):
                return None
            margins.append(round(margin, 5))
            ids.append(int(best.indices[0]))
        lines.append(dict(logits=f"logits_{i}", input_ids=prompt, greedy_ids=ids[length:],
                          greedy_top1_minus_top2=margins))
    return tensors, lines


def write_goldens(folder, tensors, lines):
    save_file(tensors, folder / "golden_logits.safetensors")
    (folder / "golden.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def make_model(family, config, fill):
    """A model whose greedy paths are clear, what fill(model, rng) returned for it, and its goldens."""
    for seed in range(1000):
        rng = np.random.default_rng(seed)
        config_class, model_class = CLASSES[family]
        model = model_class(config_class(**{**SIZES, **config}, attn_implementation="eager")).eval()
        filled = fill(model, rng)
        golden = goldens(model, rng)
        if golden is not None:
            return model, filled, golden
    raise SystemExit(f"no seed gives clear greedy paths for {family} {config}")
