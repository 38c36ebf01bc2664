import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { openRenderer } from '../dist/tokens.js'
import { type Expectation, missedOf } from './expectation.ts'
import { type FixedServer, openFixedServer } from './fixed-server.ts'
import { median, medianRatio } from './median.ts'
import type { Figures, Order, SideName } from './overhead/side.ts'
import { answerOf, model, turns } from './overhead/world.ts'

/** The part of its rollouts with which every side begins its turn, unmeasured. */
const leadIn = 0.5
/** The sides take turns, so that other load on the machine affects all of them. */
const rounds = 5
/** Least part of the bare client's turns per second that rolling into a run folder has to give. */
const leastRatio: Readonly<Record<number, number>> = { 1: 0.4, 64: 0.55, 1024: 0.5 }
/** The part that is wanted. */
const wantedRatio: Readonly<Record<number, number>> = { 1: 0.6, 64: 0.8, 1024: 0.9 }
/** The cores that client, engine and server share. */
const cores = 2

/** The median of all rounds, with the server's cost. */
interface Measured extends Figures {
  readonly serverMicrosecondsPerTurn: number
  /** Turns per second of every round. */
  readonly rates: readonly number[]
}

/**
 * Turns per second through `roll()` against a bare HTTP client that sends the same bodies: with a
 * run folder and all observers, as `espalier roll` does it, in groups of the usual size and with one
 * attempt per task, so that every opening is new; and in memory only. Every side is a process of its own.
 */
export async function bench({ json }: { json: boolean }): Promise<BenchFigures> {
  const answer = answerOf(await openRenderer(model))
  await using server = await openFixedServer(answer)
  await using sides = await openSides(server.url)
  const results: Record<string, Concurrency> = {}
  for (const concurrency of [1, 64, 1024]) {
    const rollouts = concurrency === 1 ? 256 : Math.max(1600, 3 * concurrency)
    const order = { concurrency, rollouts, leadIn: rollouts * leadIn }
    const result = compare(concurrency, await takeTurns(sides, { server, order }))
    results[`concurrency${concurrency}`] = result
    if (!json) print(concurrency, result)
  }
  return { ...results, missed: missedOf(expectationsOf(results)) }
}

type BenchFigures = Readonly<Record<string, Concurrency | readonly string[]>> & {
  readonly missed: readonly string[]
}

interface Concurrency extends Readonly<Record<SideName, Measured>> {
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

function compare(concurrency: number, sides: Readonly<Record<SideName, Measured>>): Concurrency {
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

/** The sides, each in its process. */
interface Sides extends AsyncDisposable {
  run(name: SideName, order: Order): Promise<Figures>
}

async function openSides(url: string): Promise<Sides> {
  const names: readonly SideName[] = ['kept', 'alone', 'inMemory', 'bare']
  const sides = new Map<SideName, OpenSide>()
  // One after the other: each warms up.
  for (const name of names) sides.set(name, await openSide(name, url))
  return {
    run: async (name, order) => (await sides.get(name)!.ask(order)) as Figures,
    async [Symbol.asyncDispose]() {
      for (const { child } of sides.values()) child.disconnect()
    },
  }
}

interface OpenSide {
  readonly child: ChildProcess
  ask(order: Order): Promise<unknown>
}

/** Starts a side and waits until it is warm. If it ends too early, its own error stands on the terminal. */
async function openSide(name: SideName, url: string): Promise<OpenSide> {
  const program = fileURLToPath(new URL('./overhead/side.ts', import.meta.url))
  const child = fork(program, [name, url], { execArgv: ['--import', 'tsx'] })
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`the side "${name}" ended with ${code}`)
  })
  const answer = async (): Promise<unknown> => {
    const [message] = await Promise.race([once(child, 'message'), ended])
    return message
  }
  await answer()
  return {
    child,
    ask(order) {
      child.send(order)
      return answer()
    },
  }
}

/** Lets all sides run in turn; the first round of each is not counted. */
async function takeTurns(
  sides: Sides,
  { server, order }: { readonly server: FixedServer; readonly order: Order },
): Promise<Record<SideName, Measured>> {
  const taken: Record<SideName, (Figures & { server: number })[]> = {
    kept: [],
    alone: [],
    inMemory: [],
    bare: [],
  }
  for (let round = 0; round <= rounds; round++) {
    for (const name of Object.keys(taken) as SideName[]) {
      const before = await server.cpu()
      const figures = await sides.run(name, order)
      const used = ((await server.cpu()) - before) / ((order.rollouts + order.leadIn) * turns)
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
