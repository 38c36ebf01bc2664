"""vLLM: tokens to text, and its reading of tool calls in what Hermes and Qwen write."""
from side import cannot_run, microseconds, print_figures, read_work

try:
    from transformers import AutoTokenizer
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.tool_parsers.hermes_tool_parser import Hermes2ProToolParser
except ImportError as error:
    cannot_run(f"needs a Python with vLLM (--vllm PATH): {error}")

work = read_work()
tokenizer = AutoTokenizer.from_pretrained(work["model"] + "/models")
request = ChatCompletionRequest(model="bench", messages=work["messages"], tools=work["tools"])
parser = Hermes2ProToolParser(tokenizer, request.tools)


def parse():
    text = tokenizer.decode(work["answer"][:-1], skip_special_tokens=False)
    return parser.extract_tool_calls(text, request)


if not parse().tools_called:
    raise RuntimeError("no call was read")
print_figures("vllm", parseMicroseconds=microseconds(parse))
