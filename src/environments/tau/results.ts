import type { Message } from '../../core/message.ts'
import { dumps, parseJson } from '../../python/json.ts'
import { formatFloat } from '../../python/repr.ts'
import {
  fromJavaScript,
  type PythonDict,
  PythonFloat,
  type PythonValue,
} from '../../python/value.ts'
import type { TauReport } from './report.ts'
import type { TauActionInfo, TauOutputInfo, TauReward } from './reward.ts'
import { RESPOND, type TauAction, type TauTask } from './task.ts'

/** One attempt as tau-bench's result files hold it. */
export interface TauResult {
  readonly taskId: number
  readonly trial: number
  readonly reward: number
  /** `task`, `source`, `user_cost` and `reward_info`; or `error` and `traceback`. */
  readonly info: PythonDict
  /** The messages of the conversation. */
  readonly messages: readonly PythonValue[]
}

/** Writes results as the original does. */
export function writeResults(results: readonly TauResult[]): string {
  const rows = results.map(
    ({ taskId, reward, info, messages, trial }) =>
      new Map<string, PythonValue>([
        ['task_id', taskId],
        ['reward', new PythonFloat(reward)],
        ['info', info],
        ['traj', messages],
        ['trial', trial],
      ]),
  )
  return dumps(rows, { indent: 2 })
}

/** Reads a result file of tau-bench, or says which entry is not one. */
export function readResults(text: string): readonly TauResult[] {
  const rows = parseJson(text)
  if (!Array.isArray(rows)) throw new Error('A result file of tau-bench is a list of attempts.')
  return rows.map(readResult)
}

function readResult(row: PythonValue, index: number): TauResult {
  const wrong = (field: string): Error =>
    new Error(`Entry ${index} of the result file has no valid "${field}".`)
  if (!(row instanceof Map)) throw new Error(`Entry ${index} of the result file is not an object.`)
  const number = (field: string): number => {
    const value = row.get(field)
    if (value instanceof PythonFloat) return value.value
    if (typeof value !== 'number') throw wrong(field)
    return value
  }
  const info = row.get('info')
  const messages = row.get('traj')
  if (!(info instanceof Map)) throw wrong('info')
  if (!Array.isArray(messages)) throw wrong('traj')
  const [taskId, trial, reward] = [number('task_id'), number('trial'), number('reward')]
  return { taskId, trial, reward, info, messages }
}

/** The `info` of an attempt that came to its end, or to the limit of its steps. */
export function toInfo(parts: {
  readonly task: TauTask
  readonly source: string
  readonly userCost: number | undefined
  readonly reward: TauReward | undefined
}): PythonDict {
  return new Map<string, PythonValue>([
    ['task', taskToPython(parts.task)],
    ['source', parts.source],
    ['user_cost', parts.userCost === undefined ? null : new PythonFloat(parts.userCost)],
    ['reward_info', parts.reward === undefined ? null : rewardToPython(parts.reward)],
  ])
}

/** A task as the original dumps it. */
export function taskToPython(task: TauTask): PythonDict {
  return new Map<string, PythonValue>([
    ['user_id', task.userId],
    ['actions', task.actions.map(actionToPython)],
    ['instruction', task.instruction],
    ['outputs', task.outputs],
  ])
}

/** A reward as the original dumps it. */
export function rewardToPython({ reward, info, actions }: TauReward): PythonDict {
  const verdict: (readonly [string, PythonValue])[] =
    'outputs' in info
      ? [
          ['r_outputs', new PythonFloat(info.r_outputs)],
          ['outputs', new Map(info.outputs)],
        ]
      : [
          ['r_actions', new PythonFloat(info.r_actions)],
          ['gt_data_hash', info.gt_data_hash],
        ]
  return new Map<string, PythonValue>([
    ['reward', new PythonFloat(reward)],
    ['info', new Map(verdict)],
    ['actions', actions.map(actionToPython)],
  ])
}

function actionToPython({ name, kwargs }: TauAction): PythonDict {
  return new Map<string, PythonValue>([
    ['name', name],
    ['kwargs', kwargs],
  ])
}

/** An attempt as the environment left it. */
export interface FinishedAttempt {
  readonly task: TauTask
  readonly trial: number
  readonly report: TauReport
  readonly messages: readonly Message[]
  /** What simulating the user cost, where prices are known. */
  readonly userCost?: number
}

/** The entry of a result file for an attempt; one that broke off has an error and no messages. */
export function toResult(attempt: FinishedAttempt): TauResult {
  const { task, trial, report, messages, userCost } = attempt
  const result = { taskId: report.index, trial, reward: report.reward }
  if (report.error !== null) {
    const info: PythonDict = new Map()
    return { ...result, info: info.set('error', report.error).set('traceback', ''), messages: [] }
  }
  const reward = rewardOf(task, report)
  const info = toInfo({ task, source: report.source, userCost: reward && (userCost ?? 0), reward })
  return { ...result, info, messages: messages.map(message => fromJavaScript(message)) }
}

function rewardOf(task: TauTask, report: TauReport): TauReward | undefined {
  if (report.reward_info === null) return undefined
  const { info } = report.reward_info as { readonly info: Verdict }
  const actions = task.actions.filter(({ name }) => name !== RESPOND)
  const reward = report.reward === 1 ? 1 : 0
  if (!('outputs' in info)) return { reward, info, actions }
  return { reward, info: { ...info, outputs: new Map(Object.entries(info.outputs)) }, actions }
}

/** The verdict as it stands in a report, where maps are objects. */
type Verdict =
  | TauActionInfo
  | (Omit<TauOutputInfo, 'outputs'> & { readonly outputs: Readonly<Record<string, boolean>> })

/** What the name of a result file tells. */
export interface RunName {
  readonly agent: string
  readonly model: string
  readonly temperature: number
  readonly start: number
  /** -1 stands for all. */
  readonly end: number
  readonly userModel: string
  readonly userStrategy: string
  /** Month, day, hour, minute, second: `mmddHHMMSS`. */
  readonly time: string
}

/** The name the original gives a result file. */
export function resultsFileName(run: RunName): string {
  const model = run.model.split('/').at(-1)
  const temperature = formatFloat(run.temperature)
  return `${run.agent}-${model}-${temperature}_range_${run.start}-${run.end}_user-${run.userModel}-${run.userStrategy}_${run.time}.json`
}
