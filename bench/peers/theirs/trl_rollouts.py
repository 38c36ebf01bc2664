"""TRL: its asynchronous rollout loop against vLLM's completions, with one tool and one reward function."""
import multiprocessing
import queue
import threading

from side import Meter, cannot_run, most_resident, read_work

try:
    from accelerate.state import PartialState
    from datasets import Dataset
    from transformers import AutoTokenizer
    from trl.chat_template_utils import qwen3_chat_template
    from trl.experimental.async_grpo.async_rollout_worker import _AsyncRolloutLoop
except ImportError as error:
    cannot_run(f"TRL is not installed: {error}")


def look_up(key: str) -> str:
    """
    Looks a key up.

    Args:
        key: What to look up.

    Returns:
        What the table says.
    """
    return f"The value of {key} is 42, as the table of last week says."


def done(completions, **_):
    return [1.0] * len(completions)


class Counted(queue.Queue):
    """The buffer of finished samples: says when as many as wanted have come."""

    def __init__(self):
        super().__init__()
        self.left = {}
        self.seen = 0

    def expect(self, count):
        event = threading.Event()
        self.left[self.seen + count] = event
        return event

    def put_nowait(self, sample):
        self.seen += 1
        if event := self.left.pop(self.seen, None):
            event.set()


def start(work, tokenizer, samples, concurrency):
    """Starts a loop that rolls until it is stopped."""
    prompt = [{"role": "user", "content": work["question"]}]
    loop = _AsyncRolloutLoop(
        model_name="bench",
        dataset=Dataset.from_list([{"prompt": prompt}] * 1024),
        reward_funcs=[done],
        processing_class=tokenizer,
        eos_token_ids=[tokenizer.eos_token_id],
        rollout_buffer=samples,
        model_version_value=multiprocessing.Value("i", 0),
        heartbeat_value=multiprocessing.Value("d", 0.0),
        failed_event=threading.Event(),
        exception_info_queue=queue.Queue(1),
        metrics_queue=queue.Queue(),
        tools=[look_up],
        num_generations=1,
        max_inflight_tasks=concurrency,
        vllm_server_url=work["url"],
        max_tokens=256,
        max_tool_calling_iterations=work["turns"] - 1,
    )
    thread = threading.Thread(target=loop.run, daemon=True)
    thread.start()

    def stop():
        loop._loop.call_soon_threadsafe(loop._stop_event.set)
        thread.join()

    return stop


def main():
    work = read_work()
    PartialState()
    tokenizer = AutoTokenizer.from_pretrained(work["model"] + "/models")
    # It parses answers only for templates that it knows to the letter.
    tokenizer.chat_template = qwen3_chat_template
    samples = Counted()
    # A few at a time first, so that what the process grows by afterwards is what the open rollouts hold.
    few = samples.expect(16)
    stop = start(work, tokenizer, samples, min(work["concurrency"], 16))
    few.wait()
    stop()
    kilobytes = most_resident()
    warm = samples.expect(min(work["rollouts"], 64))
    stop = start(work, tokenizer, samples, work["concurrency"])
    warm.wait()
    all_done = samples.expect(work["rollouts"])
    meter = Meter(kilobytes)
    all_done.wait()
    meter.print("trl", work)
    stop()


main()
