"""llama.cpp's own server with a tiny model of random weights: a judge that rolls dice, with a real server's habits.

    python -m tests.tiny_llama model.gguf [--n-ctx N] [--key KEY]

prints the server's address and serves until its standard input ends or it is killed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

NAME = "tiny"
KEY = "sk-tiny-THIS-MUST-NEVER-BE-WRITTEN"

LAYERS, WIDTH, HEADS, INNER, CONTEXT = 2, 64, 4, 128, 16384
SLOTS = 4
#: Of dimension 0 of every embedding. No layer writes to it, so that column 0 of the output weights acts as a bias.
CONSTANT = 4.0
#: The log-prior of what hardly ever comes: of stray bytes the server would answer 500.
NEVER = -14.0

TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


def vocabulary() -> tuple[list[bytes], list[float], list[int]]:
    """Tokens, scores and types: three control tokens, 256 bytes, the printable characters of ASCII, tab and newline."""
    from gguf import TokenType

    characters = [chr(code) for code in range(32, 127)] + ["\t", "\n"]
    tokens = [b"<unk>", b"<s>", b"</s>", *(f"<0x{byte:02X}>".encode() for byte in range(256))]
    tokens += [("▁" if character == " " else character).encode() for character in characters]
    types = [TokenType.UNKNOWN, TokenType.CONTROL, TokenType.CONTROL, *[TokenType.BYTE] * 256]
    types += [TokenType.NORMAL] * len(characters)
    return tokens, [0.0] * len(tokens), [int(kind) for kind in types]


def write_model(path: Path, *, seed: int = 7) -> None:
    """Write the model; the same seed gives the same file."""
    from gguf import GGUFWriter

    random = np.random.default_rng(seed)
    tokens, scores, types = vocabulary()

    def weights(rows: int, columns: int, scale: float) -> np.ndarray:
        return (random.standard_normal((rows, columns)) * scale).astype(np.float32)

    writer = GGUFWriter(path, "llama")
    writer.add_name(NAME)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(TEMPLATE)

    embeddings, output = weights(len(tokens), WIDTH, 1.0), weights(len(tokens), WIDTH, 0.1)
    embeddings[:, 0] = CONSTANT
    output[:, 0] = _priors(tokens)
    digits = [tokens.index(str(digit).encode()) for digit in range(1, 6)]
    # Nearly the same row for the five grades, since some would never come otherwise.
    output[digits] = output[digits[0]]
    output[digits, 1:] += weights(5, WIDTH - 1, 0.03)
    writer.add_tensor("token_embd.weight", embeddings)
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    writer.add_tensor("output.weight", output)
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        attention, down = weights(WIDTH, WIDTH, 0.1), weights(WIDTH, INNER, 0.1)
        attention[0] = down[0] = 0
        writer.add_tensor(f"{block}.attn_norm.weight", np.ones(WIDTH, np.float32))
        writer.add_tensor(f"{block}.ffn_norm.weight", np.ones(WIDTH, np.float32))
        for name in ("attn_q", "attn_k", "attn_v"):
            writer.add_tensor(f"{block}.{name}.weight", weights(WIDTH, WIDTH, 0.1))
        writer.add_tensor(f"{block}.attn_output.weight", attention)
        writer.add_tensor(f"{block}.ffn_gate.weight", weights(INNER, WIDTH, 0.1))
        writer.add_tensor(f"{block}.ffn_up.weight", weights(INNER, WIDTH, 0.1))
        writer.add_tensor(f"{block}.ffn_down.weight", down)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _priors(tokens: list[bytes]) -> np.ndarray:
    """Log-priors in units of the constant dimension: letters and grades often, a quotation mark now and then."""
    priors = np.full(len(tokens), NEVER)
    for number, token in enumerate(tokens[259:], 259):
        character = token.decode()
        if character.isalpha() or character == "▁":
            priors[number] = 0.0
        elif character in "12345":
            priors[number] = 3.0
        elif character == '"':
            priors[number] = 1.6  # about 3 % of what may follow within a string
        elif not character.isspace():  # a newline would let the grammar add twenty blanks
            priors[number] = -4.0
    return (priors / 3.6).astype(np.float32)


def serve(model: Path, n_ctx: int, key: str | None) -> None:
    """Serve the model in this process until standard input ends."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model)
    parameters.model_alias = {NAME}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.n_parallel = SLOTS
    parameters.n_ctx = n_ctx * SLOTS
    parameters.n_predict = 400
    parameters.n_threads_http = 64
    parameters.n_gpu_layers = 0
    parameters.warmup = False
    parameters.sampling.penalty_freq = 0.3
    parameters.cpuparams.n_threads = 1
    parameters.cpuparams_batch.n_threads = 1
    parameters.ui = False
    # Four times as fast as flash attention, with heads this small on a processor.
    parameters.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    if key is not None:
        parameters.api_keys = [key]
    server = xllamacpp.Server(parameters)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    # A clean exit waits for open requests.
    os._exit(0)


class TinyLlama:
    """The server in a process of its own.

    Parameters
    ----------
    folder : Path
        Where the model is written.
    n_ctx : int
        Tokens of the context of a request; a character is a token.
    key : str, optional
        The key that requests must carry.
    """

    def __init__(self, folder: Path, *, n_ctx: int = 8192, key: str | None = None) -> None:
        model = folder / "tiny.gguf"
        if not model.exists():
            write_model(model)
        command = [sys.executable, "-m", "tests.tiny_llama", str(model), "--n-ctx", str(n_ctx)]
        self._log = (folder / "tiny_llama.log").open("ab")
        self.process = subprocess.Popen(
            [*command, *(["--key", key] if key else [])],
            cwd=Path(__file__).resolve().parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        assert self.process.stdout is not None
        address = self.process.stdout.readline().strip()
        if not address:
            raise RuntimeError(f"llama.cpp's server did not start; see {folder / 'tiny_llama.log'}")
        self.url = f"{address}/v1"

    def __enter__(self) -> TinyLlama:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """End the server at once, in the middle of its answers."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self._log):
            if stream is not None:
                stream.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("--n-ctx", type=int, default=8192)
    parser.add_argument("--key")
    arguments = parser.parse_args()
    serve(arguments.model, arguments.n_ctx, arguments.key)
