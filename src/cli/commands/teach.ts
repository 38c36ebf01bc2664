import { resolve } from 'node:path'
import type { Environment, Task } from '../../base/core/environment.ts'
import { commandLine } from '../../base/core/names/program-name.ts'
import { teachFrom } from '../../learn/learn/teach.ts'
import type { MeasuredApart, SupervisedStep } from '../../learn/model/supervised.ts'
import type { TeachModelOptions } from '../../learn/model/teach.ts'
import { mistakenWords, openDemonstrations } from '../../run/demonstrations/demonstrations.ts'
import { refuseBelowFile } from '../../run/run/check-options.ts'
import { closeEnvironment } from '../../run/run/close-environment.ts'
import { openEnvironmentNamed } from '../../run/run/open-parts.ts'
import { resolveSettings } from '../../run/settings/config.ts'
import type { Settings } from '../../run/settings/settings.ts'
import { isRun } from '../../run/store/run-folder.ts'
import { readTasks } from '../../run/tasks/tasks.ts'
import { type Command, type Invocation, MisuseError } from '../command.ts'
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
    'kept apart, and teaching stops before it learns the others by heart; --epochs says how long instead.',
  examples: [
    'espalier teach --environment ./shop.ts#shop --demonstrations shown.jsonl --out models/shop',
    'espalier teach --environment ./shop.ts#shop --demonstrations ./shop.ts#show --tasks 500 --out models/shop',
  ],
  settings: ['environment', 'agent', 'tasks', 'split', 'seed', 'epochs', 'learningRate', 'out'],
  defaults: { tasks: 500, epochs: 'fewer for more demonstrations', learningRate: 3e-3 },
  readsConfig: true,
  own: {
    demonstrations: { help: 'What to learn from', argument: 'FILE|RUN|FILE#EXPORT' },
  },
  words: [0, 0],
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
  { terminal, json, flags, signal }: Invocation,
): Promise<number> {
  const tasks = environment ? await someTasks(environment, values) : []
  const conversations = await openDemonstrations(demonstrations, { environment, tasks, signal })
  const texts = environment && tasks[0] ? await mistakenWords(environment, tasks[0], signal) : []
  terminal.tell(`${conversations.length} demonstrations`)
  await using policy = await teachFrom(conversations, {
    seed: values.seed,
    out,
    texts,
    signal,
    ...progressOf(terminal),
    // With `--epochs` given, all data is learned from; otherwise some is kept apart to find when to stop.
    ...(flags.epochs === undefined ? { keepsApart: true } : { epochs: values.epochs }),
    ...(typeof flags.learningRate === 'number' && { learningRate: flags.learningRate }),
  })
  const { shape, kernel } = policy.model
  const result = { out, demonstrations: conversations.length, shape, kernel }
  if (json) terminal.print(JSON.stringify(result))
  else terminal.print(`${out}: a vocabulary of ${shape.vocabulary}, ${shape.layers} layers`)
  terminal.tell(`next  ${trainLine(values, environment)}`)
  return 0
}

/** The command that trains what was taught, on tasks of the same kind. */
function trainLine(
  { out, environment = 'NAME', agent, tasks }: Settings,
  opened: Environment | undefined,
): string {
  const where = agent === undefined ? ['--environment', environment] : ['--agent', agent]
  const file = typeof tasks === 'string' ? tasks : opened?.makeTasks ? undefined : 'FILE'
  const from = file === undefined ? [] : ['--tasks', file]
  return commandLine('train', '--policy', `embedded:${out}`, ...where, ...from)
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
