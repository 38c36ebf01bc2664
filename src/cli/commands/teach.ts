import type { Environment, Task } from '../../core/environment.ts'
import {
  demonstrate,
  mistakenWords,
  readDemonstrations,
  type Show,
} from '../../learn/demonstrations.ts'
import { teachFrom } from '../../learn/teach.ts'
import type { Conversation, SupervisedStep } from '../../model/supervised.ts'
import { commandLine } from '../../names/program-name.ts'
import { openEnvironmentNamed } from '../../run/open-parts.ts'
import { resolveSettings } from '../../settings/config.ts'
import { openNamed } from '../../settings/open-named.ts'
import type { Settings } from '../../settings/settings.ts'
import { loadUserPart } from '../../settings/user-part.ts'
import { readTasks } from '../../tasks/tasks.ts'
import { type Command, type Invocation, MisuseError } from '../command.ts'
import type { Terminal } from '../terminal.ts'

/** Makes an embedded model from demonstrations. */
export const teachCommand: Command = {
  name: 'teach',
  summary: 'Make an embedded model from demonstrations',
  usage: '--environment NAME --demonstrations FILE|RUN --out DIR',
  about:
    'Builds a vocabulary from demonstrations, with bytes for every other text, and trains a small\n' +
    'model on what the assistant says in them. Demonstrations are a file with one {"messages"} per\n' +
    'line, the solved trajectories of a run, or ./file.ts#export: a function that shows each turn.',
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
  const { own, terminal, json, flags, signal } = invocation
  const { demonstrations } = own
  const { values } = await resolveSettings(invocation)
  if (!demonstrations)
    throw new MisuseError('teach needs --demonstrations FILE, RUN or FILE#EXPORT')
  if (!values.environment) throw new MisuseError('teach needs --environment NAME')
  if (!values.out) throw new MisuseError('teach needs --out DIR, the folder to write the model to')
  const environment = await openEnvironmentNamed(values.environment)
  const tasks = await someTasks(environment, values)
  const conversations = await openDemonstrations(environment, { tasks, demonstrations, signal })
  const texts = tasks[0] ? await mistakenWords(environment, tasks[0], signal) : []
  terminal.tell(`${conversations.length} demonstrations`)
  await using policy = await teachFrom(conversations, {
    seed: values.seed,
    out: values.out,
    texts,
    signal,
    onStep: progressOf(terminal),
    ...(flags.epochs !== undefined && { epochs: values.epochs }),
    ...(flags.learningRate !== undefined && { learningRate: values.learningRate }),
  })
  const { shape, kernel } = policy.model
  const result = { out: values.out, demonstrations: conversations.length, shape, kernel }
  if (json) terminal.print(JSON.stringify(result))
  else terminal.print(`${values.out}: a vocabulary of ${shape.vocabulary}, ${shape.layers} layers`)
  terminal.tell(`next  ${trainLine(values)}`)
  return 0
}

/** The command that trains what was taught, on tasks of the same kind. */
function trainLine({ out, environment, agent, tasks }: Settings): string {
  const where = agent === undefined ? ['--environment', environment!] : ['--agent', agent]
  const from = typeof tasks === 'string' ? ['--tasks', tasks] : []
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

async function openDemonstrations(
  environment: Environment,
  from: {
    readonly tasks: readonly Task[]
    readonly demonstrations: string
    readonly signal: AbortSignal
  },
): Promise<readonly Conversation[]> {
  const { tasks, demonstrations, signal } = from
  // A path may begin like that of code of the user's own, and be a run or a file of conversations.
  if (!/\.[cm]?[jt]s(?:#|$)/.test(demonstrations)) {
    return await openNamed(`--demonstrations ${demonstrations}`, () =>
      readDemonstrations(demonstrations, environment, { successAt: 1 }),
    )
  }
  const show = await loadUserPart(demonstrations)
  if (typeof show !== 'function') throw new MisuseError(`${demonstrations} is not a function`)
  if (tasks.length === 0) throw new MisuseError('teach needs --tasks FILE to demonstrate')
  return await demonstrate(environment, tasks, { show: show as Show, turns: 32, signal })
}

function progressOf(terminal: Terminal): (step: SupervisedStep) => void {
  return ({ step, steps, loss }) => {
    terminal.status(`step ${step + 1}/${steps}  loss ${loss.toFixed(4)}`)
    if (step + 1 === steps) terminal.tell(`${steps} steps  loss ${loss.toFixed(4)}`)
  }
}
