"""SkyRL's own Tinker server (its JAX backend, on a CPU) over a toy model made on the spot.

    python test/python/trainers/skyrl_server.py FOLDER PORT

FOLDER receives the model (Qwen3's architecture, our byte tokenizer, random weights), the server's
database and its checkpoints. SkyRL starts its engine through `uv run`; here the engine is started
with this very Python, which has all it needs.
"""

import shutil
import sys
import typing
from pathlib import Path

import typing_extensions

# SkyRL is written for Python 3.12, whose TypedDict knows more.
typing.TypedDict = typing_extensions.TypedDict

ROOT = Path(__file__).resolve().parents[3]


def make_model(folder):
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(5)
    # SkyRL trains attention and MLP, never the output embeddings. What is fed to those is normed, so
    # with the usual small ones (0.02) no adapter can move a logit by much more than 1.
    config = Qwen3Config(
        vocab_size=265,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=512,
        tie_word_embeddings=False,
        initializer_range=0.2,
    )
    Qwen3ForCausalLM(config).save_pretrained(folder)
    for file in (ROOT / "models" / "chatml-bytes").iterdir():
        if file.name != "config.json":
            shutil.copy(file, folder)


def serve(folder, port):
    import uvicorn
    from skyrl.tinker import api
    from skyrl.tinker.config import EngineConfig, config_to_argv

    def engine_command(_parent, config):
        return [sys.executable, str(Path(__file__).resolve()), "--engine", *config_to_argv(config)]

    api._build_uv_run_cmd_engine = engine_command
    api.app.state.engine_config = EngineConfig(
        base_model=str(folder / "model"),
        backend="jax",
        # Batches of one size: JAX compiles every other size anew.
        backend_config={
            "max_lora_adapters": 4,
            "max_lora_rank": 32,
            "sample_max_num_sequences": 16,
        },
        checkpoints_base=str(folder / "checkpoints"),
        database_url=f"sqlite:///{folder / 'tinker.db'}",
    )
    uvicorn.run(api.app, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    if sys.argv[1] == "--engine":
        sys.argv.pop(1)
        from skyrl.tinker.engine import main

        main()
    else:
        home = Path(sys.argv[1]).resolve()
        if not (home / "model").exists():
            make_model(home / "model")
        serve(home, int(sys.argv[2]))
