import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { random, seedOf } from '../../src/base/math/random.ts'
import { openRenderer } from '../../src/run/settings/model-source.ts'
import { Counter } from '../counter.ts'
import type { Answer, Asked, ServingOptions } from '../servers/serving.ts'
import { openSglangServer } from '../servers/sglang.ts'
import { espalier, type Finished, scratch, start } from './cli.ts'

const model = 'models/chatml-bytes'
const renderer = await openRenderer(model)
const resultMark = renderer.tokenizer.encode('<tool_response>')

/** A model that calls the tool up to three times, or so often, and then answers; a function of prompt and seed. */
function answer({ prompt, seed = 0 }: Asked, calls: number | undefined): Answer {
  const results = resultsIn(prompt)
  const isOver = results === (calls ?? 3) || (calls === undefined && results > 0 && seed % 2 === 0)
  const number = seed % 97
  const call = { name: 'calculate', arguments: { expression: `${number}+${results}` } }
  const text = isOver
    ? `It is ${number % 3 === 0 ? 5 : number}<|im_end|>`
    : `<tool_call>\n${JSON.stringify(call)}\n</tool_call><|im_end|>`
  const ids = [...renderer.tokenizer.encode(text)]
  return {
    ids,
    logprobs: ids.map((id, place) => -((id + place + number) % 23) / 8),
    finish: 'stop',
  }
}

/** How many results of the tool are in a prompt. */
export const resultsIn = (prompt: readonly number[]): number => countOf(prompt, resultMark)

function countOf(ids: readonly number[], mark: Int32Array): number {
  return ids.filter((_, at) => mark.every((id, index) => ids[at + index] === id)).length
}

/** What a trial of chaos is made of. */
export interface Trial {
  readonly seed: number
  readonly tasks: number
  readonly group: number
  /** Milliseconds a server takes to answer. */
  readonly latency: number
  /** How often the model calls the tool. @default up to three times */
  readonly calls?: number
  readonly fault?: NonNullable<ServingOptions['fault']>
  /** Further words of the command. */
  readonly words?: readonly string[]
}

/** A disturbed run, with its expected result. */
export interface Disturbance extends AsyncDisposable {
  readonly folder: string
  readonly run: string
  /** The words that begin the run. */
  readonly words: readonly string[]
  /** How many generations the server was asked for. */
  generations(): number
  /** Resolves when it was asked for so many. */
  reached(generations: number): Promise<void>
  /** Takes the server away in the middle of what it does, and starts it again at its address. */
  leave(): Promise<void>
  comeBack(): Promise<void>
  /** The rows of the run as they are exported. */
  rows(run?: string): Promise<string>
}

/** Opens a server and a task file for a trial. */
export async function openTrial(trial: Trial): Promise<Disturbance> {
  const generations = new Counter()
  const serve = (port?: number) =>
    openSglangServer({
      answer: asked => {
        generations.raise()
        return answer(asked, trial.calls)
      },
      latency: trial.latency,
      remember: false,
      ...(trial.fault && { fault: trial.fault }),
      ...(port !== undefined && { port }),
    })
  let server = await serve()
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
    ...['--concurrency', '8', '--out', run, ...(trial.words ?? [])],
  ]
  return {
    folder,
    run,
    words,
    generations: () => generations.value,
    reached: count => generations.reached(count),
    leave: () => server.close(),
    async comeBack() {
      server = await serve(Number(new URL(server.url).port))
    },
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
  trial: Disturbance,
  { seed, kills, apart }: { seed: number; kills: number; apart: number },
): Promise<{ readonly kills: number; readonly last: Finished }> {
  const next = random(seedOf('kills', seed))
  let killed = 0
  for (;;) {
    const isBegun = existsSync(join(trial.run, 'run.json'))
    const { child, finished } = start(isBegun ? ['resume', trial.run] : trial.words)
    const isOver = finished.then(() => true)
    if (killed < kills) {
      await progress(trial, Math.floor(next() * apart), isOver)
      await Promise.race([wait(next() * 40), isOver])
      if (child.kill('SIGKILL')) killed++
    }
    const last = await finished
    if (last.code === 0) return { kills: killed, last }
    if (last.code !== null) throw new Error(last.stderr)
  }
}

/** Waits until a run has asked for some more generations, or is over. */
async function progress(
  trial: Disturbance,
  generations: number,
  isOver: Promise<boolean>,
): Promise<void> {
  await Promise.race([trial.reached(trial.generations() + generations + 1), isOver])
}
