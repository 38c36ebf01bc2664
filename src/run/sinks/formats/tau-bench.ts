import {
  dumps,
  fromJavaScript,
  type PythonDict,
  PythonFloat,
  type PythonValue,
} from '@espalier/text/python'
import { describeOutcome } from '../../../base/core/outcome.ts'
import { isUnscored } from '../../rows/row-record.ts'
import { type Conversation, conversationsOf, withoutReasoning } from '../conversations.ts'
import type { ExportGroup, Format } from '../format.ts'

/**
 * tau-bench's results (tau_bench/run.py and types.py), written as the original writes them, floats
 * and all, trial by trial. Task ids are numbers there; the ids of other environments count from 0 in
 * the order of the run.
 */
export const tauBench: Format = {
  name: 'tau-bench',
  isWhole: true,
  summary: "tau-bench's results: one JSON array of conversations with rewards and trials",
  carries: ['rewards', 'reward parts', 'messages'],
  open(output, options) {
    const exported = new Set<string>()
    const trials = makeTrials()
    return {
      async write(source) {
        const conversations = conversationsOf(source.group, options)
        for (const conversation of conversations) {
          const task = taskNumber(source, conversation.member.trajectory.report)
          const trial = takeTrial(task, conversation.tree.member, exported)
          const entry = dumps(toEntry(source, conversation, { task, trial }), { indent: 2 })
          trials.add(trial, `\n  ${entry.replaceAll('\n', '\n  ')}`)
        }
        return conversations.length
      },
      async end() {
        let before = '['
        for (const entry of trials.inOrder()) {
          await output.write(`${before}${entry}`)
          before = ','
        }
        await output.write(exported.size === 0 ? '[]' : '\n]')
      },
    }
  },
  loading: file => [`python:  results = json.load(open(${JSON.stringify(file)}))`],
}

type Report = Readonly<Record<string, unknown>>

function toEntry(
  source: ExportGroup,
  conversation: Conversation,
  { task, trial }: { readonly task: number; readonly trial: number },
): PythonDict {
  const { member, messages } = conversation
  const report = tauReportOf(member.trajectory.report)
  const problem = isUnscored(member) ? describeOutcome(member.outcome) : report?.error
  const broke = typeof problem === 'string'
  return new Map<string, PythonValue>([
    ['task_id', task],
    ['reward', new PythonFloat(isUnscored(member) ? 0 : member.reward.total)],
    [
      'info',
      broke ? errorInfo(problem) : report ? tauInfo(report) : plainInfo(source, conversation),
    ],
    ['traj', broke ? [] : messages.map(message => fromJavaScript(withoutReasoning(message)))],
    ['trial', trial],
  ])
}

/** Written entries by trial: the originals write the first trials of all tasks, then the second. */
export function makeTrials() {
  const trials = new Map<number, string[]>()
  return {
    add(trial: number, entry: string): void {
      const known = trials.get(trial)
      if (known) known.push(entry)
      else trials.set(trial, [entry])
    },
    /** All entries, those of one trial in the order in which they came. */
    *inOrder(): Generator<string> {
      for (const [, entries] of [...trials].sort(([a], [b]) => a - b)) yield* entries
    },
  }
}

/** The trial number of an attempt; a task that is repeated gets further numbers, none is used twice. */
export function takeTrial(task: number | string, member: number, taken: Set<string>): number {
  let trial = member
  while (taken.has(`${task}/${trial}`)) trial++
  taken.add(`${task}/${trial}`)
  return trial
}

/** The number of a task: its place in its split, or in the run if it has none. */
export function taskNumber({ group, task, order }: ExportGroup, report: unknown): number {
  const index = tauReportOf(report)?.index ?? (task.data as Partial<Report> | null)?.index
  if (typeof index === 'number') return index
  return /^\d{1,15}$/.test(group.task) ? Number(group.task) : order
}

/** The report, if it is that of tau-bench's own world: all of a result's `info` is in it. */
function tauReportOf(report: unknown): Report | undefined {
  if (typeof report !== 'object' || report === null) return undefined
  return 'reward_info' in report && 'task' in report ? (report as Report) : undefined
}

function errorInfo(problem: string): PythonDict {
  return new Map([
    ['error', problem],
    ['traceback', ''],
  ])
}

function tauInfo({ task, source, user_cost, reward_info }: Report): PythonDict {
  const { outputs } = task as { readonly outputs?: readonly string[] }
  return new Map<string, PythonValue>([
    ['task', fromJavaScript(task)],
    ['source', fromJavaScript(source)],
    ['user_cost', toFloat(fromJavaScript(user_cost))],
    ['reward_info', rewardInfo(fromJavaScript(reward_info), outputs ?? [])],
  ])
}

/** Restores what JavaScript's JSON loses: whole floats, and the order of numeric keys. */
function rewardInfo(value: PythonValue, outputs: readonly string[]): PythonValue {
  if (!(value instanceof Map)) return value
  const info = value.get('info')
  value.set('reward', toFloat(value.get('reward') ?? null))
  if (!(info instanceof Map)) return value
  for (const name of ['r_outputs', 'r_actions']) {
    const verdict = info.get(name)
    if (verdict !== undefined) info.set(name, toFloat(verdict))
  }
  const said = info.get('outputs')
  if (said instanceof Map) {
    info.set('outputs', new Map(outputs.map(output => [output, said.get(output) ?? false])))
  }
  return value
}

const toFloat = (value: PythonValue): PythonValue =>
  typeof value === 'number' ? new PythonFloat(value) : value

function plainInfo(source: ExportGroup, { member }: Conversation): PythonDict {
  const reward = isUnscored(member) ? null : member.reward
  return new Map<string, PythonValue>([
    ['task', fromJavaScript(source.task.data)],
    ['source', source.group.task],
    ['user_cost', null],
    [
      'reward_info',
      fromJavaScript(
        reward && { reward: reward.total, info: { parts: reward.parts }, actions: [] },
      ),
    ],
  ])
}
