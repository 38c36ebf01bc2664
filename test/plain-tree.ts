import type { Message, ToolDefinition } from '@espalier/text'
import type { TaskId, TrajectoryId, TreeId } from '../src/base/core/ids.ts'
import type { Outcome } from '../src/base/core/outcome.ts'
import { plainSampling, type Sampling } from '../src/base/core/policy.ts'
import { given, type SampledParts, sampled } from '../src/base/core/segment.ts'
import type { CallRecord } from '../src/base/core/tool.ts'
import type { TrajectoryEvent } from '../src/base/core/trajectory.ts'
import { plantTree, root, type Tree } from '../src/base/core/tree.ts'

/** The parts of a one-turn chain that matter to a test. */
export interface PlainTree {
  readonly task?: string
  readonly prompt?: Int32Array
  readonly sampled?: Partial<SampledParts>
  readonly answer?: string
  readonly opening?: string
  readonly calls?: readonly Partial<CallRecord>[]
  readonly tools?: number
  readonly outcome?: Outcome
  readonly sampling?: Partial<Sampling>
  readonly events?: readonly TrajectoryEvent[]
}

let count = 0

const toolOf = (index: number): ToolDefinition => ({
  type: 'function',
  function: { name: `tool${index}`, parameters: {} },
})

/** A chain with one turn, all of it made up but for what is given. */
export function plainTree(parts: PlainTree = {}): Tree {
  const { task = 'task', answer = 'yes', opening = 'do it', calls = [], tools = 0 } = parts
  const id = `${task}/${count++}` as TreeId
  const tree = plantTree({
    id,
    task: task as TaskId,
    member: 0,
    seed: 1,
    sampling: { ...plainSampling, ...parts.sampling },
    tools: Array.from({ length: tools }, (_, index) => toolOf(index)),
    renderer: 'plain',
  })
  const ids = parts.sampled?.ids ?? Int32Array.of(1, 2, 3)
  const logprobs = parts.sampled?.logprobs ?? Float32Array.from(ids, () => -0.5)
  const at = tree.append(root, given('prompt', parts.prompt ?? Int32Array.of(9)))
  const version = { from: 0, to: 0 }
  const end = tree.append(at, sampled({ version, ...parts.sampled, ids, logprobs }))
  const messages: Message[] = [
    { role: 'user', content: opening },
    { role: 'assistant', content: answer },
  ]
  tree.end({
    id: `${id}/0` as TrajectoryId,
    end,
    outcome: parts.outcome ?? { kind: 'completed' },
    turns: [{ from: 2, end, finish: { kind: 'stop' }, messages: 1 }],
    messages,
    calls: calls.map(call => ({
      turn: 0,
      id: 'call',
      tool: 'tool0',
      input: {},
      output: 'ok',
      seconds: 0.5,
      ...call,
    })),
    fidelity: { kind: 'exact', forks: [] },
    usage: { sampled: ids.length, prompt: 1 },
    events: parts.events ?? [],
    volatile: {
      seconds: { policy: 1, tools: 0.5, environment: 0, reward: 0 },
      cached: 0,
      servers: [],
    },
    share: 1,
  })
  return tree
}
