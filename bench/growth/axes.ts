import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { environment, type Policy, type RollOptions, roll, tool } from '../../dist/index.js'
import { plainCapabilities, sampled } from '../../dist/policies.js'
import { openRunReader } from '../../dist/store.js'
import type { ModelRenderer } from '../../dist/tokens.js'
import { runPaths } from '../../src/run/store/run-folder.ts'
import { writeLongRun } from '../long-run.ts'

/** One way in which work can grow. */
export interface Axis {
  readonly name: string
  /** What is counted along it. */
  readonly unit: string
  /** What is usual; the largest is a hundred times that. */
  readonly usual: number
  /** Prepares work of a size; gives what does it once. */
  prepare(size: number): Promise<Work>
  /** Why its cost may grow faster than the work does. */
  readonly explanation?: string
}

/** Work of one size, to be done as often as is asked. */
export interface Work extends AsyncDisposable {
  run(): Promise<void>
  /** How many pieces of that size one run does. */
  readonly pieces: number
}

/** A world with a page for every turn. */
const pages = environment({
  name: 'pages',
  task: z.object({ question: z.string() }),
  open: ({ data }) => ({
    opening: [{ role: 'user', content: data.question }],
    tools: {
      read: tool({
        inputSchema: z.object({ page: z.int() }),
        execute: ({ page }) => `Page ${page}. ${'The orchard sold pears in May. '.repeat(8)}`,
      }),
    },
  }),
  reward: { done: () => 1 },
})

/** The axes of growth, through `roll()` with a run folder and a policy inside the process. */
export function openAxes(model: ModelRenderer): readonly Axis[] {
  const policy = fixedPolicy(model)
  const limits = { turns: 2, tokens: 1e6, context: 1e7 }
  const usual: RollOptions = { policy, model, group: 1, concurrency: 16, limits }
  // The same concurrency in every size, since rollouts share writes with others.
  const rollouts = 16
  return [
    rolling('groups', 'group', 30, size => {
      const runs = Math.min(8, Math.max(1, Math.round(600 / size)))
      return { options: usual, runs, rollouts: size, pieces: runs }
    }),
    rolling('turns', 'turn', 4, size => {
      const options = { ...usual, limits: { ...limits, turns: size } }
      return { options, rollouts, pieces: rollouts }
    }),
    rolling('leaves', 'leaf', 4, size => {
      const branch = `fixed:width=${size},depth=1`
      const options: RollOptions = { ...usual, strategy: 'tree', branch, leaves: size }
      return { options, rollouts, pieces: rollouts }
    }),
    rolling('context', 'word', 400, words => {
      return { options: usual, rollouts, pieces: rollouts, words }
    }),
    {
      name: 'run length',
      unit: 'finished group when resumed',
      usual: 30,
      prepare: size => prepareResume(size, usual),
    },
    { name: 'journal', unit: 'MB listed', usual: 1, prepare: size => prepareListing(size, true) },
    {
      name: 'journal without index',
      unit: 'MB listed',
      usual: 1,
      prepare: size => prepareListing(size, false),
    },
  ]
}

/** Rollouts of one size: how many, and what one measurement of them is divided by. */
interface Rolling {
  readonly options: RollOptions
  readonly rollouts: number
  readonly pieces: number
  /** Whole runs of so many rollouts. @default 1 */
  readonly runs?: number
  /** Words of each question. @default 100 */
  readonly words?: number
}

function rolling(
  name: string,
  unit: string,
  usual: number,
  planOf: (size: number) => Rolling,
): Axis {
  return {
    name,
    unit,
    usual,
    async prepare(size) {
      const { options, rollouts, pieces, runs = 1, words } = planOf(size)
      return {
        pieces,
        async run() {
          for (let count = 0; count < runs; count++) {
            await inFolder(out => rollAll(tasksOf(rollouts, words), { ...options, out }))
          }
        },
        async [Symbol.asyncDispose]() {},
      }
    },
  }
}

let asked = 0

/** Questions that nobody asked before, so that no cache knows them. */
function tasksOf(count: number, words = 100) {
  return Array.from({ length: count }, (_, id) => {
    asked++
    const said = Array.from({ length: words }, (_, at) => vocabulary[(asked * 7 + at * at) % 12])
    return { id, question: `${asked}: ${said.join(' ')}` }
  })
}

const vocabulary = 'how many pears did the orchard sell in May and why not'.split(' ')

async function rollAll(tasks: readonly object[], options: RollOptions): Promise<void> {
  for await (const { unscored } of roll(pages, tasks as never, options)) {
    if (unscored[0]) throw new Error(JSON.stringify(unscored[0].outcome))
  }
}

async function inFolder<T>(work: (out: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'espalier-growth-'))
  try {
    return await work(join(folder, 'run'))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** A run of so many groups that are all finished: going on with it finds nothing to do. */
async function prepareResume(size: number, usual: RollOptions): Promise<Work> {
  const folder = await mkdtemp(join(tmpdir(), 'espalier-growth-'))
  const out = join(folder, 'run')
  const tasks = tasksOf(size)
  await rollAll(tasks, { ...usual, out })
  return {
    pieces: 1,
    run: () => rollAll(tasks, { ...usual, out, resumes: true }),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

async function prepareListing(megabytes: number, hasIndex: boolean): Promise<Work> {
  const folder = await mkdtemp(join(tmpdir(), 'espalier-growth-'))
  const groups = await writeLongRun(folder, megabytes / 1000)
  return {
    pieces: 1,
    async run() {
      if (!hasIndex) await rm(runPaths(folder).index, { force: true })
      await using reader = await openRunReader(folder)
      if (reader.groupCount !== groups) throw new Error(`${reader.groupCount} of ${groups} groups`)
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

/** Answers every prompt with the same call, at once; said to be a server, so that samples are kept. */
function fixedPolicy({ tokenizer }: ModelRenderer): Policy {
  const text = '<tool_call>\n{"name": "read", "arguments": {"page": 1}}\n</tool_call><|im_end|>'
  const ids = Int32Array.from(tokenizer.encode(text))
  const logprobs = Float32Array.from(ids, () => -0.5)
  return {
    name: 'fixed',
    capabilities: plainCapabilities,
    async sample({ prompt }) {
      const version = { from: 0, to: 0 }
      return {
        kind: 'tokens',
        segment: sampled({ ids: ids.slice(), logprobs: logprobs.slice(), version }),
        finish: { kind: 'stop' },
        usage: { prompt: prompt.ids.length, sampled: ids.length, seconds: 0 },
      }
    },
    describe: () => Promise.reject(new Error('nobody asks')),
    async [Symbol.asyncDispose]() {},
  }
}
