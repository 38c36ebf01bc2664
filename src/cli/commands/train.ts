import { commandLine } from '../../base/core/names/program-name.ts'
import { type Trained, train } from '../../learn/learn/train.ts'
import { trainOptionsOf } from '../../learn/learn/train-options.ts'
import { resolveSettings } from '../../run/settings/config.ts'
import { needed } from '../../run/settings/open-named.ts'
import type { Settings } from '../../run/settings/settings.ts'
import { settingsOf } from '../../run/settings/settings.ts'
import { isRun } from '../../run/store/run-folder.ts'
import { RunStoppedError, resumeLine } from '../../run/watch/stopped.ts'
import { type Command, exitCodeOf, type Invocation, MisuseError } from '../command.ts'
import { beginOrPlan, dryRunFlag } from '../dry-run.ts'
import { bestModelLines } from '../model-hints.ts'
import { verdictLine } from '../next-try.ts'
import { elsewhereOf, type Rolled, warnOfChat } from '../rolling.ts'
import { makeTrainingDisplay } from '../training-display.ts'
import { gatewayFlags, readGateway } from './doors/gateway.ts'

/** Rolls and learns in turn. */
export const trainCommand: Command = {
  name: 'train',
  usage: '--policy embedded[:DIR] (--environment NAME --tasks FILE|N | --gateway [--port N])',
  about:
    'Rolls groups, weighs them, changes the weights and evaluates on held-out tasks, in turn. Keeps\n' +
    'every trajectory, the metrics of every step and checkpoints in a run folder. With --gateway it\n' +
    'learns from agents in any language: they open attempts and close them with rewards, as with\n' +
    'espalier gateway; their groups make the steps, and the new weights answer at the same address.',
  examples: [
    'espalier train --policy embedded --environment desk --tasks 2000 --steps 60',
    'espalier train --policy embedded:models/shop --environment ./shop.ts#shop --tasks tasks.jsonl',
    'espalier train --gateway --policy embedded --group 8 --tasks-per-step 4 --steps 20',
  ],
  settings: settingsOf('train'),
  readsConfig: true,
  own: { ...dryRunFlag, ...gatewayFlags },
  positionalCount: [0, 0],
  run: runTrain,
}

async function runTrain(invocation: Invocation): Promise<number> {
  const resolved = await resolveSettings(invocation)
  if (resolved.values.gateway && invocation.own['dry-run'] !== undefined) {
    throw new MisuseError(
      '--dry-run plans what is rolled: with --gateway the agents say what they ask',
    )
  }
  const beginning = { kind: 'train', run: trainWith } as const
  return await beginOrPlan(resolved, invocation, beginning)
}

/** Trains by settings into a run folder, or goes on with the one it holds. */
export async function trainWith(rolled: Rolled, invocation: Invocation): Promise<number> {
  const { values, out } = rolled
  const { tell } = invocation.terminal
  warnOfChat(values, tell)
  const training = values.gateway ? fromAgents(rolled, invocation) : fromTasks(rolled, invocation)
  const trained = await training.catch((error: unknown) => {
    // A spent budget is a planned end; everything else is an error.
    if (error instanceof RunStoppedError && error.isPlanned) return error
    // What was misused did not begin this run.
    if (isRun(out) && exitCodeOf(error) === 1)
      tell(`\`${commandLine('resume', out)}\` goes on from here`)
    throw error
  })
  if (trained instanceof RunStoppedError) {
    tell(`stopped: ${trained.message}; \`${resumeLine(out, trained.kind, values.budget)}\` goes on`)
    return 0
  }
  // If agents bring their tasks, none are held out that could say more than the rewards.
  const isMeasured = !values.gateway
  if (isMeasured) printMeasured(trained, values, invocation)
  tell(`next  ${commandLine('view', out)}`)
  tell(`      ${commandLine('show', out)}`)
  if (isMeasured) tell(verdictLine(trained, values))
  return 0
}

function printMeasured(trained: Trained, values: Settings, { terminal, json }: Invocation): void {
  const { successBefore, successAfter } = trained
  if (json) terminal.print(JSON.stringify(trainedRecord(trained)))
  else
    terminal.print(`success ${successBefore.toFixed(3)} before, ${successAfter.toFixed(3)} after`)
  for (const line of bestModelLines({ ...trained.best, before: successBefore }, values)) {
    terminal.tell(line)
  }
}

function fromTasks({ values, out, resumes = false }: Rolled, invocation: Invocation) {
  const { terminal, signal } = invocation
  const { tell } = terminal
  const { tasks = values.steps * values.tasksPerStep } = values
  return train(needed(values, 'environment'), tasks, {
    ...trainOptionsOf(values),
    ...makeTrainingDisplay(terminal, values.steps),
    ...elsewhereOf(values, { out, tell }),
    out,
    resumes,
    signal,
    tell,
  })
}

/** Learns from agents that come to a gateway; nothing is held out, so the rewards of the steps are the result. */
async function fromAgents({ values, out, resumes = false }: Rolled, invocation: Invocation) {
  const { terminal, signal, json } = invocation
  const { tell } = terminal
  const { trainOnAgents } = await import('../../doors/gateway/train.ts')
  const { onStep } = makeTrainingDisplay(terminal, values.steps)
  const rewards: number[] = []
  const { environment, tasks } = values
  const trained = await trainOnAgents({
    ...trainOptionsOf(values),
    ...(environment !== undefined && { environment }),
    ...(tasks !== undefined && { tasks }),
    ...(await readGateway(invocation)),
    out,
    resumes,
    signal,
    tell,
    onStep(record) {
      rewards.push(record.reward)
      onStep(record)
    },
    onListening(url) {
      if (json) terminal.print(JSON.stringify({ url, run: out }))
      else terminal.print(`learning from agents at ${url} into ${out}`)
    },
  })
  const [first = 0] = rewards
  const last = rewards.at(-1) ?? 0
  const { steps, sampledTokens, seconds, run } = trained
  if (json) {
    const counts = { steps, sampledTokens, seconds, run }
    terminal.print(JSON.stringify({ rewardFirst: first, rewardLast: last, ...counts }))
  }
  if (!json)
    terminal.print(`reward ${first.toFixed(3)} in the first step, ${last.toFixed(3)} in the last`)
  return trained
}

/** What training gave, as one JSON object. */
export function trainedRecord({ training: _, ...trained }: Trained): object {
  return trained
}
