import { commandLine } from '../../base/core/names/program-name.ts'
import { elsewhere } from '../../engine/environments/elsewhere.ts'
import { type Trained, trainOn } from '../../learn/learn/train.ts'
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
  usage:
    '--policy embedded[:DIR] (--environment NAME --tasks FILE|N | --from RUN | --gateway [--port N])',
  about:
    'Rolls groups, weighs them, changes the weights and evaluates on held-out tasks, in turn. Keeps\n' +
    'every trajectory, the metrics of every step and checkpoints in a run folder. With --gateway it\n' +
    'learns from agents in any language: they open attempts and close them with rewards, as with\n' +
    'espalier gateway; their groups make the steps, and the new weights answer at the same address.\n' +
    'With --from it learns from the groups of a run that is there, off-policy, until they are used up.',
  examples: [
    'espalier train --policy embedded --environment desk --tasks 2000 --steps 60',
    'espalier train --policy embedded:models/shop --environment ./shop.ts#shop --tasks tasks.jsonl',
    'espalier train --gateway --policy embedded --group 8 --tasks-per-step 4 --steps 20',
    'espalier train --from runs/0001 --policy embedded --proximal recompute --importance token',
  ],
  settings: settingsOf('train'),
  readsConfig: true,
  own: { ...dryRunFlag, ...gatewayFlags },
  positionalCount: [0, 0],
  run: runTrain,
}

async function runTrain(invocation: Invocation): Promise<number> {
  const resolved = await resolveSettings(invocation)
  const { gateway, from } = resolved.values
  if (gateway && from !== undefined) {
    throw new MisuseError('--from and --gateway both say what is learned from; name one of them')
  }
  if (invocation.own['dry-run'] !== undefined && (gateway || from !== undefined)) {
    throw new MisuseError(
      `--dry-run plans what is rolled: with --${gateway ? 'gateway the agents say what they ask' : 'from nothing is'}`,
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
  // If agents bring their tasks, or a run has them, none are held out that could say more than the rewards.
  const isMeasured = !values.gateway && values.environment !== undefined
  if (isMeasured) printMeasured(trained, values, invocation)
  else if (!values.gateway) printUnmeasured(trained, invocation)
  tell(`next  ${commandLine('view', out)}`)
  tell(`      ${commandLine('show', out)}`)
  if (isMeasured) tell(verdictLine(trained, values))
  return 0
}

function printMeasured(trained: Trained, values: Settings, { terminal, json }: Invocation): void {
  const { successBefore, successAfter, best } = trained
  const isKept = best.success > successAfter
  const kept = isKept ? `; kept: ${best.success.toFixed(3)} of step ${best.step}` : ''
  if (json) terminal.print(JSON.stringify(trainedRecord(trained)))
  else {
    const figures = `${successBefore.toFixed(3)} before, ${successAfter.toFixed(3)} after`
    terminal.print(`success ${figures}${kept}`)
  }
  for (const line of bestModelLines({ ...trained.best, before: successBefore }, values)) {
    terminal.tell(line)
  }
}

function printUnmeasured(
  { from, steps, ledger: { learned: tokens }, seconds, run }: Trained,
  { terminal, json }: Invocation,
): void {
  if (json) terminal.print(JSON.stringify({ from, steps, learnedTokens: tokens, seconds, run }))
  else
    terminal.print(
      `learned from ${tokens} tokens in ${steps} steps; --environment with --tasks measures what comes of it`,
    )
}

function fromTasks({ values, out, resumes = false }: Rolled, invocation: Invocation) {
  const { terminal, signal } = invocation
  const { tell } = terminal
  const { tasks = values.steps * values.tasksPerStep, environment } = values
  const isStored = values.from !== undefined && environment === undefined
  const world = isStored ? elsewhere : needed(values, 'environment')
  return trainOn(world, isStored ? undefined : tasks, {
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
