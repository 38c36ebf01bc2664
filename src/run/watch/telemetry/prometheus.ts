import type { Lanes } from '../../../base/core/lane.ts'
import type { Tree } from '../../../base/core/tree.ts'
import type { Listen, RunEvent, WorkerStatus } from '../events.ts'
import { figuresOf } from '../tree-figures.ts'

type Labels = Readonly<Record<string, string>>

/** A metric in Prometheus' text format. */
interface Family {
  readonly type: 'counter' | 'gauge' | 'summary'
  readonly help: string
  readonly values: Map<string, number>
}

const families = {
  espalier_attempts_started_total: ['counter', 'Attempts that were begun.'],
  espalier_trajectories_total: ['counter', 'Trajectories that ended, by outcome.'],
  espalier_groups_total: ['counter', 'Groups that are complete.'],
  espalier_dropped_total: ['counter', 'Trajectories that filters dropped, by filter.'],
  espalier_tokens_total: ['counter', 'Tokens, by kind: prompt, cached, sampled.'],
  espalier_samples_total: ['counter', 'Samples that were drawn, by finish.'],
  espalier_sample_seconds: ['summary', 'Seconds that samples took.'],
  espalier_reward: ['summary', 'Rewards of scored trajectories.'],
  espalier_retries_total: ['counter', 'Requests that were repeated, by problem.'],
  espalier_tool_calls_total: ['counter', 'Calls of tools, by tool and problem.'],
  espalier_lane_seconds_total: ['counter', 'Seconds of attempts, by lane.'],
  espalier_lane_running: ['gauge', 'Pieces of work in a lane now, by lane.'],
  espalier_lane_waiting: ['gauge', 'Pieces of work that wait for a place in a lane now, by lane.'],
  espalier_lane_limit: ['gauge', 'Pieces of work that a lane lets run at one time, by lane.'],
  espalier_warnings_total: ['counter', 'Warnings of sentinels, by sentinel.'],
  espalier_concurrency: ['gauge', 'Requests that may run at one time, where signals move it.'],
  espalier_worker_running: ['gauge', 'Attempts that a worker makes now, by worker.'],
  espalier_worker_concurrency: ['gauge', 'Attempts that a worker may make at one time, by worker.'],
  espalier_worker_done_total: ['counter', 'Attempts that a worker made, by worker.'],
  espalier_worker_sampled_total: ['counter', 'Tokens that a worker sampled, by worker.'],
  espalier_worker_silent_seconds: [
    'gauge',
    'Seconds since a worker said that it is there, by worker.',
  ],
} as const satisfies Record<string, readonly [Family['type'], string]>

type FamilyName = keyof typeof families

/** Counts the events of a run. */
export interface Metrics {
  readonly listen: Listen
  /** All of it in Prometheus' text format. */
  text(): string
}

/** Opens the metrics of a run. */
export function makeMetrics(): Metrics {
  const values = new Map<FamilyName, Map<string, number>>()
  const put = (name: FamilyName, labels: Labels, change: (old: number) => number): void => {
    const series = values.get(name) ?? new Map<string, number>()
    values.set(name, series)
    const key = labelText(labels)
    series.set(key, change(series.get(key) ?? 0))
  }
  const add = (name: FamilyName, labels: Labels = {}, by = 1): void => {
    put(name, labels, old => old + by)
  }
  const set: Counting['set'] = (name, to, labels = {}) => put(name, labels, () => to)
  const open = new Set<Lanes>()
  return {
    listen(event) {
      if (event.kind === 'lanes-open') open.add(event.lanes)
      else if (event.kind === 'lanes-close') open.delete(event.lanes)
      else count(event, { add, set })
    },
    text() {
      measureLanes([...open], set)
      return Object.entries(families)
        .flatMap(([name, [type, help]]) => {
          const series = values.get(name as FamilyName)
          if (!series) return []
          return [
            `# HELP ${name} ${help}`,
            `# TYPE ${name} ${type}`,
            ...[...series].map(([key, value]) => line(name, key, value)),
          ]
        })
        .join('\n')
        .concat('\n')
    },
  }
}

/** Measures lanes at the time of a request; a training run may have several of one name open. */
function measureLanes(open: readonly Lanes[], set: Counting['set']): void {
  for (const lane of ['policy', 'tools', 'environment', 'reward'] as const) {
    const sum = (part: 'running' | 'waiting' | 'limit'): number =>
      open.reduce((total, lanes) => total + lanes[lane][part], 0)
    set('espalier_lane_running', sum('running'), { lane })
    set('espalier_lane_waiting', sum('waiting'), { lane })
    set('espalier_lane_limit', sum('limit'), { lane })
  }
}

/** Summaries keep their part, `_sum` or `_count`, in front of the labels. */
function line(name: string, key: string, value: number): string {
  const part = /^\{part="(_sum|_count)"\}$/.exec(key)?.[1]
  return part ? `${name}${part} ${value}` : `${name}${key} ${value}`
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

function escaped(value: string): string {
  return value.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n')
}

interface Counting {
  add(name: FamilyName, labels?: Labels, by?: number): void
  set(name: FamilyName, to: number, labels?: Labels): void
}

type Handlers = {
  readonly [Kind in RunEvent['kind']]?: (
    event: Extract<RunEvent, { kind: Kind }>,
    counting: Counting,
  ) => void
}

const handlers: Handlers = {
  'attempt-start': (_event, { add }) => add('espalier_attempts_started_total'),
  'sample-end': ({ finish, prompt, sampled, cached = 0, seconds }, counting) => {
    counting.add('espalier_samples_total', { finish })
    for (const [kind, tokens] of Object.entries({ prompt, sampled, cached })) {
      counting.add('espalier_tokens_total', { kind }, tokens)
    }
    observe('espalier_sample_seconds', seconds, counting)
  },
  retry: ({ status, problem }, { add }) =>
    add('espalier_retries_total', { problem: String(status ?? problem) }),
  'tree-end': ({ tree }, { add }) => addTree(tree, add),
  'group-end': ({ group }, counting) => {
    counting.add('espalier_groups_total')
    for (const { reward, dropped } of group.members) {
      observe('espalier_reward', reward.total, counting)
      if (dropped) counting.add('espalier_dropped_total', { filter: dropped.filter })
    }
  },
  warning: ({ sentinel }, { add }) => add('espalier_warnings_total', { sentinel }),
  workers: ({ workers }, counting) => {
    for (const worker of workers) measureWorker(worker, counting)
  },
  'concurrency-change': ({ to }, { set }) => set('espalier_concurrency', to),
}

function measureWorker(
  { host, process, running, concurrency, done, sampled, silent }: WorkerStatus,
  { set }: Counting,
): void {
  const labels = { worker: `${host}:${process}` }
  set('espalier_worker_running', running, labels)
  set('espalier_worker_concurrency', concurrency, labels)
  set('espalier_worker_done_total', done, labels)
  set('espalier_worker_sampled_total', sampled, labels)
  set('espalier_worker_silent_seconds', silent, labels)
}

function observe(name: FamilyName, value: number, { add }: Counting): void {
  add(name, { part: '_sum' }, value)
  add(name, { part: '_count' })
}

function count(event: RunEvent, counting: Counting): void {
  const handle = handlers[event.kind] as ((event: RunEvent, counting: Counting) => void) | undefined
  handle?.(event, counting)
}

function addTree(tree: Tree, add: Counting['add']): void {
  for (const { outcome, volatile } of tree.trajectories) {
    const boundary = outcome.kind === 'failed' ? { boundary: outcome.boundary } : {}
    add('espalier_trajectories_total', { outcome: outcome.kind, ...boundary })
    for (const [lane, seconds] of Object.entries(volatile.seconds)) {
      add('espalier_lane_seconds_total', { lane }, seconds)
    }
  }
  for (const { tool, calls, problems } of figuresOf(tree).trajectories.flatMap(
    ({ tools }) => tools,
  )) {
    const broken = problems.reduce((sum, [, count]) => sum + count, 0)
    const all = broken < calls ? [...problems, ['none', calls - broken] as const] : problems
    for (const [problem, count] of all) {
      // Made-up tool names would make endless labels.
      const name = problem === 'unknown-tool' ? '' : tool
      add('espalier_tool_calls_total', { tool: name, problem }, count)
    }
  }
}
