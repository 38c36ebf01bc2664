import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { commandLine } from '../base/core/names/program-name.ts'
import type { BestStep } from '../learn/learn/training-state.ts'
import { defaults, flagOf, type SettingName } from '../run/settings/settings.ts'

/** The settings that a run recorded. */
type Config = Readonly<Record<string, unknown>>

/** Settings that an evaluation must share with training. */
const alike: readonly SettingName[] = [
  'maxTurns',
  'maxNewTokens',
  'maxRolloutTokens',
  'maxContext',
  'temperature',
  'topP',
  'topK',
  'minP',
  'maxSeconds',
  'onLength',
  'onTime',
  'condense',
  'toolFormat',
  'reasoningFormat',
  'history',
  'markers',
  'successAt',
  'split',
  'seed',
]

/** The best of a training run's models, and what policies did before it. */
interface BestModel extends BestStep {
  readonly before: number
}

/** Where the best model of a training run lies, whether it is any better, and what to do with it. */
export function bestModelLines(best: BestModel, config: Config): readonly string[] {
  const { step, success, folder, split, before } = best
  if (folder === undefined) return []
  return [
    `best model  ${folder}  (step ${step}, success ${success.toFixed(3)})`,
    ...(success > before ? [] : ['            the start: no later one was better']),
    ...modelLines(folder, {
      config: { ...config, ...(split !== undefined && { split }) },
      hasFresh: split !== undefined || typeof config.heldOut === 'string',
    }),
  ]
}

/** How a run's model is measured. */
interface Measuring {
  readonly config: Config
  /** Whether tasks that nothing was trained on can be named: a file of them, or a split to make them of. */
  readonly hasFresh: boolean
}

const flatters =
  '            most of these tasks were trained on, which flatters it: name others for a result'

/** What can be done with a model folder: measure it, serve it, talk to it. */
function modelLines(folder: string, { config, hasFresh }: Measuring): readonly string[] {
  // Models saved by other trainers cannot be opened here.
  if (!existsSync(join(folder, 'config.json'))) return []
  const body = '{"model":"m","messages":[{"role":"user","content":"hello"}]}'
  return [
    `measure it  ${evalLine(folder, config)}`,
    ...(hasFresh ? [] : [flatters]),
    `serve it    ${commandLine('serve', '--model', folder, '--port', '30000')}`,
    `talk to it  curl -s http://127.0.0.1:30000/v1/chat/completions -H 'content-type: application/json' -d '${body}'`,
  ]
}

/** The command that evaluates a model on held-out tasks, as far as the run records them. */
function evalLine(folder: string, config: Config): string {
  const { environment, agent, tasks, heldOut, seats } = config
  const players = Array.isArray(seats) ? seats.flatMap(seat => ['--seat', String(seat)]) : []
  const where = agent === undefined ? ['--environment', environment ?? 'NAME'] : ['--agent', agent]
  const source =
    typeof heldOut === 'string' ? heldOut : typeof tasks === 'string' ? tasks : (heldOut ?? 64)
  const limits = alike.flatMap(name => {
    const value = config[name]
    const isUsual = value === undefined || value === (defaults as Config)[name]
    return isUsual ? [] : [`--${flagOf(name)}`, String(value)]
  })
  return commandLine(
    'eval',
    '--policy',
    `embedded:${folder}`,
    ...where.map(String),
    '--tasks',
    String(source),
    ...players,
    ...limits,
  )
}
