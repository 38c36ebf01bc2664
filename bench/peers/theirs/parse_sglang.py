"""SGLang: tokens to text, and its reading of tool calls in what Qwen writes."""
from side import cannot_run, microseconds, print_figures, read_work

try:
    from sglang.srt.entrypoints.openai.protocol import Tool
    from sglang.srt.function_call.function_call_parser import FunctionCallParser
    from transformers import AutoTokenizer
except ImportError as error:
    cannot_run(f"SGLang is not installed: {error}")

work = read_work()
tokenizer = AutoTokenizer.from_pretrained(work["model"] + "/models")
parser = FunctionCallParser([Tool(**tool) for tool in work["tools"]], "qwen25")


def parse():
    text = tokenizer.decode(work["answer"][:-1], skip_special_tokens=False)
    return parser.parse_non_stream(text)


if not parse()[1]:
    raise RuntimeError("no call was read")
print_figures("sglang", parseMicroseconds=microseconds(parse))
