import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { program } from '../test/end-to-end/cli.ts'
import { wordsOf } from '../test/end-to-end/page-commands.ts'
import { booker } from './newcomers/booker.ts'
import { wishes } from './newcomers/library.ts'
import { orders } from './newcomers/picker.ts'

/** Agents and environments of the kind that people bring. No default was chosen by looking at them. */
const newcomers = [
  { name: 'booker', kind: 'agent' },
  { name: 'picker', kind: 'environment', tasks: orders(300) },
  { name: 'till', kind: 'environment' },
  { name: 'pager', kind: 'agent' },
  { name: 'courier', kind: 'environment' },
  { name: 'library', kind: 'environment', tasks: wishes(300) },
] as const

/** Whether the second try is measured. */
const isSecond = process.env.SOLVED !== undefined

/**
 * The first try of somebody new at six agents and environments: `teach` with nothing but what has to be
 * named, then the `train` that it prints. NEWCOMERS and SEEDS choose, as in `NEWCOMERS=till SEEDS=1,2`.
 * SOLVED=1 is the second try: only what earns its reward is learned from, of 2,000 tasks if they can be made.
 * RIGHT=300,2800 measures instead what imitation alone reaches by so many demonstrations without a mistake.
 */
export async function bench({ json }: { json: boolean }): Promise<object> {
  const { NEWCOMERS: chosen, SEEDS: seeds = '1,2,3', RIGHT: counts } = process.env
  if (counts !== undefined) return await imitations(counts.split(',').map(Number), json)
  const tried = newcomers.filter(({ name }) => chosen === undefined || chosen.includes(name))
  const figures: FirstTry[] = []
  for (const newcomer of tried) {
    for (const seed of seeds.split(',')) {
      const figure = firstTry(newcomer, Number(seed))
      figures.push(figure)
      if (!json) print(figure)
    }
  }
  const learned = tried.filter(({ name }) =>
    figures.every(figure => figure.name !== name || figure.isClear),
  )
  if (!json) console.log(`${learned.length} of ${tried.length} learn clearly with every seed`)
  return { figures, learned: learned.map(({ name }) => name) }
}

interface FirstTry {
  readonly name: string
  readonly seed: number
  /** Held-out success at the start and after the last step. */
  readonly before: number
  readonly after: number
  /** The lower bound of that change, task by task. */
  readonly changeLow: number
  /** Whether it is above 0. */
  readonly isClear: boolean
  readonly steps: number
  readonly taught: number
  readonly trained: number
  /** The last lines of `train`. */
  readonly said: string
}

function firstTry(newcomer: (typeof newcomers)[number], seed: number): FirstTry {
  const { name, kind } = newcomer
  const folder = mkdtempSync(join(tmpdir(), 'espalier-newcomer-'))
  try {
    cpSync(`bench/newcomers/${name}.ts`, join(folder, `${name}.ts`))
    symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
    const tasks = 'tasks' in newcomer ? newcomer.tasks : undefined
    if (tasks) {
      const lines = tasks.map(task => `${JSON.stringify(task)}\n`)
      writeFileSync(join(folder, 'tasks.jsonl'), lines.join(''))
    }
    const run = (words: readonly string[]) => follow(folder, [...words, '--seed', `${seed}`])
    const teach = run([
      'teach',
      `--${kind}`,
      `./${name}.ts#${name}`,
      ...(tasks ? ['--tasks', 'tasks.jsonl'] : isSecond ? ['--tasks', '2000'] : []),
      ...(isSecond ? ['--solved'] : []),
      '--demonstrations',
      `./${name}.ts#show`,
      '--out',
      `models/${name}`,
    ])
    const next = /^(?:next)? +(?:npx )?(espalier train .*)$/m.exec(teach.stderr)?.[1]
    if (next === undefined) throw new Error(`teach named no train:\n${teach.stderr}`)
    const train = run([...wordsOf(next), '--json'])
    const figures = JSON.parse(train.stdout.trim().split('\n').at(-1)!) as Trained
    const { run: made } = figures
    const compared = follow(folder, ['compare', `${made}@before`, `${made}@after`, '--json'])
    const { success } = JSON.parse(compared.stdout.trim().split('\n').at(-1)!) as Compared
    return {
      name,
      seed,
      before: figures.successBefore,
      after: figures.successAfter,
      changeLow: success.low,
      isClear: success.low > 0,
      steps: figures.steps,
      taught: teach.seconds,
      trained: train.seconds,
      said: train.stderr.trim().split('\n').slice(-8).join('\n'),
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Tasks that are measured, none of which is shown. */
const fresh = 200

async function imitations(counts: readonly number[], json: boolean): Promise<object> {
  const makers = {
    booker: async (count: number) =>
      (await booker.makeTasks!({ count, seed: 1 })).map(({ id, data }) => ({ id, ...data })),
    library: wishes,
    picker: orders,
  }
  const figures: object[] = []
  for (const [name, make] of Object.entries(makers)) {
    for (const count of counts) {
      const figure = { name, count, success: imitation(name, await make(count + fresh)) }
      figures.push(figure)
      if (!json) console.log(`${name.padEnd(8)} ${count} shown  ${figure.success.toFixed(3)}`)
    }
  }
  return { imitations: figures }
}

/** Success at the last of the tasks by a model that was taught all others. */
function imitation(name: string, tasks: readonly object[]): number {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-newcomer-'))
  try {
    for (const file of [name, 'right'])
      cpSync(`bench/newcomers/${file}.ts`, join(folder, `${file}.ts`))
    symlinkSync(resolve('node_modules'), join(folder, 'node_modules'))
    const write = (file: string, some: readonly object[]): void =>
      writeFileSync(join(folder, file), some.map(task => `${JSON.stringify(task)}\n`).join(''))
    write('shown.jsonl', tasks.slice(0, -fresh))
    write('fresh.jsonl', tasks.slice(-fresh))
    const world = ['--environment', `./${name}.ts#${name}`, '--seed', '1']
    const shown = ['--tasks', 'shown.jsonl', '--demonstrations', `./right.ts#${name}`]
    const { stderr } = follow(folder, ['teach', ...world, ...shown, '--out', 'model'])
    const limits = /--max-turns .*/.exec(stderr)?.[0] ?? ''
    const asked = ['--policy', 'embedded:model', '--tasks', 'fresh.jsonl', ...wordsOf(limits)]
    const { stdout } = follow(folder, ['eval', ...world, ...asked])
    return Number(/^ *success +([\d.]+) %/m.exec(stdout)?.[1]) / 100
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Trained {
  readonly successBefore: number
  readonly successAfter: number
  readonly steps: number
  readonly run: string
}

interface Compared {
  readonly success: { readonly low: number }
}

function follow(cwd: string, words: readonly string[]) {
  const start = performance.now()
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...words], {
    cwd,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  })
  if (status !== 0) throw new Error(`espalier ${words.join(' ')}\n${stderr}`)
  return { stdout, stderr, seconds: (performance.now() - start) / 1000 }
}

function print(figure: FirstTry): void {
  const { name, seed, before, after, steps, taught, trained } = figure
  const verdict = figure.isClear ? 'learns' : 'does not learn clearly'
  console.log(
    `${name.padEnd(8)} seed ${seed}  ${before.toFixed(3)} → ${after.toFixed(3)}  ${verdict}  ` +
      `(${steps} steps; teach ${taught.toFixed(0)} s, train ${trained.toFixed(0)} s)`,
  )
}
