import type { Environment, Task } from '../../base/core/environment.ts'
import { disposeInTime } from '../../base/core/process/deadline.ts'
import { type CheckResult, checkWithin, defaultSeconds } from '../../engine/environments/check.ts'
import { readShow, toPlayer } from '../../run/demonstrations/demonstrations.ts'
import { openRenderer } from '../../run/settings/model-source.ts'
import { openEnvironmentNamed } from '../../run/settings/open-environment.ts'
import { readTasks } from '../../run/tasks/tasks.ts'
import { type Command, type Invocation, MisuseError } from '../command.ts'

const taskCount = 8

/** Runs the conformance suite on an environment. */
export const checkCommand: Command = {
  name: 'check',
  usage: './file.ts#export | NAME',
  about:
    'Opens worlds of an environment and checks what every environment owes: it disposes of them, the\n' +
    'same actions give the same answers, a fork equals a replay, mistakes become observations. Also\n' +
    'measures what doing nothing and always refusing earn. Exit 1 where a check fails.',
  examples: [
    'espalier check ./shop.ts#shop --tasks tasks.jsonl --demonstrations ./shop.ts#show',
    'espalier check calculator',
  ],
  settings: ['tasks', 'split', 'seed', 'model'],
  defaults: { tasks: taskCount, seed: 1 },
  own: {
    seconds: {
      help: `Seconds that opening a world, a step, a report or a reward may take (default: ${defaultSeconds})`,
      argument: 'N',
    },
    demonstrations: {
      help: 'A function that shows each turn, as teach takes it: it must earn more than doing nothing',
      argument: 'FILE#EXPORT',
    },
  },
  positionalCount: [1, 1],
  run: runCheck,
}

async function runCheck(invocation: Invocation): Promise<number> {
  const { positionals: words, own } = invocation
  const seconds = readSeconds(own.seconds)
  const environment = await openEnvironmentNamed(words[0]!)
  try {
    return await check(environment, invocation, seconds)
  } finally {
    await disposeInTime(words[0]!, environment, seconds)
  }
}

function readSeconds(written: string | undefined): number {
  const seconds = written === undefined ? defaultSeconds : Number(written)
  if (seconds > 0) return seconds
  throw new MisuseError(`--seconds is ${JSON.stringify(written)}; it is a number above 0`)
}

async function check(
  environment: Environment,
  { positionals: words, own, flags, terminal, json, signal }: Invocation,
  seconds: number,
): Promise<number> {
  const { tasks: source = taskCount, seed = 1, split, model } = flags
  if (source === taskCount && !environment.makeTasks) {
    throw new MisuseError(`${words[0]} makes no tasks of its own: name a file with --tasks`)
  }
  const tasks: Task[] = []
  for await (const task of readTasks(environment, source, {
    seed,
    ...(split !== undefined && { split }),
  })) {
    if (tasks.push(task) === taskCount) break
  }
  if (tasks.length === 0) throw new MisuseError(`--tasks ${source} holds no tasks to check with`)
  const renderer = model === undefined ? undefined : await openRenderer(model)
  const { demonstrations } = own
  const results = await checkWithin(seconds, environment, {
    ...{ tasks, seed, signal },
    ...(renderer && { renderer }),
    ...(demonstrations && { demonstrate: toPlayer(await readShow(demonstrations)) }),
  })
  for (const result of results) terminal.print(json ? JSON.stringify(result) : line(result))
  return results.some(result => result.kind === 'failed') ? 1 : 0
}

function line({ name, kind, detail }: CheckResult): string {
  return `${kind.padEnd(8)}  ${name}${detail ? `: ${detail}` : ''}`
}
