import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { scratch, start } from './cli.ts'

/** How hard a server is loaded. */
export interface Load {
  readonly clients: number
  readonly seconds: number
}

/** What a server under load was seen to do. */
export interface Loaded {
  readonly server: 'gateway' | 'rollouts'
  /** Attempts or submissions that were done to their end. */
  readonly done: number
  /** What was answered otherwise than well, by status or error. */
  readonly problems: Readonly<Record<string, number>>
  /** Of one client: the fewest, the usual and the most. */
  readonly perClient: readonly [least: number, median: number, most: number]
  /** Jain's index over clients: 1 where all got as much, 1/clients where one got all. */
  readonly fairness: number
  /** Seconds that one took from begin to end: at the median, and the longest but one in a hundred. */
  readonly seconds: { readonly p50: number; readonly p99: number }
  /** Resident MB after a quarter of the time, at the end, and at most: what grows with time leaks. */
  readonly memory: { readonly early: number; readonly late: number; readonly peak: number }
  /** Seconds in which it ended in order after the load. */
  readonly ending: number
}

type Turn = (client: number, turn: number) => Promise<void>

/** Loads a gateway: every client opens attempts, asks in them, and closes them, one after the other. */
export async function loadGateway(load: Load): Promise<Loaded> {
  return await loadServer(
    'gateway',
    ['--group', '4', '--model', 'models/chatml-bytes'],
    load,
    post => {
      const headers = (token: string) => ({ authorization: `Bearer ${token}` })
      return async (client, turn) => {
        const { id, token } = await post('/attempts', { task: `t${client}-${turn >> 2}` })
        const messages = [{ role: 'user', content: `client ${client}, turn ${turn}` }]
        const asked = { model: 'x', messages, max_tokens: 8 }
        await post('/v1/chat/completions', asked, headers(token as string))
        await post(`/attempts/${id}/close`, { reward: turn % 2 })
      }
    },
  )
}

/** Loads a service: every client submits a task and takes its group, again and again. */
export async function loadRollouts(load: Load): Promise<Loaded> {
  const words = ['--environment', 'single-turn', '--group', '2', '--model', 'models/chatml-bytes']
  return await loadServer('rollouts', words, load, (post, get) => async (client, turn) => {
    const id = `c${client}-${turn}`
    await post('/v1/rollouts', { id, tasks: [{ prompt: `say ${id}`, answer: 'a' }] })
    const { groups, state } = await get(`/v1/rollouts/${id}/groups?after=0&max=1&wait=60`)
    const taken = groups as readonly { readonly cursor: number }[]
    if (taken.length !== 1) throw new Error(`no group of a ${state} submission`)
    await get(`/v1/rollouts/${id}/groups?after=${taken[0]!.cursor}&max=1&wait=60`)
  })
}

type Answer = Readonly<Record<string, unknown>>
type Post = (path: string, body: unknown, headers?: Record<string, string>) => Promise<Answer>
type Get = (path: string) => Promise<Answer>

async function loadServer(
  server: Loaded['server'],
  more: readonly string[],
  { clients, seconds }: Load,
  turnsOf: (post: Post, get: Get) => Turn,
): Promise<Loaded> {
  const folder = scratch()
  const answers = join(folder, 'answers.jsonl')
  writeFileSync(answers, '{"text":"a"}\n')
  const words = [server, '--policy', `scripted:${answers}`, ...more, '--port', '0', '--json']
  const started = start([...words, '--out', join(folder, 'run')])
  const [line] = (await once(started.child.stdout!, 'data')) as [Buffer]
  const { url } = JSON.parse(line.toString()) as { url: string }
  // The shell became the program.
  const pid = started.child.pid!
  await using agent = disposable(new Agent({ connections: clients, pipelining: 1 }))
  const ask = async (method: 'GET' | 'POST', path: string, body?: unknown, headers = {}) => {
    const sent = body === undefined ? {} : { body: JSON.stringify(body) }
    const type = { 'content-type': 'application/json' }
    const options = { method, dispatcher: agent.part, headers: { ...type, ...headers }, ...sent }
    const answer = await request(url + path, options)
    const text = await answer.body.text()
    if (answer.statusCode >= 300) throw new Error(`${answer.statusCode} at ${path.split('/')[1]}`)
    return JSON.parse(text) as Answer
  }
  const turn = turnsOf(
    (path, body, headers) => ask('POST', path, body, headers),
    path => ask('GET', path),
  )
  const watched = watchMemory(pid, seconds)
  const counted = await drive(turn, { clients, seconds })
  const memory = await watched
  const ending = performance.now()
  started.child.kill('SIGTERM')
  await started.finished
  return { server, ...counted, memory, ending: (performance.now() - ending) / 1000 }
}

/** Every client takes its turns until the time is over. */
async function drive(
  turn: Turn,
  { clients, seconds }: Load,
): Promise<Pick<Loaded, 'done' | 'problems' | 'perClient' | 'fairness' | 'seconds'>> {
  const end = performance.now() + seconds * 1000
  const counts = new Array<number>(clients).fill(0)
  const taken: number[] = []
  const problems: Record<string, number> = {}
  const live = async (client: number): Promise<void> => {
    for (let at = 0; performance.now() < end; at++) {
      const began = performance.now()
      try {
        await turn(client, at)
        counts[client]!++
        taken.push((performance.now() - began) / 1000)
      } catch (cause) {
        const { message } = cause as Error
        problems[message] = (problems[message] ?? 0) + 1
        await wait(100)
      }
    }
  }
  await Promise.all(counts.map((_, client) => live(client)))
  const sorted = counts.toSorted((a, b) => a - b)
  const times = taken.toSorted((a, b) => a - b)
  const done = counts.reduce((sum, each) => sum + each, 0)
  const squares = counts.reduce((sum, each) => sum + each * each, 0)
  return {
    done,
    problems,
    perClient: [sorted[0]!, sorted[clients >> 1]!, sorted.at(-1)!],
    fairness: squares === 0 ? 0 : (done * done) / (clients * squares),
    seconds: { p50: at(times, 0.5), p99: at(times, 0.99) },
  }
}

function at(sorted: readonly number[], share: number): number {
  return sorted[Math.floor(sorted.length * share)] ?? 0
}

async function watchMemory(pid: number, seconds: number): Promise<Loaded['memory']> {
  const early: number[] = []
  const late: number[] = []
  let peak = 0
  const end = performance.now() + seconds * 1000
  const quarter = end - seconds * 750
  while (performance.now() < end) {
    const now = residentOf(pid)
    peak = Math.max(peak, now)
    ;(performance.now() < quarter ? early : late).push(now)
    await wait(500)
  }
  return { early: early.at(-1) ?? 0, late: late.at(-1) ?? 0, peak }
}

function residentOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Math.round(Number(/^VmRSS:\s*(\d+)/m.exec(status)?.[1] ?? 0) / 1024)
}

function disposable(part: Agent) {
  return { part, [Symbol.asyncDispose]: () => part.destroy() }
}
