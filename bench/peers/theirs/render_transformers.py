"""transformers: a chat template rendered and encoded, and an answer's tool call parsed back."""
from side import cannot_run, microseconds, print_figures, read_work

try:
    from transformers import AutoTokenizer
except ImportError as error:
    cannot_run(f"transformers is not installed: {error}")

work = read_work()
tokenizer = AutoTokenizer.from_pretrained(work["model"] + "/models")


def render():
    return tokenizer.apply_chat_template(
        work["messages"], tools=work["tools"], add_generation_prompt=True, return_dict=False
    )


print_figures("transformers", tokens=len(render()), renderMicroseconds=microseconds(render))
