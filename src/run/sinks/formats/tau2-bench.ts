import {
  dumps,
  fromJavaScript,
  type PythonDict,
  PythonFloat,
  type PythonValue,
  parseJson,
} from '@espalier/text/python'
import { isUnscored } from '../../rows/row-record.ts'
import { type Conversation, conversationsOf } from '../conversations.ts'
import type { Format } from '../format.ts'
import { makeTrials, takeTrial } from './tau-bench.ts'

/**
 * tau2-bench's results (tau2/data_model/simulation.py, `Results`): its own tools load them, measure
 * them, show them and grade them again. Attempts that failed outside the policy are written as its
 * `infrastructure_error`, which its metrics leave out.
 */
export const tau2Bench: Format = {
  name: 'tau2-bench',
  isWhole: true,
  summary: "tau2-bench's results: one JSON object with tasks, simulations and their rewards",
  carries: ['rewards', 'reward parts', 'messages'],
  open(output, options) {
    const results = new Results()
    const trials = makeTrials()
    return {
      async write(source) {
        const conversations = conversationsOf(source.group, options)
        for (const conversation of conversations) {
          const { trial, entry } = results.add(conversation)
          trials.add(trial, `\n    ${dumps(entry)}`)
        }
        return conversations.length
      },
      async end() {
        await output.write('{\n  "simulations": [')
        let before = ''
        for (const entry of trials.inOrder()) {
          await output.write(`${before}${entry}`)
          before = ','
        }
        await output.write(`\n  ],\n${results.rest()}\n}\n`)
      },
    }
  },
  loading: file => [`python:  results = Results.load(Path(${JSON.stringify(file)}))`],
}

type Report = Readonly<Record<string, unknown>>

/** A fixed time, so that the same run gives the same file. */
const NO_TIME = '1970-01-01T00:00:00'

class Results {
  readonly #tasks = new Map<string, string>()
  readonly #taken = new Set<string>()
  readonly #numbers = new Map<string, number>()
  #trials = 1
  #policy = ''
  #domain = 'unknown'
  #retrieval: PythonValue = null

  /** An attempt as the original keeps it, and the number of its trial. */
  add(conversation: Conversation): { readonly trial: number; readonly entry: PythonDict } {
    const { member, tree, messages } = conversation
    const report = tau2ReportOf(member.trajectory.report)
    const task = String(report?.task_id ?? tree.task)
    const number = this.#numbers.get(task) ?? this.#numbers.size
    this.#numbers.set(task, number)
    const trial = takeTrial(number, tree.member, this.#taken)
    this.#trials = Math.max(this.#trials, trial + 1)
    if (report) this.#remember(report, task)
    const system = messages.find(({ role }) => role === 'system')
    this.#policy ||= policyIn(typeof system?.content === 'string' ? system.content : '')
    return { trial, entry: simulation(conversation, { report, task, trial }) }
  }

  #remember(report: Report, task: string): void {
    this.#domain = String(report.domain)
    this.#retrieval = (report.retrieval as string | null) ?? null
    this.#tasks.set(task, String(report.task))
  }

  /** The rest of the file, beside the simulations. */
  rest(): string {
    const info = dict([
      ['git_commit', 'unknown'],
      ['num_trials', this.#trials],
      ['max_steps', 200],
      ['max_errors', 10],
      [
        'user_info',
        dict([
          ['implementation', 'user_simulator'],
          ['llm', null],
          ['llm_args', null],
          ['global_simulation_guidelines', null],
        ]),
      ],
      [
        'agent_info',
        dict([
          ['implementation', 'espalier'],
          ['llm', null],
          ['llm_args', null],
        ]),
      ],
      [
        'environment_info',
        dict([
          ['domain_name', this.#domain],
          ['policy', this.#policy],
          ['tool_defs', null],
        ]),
      ],
      ['seed', null],
      ['retrieval_config', this.#retrieval],
    ])
    const tasks = [...this.#tasks.values()].map(parseJson)
    return `  "timestamp": ${dumps(NO_TIME)},\n  "info": ${dumps(info)},\n  "tasks": ${dumps(tasks)}`
  }
}

const dict = (pairs: readonly (readonly [string, PythonValue])[]): PythonDict => new Map(pairs)

/** The domain policy in the agent's instructions. */
const policyIn = (system: string): string =>
  /<policy>\n([\s\S]*)\n<\/policy>/.exec(system)?.[1] ?? system

function tau2ReportOf(report: unknown): Report | undefined {
  const isOurs =
    typeof report === 'object' && report !== null && (report as Report).benchmark === 'tau2-bench'
  return isOurs ? (report as Report) : undefined
}

interface SimulationPlace {
  readonly report: Report | undefined
  readonly task: string
  readonly trial: number
}

function simulation(
  { member, tree }: Conversation,
  { report, task, trial }: SimulationPlace,
): PythonDict {
  const isFailed = isUnscored(member) || report === undefined
  const reason = isFailed ? 'infrastructure_error' : (report.termination_reason ?? 'max_steps')
  return dict([
    ['id', `${task}/${trial}`],
    ['task_id', task],
    ['timestamp', NO_TIME],
    ['start_time', NO_TIME],
    ['end_time', NO_TIME],
    ['duration', new PythonFloat(0)],
    ['termination_reason', reason as string],
    ['agent_cost', null],
    ['user_cost', toFloat((report?.user_cost as number | null | undefined) ?? null)],
    [
      'reward_info',
      isFailed ? null : fromJavaScript(report.reward_info ?? unfinished(String(reason))),
    ],
    ['messages', ((report?.messages ?? []) as readonly Report[]).map(toMessage)],
    ['trial', trial],
    ['seed', tree.member],
    ['mode', 'half_duplex'],
  ])
}

/** The original's record of a conversation that did not end. */
const unfinished = (reason: string): object => ({
  reward: 0,
  reward_basis: null,
  info: { note: `Simulation terminated prematurely. Termination reason: ${reason}` },
})

const toFloat = (value: number | null): PythonValue =>
  value === null ? null : new PythonFloat(value)

function toMessage(message: Report, index: number): PythonDict {
  const { role, content, tool_calls, cost, id, requestor, error } = message
  const common: [string, PythonValue][] = [
    ['role', role as string],
    ['content', (content as string | null) ?? null],
    ['turn_idx', index],
    ['timestamp', NO_TIME],
  ]
  if (role === 'tool')
    return dict([
      ['id', id as string],
      ...common,
      ['requestor', requestor as string],
      ['error', error === true],
    ])
  const calls = (tool_calls as readonly Report[] | null)?.map(call =>
    dict([
      ['id', call.id as string],
      ['name', call.name as string],
      ['arguments', parseJson(String(call.arguments))],
      ['requestor', call.requestor as string],
    ]),
  )
  return dict([
    ...common,
    ['tool_calls', calls ?? null],
    ['cost', toFloat((cost as number | null | undefined) ?? null)],
  ])
}
