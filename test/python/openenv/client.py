"""OpenEnv's own clients against a server of ours: client.py URL. Prints one line of JSON."""

import json
import sys

from openenv.core.generic_client import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient

url = sys.argv[1]
found = {}

with GenericEnvClient(base_url=url).sync() as env:
    began = env.reset(split="train", index=0, episode_id="e1")
    found["opening"] = began.observation["text"]
    listed = env.step({"type": "list_tools"}).observation["tools"]
    found["tools"] = [tool["name"] for tool in listed]
    wrong = env.step({"type": "call_tool", "tool_name": "nothing", "arguments": {}})
    found["wrong"] = wrong.observation["error"]["error_type"]
    found["state"] = env.state()
    last = env.step({"type": "call_tool", "tool_name": "say", "arguments": {"text": "no idea"}})
    found["done"], found["reward"] = last.done, last.reward
    try:
        env.step({"tool_name": 4})
        raise SystemExit("a wrong action was taken")
    except RuntimeError as error:
        found["refused"] = str(error)
    again = env.reset(seed=3)
    found["again"] = again.done

with MCPToolClient(base_url=url).sync() as env:
    env.reset(index=0)
    found["production"] = [tool.name for tool in env.list_tools()]
    found["keys"] = env.call_tool("keys")
    try:
        env.call_tool("get", nonsense=1)
        raise SystemExit("wrong arguments were taken")
    except RuntimeError as error:
        found["invalid"] = "invalid arguments for get" in str(error)

clients = []
try:
    for _ in range(4):
        client = GenericEnvClient(base_url=url).sync()
        client.connect()
        client.reset()
        clients.append(client)
    raise SystemExit("four sessions in a room for three")
except RuntimeError as error:
    found["full"] = "CAPACITY_REACHED" in str(error)
finally:
    for client in clients:
        client.close()

print(json.dumps(found))
