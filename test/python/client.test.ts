import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { Rollouts } from '../../src/doors/service/rollouts.ts'
import { serveRollouts } from '../../src/doors/service/rollouts-server.ts'
import { Worlds } from '../../src/doors/service/rollouts-worlds.ts'
import { calculator } from '../../src/engine/environments/built-in/calculator.ts'
import { makeEstimate } from '../../src/engine/weigh/estimate.ts'
import { openCountingService } from '../counting-service.ts'
import { dicePolicy, openByteRenderer } from '../rolling.ts'

const folder = fileURLToPath(new URL('../../integrations/python', import.meta.url))
const python = spawnSync('python3', ['--version']).status === 0
if (!python) console.warn('SKIPPED: no python3 here; the Python client was not run.')

const program = `
import json, sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
from espalier_client import Client, EspalierError
client = Client(sys.argv[2], token="secret", retries=0)
tasks = [{"prompt": f"{n} + 1", "answer": str(n + 1)} for n in range(3)]
groups = client.roll(tasks, group=2, format="trl", step=1)
assert [group["index"] for group in groups] == [0, 1, 2]
from espalier_trl import _output, _members, environment
output = _output([_members(group, 2) for group in groups])
assert len(output["prompt_ids"]) == 6
for ids, mask, logprobs in zip(output["completion_ids"], output["env_mask"], output["logprobs"]):
    assert len(ids) == len(mask) == len(logprobs)
client.announce(5)
client.pause(); client.resume()
other = Client(sys.argv[2], token="secret", retries=0, trainer="other")
assert other.announce(9)["version"] == 9 and client.announce(6)["version"] == 6
assert other.pause(30) == {"paused": True, "seconds": 30, "version": 9}
assert client.resume()["paused"] is False and other.pause()["paused"] is True
submission = client.submit(tasks)
assert client.cancel(submission)["state"] in ("cancelled", "finished")
world_class = environment(client, {"prompt": "1 + 1", "answer": "2"})
world = world_class()
world.reset(prompt=[{"role": "user", "content": "2 + 2"}], answer="4")
assert world.calculate(expression="2+2") == "4", world.calculate.__doc__
assert client.close_world(world._world, answer="4")["reward"] == 1
try:
    Client(sys.argv[2], token="wrong", retries=0).status("x")
    raise SystemExit("a wrong token was let in")
except EspalierError as error:
    assert error.code == 401
print(json.dumps({"groups": len(groups), "rewards": [group["rewards"] for group in groups]}))
`

function run(words: readonly string[]): Promise<{ code: number | null; out: string; err: string }> {
  return new Promise(resolve => {
    const child = spawn('python3', [...words])
    let out = ''
    let err = ''
    child.stdout.on('data', chunk => (out += chunk))
    child.stderr.on('data', chunk => (err += chunk))
    child.on('close', code => resolve({ code, out, err }))
  })
}

/** What happens to an answer on its way. */
type Mishap = 'lost' | 'beheaded' | 'cut' | 'refused' | 'none'

/** Stands between a client and a service: what it does to the answers, in this order; then it lets them pass. */
async function openBadLine(url: string, mishaps: readonly Mishap[]) {
  const left = [...mishaps]
  let requests = 0
  const server = createServer((sent, reply) => {
    requests++
    const { method, url: path, headers } = sent
    const options = { method, headers: { ...headers, host: new URL(url).host } }
    const forwarded = request(new URL(path!, url), options, async answer => {
      const chunks = (await answer.toArray()) as Buffer[]
      const head = { 'content-type': 'application/json' }
      pass(reply, left.shift() ?? 'none', () => {
        reply.writeHead(answer.statusCode!, head).end(Buffer.concat(chunks))
      })
    })
    sent.pipe(forwarded)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    get requests() {
      return requests
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

function pass(reply: ServerResponse, mishap: Mishap, whole: () => void): void {
  if (mishap === 'none') whole()
  else if (mishap === 'lost') reply.destroy()
  else if (mishap === 'beheaded') reply.socket!.end('HTTP/1.1 200 OK\r\ncontent-type: appl')
  else if (mishap === 'refused') reply.writeHead(503).end('{"error":"busy"}')
  else {
    reply.writeHead(200, { 'content-length': '1000' }).write('{"half":')
    setTimeout(() => reply.destroy(), 20)
  }
}

const play = `
import sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import espalier_client
espalier_client.time.sleep = lambda seconds: None
client = espalier_client.Client(sys.argv[2], retries=4)
world = client.open_world({})["id"]
said = [client.call(world, "add", {})["content"] for _ in range(2)]
print(said, client.close_world(world, answer="done")["reward"])
`

describe.skipIf(!python)('the Python client', () => {
  it('submits, takes, announces, cancels, and calls worlds', async () => {
    const renderer = await openByteRenderer()
    const environment = calculator()
    const parts = {
      environment,
      policy: dicePolicy(renderer),
      renderer,
      estimate: makeEstimate('grpo'),
      limits: { turns: 3 },
    }
    await using rollouts = new Rollouts({
      parts,
      openPolicy: async () => dicePolicy(renderer),
      findTask: async () => undefined,
    })
    await using worlds = new Worlds({ environment, reward: environment.reward })
    await using server = await serveRollouts({ rollouts, worlds }, { port: 0, token: 'secret' })
    const { code, out, err } = await run(['-c', program, folder, server.url])
    expect(err).toBe('')
    expect(code).toBe(0)
    expect(JSON.parse(out).groups).toBe(3)
  })

  it.each(['lost', 'beheaded', 'cut', 'refused'] as const)(
    'opens, calls and closes a world exactly once, although every first answer is %s',
    async mishap => {
      let opened = 0
      await using service = await openCountingService({ onOpen: () => opened++ })
      const twice = [mishap, mishap, 'none'] as const
      await using line = await openBadLine(service.url, [...twice, ...twice, ...twice, ...twice])
      const { out, err } = await run(['-c', play, folder, line.url])
      expect(err).toBe('')
      expect(out).toBe("['1', '2'] 2\n")
      expect(opened).toBe(1)
      expect(line.requests).toBe(12)
    },
  )

  it('asks the service to wait no longer than it waits for the answer itself', async () => {
    const code = `
import sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
from espalier_client import Client
for timeout in (10, 120, None):
    client = Client(timeout=timeout)
    client.ask = lambda path: print(path) or {"groups": [], "cursor": 0, "state": "finished"}
    list(client.groups("x"))
`
    const { out } = await run(['-c', code, folder])
    expect(out.match(/wait=[\d.]+/g)).toEqual(['wait=5.0', 'wait=30.0', 'wait=30.0'])
  })

  it('tells of an answer that is cut off every time', async () => {
    await using service = await openCountingService()
    await using line = await openBadLine(service.url, Array(5).fill('cut'))
    const { code, err } = await run(['-c', play, folder, line.url])
    expect([code, line.requests]).toEqual([1, 5])
    expect(err).toContain('IncompleteRead')
  })
})
