import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Environment, Task } from '../../base/core/environment.ts'
import { commandLine } from '../../base/core/names/program-name.ts'
import { percent } from '../../base/core/names/units.ts'
import { type Coverage, coverageOf } from '../../learn/learn/coverage.ts'
import { type AttemptLimits, limitsFor, teachFrom } from '../../learn/learn/teach.ts'
import type { MeasuredApart, SupervisedStep } from '../../learn/model/supervised.ts'
import type { TeachModelOptions } from '../../learn/model/teach.ts'
import {
  mistakenWords,
  openDemonstrations,
  shareSolved,
} from '../../run/demonstrations/demonstrations.ts'
import { refuseBelowFile } from '../../run/run/check-options.ts'
import { closeEnvironment } from '../../run/run/close-environment.ts'
import { resolveSettings } from '../../run/settings/config.ts'
import { openEnvironmentNamed } from '../../run/settings/open-environment.ts'
import { flagOf, type SettingName, type Settings } from '../../run/settings/settings.ts'
import { isRun } from '../../run/store/run-folder.ts'
import { readTasks } from '../../run/tasks/tasks.ts'
import { type Command, type Invocation, MisuseError } from '../command.ts'
import { type Taught, taughtPath } from '../next-try.ts'
import type { Terminal } from '../terminal.ts'

/** Makes an embedded model from demonstrations. */
export const teachCommand: Command = {
  name: 'teach',
  usage: '--environment NAME --demonstrations FILE|RUN --out DIR',
  about:
    'Builds a vocabulary from demonstrations, with bytes for every other text, and trains a small\n' +
    'model on what the assistant says in them. Demonstrations are a file with one {"messages"} per line\n' +
    "(OpenAI's or the AI SDK's; with `tools`, or with the `task` of an environment), the solved\n" +
    'trajectories of a run, or ./file.ts#export: a function that shows each turn. A tenth of them is\n' +
    'kept apart, if there are 100 or more, and teaching stops before it learns the others by heart;\n' +
    '--epochs says how long instead.',
  examples: [
    'espalier teach --environment ./shop.ts#shop --demonstrations shown.jsonl --out models/shop',
    'espalier teach --environment ./shop.ts#shop --demonstrations ./shop.ts#show --tasks 500 --out models/shop',
    'espalier teach --environment ./shop.ts#shop --demonstrations ./shop.ts#show --solved --tasks 2000 --out models/shop   # a show that guesses',
  ],
  settings: ['environment', 'agent', 'tasks', 'split', 'seed', 'epochs', 'learningRate', 'out'],
  defaults: { tasks: 500, epochs: 'fewer for more demonstrations', learningRate: 3e-3 },
  readsConfig: true,
  help: {
    environment: 'The environment that is shown: a name with options, or ./file.ts#export',
    agent: 'An agent in place of an environment: ./file.ts#export',
    tasks: 'Tasks to demonstrate: a file, or how many are to be made',
    split: 'Which split of the environment the tasks are made of',
    epochs: 'Passes over the demonstrations; nothing is then kept apart',
    learningRate: 'The highest learning rate, which falls to 0 at the end',
    out: 'The folder to write the model to',
  },
  own: {
    demonstrations: { help: 'What to learn from', argument: 'FILE|RUN|FILE#EXPORT' },
    solved: { help: 'Learn only from what a function shows that earns a reward of 1' },
    width: { help: 'Numbers per token inside the model, in 16s (default: 64)', argument: 'N' },
    layers: { help: 'Layers of the model (default: 3)', argument: 'N' },
  },
  keepsNothing: true,
  positionalCount: [0, 0],
  run: runTeach,
}

async function runTeach(invocation: Invocation): Promise<number> {
  const { own, terminal } = invocation
  const { demonstrations } = own
  const { values } = await resolveSettings(invocation)
  if (!demonstrations)
    throw new MisuseError('teach needs --demonstrations FILE, RUN or FILE#EXPORT')
  const out = checkOut(values.out)
  const environment =
    values.environment === undefined ? undefined : await openEnvironmentNamed(values.environment)
  try {
    return await teachIn(environment, { values, out, demonstrations }, invocation)
  } finally {
    if (environment) await closeEnvironment(environment, terminal.tell)
  }
}

/** Refuses, before anything is taught, a folder that no model can be written to. */
function checkOut(out: string | undefined): string {
  if (!out) throw new MisuseError('teach needs --out DIR, the folder to write the model to')
  refuseBelowFile(out, resolve(out))
  if (isRun(out)) throw new MisuseError(`--out ${out} holds a run: a model needs another folder`)
  return out
}

interface Teaching {
  readonly values: Settings
  readonly out: string
  readonly demonstrations: string
}

async function teachIn(
  environment: Environment | undefined,
  { values, out, demonstrations }: Teaching,
  invocation: Invocation,
): Promise<number> {
  const { terminal, json, flags, own, signal } = invocation
  const tasks = environment ? await someTasks(environment, values) : []
  const isSolvedOnly = own.solved !== undefined
  const opening = { environment, tasks, signal, isSolvedOnly }
  const conversations = await openDemonstrations(demonstrations, opening)
  const texts = environment && tasks[0] ? await mistakenWords(environment, tasks[0], signal) : []
  const coverage = coverageOf(conversations)
  for (const line of coverageLines(conversations.length, coverage)) terminal.tell(line)
  const share = isSolvedOnly ? undefined : await shareSolved(demonstrations, opening)
  if (share !== undefined && share < 0.9) terminal.tell(guessingLine(share))
  await using policy = await teachFrom(conversations, {
    seed: values.seed,
    out,
    texts,
    signal,
    shape: shapeOf(own),
    ...progressOf(terminal),
    ...durationOf(conversations.length, flags.epochs),
    ...(typeof flags.learningRate === 'number' && { learningRate: flags.learningRate }),
  })
  const { shape, kernel } = policy.model
  await writeFile(
    taughtPath(out),
    `${JSON.stringify({ flags: wordsOf(invocation) } satisfies Taught)}\n`,
  )
  const result = { out, demonstrations: conversations.length, coverage, shape, kernel }
  if (json) terminal.print(JSON.stringify(result))
  else {
    const { vocabulary, layers, width } = shape
    terminal.print(`${out}: a vocabulary of ${vocabulary}, ${layers} layers of width ${width}`)
  }
  const limits = limitsFor(policy, conversations)
  terminal.tell(`next  ${nextLine(values, { agent: flags.agent, opened: environment, limits })}`)
  return 0
}

/** Of fewer demonstrations than this, a tenth is too few to tell when to stop. */
const enoughApart = 100

/** Passes over so few demonstrations: enough to learn the form of calls, and not yet each by heart. */
const fewEpochs = 60

/** How long to teach: as told, or until demonstrations kept apart say so, if there are enough of them. */
function durationOf(
  count: number,
  epochs: number | undefined,
): Pick<TeachModelOptions, 'epochs' | 'keepsApart'> {
  if (epochs !== undefined) return { epochs }
  return count < enoughApart ? { epochs: fewEpochs } : { keepsApart: true }
}

/** The words behind `teach`, as they can be said again. */
function wordsOf({ flags, own }: Invocation): readonly string[] {
  const settings = Object.entries(flags).flatMap(([name, value]) =>
    value === undefined ? [] : [`--${flagOf(name as SettingName)}`, String(value)],
  )
  const others = Object.entries(own).flatMap(([name, value]) =>
    value === undefined ? [] : value === '' ? [`--${name}`] : [`--${name}`, value],
  )
  return [...settings, ...others]
}

/** What the demonstrations show, and whether that is likely to be enough. */
function coverageLines(count: number, { situations, values, wanted }: Coverage): readonly string[] {
  const shown = `${count} demonstrations show ${situations} situations, with ${values} values in calls`
  return situations >= wanted
    ? [shown]
    : [
        shown,
        `${wanted} situations would be safer, as a small model copies what it has seen often: show more tasks, with other names and numbers`,
      ]
}

/** Said of demonstrations that are often wrong: a model learns to be wrong as often. */
const guessingLine = (share: number): string =>
  `about ${percent(share)} of what is shown earns a reward of 1: with --solved only that is learned from, and --tasks N makes up for the rest`

/** The sizes of the model, if they are given. */
function shapeOf({ width, layers }: Invocation['own']): TeachModelOptions['shape'] & object {
  const read = (flag: string, text: string | undefined, unit: number): number | undefined => {
    if (text === undefined) return undefined
    const value = Number(text)
    if (Number.isInteger(value) && value > 0 && value % unit === 0) return value
    throw new MisuseError(`--${flag} ${text}: expected a multiple of ${unit}`)
  }
  const wide = read('width', width, 16)
  const deep = read('layers', layers, 1)
  return {
    ...(wide !== undefined && { width: wide, heads: wide / 16, hidden: 2 * wide }),
    ...(deep !== undefined && { layers: deep }),
  }
}

/** What the command that trains is made from, besides settings. */
interface Next {
  readonly agent: string | undefined
  readonly opened: Environment | undefined
  readonly limits: Pick<AttemptLimits, 'turns' | 'newTokens'>
}

/** The command that trains what was taught, on tasks of the same kind. */
function nextLine(
  { out, environment = 'NAME', tasks }: Settings,
  { agent, opened, limits }: Next,
): string {
  const where = agent === undefined ? ['--environment', environment] : ['--agent', agent]
  const file = typeof tasks === 'string' ? tasks : opened?.makeTasks ? undefined : 'FILE'
  const from = file === undefined ? [] : ['--tasks', file]
  const within = ['--max-turns', `${limits.turns}`, '--max-new-tokens', `${limits.newTokens}`]
  return commandLine('train', '--policy', `embedded:${out}`, ...where, ...from, ...within)
}

/** The tasks to demonstrate; for demonstrations from elsewhere one is enough, to know the tools. */
async function someTasks(environment: Environment, values: Settings): Promise<readonly Task[]> {
  const source = values.tasks ?? (environment.makeTasks ? 500 : undefined)
  if (source === undefined) return []
  const tasks: Task[] = []
  const reading = { seed: values.seed, ...(values.split !== undefined && { split: values.split }) }
  for await (const task of readTasks(environment, source, reading)) tasks.push(task)
  return tasks
}

function progressOf(
  terminal: Terminal,
): Required<Pick<TeachModelOptions, 'onStep' | 'onApart' | 'onLeftOut'>> {
  let apart: MeasuredApart | undefined
  const others = (): string => (apart ? `, ${apart.apart.toFixed(4)} on those kept apart` : '')
  return {
    onStep({ step, steps, loss }: SupervisedStep) {
      terminal.status(`step ${step + 1}/${steps}  loss ${loss.toFixed(4)}${others()}`)
      if (step + 1 === steps) terminal.tell(`${steps} steps  loss ${loss.toFixed(4)}${others()}`)
    },
    onApart(measured) {
      apart = measured
      if (measured.stoppedFor !== undefined) terminal.tell(stoppedLine(measured))
    },
    onLeftOut(count) {
      terminal.tell(`${count} demonstrations are longer than the model's context and left out`)
    },
  }
}

function stoppedLine({ step, steps, trained, apart, stoppedFor }: MeasuredApart): string {
  return (
    `stopped at step ${step + 1} of ${steps}: demonstrations kept apart got worse (loss ${apart.toFixed(3)}) while the taught ones ` +
    `went to ${trained.toFixed(3)}, so they were being learned by heart. The model is that of step ${stoppedFor! + 1}. ` +
    'Train it now, or show more demonstrations'
  )
}
