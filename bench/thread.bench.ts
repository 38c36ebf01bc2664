import { type Policy, plainSampling, type SampleRequest } from '../src/base/core/policy.ts'
import { openSglang } from '../src/engine/policies/servers/sglang.ts'
import { byLoad } from '../src/engine/policies/transport/by-load.ts'
import { openServerThread } from '../src/engine/policies/transport/thread/thread.ts'
import { missedOf } from './expectation.ts'
import { openFixedServer, sglangAnswer } from './fixed-server.ts'

const turns = 8
const rounds = 5
/** Requests under way at one time, and what using a thread by load must give of always using it. */
const leastGain: Readonly<Record<number, number>> = { 1: 1.1, 2: 1.1, 64: 0.8 }

/** The result of one way of sending requests. */
interface Figures {
  readonly perSecond: number
  readonly cpuMicroseconds: number
}

type Ways = Readonly<Record<'here' | 'thread' | 'byLoad', Policy>>

/** Requests alone, without rollouts: in the caller's thread, in another one, and chosen by load. */
export async function bench({ json }: { json: boolean }): Promise<object> {
  const ids = Array.from({ length: 64 }, (_, index) => 1000 + index * 97)
  await using server = await openFixedServer(sglangAnswer(ids))
  await using here = openSglang(server.url)
  await using thread = openSglang(server.url, { thread: openServerThread() })
  await using chosen = openSglang(server.url, { thread: byLoad(openServerThread()) })
  const ways: Ways = { here, thread, byLoad: chosen }
  const results: Record<string, Readonly<Record<keyof Ways, Figures>>> = {}
  const expectations = []
  for (const [concurrency, atLeast] of Object.entries(leastGain)) {
    const figures = await takeTurns(ways, Number(concurrency))
    results[`concurrency${concurrency}`] = figures
    const value = figures.byLoad.perSecond / figures.thread.perSecond
    const what = `requests per second at ${concurrency} at a time by load, of those always in a thread`
    expectations.push({ what, value, atLeast })
    if (!json) print(concurrency, figures)
  }
  return { ...results, missed: missedOf(expectations) }
}

async function takeTurns(
  ways: Ways,
  concurrency: number,
): Promise<Readonly<Record<keyof Ways, Figures>>> {
  const taken: Record<keyof Ways, Figures[]> = { here: [], thread: [], byLoad: [] }
  for (let round = 0; round <= rounds; round++) {
    for (const name of Object.keys(taken) as (keyof Ways)[]) {
      const figures = await sampleAll(ways[name], concurrency)
      if (round > 0) taken[name].push(figures)
    }
  }
  const { here, thread, byLoad } = taken
  return { here: middleOf(here), thread: middleOf(thread), byLoad: middleOf(byLoad) }
}

async function sampleAll(policy: Policy, concurrency: number): Promise<Figures> {
  const conversations = 100 * Math.min(4, concurrency)
  const { signal } = new AbortController()
  let next = 0
  const cpu = process.cpuUsage()
  const started = performance.now()
  const converse = async (): Promise<void> => {
    while (next < conversations) {
      const number = next++
      for (let turn = 0; turn < turns; turn++) {
        await policy.sample(requestOf(number, turn), { signal })
      }
    }
  }
  await Promise.all(Array.from({ length: concurrency }, converse))
  const seconds = (performance.now() - started) / 1000
  const { user, system } = process.cpuUsage(cpu)
  const count = conversations * turns
  return { perSecond: count / seconds, cpuMicroseconds: (user + system) / count }
}

const tokens = Int32Array.from({ length: 2000 + turns * 110 }, (_, at) => (at * 7919) % 150_000)

function requestOf(number: number, turn: number): SampleRequest {
  const ids = tokens.subarray(0, 2000 + turn * 110)
  return {
    prompt: { ids, messages: [], tools: [] },
    maxTokens: 2048,
    sampling: plainSampling,
    stopIds: [151_645],
    stopStrings: [],
    seed: number * turns + turn,
    key: { task: String(number), member: 0, branch: '', turn },
    session: `${number}/0`,
  }
}

function middleOf(figures: readonly Figures[]): Figures {
  const middle = (values: readonly number[]): number =>
    values.toSorted((a, b) => a - b)[values.length >> 1]!
  return {
    perSecond: middle(figures.map(({ perSecond }) => perSecond)),
    cpuMicroseconds: middle(figures.map(({ cpuMicroseconds }) => cpuMicroseconds)),
  }
}

function print(concurrency: string, figures: Readonly<Record<keyof Ways, Figures>>): void {
  console.log(`${concurrency} at a time`)
  for (const [name, { perSecond, cpuMicroseconds }] of Object.entries(figures)) {
    const cpu = `${Math.round(cpuMicroseconds)} µs of processor each`
    console.log(`  ${name.padEnd(7)} ${Math.round(perSecond)} requests/s, ${cpu}`)
  }
}
