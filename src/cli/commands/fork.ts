import { readFile } from 'node:fs/promises'
import type { ModelRenderer } from '@espalier/text/chat'
import { commandLine } from '../../base/core/names/program-name.ts'
import { describeOutcome } from '../../base/core/outcome.ts'
import { type ForkAt, type Forked, forkTrajectory, parseForkAt } from '../../run/run/fork.ts'
import { openRollParts } from '../../run/run/open-parts.ts'
import { rollOptionsOf } from '../../run/run/roll-options.ts'
import { needed, openNamed } from '../../run/settings/open-named.ts'
import { type Settings, settingsOf } from '../../run/settings/settings.ts'
import { claimRunFolder } from '../../run/store/run-folder.ts'
import { type Command, type Invocation, MisuseError } from '../command.ts'
import { enterRun } from '../enter-run.ts'
import { groupRecord } from '../group-line.ts'
import { trustFlag, trustRun } from '../trust.ts'

/** Continues a stored trajectory from one of its turns or tokens. */
export const forkCommand: Command = {
  name: 'fork',
  usage: 'RUN ID --at TURN|TOKEN --samples N',
  about:
    'Reopens a stored trajectory at a turn (3, counted from 0) or after a token (t512), replays its\n' +
    'world to that point and checks that it answers as it did, and continues it N times under any\n' +
    'policy. Prints what the state is worth: the mean reward with its 95 % interval. The new run holds\n' +
    'one tree whose beginning is given, not trained. With --edit the file’s text stands at that\n' +
    'place before the policy goes on; a text that ends the turn is answered by the world at once.',
  examples: [
    'espalier fork runs/0007 7/0/0 --at 3 --samples 16',
    'espalier fork runs/0007 7/0/0 --at t512 --samples 8 --policy sglang:http://localhost:30000',
    'espalier fork runs/0007 7/0/0 --at 2 --edit better-call.txt --samples 8',
  ],
  settings: settingsOf('fork'),
  own: {
    at: { help: 'The turn (3) or the token (t512) to continue from', argument: 'PLACE' },
    samples: { help: 'Continuations (default 8)', argument: 'N' },
    edit: { help: 'A text that begins the turn, or replaces the rest of it', argument: 'FILE' },
    trust: trustFlag,
  },
  positionalCount: [2, 2],
  run: runFork,
}

async function runFork(invocation: Invocation): Promise<number> {
  const { positionals: words, own, flags, terminal, signal, json } = invocation
  if (own.at === undefined) throw new MisuseError('fork needs --at TURN or --at tTOKEN')
  const at = readPlace(own.at)
  const samples = readSamples(own.samples)
  // Resolve the file first: the working directory changes below.
  const { edit } = own
  const text = edit && (await openNamed(`--edit ${edit}`, () => readFile(edit, 'utf8')))
  const { run, values: begun, meantThere } = await enterRun(invocation)
  await trustRun(run, { values: begun, samples: true }, invocation)
  const named = flags.out === undefined ? undefined : meantThere(flags.out)
  await using claimed = await claimRunFolder(named, meantThere('runs'))
  const { out } = claimed
  const values: Settings = { ...begun, strategy: 'chain', out }
  const environment = needed(values, 'environment')
  const options = { ...rollOptionsOf(values), tell: terminal.tell, signal }
  const opened = await openRollParts(environment, values.tasks, options)
  try {
    const { tokenizer } = opened.parts.renderer as ModelRenderer
    const forked = await forkTrajectory(run, opened.parts, {
      id: words[1]!,
      at,
      samples,
      ...(text !== undefined && { edit: tokenizer.encode(text) }),
      ...(begun.strategy === 'step' && { stepHistory: begun.stepHistory }),
      out,
      config: values,
    })
    const { group, ...rest } = forked
    if (json) terminal.print(JSON.stringify({ run: out, ...rest, ...groupRecord(group) }))
    else for (const line of linesOf(forked, out)) terminal.print(line)
    return forked.value === undefined ? 1 : 0
  } finally {
    await opened[Symbol.asyncDispose]()
  }
}

function readPlace(text: string): ForkAt {
  try {
    return parseForkAt(text)
  } catch (error) {
    throw new MisuseError((error as Error).message)
  }
}

function readSamples(text = '8'): number {
  const samples = Number(text)
  if (Number.isInteger(samples) && samples >= 1 && samples <= 4096) return samples
  throw new MisuseError(`--samples is a whole number from 1 to 4096, not "${text}"`)
}

function linesOf({ turn, given, group, value, before }: Forked, out: string): readonly string[] {
  const rewards = group.members.map(({ reward }) => reward.total)
  const failed = group.unscored.map(
    ({ trajectory, outcome }) => `${trajectory.id}  ${describeOutcome(outcome)}`,
  )
  const worth = value
    ? `value ${value.mean.toFixed(3)}  [${value.low.toFixed(3)}, ${value.high.toFixed(3)}]  over ${value.samples} continuations`
    : 'value unknown: no continuation could be scored'
  return [
    `turn ${turn}, ${given} tokens given`,
    ...(rewards.length > 0
      ? [`rewards ${rewards.map(reward => Number(reward.toFixed(3))).join(' ')}`]
      : []),
    ...failed,
    `${worth}${before === undefined ? '' : `  (the stored one got ${Number(before.toFixed(3))})`}`,
    `next  ${commandLine('show', out)}`,
  ]
}
