"""renderers: its hand-written renderer of Qwen3, and its reading of an answer."""
from side import cannot_run, microseconds, print_figures, read_work

try:
    from renderers import Qwen3RendererConfig, create_renderer
    from transformers import AutoTokenizer
except ImportError as error:
    cannot_run(f"renderers is not installed: {error}")

work = read_work()
tokenizer = AutoTokenizer.from_pretrained(work["model"] + "/models")
renderer = create_renderer(tokenizer, Qwen3RendererConfig())


def render():
    return renderer.render_ids(work["messages"], tools=work["tools"], add_generation_prompt=True)


def parse():
    return renderer.parse_response(work["answer"], tools=work["tools"])


if not parse().tool_calls:
    raise RuntimeError("no call was read")
print_figures(
    "renderers",
    tokens=len(render()),
    renderMicroseconds=microseconds(render),
    parseMicroseconds=microseconds(parse),
)
