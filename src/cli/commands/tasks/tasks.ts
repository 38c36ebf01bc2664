import { existsSync, writeFileSync } from 'node:fs'
import { holdLoop } from '@espalier/text/signals'
import type { Environment, Task } from '../../../base/core/environment.ts'
import { SettingError } from '../../../base/core/names/setting-error.ts'
import { percent } from '../../../base/core/names/units.ts'
import { jsonWithoutSecrets } from '../../../base/core/process/secrets.ts'
import { readSplits } from '../../../learn/datasets/splits.ts'
import { checkOutputFile } from '../../../run/exchange/output-file.ts'
import { recordTasks } from '../../../run/exchange/record-tasks.ts'
import { measureTasks } from '../../../run/measure/task-set.ts'
import { closeEnvironment } from '../../../run/run/close-environment.ts'
import { joinEnvironments } from '../../../run/settings/environment-names.ts'
import { openEnvironmentNamed } from '../../../run/settings/open-environment.ts'
import { openNamed } from '../../../run/settings/open-named.ts'
import { isRun, readManifest } from '../../../run/store/run-folder.ts'
import { bands, dedupeTasks, partTasks } from '../../../run/tasks/curate/curate.ts'
import type { LikenessOptions } from '../../../run/tasks/curate/likeness.ts'
import { readTasks } from '../../../run/tasks/tasks.ts'
import { type Command, type Invocation, MisuseError, unknownVerb } from '../../command.ts'

/** Makes, dedupes, splits and measures sets of tasks. */
export const tasksCommand: Command = {
  name: 'tasks',
  usage: 'make N | record FILE | dedupe FILE | split FILE | measure RUN',
  about:
    'make N        tasks of --environment, from a seed\n' +
    'record FILE   of traces (--from otel or ai-sdk; any format of import) or of a run: one for each answered message of a\n' +
    '              user, in whose world (--environment recorded) old calls get the results seen then\n' +
    'dedupe FILE   without tasks that repeat an earlier one or are like one of --against: the same\n' +
    '              text, or so large a share of its n-grams\n' +
    'split FILE    parts by shares (--splits train=0.9,held-out=0.1); tasks that are alike stay together\n' +
    'measure RUN   what the attempts of an eval or roll say of its tasks: success, contrast, bands of\n' +
    '              difficulty, leakage against --against; --keep writes those of some bands\n\n' +
    'FILE is JSONL, Parquet or a run; what is written is what --tasks reads. No file is written over.',
  examples: [
    'espalier tasks make 1000 --environment calculator --out all.jsonl',
    'espalier tasks record traces.jsonl --from otel --out recorded.jsonl',
    'espalier tasks dedupe all.jsonl --against held-out.jsonl --out train.jsonl',
    'espalier tasks split all.jsonl --splits train=0.9,held-out=0.1 --out set.jsonl',
    'espalier tasks measure runs/0003 --keep seldom,sometimes,often --out train.jsonl',
  ],
  settings: ['environment', 'split', 'seed', 'successAt'],
  defaults: { environment: 'none: any object is a task', seed: 0 },
  own: {
    out: { help: 'The file to write', argument: 'FILE' },
    from: { help: 'The format of what `record` reads (default: otel)', argument: 'FORMAT' },
    against: {
      help: 'Held-out tasks, a file or a run; may be given several times',
      argument: 'FILE',
      isList: true,
    },
    'n-gram': { help: 'Words of the pieces that are compared (default: 8)', argument: 'N' },
    overlap: {
      help: 'The share of a task’s pieces from which on it is like another (default: 0.5)',
      argument: 'X',
    },
    splits: {
      help: 'Parts and their shares (default: train=0.9,held-out=0.1)',
      argument: 'SPLITS',
    },
    keep: { help: `Bands to write, of ${bands.join(', ')}`, argument: 'BANDS' },
  },
  positionalCount: [2, 2],
  run: runTasks,
}

const verbs: Readonly<Record<string, (invocation: Invocation) => Promise<number>>> = {
  make: makeSet,
  record: recordSet,
  dedupe: dedupeSet,
  split: splitSet,
  measure: measureSet,
}

async function runTasks(invocation: Invocation): Promise<number> {
  const [verb = ''] = invocation.positionals
  if (Object.hasOwn(verbs, verb)) return await verbs[verb]!(invocation)
  throw unknownVerb('tasks', verb, Object.keys(verbs))
}

async function makeSet(invocation: Invocation): Promise<number> {
  const { positionals: words, flags } = invocation
  const count = Number(words[1])
  if (!Number.isInteger(count) || count < 1) {
    throw new MisuseError(`espalier tasks make takes how many, not "${words[1]}"`)
  }
  if (flags.environment === undefined) throw new MisuseError('--environment NAME is missing')
  const out = refuseOld(outOf(invocation))
  return tellWritten(invocation, { tasks: write(out, await read(invocation, count)) })
}

async function recordSet(invocation: Invocation): Promise<number> {
  const out = refuseOld(outOf(invocation))
  const lines: string[] = []
  for await (const task of recordTasks(invocation.positionals[1]!, invocation.own.from)) {
    lines.push(`${jsonWithoutSecrets(task)}\n`)
  }
  if (lines.length === 0) {
    throw new SettingError(
      `${invocation.positionals[1]} holds no message of a user that was answered`,
    )
  }
  writeFileSync(out, lines.join(''))
  return tellWritten(invocation, { tasks: lines.length })
}

async function dedupeSet(invocation: Invocation): Promise<number> {
  const out = refuseOld(outOf(invocation))
  const tasks = await read(invocation, invocation.positionals[1]!)
  const heldOut = await readAgainst(invocation)
  const { kept, leftOut } = dedupeTasks(tasks, heldOut, likenessOf(invocation))
  write(out, kept)
  const heldBack = leftOut.filter(({ because }) => because === 'held-out').length
  const counted = { tasks: kept.length, repeated: leftOut.length - heldBack, heldOut: heldBack }
  return tellWritten(invocation, counted, { leftOut })
}

async function splitSet(invocation: Invocation): Promise<number> {
  const out = outOf(invocation)
  const { flags, own } = invocation
  const splits = await openNamed('--splits', () =>
    readSplits(own.splits ?? 'train=0.9,held-out=0.1'),
  )
  const shares = Object.fromEntries(splits.map(({ name, share }) => [name, share]))
  const fileOf = (name: string): string => out.replace(/(\.jsonl)?$/, `.${name}.jsonl`)
  for (const { name } of splits) refuseOld(fileOf(name))
  const options = { seed: flags.seed ?? 0, ...likenessOf(invocation) }
  const parts = partTasks(await read(invocation, invocation.positionals[1]!), shares, options)
  const files: Record<string, string> = {}
  const counted: Record<string, number> = {}
  for (const [name, tasks] of Object.entries(parts)) {
    files[name] = fileOf(name)
    counted[name] = write(files[name], tasks)
  }
  return tellWritten(invocation, counted, { files })
}

async function measureSet(invocation: Invocation): Promise<number> {
  const { positionals: words, flags, own, lists, terminal, json } = invocation
  const run = words[1]!
  if (!isRun(run)) throw new MisuseError(`${run} is not a run: roll or eval the tasks first`)
  if ((await readManifest(run)).kind === 'train') {
    throw new MisuseError(
      `${run} is a run of training: its policy changed meanwhile, and some of its tasks are held out. Roll or eval the tasks`,
    )
  }
  const keep = own.keep?.split(',').map(band => band.trim())
  const wrong = keep?.find(band => !bands.some(known => known === band))
  if (wrong !== undefined) throw new MisuseError(`--keep ${wrong}: bands are ${bands.join(', ')}`)
  const out = keep && refuseOld(outOf(invocation))
  const heldOut = lists.against?.length ? await readAgainst(invocation) : undefined
  const measured = await measureTasks(run, {
    ...likenessOf(invocation),
    ...(flags.successAt !== undefined && { successAt: flags.successAt }),
    ...(heldOut && { heldOut }),
  })
  if (json) terminal.print(JSON.stringify(measured))
  else {
    const { tasks, unscored, success, contrast, leaked } = measured
    terminal.print(`${tasks} tasks, ${unscored} of them never scored`)
    terminal.print(`success ${percent(success)}  contrast ${percent(contrast)}`)
    const counts = bands.map(band => `${band} ${measured.bands[band]}`)
    terminal.print(counts.join('  '))
    if (leaked) terminal.print(`like a held-out task: ${leaked.length}`)
  }
  if (!keep || out === undefined) return 0
  const kept = new Map(measured.byTask.map(({ id, band }) => [id, keep.includes(band)]))
  const leaks = new Set(measured.leaked?.map(({ id }) => id))
  const chosen = (await read(invocation, run)).filter(({ id }) => kept.get(id) && !leaks.has(id))
  terminal.tell(`wrote ${write(out, chosen)} tasks to ${out}`)
  return 0
}

function outOf({ own: { out } }: Invocation): string {
  if (!out?.endsWith('.jsonl')) {
    throw new MisuseError('--out FILE is missing, or does not end with .jsonl')
  }
  checkOutputFile('--out', out)
  return out
}

/** Refuses to write over a file: it may be the only copy of somebody's tasks. */
function refuseOld(file: string): string {
  if (!existsSync(file)) return file
  throw new MisuseError(`${file} is there already: remove it or choose another --out`)
}

function likenessOf({ own }: Invocation): LikenessOptions {
  const nGram = numberOf('n-gram', own['n-gram'])
  const overlap = numberOf('overlap', own.overlap)
  if (nGram !== undefined && !Number.isInteger(nGram)) {
    throw new MisuseError(`--n-gram takes a whole number from 1 on, not "${own['n-gram']}"`)
  }
  if (overlap !== undefined && overlap > 1) {
    throw new MisuseError(`--overlap takes a share above 0, at most 1, not "${own.overlap}"`)
  }
  return { ...(nGram !== undefined && { nGram }), ...(overlap !== undefined && { overlap }) }
}

function numberOf(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (text.trim() !== '' && Number(text) > 0) return Number(text)
  throw new MisuseError(`--${flag} takes a number above 0, not "${text}"`)
}

async function readAgainst(invocation: Invocation): Promise<readonly Task[]> {
  const files = invocation.lists.against ?? []
  return (await Promise.all(files.map(file => read(invocation, file)))).flat()
}

async function read(
  { flags, terminal }: Invocation,
  source: string | number,
): Promise<readonly Task[]> {
  const { environment: name, split, seed = 0 } = flags
  const environment =
    name === undefined ? anyTasks : await openEnvironmentNamed(joinEnvironments([name].flat()))
  const tasks: Task[] = []
  // Making tasks does not turn the event loop, nor does what is done with them: Ctrl-C ends both.
  holdLoop()
  try {
    const options = { seed, ...(split !== undefined && { split }) }
    for await (const task of readTasks(environment, source, options)) tasks.push(task)
  } finally {
    await closeEnvironment(environment, terminal.tell)
  }
  holdLoop()
  return tasks
}

/** Reads any object as a task, for use without an environment. */
const anyTasks: Environment = {
  name: 'any',
  readTask(data) {
    if (typeof data === 'object' && data !== null && !Array.isArray(data)) return data
    throw new TypeError('a task is a JSON object')
  },
  open() {
    throw new SettingError('tasks without an environment are not rolled')
  },
  reward: {},
}

/** Writes tasks as `--tasks` reads them; gives how many. */
function write(file: string, tasks: readonly Task[]): number {
  const lines = tasks.map(({ id, data }) => `${jsonWithoutSecrets({ ...(data as object), id })}\n`)
  writeFileSync(file, lines.join(''))
  return tasks.length
}

function tellWritten(
  { terminal, json, own }: Invocation,
  counts: Readonly<Record<string, number>>,
  more: { readonly files?: Readonly<Record<string, string>>; readonly leftOut?: unknown } = {},
): number {
  const { files } = more
  const counted = Object.entries(counts).map(
    ([name, count]) => `${name} ${count}${files ? ` in ${files[name]}` : ''}`,
  )
  if (json) terminal.print(JSON.stringify({ ...counts, ...more, out: own.out }))
  else terminal.print(`${counted.join('  ')}${files ? '' : `  in ${own.out}`}`)
  return 0
}
